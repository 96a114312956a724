//! Who decodes and who writes.
//!
//! Any worker does whatever is there to do: writing first, as that frees a block, and decoding the next block otherwise,
//! which it writes while it decodes. So the blocks in memory are as many as there are workers at most, and fewer where
//! memory is short. As soon as a worker has nothing to do, the others leave it the pieces of their blocks: a single block is
//! written by all.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::window::{Piece, Window};

/// Pieces that are written together: enough for the queue not to count ...
const BATCH_PIECES_MAX: usize = 256;

/// ... and so little that the last worker does not work alone for long.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// So much of a file is written before the rest of its block is there; less waits, so that it is made, written and closed
/// in one go.
const HELD_MAX: u64 = 1 << 20;

/// What may happen at the same time.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) decoding: usize,
    pub(super) writing: usize,
    /// Blocks in memory.
    pub(super) blocks: usize,
}

/// What a worker does next.
pub(super) enum Task {
    /// Pieces of one block, with room for it.
    Decode(Range<usize>, Buffers),
    /// Some of these, from the bytes of the block.
    Write(Arc<Vec<u8>>, Range<usize>),
    /// Files without data, as a range of [`Window::empty`].
    Empty(Range<usize>),
}

/// Memory that was used before or not.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) payload: Vec<u8>,
    pub(super) block: Vec<u8>,
}

/// Memory to use again: as much as was in use at once.
#[derive(Default)]
pub(super) struct Spare {
    payloads: Vec<Vec<u8>>,
    blocks: Vec<Vec<u8>>,
}

/// The work of one window.
pub(super) struct Pool<'a> {
    window: &'a Window,
    limits: Limits,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    ready: VecDeque<(Arc<Vec<u8>>, Range<usize>)>,
    /// The first piece of the next block.
    next_piece: usize,
    next_empty: usize,
    decoding: usize,
    writing: usize,
    blocks: usize,
    /// Workers that wait.
    idle: usize,
    spare: Spare,
    is_over: bool,
}

impl<'a> Pool<'a> {
    pub(super) fn new(window: &'a Window, limits: Limits, spare: Spare) -> Self {
        Self {
            window,
            limits,
            queue: Mutex::new(Queue {
                ready: VecDeque::new(),
                next_piece: 0,
                next_empty: 0,
                decoding: 0,
                writing: 0,
                blocks: 0,
                idle: 0,
                spare,
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for something to do; `None` when nothing is left.
    pub(super) fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(task) = queue.take(self.window, self.limits) {
                return Some(task);
            }
            let is_all_begun = queue.next_piece >= self.window.pieces.len()
                && queue.next_empty >= self.window.empty.len();
            if is_all_begun && queue.decoding == 0 && queue.ready.is_empty() {
                return None;
            }
            queue.idle += 1;
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Whether a worker has nothing to do.
    pub(super) fn is_somebody_idle(&self) -> bool {
        self.lock().idle > 0
    }

    /// A block is decoded: `pieces` of it are still to be written.
    pub(super) fn decoded(&self, buffers: Buffers, pieces: Range<usize>) {
        if pieces.is_empty() {
            return self.failed(buffers);
        }
        let block = Arc::new(buffers.block);
        let batches = batches(&self.window.pieces, pieces);
        let mut queue = self.lock();
        queue.decoding -= 1;
        queue.spare.payloads.push(buffers.payload);
        let of_block = batches.map(|batch| (Arc::clone(&block), batch));
        queue.ready.extend(of_block);
        drop(queue);
        drop(block);
        self.changed.notify_all();
    }

    /// Nothing of a block is to be written, as all was or as it cannot be decoded.
    pub(super) fn failed(&self, buffers: Buffers) {
        let mut queue = self.lock();
        queue.decoding -= 1;
        queue.blocks -= 1;
        queue.spare.payloads.push(buffers.payload);
        queue.spare.blocks.push(buffers.block);
        drop(queue);
        self.changed.notify_all();
    }

    /// A batch is written.
    pub(super) fn written(&self, block: Option<Arc<Vec<u8>>>) {
        // Of all who come with the block, the last one gets it.
        let buffer = block.and_then(Arc::into_inner);
        let mut queue = self.lock();
        queue.writing -= 1;
        if let Some(buffer) = buffer {
            queue.blocks -= 1;
            queue.spare.blocks.push(buffer);
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Nothing more is to be done.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Buffers for the next window.
    pub(super) fn into_spare(self) -> Spare {
        let queue = self.queue.into_inner();
        queue.unwrap_or_else(PoisonError::into_inner).spare
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take(&mut self, window: &Window, limits: Limits) -> Option<Task> {
        if self.writing < limits.writing {
            if let Some((block, pieces)) = self.ready.pop_front() {
                self.writing += 1;
                return Some(Task::Write(block, pieces));
            }
            if self.next_empty < window.empty.len() {
                self.writing += 1;
                let start = self.next_empty;
                self.next_empty = window.empty.len().min(start + BATCH_PIECES_MAX);
                return Some(Task::Empty(start..self.next_empty));
            }
        }
        let rest = window.pieces.get(self.next_piece..).unwrap_or_default();
        let block = rest.first()?.block;
        if self.decoding >= limits.decoding || self.blocks >= limits.blocks {
            return None;
        }
        let start = self.next_piece;
        self.next_piece += rest.partition_point(|piece| piece.block == block);
        self.decoding += 1;
        self.blocks += 1;
        let buffers = Buffers {
            payload: self.spare.payloads.pop().unwrap_or_default(),
            block: self.spare.blocks.pop().unwrap_or_default(),
        };
        Some(Task::Decode(start..self.next_piece, buffers))
    }
}

/// The end of those pieces in front of `rest` that can be written when the first `len` bytes of their block are decoded.
pub(super) fn ready(pieces: &[Piece], rest: &Range<usize>, len: usize) -> usize {
    let is_there =
        |piece: &&Piece| u64::from(piece.block_offset) + u64::from(piece.len) <= len as u64;
    let open = pieces.get(rest.clone()).unwrap_or_default();
    let count = open.iter().take_while(is_there).count();
    let (there, missing) = open.split_at(count);
    // A file in several pieces should not be opened for each of them.
    let held = missing.first().map_or(0, |next| {
        let of_file = there
            .iter()
            .rev()
            .take_while(|piece| piece.file == next.file);
        let (held, bytes) = of_file.fold((0, 0), |(count, bytes), piece| {
            (count + 1, bytes + u64::from(piece.len))
        });
        if bytes < HELD_MAX { held } else { 0 }
    });
    rest.start + count - held
}

/// Cuts the pieces of a block into batches, between files unless one of them is large.
fn batches(pieces: &[Piece], range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let mut end = start;
        let mut file = None;
        while end < range.end {
            let piece = pieces.get(end)?;
            let is_full = bytes >= BATCH_BYTES_MAX || end - start >= BATCH_PIECES_MAX;
            let is_very_full = bytes >= 2 * BATCH_BYTES_MAX;
            if is_very_full || (is_full && file != Some(piece.file)) {
                break;
            }
            file = Some(piece.file);
            bytes += u64::from(piece.len);
            end += 1;
        }
        let batch = start..end;
        start = end;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use durin_format::BlockIndex;

    fn piece(file: u32, len: u32) -> Piece {
        Piece {
            block: BlockIndex(0),
            file,
            block_offset: 0,
            len,
            file_offset: 0,
        }
    }

    #[test]
    fn batches_end_between_files_unless_one_is_large() {
        let small: Vec<Piece> = (0..1000).map(|file| piece(file / 3, 10)).collect();
        let found: Vec<_> = batches(&small, 0..1000).collect();
        assert_eq!(found, [0..258, 258..516, 516..774, 774..1000]);
        let large: Vec<Piece> = (0..5).map(|_| piece(7, 3 << 20)).collect();
        let found: Vec<_> = batches(&large, 1..5).collect();
        assert_eq!(found, [1..4, 4..5]);
        assert_eq!(batches(&large, 5..5).count(), 0);
    }

    #[test]
    fn what_is_decoded_can_be_written_but_for_a_file_that_goes_on() {
        let at = |file, block_offset, len| Piece {
            block_offset,
            ..piece(file, len)
        };
        let small = [
            at(1, 0, 10),
            at(2, 10, 5),
            at(2, 15, 5),
            at(2, 0, 30),
            at(3, 40, 1),
        ];
        let ends = [0, 9, 10, 15, 20, 30, 40, 41];
        let found = ends.map(|len| ready(&small, &(0..5), len));
        assert_eq!(found, [0, 0, 1, 1, 1, 4, 4, 5]);
        assert_eq!(ready(&small, &(2..5), 30), 4);
        let large: Vec<Piece> = (0..4).map(|place| at(7, place << 19, 1 << 19)).collect();
        let found = [1, 2, 3, 4].map(|count| ready(&large, &(0..4), count << 19));
        assert_eq!(found, [0, 2, 3, 4]);
    }

    #[test]
    fn few_blocks_are_in_memory_and_buffers_are_used_again() {
        let mut window = Window::default();
        for block in 0..3 {
            window.pieces.push(Piece {
                block: BlockIndex(block),
                ..piece(block, 1)
            });
        }
        let limits = Limits {
            decoding: 2,
            writing: 2,
            blocks: 1,
        };
        let pool = Pool::new(&window, limits, Spare::default());
        let mut capacities = Vec::new();
        for block in 0..3 {
            let Some(Task::Decode(pieces, mut buffers)) = pool.next() else {
                panic!("nothing to decode");
            };
            assert_eq!(pieces, block..block + 1);
            assert!(pool.lock().take(&window, limits).is_none());
            for buffer in [&mut buffers.payload, &mut buffers.block] {
                capacities.push(buffer.capacity());
                buffer.clear();
                buffer.extend([0; 100]);
            }
            pool.decoded(buffers, pieces);
            let Some(Task::Write(bytes, pieces)) = pool.next() else {
                panic!("nothing to write");
            };
            assert_eq!(pieces, block..block + 1);
            pool.written(Some(bytes));
        }
        assert!(pool.next().is_none());
        assert_eq!(capacities[..2], [0; 2]);
        assert!(capacities[2..].iter().all(|capacity| *capacity >= 100));
        let spare = pool.into_spare();
        assert_eq!((spare.payloads.len(), spare.blocks.len()), (1, 1));
    }
}
