//! Cutting contents into blocks and chunks, and finding what is there already.
//!
//! In: runs in any order, with the anchors that the threads that read have found in them. Out: numbered blocks, and for
//! each content its chunks. Data is taken in the order of the runs; what repeats earlier data of the image, however far
//! back, becomes a chunk that points there. One thread, because each byte's place depends on all before it; it only looks
//! up, compares and copies.
//! Memory: the index, the history, the block being filled, runs that wait for an earlier one, and 12 bytes for each chunk.
//!
//! [`cut`] decides, [`rules`] says by which measure, [`index`] knows where anchors are, [`history`] has the bytes,
//! [`group`] says where blocks end before they are full, [`spread`] bounds the blocks a small file is spread over,
//! [`shares`] tells how much it has in each, [`chunks`] keeps the result.

mod chunks;
mod cut;
mod group;
mod history;
mod index;
mod reread;
mod rules;
mod shares;
mod spread;
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use durin_codec::prefer_huge_pages;
use durin_format::{Error, Result};

use crate::category::CategoryIndex;
use crate::context::Context;
use crate::read::{Piece, PieceKind, Run, Source};
use crate::segment::cut::{Cutter, Data, Sink};
use crate::segment::reread::SourceReread;
use crate::stats::{Stage, StageThread};

pub(crate) use chunks::{ChunkKind, Chunks, RawChunk};
pub(crate) use cut::{Anchor, Bounds};
pub(crate) use index::IndexLimits;
pub(crate) use rules::Rules;

use chunks::FragmentKey;

/// A full block, or the last one of its stream.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) number: u32,
    /// The place of the stream in the list of streams.
    pub(crate) stream: usize,
    /// Shared with the history.
    pub(crate) data: Arc<Vec<u8>>,
}

/// Leave to have one more block in memory; taken before a block is begun and given back when it is written.
#[derive(Debug)]
pub(crate) struct Permit;

/// The queues around the segmenter.
pub(crate) struct Queues {
    pub(crate) runs: Receiver<Run>,
    /// Takes buffers of runs back.
    pub(crate) free: Sender<Vec<u8>>,
    pub(crate) permits: Receiver<Permit>,
    pub(crate) blocks: Sender<Block>,
    /// Memory of blocks that have been compressed, to be used again: clean pages cost more than filling them.
    pub(crate) spare: Receiver<Vec<u8>>,
}

/// Cuts contents into blocks.
pub(crate) struct Segmenter<'a> {
    source: &'a Source<'a>,
    runs: Receiver<Run>,
    free: Sender<Vec<u8>>,
    cutter: Cutter<SourceReread<'a>, BlockQueue<'a>>,
    block_size: u32,
}

/// Where blocks go.
struct BlockQueue<'a> {
    context: Context<'a>,
    thread: StageThread,
    /// The place of the current stream, if one has been begun, its category, and the length of its blocks.
    stream: Option<usize>,
    category: CategoryIndex,
    block_len: usize,
    permits: Receiver<Permit>,
    blocks: Sender<Block>,
    spare: Receiver<Vec<u8>>,
    block_categories: Vec<CategoryIndex>,
}

impl Sink for BlockQueue<'_> {
    fn begin(&mut self) -> Result<Vec<u8>> {
        let permit = self.thread.wait_out(|| self.permits.recv());
        let Permit = permit.map_err(|_| Error::cancelled())?;
        let mut buffer = self.spare.try_recv().unwrap_or_default();
        buffer.clear();
        if buffer.capacity() < self.block_len {
            buffer = Vec::new();
            buffer.reserve_exact(self.block_len);
            prefer_huge_pages(&mut buffer);
        }
        Ok(buffer)
    }

    fn block(&mut self, number: u32, data: Arc<Vec<u8>>) -> Result<()> {
        let stats = self.context.stats;
        stats.blocks_made.add(1);
        stats.block_bytes.add(data.len() as u64);
        stats.memory_bytes.add(data.len() as u64);
        self.block_categories.push(self.category);
        let block = Block {
            number,
            stream: self.stream.unwrap_or(0),
            data,
        };
        self.thread
            .wait_out(|| self.blocks.send(block))
            .map_err(|_| Error::cancelled())
    }
}

impl<'a> Segmenter<'a> {
    pub(crate) fn new(source: &'a Source<'a>, bounds: Bounds, queues: Queues) -> Self {
        let context = source.context;
        let sink = BlockQueue {
            context,
            thread: context.stats.enter(Stage::Segment),
            stream: None,
            category: 0,
            block_len: 0,
            permits: queues.permits,
            blocks: queues.blocks,
            spare: queues.spare,
            block_categories: Vec::new(),
        };
        let chunks = Chunks::for_contents(source.contents.len());
        let reread = SourceReread::new(source);
        Self {
            source,
            runs: queues.runs,
            free: queues.free,
            cutter: Cutter::new(bounds, reread, sink, chunks),
            block_size: context.block_size(),
        }
    }

    /// Works until no more runs come.
    ///
    /// # Errors
    /// `Limit` for too many chunks or blocks; `Cancelled` if nobody takes the blocks any more.
    pub(crate) fn run(mut self) -> Result<Chunks> {
        let mut early: BTreeMap<u64, Run> = BTreeMap::new();
        let mut next = 0;
        while let Ok(run) = self.cutter.sink.thread.wait_in(|| self.runs.recv()) {
            early.insert(run.number, run);
            while let Some(run) = early.remove(&next) {
                next += 1;
                self.take(&run)?;
                self.cutter.sink.thread.did(1, run.buffer.len() as u64);
                // The readers may have ended already.
                drop(self.free.send(run.buffer));
            }
        }
        let cutter = &mut self.cutter;
        cutter.finish()?;
        let stats = self.source.context.stats;
        stats.chunks.add(cutter.chunks.len() as u64);
        stats.index_bytes.add(cutter.index.memory());
        cutter.chunks.block_categories = std::mem::take(&mut cutter.sink.block_categories);
        Ok(self.cutter.chunks)
    }

    fn take(&mut self, run: &Run) -> Result<()> {
        if self.cutter.sink.stream != Some(run.stream) {
            self.begin_stream(run.stream)?;
        }
        let mut start = 0;
        let mut anchors = &run.anchors[..];
        for piece in &run.pieces {
            let fragment = FragmentKey {
                content: piece.content,
                offset: piece.fragment_offset,
            };
            if piece.group_kib > 0 {
                let len = u64::from(piece.group_kib) << 10;
                self.cutter.begin_group(piece.content, len)?;
            }
            let chunks = &mut self.cutter.chunks;
            match piece.kind {
                PieceKind::Data => {
                    let end = start + usize::try_from(piece.len).unwrap_or(usize::MAX);
                    let count = anchors.partition_point(|anchor| (anchor.at as usize) < end);
                    let (here, rest) = anchors.split_at(count);
                    let data = Data {
                        fragment,
                        offset: piece.offset,
                        bytes: &run.buffer[start..end],
                        base: start,
                        anchors: here,
                    };
                    self.cut(piece, &data)?;
                    (start, anchors) = (end, rest);
                }
                PieceKind::Hole => chunks.add(fragment, RawChunk::hole(piece.len))?,
                PieceKind::Lost => chunks.lose(piece.content),
            }
        }
        Ok(())
    }

    /// Blocks hold data of one stream only.
    fn begin_stream(&mut self, number: usize) -> Result<()> {
        let Some(stream) = self.source.streams.get(number) else {
            return Ok(());
        };
        let rules = Rules::of(&stream.settings, self.block_size);
        self.cutter.begin_stream(rules)?;
        let sink = &mut self.cutter.sink;
        sink.stream = Some(number);
        sink.category = stream.category;
        sink.block_len = stream.settings.block_len(self.block_size) as usize;
        Ok(())
    }

    fn cut(&mut self, piece: &Piece, data: &Data<'_>) -> Result<()> {
        let stats = self.source.context.stats;
        let known = self.cutter.found;
        let is_small = self.source.size(piece.content) < u64::from(self.block_size);
        self.cutter.cut(data, is_small)?;
        let found = self.cutter.found;
        stats.segment_matches.add(found.matches - known.matches);
        stats.segment_saved_bytes.add(found.bytes - known.bytes);
        stats.reread_grains.add(found.rereads - known.rereads);
        stats.segmented_bytes.add(data.bytes.len() as u64);
        stats.segmented_files.add(u64::from(piece.offset == 0));
        Ok(())
    }
}
