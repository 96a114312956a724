//! What is to be written, by block instead of by file.
//!
//! Files are listed in the order of their data until there is a [`Window`] full of pieces, which are then sorted by block.
//! All but the largest images fit into one window, so that every block is decoded exactly once, whatever the order in
//! which files use blocks and however little memory there is. Of more than 6.7 million pieces, a block is decoded once for
//! each window whose files use it; as files are listed in the order of their data, that is mostly one, and two at borders.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use durin_format::{BlockIndex, Error, Result};
use durin_reader::{Extent, Extents, Place};

use super::order::Files;
use super::part::FileState;
use super::write;
use crate::content::Written;
use crate::job::Job;

/// Bytes that a piece takes while a window is sorted.
const PIECE_BYTES: u64 = 40;

/// The least memory for pieces: room for 6.7 million, which hardly any image has, and is only taken where it is needed.
const MEMORY_MIN: u64 = 256 << 20;

/// Pieces are no larger, so that they can be written soon after they are decoded, and by several.
const PIECE_LEN_MAX: u32 = 1 << 20;

/// A range of a block that belongs into a file.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) block: BlockIndex,
    /// The place of its file among [`Window::files`].
    pub(super) file: u32,
    pub(super) block_offset: u32,
    pub(super) len: u32,
    pub(super) file_offset: u64,
}

/// Pieces sorted by block, and the files that they belong to.
#[derive(Default)]
pub(super) struct Window {
    pub(super) pieces: Vec<Piece>,
    pub(super) files: Vec<Arc<Target>>,
    /// The places of files without data among `files`.
    pub(super) empty: Vec<u32>,
}

/// A file to write.
pub(super) struct Target {
    /// Its place among [`Files`].
    pub(super) group: usize,
    /// Pieces that are not written yet, and one more as long as there may be others.
    left: AtomicU64,
    end: AtomicU64,
    has_holes: AtomicBool,
    pub(super) state: Mutex<FileState>,
}

/// Lists files, window by window.
pub(super) struct Lister<'a> {
    job: &'a Job<'a>,
    files: &'a Files,
    next_group: usize,
    /// The file that the last window had no room for all of.
    unfinished: Option<(Arc<Target>, Extents<'a>)>,
    pieces_max: usize,
}

/// Whether an earlier window has something of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    New,
    Begun,
}

/// How the listing of a file ended.
enum Listed {
    All,
    /// The window is full.
    Part,
}

impl Piece {
    /// Takes up to `len` bytes from the front.
    fn split(&mut self, len: u32) -> Option<Self> {
        let front = Self {
            len: self.len.min(len),
            ..*self
        };
        self.len -= front.len;
        // Beyond the end of any block it is an error anyway.
        self.block_offset = self.block_offset.saturating_add(front.len);
        self.file_offset += u64::from(front.len);
        (front.len > 0).then_some(front)
    }
}

impl Window {
    pub(super) fn file(&self, place: u32) -> Option<&Arc<Target>> {
        self.files.get(place as usize)
    }
}

impl<'a> Lister<'a> {
    pub(super) fn new(job: &'a Job<'a>, files: &'a Files) -> Self {
        let pieces_max = job.options.memory.max(MEMORY_MIN) / PIECE_BYTES;
        Self {
            job,
            files,
            next_group: 0,
            unfinished: None,
            pieces_max: usize::try_from(pieces_max).unwrap_or(usize::MAX),
        }
    }

    /// The next window; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<Window>> {
        let mut window = Window::default();
        while window.pieces.len() < self.pieces_max && window.files.len() < self.pieces_max {
            self.job.check_cancel()?;
            match self.unfinished.take() {
                Some((target, extents)) => self.list(&mut window, target, extents, Is::Begun)?,
                None => match self.begin()? {
                    Some((target, extents)) => self.list(&mut window, target, extents, Is::New)?,
                    None => break,
                },
            }
        }
        if window.files.is_empty() {
            return Ok(None);
        }
        // Stable: within a block the files stay together, and their pieces in order.
        window.pieces.sort_by_key(|piece| piece.block);
        Ok(Some(window))
    }

    /// Removes what there is of a file that will not be finished.
    pub(super) fn abandon(&mut self) {
        if let Some((target, _)) = self.unfinished.take() {
            target.fail(self.job, self.files.entries(target.group));
        }
    }

    /// The next file of which anything is known.
    fn begin(&mut self) -> Result<Option<(Arc<Target>, Extents<'a>)>> {
        while self.next_group < self.files.len() {
            let group = self.next_group;
            self.next_group += 1;
            let Some(entry) = self.files.entries(group).first() else {
                continue;
            };
            match self.job.image.chunks(entry.entry.inode) {
                Ok(extents) => return Ok(Some((Arc::new(Target::new(group)), extents))),
                Err(error) => self.give_up(group, error)?,
            }
        }
        Ok(None)
    }

    fn give_up(&self, group: usize, error: Error) -> Result<()> {
        write::give_up(self.job);
        let names = self.files.entries(group);
        self.job.skip(error.context(self.job.plan.shown_all(names)))
    }

    /// Adds the pieces of a file to the window, as far as there is room.
    fn list(
        &mut self,
        window: &mut Window,
        target: Arc<Target>,
        mut extents: Extents<'a>,
        is: Is,
    ) -> Result<()> {
        let before = window.pieces.len();
        let block_size = u64::from(self.job.image.block_size());
        let place =
            u32::try_from(window.files.len()).map_err(|_| Error::limit("2^32 files at a time"))?;
        let listed = loop {
            if window.pieces.len() >= self.pieces_max {
                break Ok(Listed::Part);
            }
            match extents.next() {
                None => break Ok(Listed::All),
                Some(extent) => {
                    let listed =
                        extent.and_then(|extent| target.list(window, place, &extent, block_size));
                    if let Err(error) = listed {
                        break Err(error);
                    }
                }
            }
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) if is == Is::New => {
                window.pieces.truncate(before);
                return self.give_up(target.group, error);
            }
            // Some of it may be there already; it goes when the rest is done.
            Err(error) => {
                window.pieces.truncate(before);
                let names = self.files.entries(target.group);
                target.fail(self.job, names);
                self.job
                    .skip(error.context(self.job.plan.shown_all(names)))?;
                Listed::All
            }
        };
        let count = window.pieces.len() - before;
        target.left.fetch_add(count as u64, Ordering::Relaxed);
        if matches!(listed, Listed::All) {
            // The window is handed to others only after this, so that nobody sees the file end early.
            target.left.fetch_sub(1, Ordering::Relaxed);
            if count == 0 {
                window.empty.push(place);
            }
        } else {
            self.unfinished = Some((Arc::clone(&target), extents));
        }
        window.files.push(target);
        Ok(())
    }
}

impl Target {
    fn new(group: usize) -> Self {
        Self {
            group,
            left: AtomicU64::new(1),
            end: AtomicU64::new(0),
            has_holes: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn list(
        &self,
        window: &mut Window,
        place: u32,
        extent: &Extent,
        block_size: u64,
    ) -> Result<()> {
        let end = extent.offset.saturating_add(extent.len);
        self.end.store(end, Ordering::Relaxed);
        match extent.place {
            Place::Hole => self.has_holes.store(true, Ordering::Relaxed),
            Place::Data { block, offset } => {
                let mut piece = Piece {
                    block,
                    file: place,
                    block_offset: offset,
                    len: u32::try_from(extent.len)
                        .map_err(|_| Error::corrupt(format!("chunk of {} bytes", extent.len)))?,
                    file_offset: extent.offset,
                };
                // What no block can have is an error as a whole.
                let len = match extent.len > block_size {
                    true => piece.len,
                    false => PIECE_LEN_MAX,
                };
                window
                    .pieces
                    .extend(std::iter::from_fn(|| piece.split(len)));
            }
        }
        Ok(())
    }

    /// Whether `count` pieces are all that is left to write.
    pub(super) fn is_last(&self, count: usize) -> bool {
        self.left.load(Ordering::Acquire) == count as u64
    }

    /// Counts pieces as done; true if they were the last ones.
    pub(super) fn done(&self, count: usize) -> bool {
        // What other threads wrote must be seen by the one who finishes.
        self.left.fetch_sub(count as u64, Ordering::AcqRel) == count as u64
    }

    /// What the file is when all is written.
    pub(super) fn written(&self) -> Written {
        Written {
            end: self.end.load(Ordering::Relaxed),
            has_holes: self.has_holes.load(Ordering::Relaxed),
        }
    }
}
