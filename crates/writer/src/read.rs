//! Fetching contents with several threads.
//!
//! In: streams of fragments in their order. Out: runs, numbered in that order; a run is a piece of a large fragment or
//! some small fragments of one stream, up to [`RUN_LEN`] bytes. The threads share a fixed number of buffers and take a buffer before they take
//! the next run, so that the run that is waited for always has one: memory is bounded, and nothing can lock up.
//! Holes take no bytes. This is where work on contents that does not depend on other contents belongs.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use durin_kernels::anchors;

use crate::category::{Fragment, Stream};
use crate::context::Context;
use crate::dedupe::{ContentIndex, Contents};
use crate::files::{FileIndex, Files, Opener, changed};
use crate::segment::{Anchor, Rules};
use crate::sparse::{Extent, SparseFiles};
use crate::stats::{Stage, StageThread};
use crate::tree::{Tree, count_of};

/// The most bytes of a run. Larger runs save little of the cost of passing them on and spoil the processor's caches.
pub(crate) const RUN_LEN: usize = 1 << 20;
/// The most pieces of a run, so that many tiny files are shared out among the threads.
const RUN_PIECES_MAX: usize = 256;
/// Runs in memory for each thread that reads: one being read, one on its way.
pub(crate) const RUNS_PER_READER: usize = 2;

/// A part of a fragment of a content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) content: ContentIndex,
    /// Where the fragment is, in bytes from the start of the content.
    pub(crate) fragment_offset: u64,
    /// Bytes from the start of the content.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// If it is the first of a fragment that begins a group, what the group has, in KiB; 0 otherwise.
    pub(crate) group_kib: u32,
    pub(crate) kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Data,
    Hole,
    /// Data that could not be read, and of which the run has no bytes.
    Lost,
}

/// Pieces of one stream that follow each other.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    /// The place of the stream in the list of streams.
    pub(crate) stream: usize,
    pub(crate) pieces: Vec<Piece>,
    /// The data pieces one after the other, and unused bytes behind them.
    pub(crate) buffer: Vec<u8>,
    /// The anchors of the data pieces, each counted from the start of the buffer.
    pub(crate) anchors: Vec<Anchor>,
}

/// What is read, and from where.
pub(crate) struct Source<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) tree: &'a Tree,
    pub(crate) files: &'a Files,
    pub(crate) sparse: &'a SparseFiles,
    pub(crate) contents: &'a Contents,
    pub(crate) streams: &'a [Stream],
    pub(crate) root: BorrowedFd<'a>,
}

/// What is not read yet.
struct Plan {
    next_run: u64,
    /// The place of the current stream.
    stream: usize,
    /// The place of its next fragment.
    next_place: usize,
    /// Regions of the fragment before it, in reverse order.
    regions: Vec<Piece>,
}

/// Runs of one build, shared by the threads that read.
pub(crate) struct Reader<'a> {
    source: &'a Source<'a>,
    plan: Mutex<Plan>,
}

impl<'a> Source<'a> {
    /// Returns what opens its files, for one thread.
    pub(crate) fn opener(&self) -> Opener<'a> {
        Opener::new(self.context, self.tree, self.files, self.root)
    }

    /// Returns how many bytes are to be read, without holes.
    pub(crate) fn data_len(&self) -> u64 {
        self.streams
            .iter()
            .map(|stream| self.stream_data_len(stream))
            .sum()
    }

    /// Returns how many bytes of one stream are to be read.
    pub(crate) fn stream_data_len(&self, stream: &Stream) -> u64 {
        let len = |fragment: &Fragment| match self.extents(fragment.content) {
            Some(_) => {
                let regions = self.regions(fragment).into_iter();
                let data = regions.filter(|region| region.kind == PieceKind::Data);
                data.map(|region| region.len).sum()
            }
            None => fragment.len,
        };
        stream.fragments.iter().map(len).sum()
    }

    /// Returns the data of a content with holes. All its files have the same.
    fn extents(&self, content: ContentIndex) -> Option<&[Extent]> {
        let file = self.contents.files(content).first()?;
        self.sparse.get(file).map(|extents| &**extents)
    }

    /// Returns the path of the first file that has a content, made printable.
    fn display(&self, content: ContentIndex) -> String {
        let file = self.contents.files(content).first();
        file.map_or_else(String::new, |file| {
            self.tree.display(self.files.file(*file).entry)
        })
    }

    pub(crate) fn size(&self, content: ContentIndex) -> u64 {
        let file = self.contents.files(content).first();
        file.map_or(0, |file| self.files.file(*file).size)
    }

    /// Returns how many entries the segmenter's index has with all anchors of all data, free ones included.
    pub(crate) fn index_entries(&self) -> u64 {
        let block_size = self.context.block_size();
        let entries = |stream: &Stream| {
            let density = Rules::of(&stream.settings, block_size).density?;
            // A table is between a third and two thirds full.
            Some((self.stream_data_len(stream) >> density.bits).saturating_mul(2))
        };
        self.streams.iter().filter_map(entries).sum()
    }

    /// Returns data and holes of a fragment, last first.
    fn regions(&self, fragment: &Fragment) -> Vec<Piece> {
        let end = fragment.offset + fragment.len;
        let region = |start: u64, end: u64, kind| Piece {
            content: fragment.content,
            fragment_offset: fragment.offset,
            offset: start,
            len: end - start,
            group_kib: 0,
            kind,
        };
        let mut regions = Vec::new();
        let mut at = fragment.offset;
        let whole = [Extent {
            offset: fragment.offset,
            len: fragment.len,
        }];
        let extents = self.extents(fragment.content).unwrap_or(&whole);
        let first = extents.partition_point(|extent| extent.offset + extent.len <= at);
        for extent in &extents[first..] {
            if extent.offset >= end {
                break;
            }
            let data_start = extent.offset.max(at);
            let data_end = (extent.offset + extent.len).min(end);
            regions.push(region(at, data_start, PieceKind::Hole));
            regions.push(region(data_start, data_end, PieceKind::Data));
            at = data_end;
        }
        regions.push(region(at, end, PieceKind::Hole));
        regions.retain(|region| region.len > 0);
        if let Some(first) = regions.first_mut() {
            first.group_kib = fragment.group_kib;
        }
        regions.reverse();
        regions
    }
}

impl Plan {
    /// Returns the next pieces, or nothing at the end.
    fn next(&mut self, source: &Source<'_>) -> Option<Run> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut free = RUN_LEN as u64;
        while pieces.len() < RUN_PIECES_MAX && free > 0 {
            let Some(region) = self.regions.last_mut() else {
                let Some(stream) = source.streams.get(self.stream) else {
                    break;
                };
                if let Some(fragment) = stream.fragments.get(self.next_place) {
                    self.next_place += 1;
                    self.regions = source.regions(fragment);
                    continue;
                }
                if !pieces.is_empty() {
                    break;
                }
                self.stream += 1;
                self.next_place = 0;
                continue;
            };
            let mut piece = *region;
            if piece.kind == PieceKind::Data {
                // A small fragment is not opened twice.
                if piece.len > free && piece.len <= RUN_LEN as u64 && !pieces.is_empty() {
                    break;
                }
                piece.len = piece.len.min(free);
                free -= piece.len;
            }
            region.offset += piece.len;
            region.len -= piece.len;
            region.group_kib = 0;
            if region.len == 0 {
                self.regions.pop();
            }
            pieces.push(piece);
        }
        if pieces.is_empty() {
            return None;
        }
        self.next_run += 1;
        Some(Run {
            number: self.next_run - 1,
            stream: self.stream,
            pieces,
            buffer: Vec::new(),
            anchors: Vec::new(),
        })
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            plan: Mutex::new(Plan {
                next_run: 0,
                stream: 0,
                next_place: 0,
                regions: Vec::new(),
            }),
        }
    }

    /// Reads runs into buffers from `free` and sends them off, until all are read or nobody wants them any more.
    pub(crate) fn work(&self, free: &Receiver<Vec<u8>>, runs: &Sender<Run>) {
        let mut opener = self.source.opener();
        let mut thread = self.source.context.stats.enter(Stage::Read);
        while let Ok(buffer) = thread.wait_out(|| free.recv()) {
            let next = self
                .plan
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(self.source);
            let Some(mut run) = next else {
                return;
            };
            run.buffer = buffer;
            self.fill(&mut opener, &mut run, &thread);
            if thread.wait_out(|| runs.send(run)).is_err() {
                return;
            }
        }
    }

    fn fill(&self, opener: &mut Opener<'_>, run: &mut Run, thread: &StageThread) {
        let source = self.source;
        if let Some(piece) = run.pieces.first() {
            let bytes = run.pieces.iter().map(|piece| piece.len).sum();
            thread.job(bytes, || source.display(piece.content));
        }
        // Buffers are made empty, and grow once.
        run.buffer.resize(RUN_LEN, 0);
        let block_size = source.context.block_size();
        let settings = source
            .streams
            .get(run.stream)
            .map(|stream| &stream.settings);
        let density = settings.and_then(|settings| Rules::of(settings, block_size).density);
        let mut start = 0;
        for piece in &mut run.pieces {
            if piece.kind != PieceKind::Data {
                continue;
            }
            let len = usize::try_from(piece.len).unwrap_or(RUN_LEN);
            let target = &mut run.buffer[start..start + len];
            if !source.context.is_cancelled() && self.read(opener, piece, target) {
                if let Some(density) = density {
                    anchors::find(target, density, |at, hash| {
                        let at = count_of(start + at);
                        run.anchors.push(Anchor { at, hash });
                    });
                }
                start += len;
            } else {
                piece.kind = PieceKind::Lost;
            }
        }
        thread.did(1, start as u64);
        thread.job_end();
    }

    /// Reads a piece from the first file of the content that still has it.
    fn read(&self, opener: &mut Opener<'_>, piece: &Piece, target: &mut [u8]) -> bool {
        let source = self.source;
        let files = source.contents.files(piece.content);
        for index in files {
            if source.files.is_lost(*index) {
                continue;
            }
            match self.read_from(opener, *index, piece, target, files.len() > 1) {
                Ok(()) => return true,
                Err(error) => source
                    .files
                    .lose(*index, source.tree, source.context, &error),
            }
        }
        false
    }

    fn read_from(
        &self,
        opener: &mut Opener<'_>,
        index: FileIndex,
        piece: &Piece,
        target: &mut [u8],
        is_shared: bool,
    ) -> io::Result<()> {
        let source = self.source;
        let file = source.files.file(index);
        if piece.offset == 0 {
            source
                .context
                .stats
                .set_current(|| source.tree.display(file.entry));
        }
        let open = opener.open(file)?;
        open.read_exact_at(target, piece.offset)?;
        // What stands for other files too must be what was hashed.
        if is_shared && open.is_modified(source.tree, file)? {
            return Err(changed());
        }
        Ok(())
    }
}
