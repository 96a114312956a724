//! Cutting contents into blocks and chunks.
//!
//! In: runs in any order. Out: numbered blocks, each but the last of a stream full, and for each content its chunks.
//! Data is appended in the order of the runs and cut at the ends of blocks; nothing here searches for repetitions, which
//! would take the place of [`Segmenter::append`]. One thread, because each byte's place depends on all before it.
//! Memory: the block being filled, runs that wait for an earlier one, and 12 bytes for each chunk.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender};
use durin_format::{Error, Result};

use crate::category::{CategoryIndex, Stream};
use crate::context::Context;
use crate::dedupe::ContentIndex;
use crate::read::{Piece, PieceKind, Run};
use crate::stats::{Stage, StageThread};
use crate::tree::count_of;

/// The most chunks of an image; their number must fit the 32 bits of the chunk table.
const CHUNKS_MAX: usize = u32::MAX as usize - 1;
/// Stands for the block of a hole until the number of blocks is known.
const HOLE: u32 = u32::MAX;

/// A part of a content: a range of a block, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawChunk {
    block: u32,
    offset: u32,
    size: u32,
}

/// What a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Data { block: u32, offset: u32, size: u32 },
    Hole { len: u64 },
}

impl RawChunk {
    fn hole(len: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = len.to_le_bytes();
        Self {
            block: HOLE,
            offset: u32::from_le_bytes([a, b, c, d]),
            size: u32::from_le_bytes([e, f, g, h]),
        }
    }

    pub(crate) fn kind(self) -> ChunkKind {
        if self.block == HOLE {
            let len = u64::from(self.size) << 32 | u64::from(self.offset);
            ChunkKind::Hole { len }
        } else {
            ChunkKind::Data {
                block: self.block,
                offset: self.offset,
                size: self.size,
            }
        }
    }
}

/// The chunks of all contents.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    list: Vec<RawChunk>,
    /// Where the chunks of the first fragment of each content are in the list.
    ranges: Vec<ChunkRange>,
    /// Where those of further fragments are, by content and offset.
    further: BTreeMap<(ContentIndex, u64), ChunkRange>,
    /// The category of each block.
    pub(crate) block_categories: Vec<CategoryIndex>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChunkRange {
    start: u32,
    end: u32,
    is_lost: bool,
}

impl Chunks {
    fn for_contents(count: u32) -> Self {
        Self {
            list: Vec::new(),
            ranges: vec![ChunkRange::default(); count as usize],
            further: BTreeMap::new(),
            block_categories: Vec::new(),
        }
    }

    /// Whether a content could not be read.
    pub(crate) fn is_lost(&self, content: ContentIndex) -> bool {
        self.ranges[content as usize].is_lost
    }

    /// Returns the chunks of a content from its start to its end; none if it could not be read.
    pub(crate) fn of(&self, content: ContentIndex) -> impl Iterator<Item = RawChunk> + Clone {
        let first = self.ranges[content as usize];
        let further = self.further.range((content, 1)..=(content, u64::MAX));
        let ranges = std::iter::once(first).chain(further.map(|(_, range)| *range));
        ranges
            .take_while(move |_| !first.is_lost)
            .flat_map(|range| &self.list[range.start as usize..range.end as usize])
            .copied()
    }

    fn range(&mut self, place: Place) -> &mut ChunkRange {
        match place.fragment_offset {
            0 => &mut self.ranges[place.content as usize],
            offset => self.further.entry((place.content, offset)).or_default(),
        }
    }

    /// Adds to the fragment that was added to last, or starts the next.
    fn push(&mut self, place: Place, chunk: RawChunk) -> Result<()> {
        if self.list.len() >= CHUNKS_MAX {
            return Err(Error::limit(format!(
                "more than {CHUNKS_MAX} chunks do not fit into an image; larger blocks make fewer"
            )));
        }
        let at = count_of(self.list.len());
        let range = self.range(place);
        if range.end == range.start {
            range.start = at;
        }
        range.end = at + 1;
        self.list.push(chunk);
        Ok(())
    }

    /// Makes the last chunk of the fragment longer if the data at `offset` follows it in the same block.
    fn extend(&mut self, place: Place, block: u32, offset: u32, size: u32) -> bool {
        let range = *self.range(place);
        let is_last = range.end > range.start && range.end as usize == self.list.len();
        match self.list.last_mut() {
            Some(chunk)
                if is_last && chunk.block == block && chunk.offset + chunk.size == offset =>
            {
                chunk.size += size;
                true
            }
            _ => false,
        }
    }
}

/// A fragment of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    content: ContentIndex,
    fragment_offset: u64,
}

impl Place {
    fn of(piece: &Piece) -> Self {
        Self {
            content: piece.content,
            fragment_offset: piece.fragment_offset,
        }
    }
}

/// A full block, or the last one of its stream.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) number: u32,
    /// The place of the stream in the list of streams.
    pub(crate) stream: usize,
    pub(crate) data: Vec<u8>,
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
}

/// Cuts contents into blocks.
pub(crate) struct Segmenter<'a> {
    context: Context<'a>,
    queues: Queues,
    streams: &'a [Stream],
    /// The place of the stream that is being cut.
    stream: usize,
    /// Bytes of a full block of this stream.
    block_size: usize,
    chunks: Chunks,
    number: u32,
    /// The block being filled, if one has been begun.
    block: Option<Vec<u8>>,
    thread: StageThread,
}

impl<'a> Segmenter<'a> {
    pub(crate) fn new(
        context: Context<'a>,
        content_count: u32,
        streams: &'a [Stream],
        queues: Queues,
    ) -> Self {
        Self {
            context,
            queues,
            streams,
            stream: usize::MAX,
            block_size: context.options.block_size() as usize,
            chunks: Chunks::for_contents(content_count),
            number: 0,
            block: None,
            thread: context.stats.enter(Stage::Segment),
        }
    }

    /// Works until no more runs come.
    ///
    /// # Errors
    /// `Limit` for too many chunks or blocks; `Cancelled` if nobody takes the blocks any more.
    pub(crate) fn run(mut self) -> Result<Chunks> {
        let mut early: BTreeMap<u64, Run> = BTreeMap::new();
        let mut next = 0;
        while let Ok(run) = self.thread.wait_in(|| self.queues.runs.recv()) {
            early.insert(run.number, run);
            while let Some(run) = early.remove(&next) {
                next += 1;
                self.take(&run)?;
                self.thread.did(1, run.buffer.len() as u64);
                // The readers may have ended already.
                drop(self.queues.free.send(run.buffer));
            }
        }
        self.finish_block()?;
        self.context.stats.chunks.add(self.chunks.list.len() as u64);
        Ok(self.chunks)
    }

    fn take(&mut self, run: &Run) -> Result<()> {
        if self.stream != run.stream {
            self.begin_stream(run.stream)?;
        }
        let mut start = 0;
        for piece in &run.pieces {
            match piece.kind {
                PieceKind::Data => {
                    let end = start + usize::try_from(piece.len).unwrap_or(usize::MAX);
                    self.append(piece, &run.buffer[start..end])?;
                    start = end;
                }
                PieceKind::Hole => self
                    .chunks
                    .push(Place::of(piece), RawChunk::hole(piece.len))?,
                PieceKind::Lost => self.chunks.ranges[piece.content as usize].is_lost = true,
            }
        }
        Ok(())
    }

    /// Blocks hold data of one stream only.
    fn begin_stream(&mut self, number: usize) -> Result<()> {
        self.finish_block()?;
        self.stream = number;
        if let Some(stream) = self.streams.get(number) {
            let block_size = self.context.options.block_size();
            self.block_size = stream.settings.block_len(block_size) as usize;
        }
        Ok(())
    }

    /// Appends data of a content to the block, and to further ones if it does not fit.
    fn append(&mut self, piece: &Piece, mut data: &[u8]) -> Result<()> {
        let stats = self.context.stats;
        stats.segmented_bytes.add(data.len() as u64);
        stats.segmented_files.add(u64::from(piece.offset == 0));
        while !data.is_empty() {
            let mut block = match self.block.take() {
                Some(block) => block,
                None => self.begin_block()?,
            };
            let len = data.len().min(self.block_size - block.len());
            let (now, later) = data.split_at(len);
            let offset = count_of(block.len());
            block.extend_from_slice(now);
            data = later;
            let is_full = block.len() == self.block_size;
            self.block = Some(block);
            let size = count_of(len);
            let place = Place::of(piece);
            if !self.chunks.extend(place, self.number, offset, size) {
                let chunk = RawChunk {
                    block: self.number,
                    offset,
                    size,
                };
                self.chunks.push(place, chunk)?;
            }
            if is_full {
                self.finish_block()?;
            }
        }
        Ok(())
    }

    /// Waits for leave to have another block.
    fn begin_block(&mut self) -> Result<Vec<u8>> {
        let permits = &self.queues.permits;
        let permit = self.thread.wait_out(|| permits.recv());
        let Permit = permit.map_err(|_| Error::cancelled())?;
        if self.number >= HOLE - 1 {
            return Err(Error::limit(
                "more than 2^32 - 2 blocks do not fit into an image",
            ));
        }
        Ok(Vec::with_capacity(self.block_size))
    }

    fn finish_block(&mut self) -> Result<()> {
        let Some(data) = self.block.take() else {
            return Ok(());
        };
        let stats = self.context.stats;
        stats.blocks_made.add(1);
        stats.block_bytes.add(data.len() as u64);
        stats.memory_bytes.add(data.len() as u64);
        let number = self.number;
        self.number += 1;
        let stream = self.stream;
        let category = self.streams.get(stream).map_or(0, |stream| stream.category);
        self.chunks.block_categories.push(category);
        let block = Block {
            number,
            stream,
            data,
        };
        let blocks = &self.queues.blocks;
        self.thread
            .wait_out(|| blocks.send(block))
            .map_err(|_| Error::cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_of_any_length() {
        for len in [1, u64::from(u32::MAX), 1 << 32, i64::MAX.cast_unsigned()] {
            assert_eq!(RawChunk::hole(len).kind(), ChunkKind::Hole { len });
        }
    }

    #[test]
    fn neighbours_of_one_content_are_one_chunk() {
        let chunk = |block, offset, size| RawChunk {
            block,
            offset,
            size,
        };
        let place = |content, fragment_offset| Place {
            content,
            fragment_offset,
        };
        let mut chunks = Chunks::for_contents(2);
        chunks.push(place(0, 0), chunk(0, 0, 10)).expect("room");
        assert!(chunks.extend(place(0, 0), 0, 10, 5), "follows");
        assert!(!chunks.extend(place(0, 0), 1, 0, 5), "another block");
        assert!(!chunks.extend(place(1, 0), 0, 15, 5), "another content");
        assert!(!chunks.extend(place(0, 15), 0, 15, 5), "another fragment");
        chunks.push(place(1, 0), chunk(0, 15, 5)).expect("room");
        assert!(
            !chunks.extend(place(0, 0), 0, 20, 5),
            "not the content that was added to last"
        );
        assert!(chunks.of(0).eq([chunk(0, 0, 15)]));
        assert!(chunks.of(1).eq([chunk(0, 15, 5)]));
    }

    #[test]
    fn fragments_join_in_the_order_of_their_offsets() {
        let chunk = |offset| RawChunk {
            block: 0,
            offset,
            size: 1,
        };
        let mut chunks = Chunks::for_contents(2);
        for (offset, fragment_offset) in [(0, 7), (1, 0), (2, 5)] {
            let place = Place {
                content: 0,
                fragment_offset,
            };
            chunks.push(place, chunk(offset)).expect("room");
        }
        assert!(chunks.of(0).eq([chunk(1), chunk(2), chunk(0)]));
        assert_eq!(chunks.of(1).count(), 0);
        chunks.ranges[0].is_lost = true;
        assert_eq!((chunks.of(0).count(), chunks.is_lost(0)), (0, true));
    }
}
