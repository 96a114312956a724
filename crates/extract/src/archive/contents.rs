//! The contents of files, read by several threads and handed on in the order of the archive.
//!
//! One thread lists what is to be read, cut where blocks begin, and has blocks decoded ahead; workers read; the thread that
//! writes the archive takes the results in order. **Memory**: a queue of [`Budget::queue_len`] batches and one at either end
//! of it, each of at most [`Budget::batch_bytes`] and one piece; the block cache has its own limit.
//!
//! Pieces are what a format compresses each for itself, and what zeros stand for where it cannot be read: the archive shows
//! where they end. So [`PIECE_LEN`] is the same for everybody, and memory and threads decide how many make a batch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use durin_format::{BlockIndex, Error, InodeNum, Result};
use durin_reader::{Attr, Place, ReadingPlan};

use super::layout::{Layout, Region};
use super::member::Links;
use super::prepare::{Position, Prepare, Prepared};
use crate::files::order::Files;
use crate::job::Run;
use crate::plan::Entry;

/// Bytes of a piece: zip is 0.2 percent larger than with pieces of 4 MiB (0.4 with half as many bytes), and with the least
/// memory a few of them are on their way all the same. All archives of type zip change with it.
const PIECE_LEN: u64 = 1 << 20;

/// Files of one batch.
const BATCH_FILES_MAX: usize = 256;

/// Bytes of a batch, as long as memory is not short: enough for a queue not to count.
const BATCH_BYTES: u64 = 4 << 20;

/// Fewer are not worth a turn of the queue.
const BATCH_BYTES_MIN: u64 = 64 << 10;

/// One step of the archive.
pub(super) enum Part {
    /// A file begins.
    Begin(Box<Head>),
    /// A piece of its content, which a worker replaces by one of the next two.
    Wanted(Piece),
    /// A piece of its content.
    Data(Prepared),
    /// A piece that cannot be read.
    Bad(Error, Piece),
    /// A file of which nothing can be read.
    Missing(usize, Error),
}

/// What is known of a file before its content is read.
pub(super) struct Head {
    /// Its place among [`Files`].
    pub(super) group: usize,
    /// Which of its names this is.
    pub(super) name: usize,
    pub(super) attr: Attr,
    pub(super) layout: Layout,
}

/// A range of a file.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    inode: InodeNum,
    offset: u64,
    pub(super) len: usize,
    pub(super) position: Position,
}

/// What the archive can use after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Whatever comes.
    Any,
    /// No more of the file, which is left out.
    AnotherFile,
}

/// What a format wants.
pub(super) struct Wanted {
    pub(super) links: Links,
    pub(super) keeps_holes: bool,
    pub(super) prepare: Prepare,
}

/// How much may be on its way.
#[derive(Clone, Copy)]
struct Budget {
    workers: usize,
    /// Batches on their way.
    queue_len: usize,
    batch_bytes: u64,
}

type Batch = Vec<Part>;

/// Reads all `files` and gives the parts to `take`, in order; ends at its first error.
pub(super) fn read(
    run: &Run<'_>,
    files: &Files,
    wanted: &Wanted,
    mut take: impl FnMut(Part) -> Result<Next>,
) -> Result<()> {
    let budget = Budget::new(run);
    let (work_sender, work) = bounded::<(Batch, Sender<Batch>)>(budget.queue_len);
    let (order_sender, order) = bounded::<Receiver<Batch>>(budget.queue_len);
    let (stop, left_out) = (AtomicBool::new(false), AtomicU64::new(0));
    let plan = run.image.plan_reading(files.inodes());
    thread::scope(|scope| {
        for number in 0..budget.workers {
            let work = work.clone();
            let stop = &stop;
            let worker = move || read_batches(run, &wanted.prepare, &work, stop);
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, worker) {
                // The others do it, if there are any.
                if number == 0 {
                    return Err(Error::io("cannot start a thread", error));
                }
                break;
            }
        }
        drop(work);
        let hand_out = HandOut {
            run,
            wanted,
            budget,
            plan: &plan,
            batch: Vec::new(),
            batch_bytes: 0,
            batch_files: 0,
            block: None,
            good_block: None,
            begun: 0,
            work: work_sender,
            order: order_sender,
            stop: &stop,
            left_out: &left_out,
        };
        thread::Builder::new()
            .spawn_scoped(scope, move || hand_out.all(files))
            .map_err(|error| Error::io("cannot start a thread", error))?;
        let mut result = Ok(());
        let mut begun = 0;
        'batches: for batch in order {
            // A worker that panicked has said so itself.
            for part in batch.recv().unwrap_or_default() {
                if let Part::Begin(head) = &part {
                    plan.done(head.group);
                    begun += 1;
                }
                match run.check_cancel().and_then(|()| take(part)) {
                    Ok(Next::Any) => {}
                    Ok(Next::AnotherFile) => left_out.store(begun, Ordering::Relaxed),
                    Err(error) => {
                        result = Err(error);
                        break 'batches;
                    }
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        result
    })
}

impl Budget {
    fn new(run: &Run<'_>) -> Self {
        let workers = run.options.workers();
        // Two for each worker keep all of them busy while one file takes long.
        let wanted = 2 * workers;
        let batches = (wanted + workers) as u64;
        let fitting = usize::try_from(run.options.memory / PIECE_LEN).unwrap_or(usize::MAX);
        Self {
            workers,
            queue_len: fitting.clamp(1, wanted),
            batch_bytes: (run.options.memory / batches).clamp(BATCH_BYTES_MIN, BATCH_BYTES),
        }
    }
}

fn read_batches(
    run: &Run<'_>,
    prepare: &Prepare,
    work: &Receiver<(Batch, Sender<Batch>)>,
    stop: &AtomicBool,
) {
    for (mut batch, done) in work {
        // The file whose piece could not be read: more of it is of no use.
        for part in &mut batch {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            if let Part::Wanted(piece) = part {
                *part = read_piece(run, prepare, *piece);
            }
        }
        // Nobody waits for it when the archive has failed.
        done.send(batch).ok();
    }
}

fn read_piece(run: &Run<'_>, prepare: &Prepare, piece: Piece) -> Part {
    let mut data = vec![0; piece.len];
    let read = run
        .image
        .read_at(piece.inode, piece.offset, &mut data)
        .and_then(|len| {
            if len == piece.len {
                return Ok(());
            }
            let end = piece.offset + len as u64;
            Err(Error::corrupt(format!("the content ends at {end}")))
        });
    match read.and_then(|()| prepare.run(data, piece.position)) {
        Ok(prepared) => Part::Data(prepared),
        Err(error) => Part::Bad(error, piece),
    }
}

/// Lists what is to be read.
struct HandOut<'a> {
    run: &'a Run<'a>,
    wanted: &'a Wanted,
    budget: Budget,
    plan: &'a ReadingPlan<'a>,
    batch: Batch,
    batch_bytes: u64,
    batch_files: usize,
    /// Where the last file began.
    block: Option<BlockIndex>,
    /// The block that was verified last.
    good_block: Option<BlockIndex>,
    /// Files that have begun.
    begun: u64,
    work: Sender<(Batch, Sender<Batch>)>,
    order: Sender<Receiver<Batch>>,
    stop: &'a AtomicBool,
    /// What `begun` was for the last file of which the archive wants no more; 0 for none.
    left_out: &'a AtomicU64,
}

impl HandOut<'_> {
    fn all(mut self, files: &Files) {
        for group in 0..files.len() {
            self.plan.come_to(group);
            let entries = files.entries(group);
            let names = match self.wanted.links {
                Links::AllHaveContent => entries.len(),
                Links::Named | Links::LastHasContent => 1,
            };
            for (name, entry) in entries.iter().take(names).enumerate() {
                if self.file(group, name, entry).is_none() {
                    return;
                }
            }
        }
        self.send();
    }

    /// Adds a file; `None` when nobody wants more.
    fn file(&mut self, group: usize, name: usize, entry: &Entry) -> Option<()> {
        let (head, block) = match self.look(group, name, entry) {
            Ok(found) => found,
            Err(error) => {
                self.batch.push(Part::Missing(group, error));
                return Some(());
            }
        };
        if block.is_some() && block != self.block {
            self.send()?;
            self.block = block;
        }
        if self.batch_files >= BATCH_FILES_MAX {
            self.send()?;
        }
        self.batch_files += 1;
        let regions = head.layout.regions.clone();
        let stored = head.layout.stored_len();
        let is_split = stored > PIECE_LEN || regions.len() > 1;
        if is_split
            && self.run.options.continue_on_error
            && let Err(error) = self.probe(entry)
        {
            self.batch.push(Part::Missing(group, error));
            return Some(());
        }
        self.begun += 1;
        self.batch.push(Part::Begin(Box::new(head)));
        self.pieces(entry.entry.inode, regions, stored)
    }

    /// Adds the pieces of a file; `None` when nobody wants more.
    fn pieces(&mut self, inode: InodeNum, regions: Vec<Region>, stored: u64) -> Option<()> {
        let mut left = stored;
        for region in regions {
            let mut offset = region.offset;
            let end = region.offset + region.len;
            while offset < end {
                // What is left out can have no end: a hole of terabytes.
                if self.left_out.load(Ordering::Relaxed) == self.begun {
                    return Some(());
                }
                let len = (end - offset).min(PIECE_LEN);
                let position = Position {
                    is_first: left == stored,
                    is_last: left == len,
                };
                self.batch.push(Part::Wanted(Piece {
                    inode,
                    offset,
                    len: usize::try_from(len).unwrap_or(usize::MAX),
                    position,
                }));
                offset += len;
                left -= len;
                self.batch_bytes += len;
                if self.batch_bytes >= self.budget.batch_bytes {
                    self.send()?;
                }
            }
        }
        Some(())
    }

    fn look(&self, group: usize, name: usize, entry: &Entry) -> Result<(Head, Option<BlockIndex>)> {
        let image = self.run.image;
        let attr = image.attr(entry.entry)?;
        let layout = if self.wanted.keeps_holes && attr.allocated < attr.size {
            Layout::sparse(attr.size, image.chunks(entry.entry.inode)?)?
        } else {
            Layout::dense(attr.size)
        };
        let first = image.chunks(entry.entry.inode)?.next().transpose()?;
        let block = first.and_then(|extent| match extent.place {
            Place::Data { block, .. } => Some(block),
            Place::Hole => None,
        });
        let head = Head {
            group,
            name,
            attr,
            layout,
        };
        Ok((head, block))
    }

    /// Looks for damage in a file that is written before all of it has been read, so that it can be left out.
    fn probe(&mut self, entry: &Entry) -> Result<()> {
        for extent in self.run.image.chunks(entry.entry.inode)? {
            if let Place::Data { block, .. } = extent?.place
                && self.good_block != Some(block)
            {
                self.run.image.cache().verify(block)?;
                self.good_block = Some(block);
            }
        }
        Ok(())
    }

    /// Sends the batch; `None` when nobody wants more.
    fn send(&mut self) -> Option<()> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.batch_bytes = 0;
        self.batch_files = 0;
        if self.batch.is_empty() {
            return Some(());
        }
        let (done, result) = bounded(1);
        self.order.send(result).ok()?;
        self.work.send((std::mem::take(&mut self.batch), done)).ok()
    }
}
