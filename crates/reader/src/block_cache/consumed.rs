//! Blocks that have been read as a whole, by a reader who keeps what it reads.
//!
//! The kernel keeps the pages of files that have been read, and asks for them once. When all that files have in a block has
//! been asked for, the block goes, and its memory serves for the next one: a file that is streamed takes some blocks
//! instead of all of the cache, and no new pages, which take a good part of the time of decoding.

use std::collections::VecDeque;
use std::sync::Arc;

use durin_format::BlockIndex;

use super::entries::Entries;
use super::entry::Entry;
use super::state::State;
use crate::sync::{AtomicU64, Mutex, OnceLock, Ordering, lock};

/// Nobody looks for what files have in blocks before so much has been decoded.
const DECODED_MIN: u64 = 32 << 20;

/// Blocks that somebody may still be reading are left for later, so many at a time.
const LOOKED_AT: usize = 4;

/// Blocks remembered for their memory. The others go as any block does.
const SPARE_MAX: usize = 64;

/// What has been read of all blocks.
#[derive(Default)]
pub(super) struct Consumed {
    /// For each block, the bytes that files have in it.
    references: OnceLock<Vec<Reference>>,
    /// Blocks that have been read as a whole, the first one in front.
    spare: Mutex<VecDeque<BlockIndex>>,
    /// Counts from 0 how often somebody came back to a block that had gone.
    rounds: AtomicU64,
}

/// What files have in a block.
struct Reference {
    /// Bytes of all files together, each file on its own.
    all: u64,
    /// The round in which all of it was read and the block went; 0 if it has not.
    gone_in: AtomicU64,
}

/// What becomes of a block that has been read as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Somebody still has it.
    Held,
    Over,
    /// It has gone, and may have come back.
    Anew,
}

impl Consumed {
    /// Whether it is time to find out what files have in blocks.
    pub(super) fn wants_references(&self, decoded_bytes: u64) -> bool {
        decoded_bytes >= DECODED_MIN && self.references.get().is_none()
    }

    pub(super) fn set_references(&self, references: Vec<u64>) {
        // Another thread may have been faster, with the same result.
        let references = references.into_iter().map(|all| Reference {
            all,
            gone_in: AtomicU64::new(0),
        });
        self.references.set(references.collect()).ok();
    }

    /// What files have in a block, if that is known.
    fn reference(&self, block: BlockIndex) -> Option<&Reference> {
        self.references.get()?.get(block.0 as usize)
    }

    /// Whether a block has gone because all of it was read: nobody should decode it ahead.
    pub(super) fn is_gone(&self, block: BlockIndex) -> bool {
        let round = self.round();
        let reference = self.reference(block);
        reference.is_some_and(|reference| reference.gone_in.load(Ordering::Relaxed) == round)
    }

    /// Notes that a block is read again. If it had gone, readers have lost what they had, and others may be wanted, too.
    pub(super) fn note_return(&self, block: BlockIndex) {
        if self.is_gone(block) {
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn round(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed) + 1
    }

    /// Notes that `len` bytes of a block have been read beside `before`.
    pub(super) fn note(&self, block: BlockIndex, before: u64, len: u64) {
        let all = self.reference(block).map(|reference| reference.all);
        let is_last = |all: &u64| before < *all && before.saturating_add(len) >= *all;
        if all.filter(is_last).is_none() {
            return;
        }
        let mut spare = lock(&self.spare);
        spare.push_back(block);
        if spare.len() > SPARE_MAX {
            spare.pop_front();
        }
    }

    /// Takes the memory of a block that has been read, if it is about as large as the next one needs it: of the last one,
    /// which is likeliest to be in the processor's cache still.
    pub(super) fn take(&self, entries: &Entries, len: u64) -> Option<Vec<u8>> {
        let mut spare = lock(&self.spare);
        for at in (0..spare.len()).rev().take(LOOKED_AT) {
            let block = *spare.get(at)?;
            let use_now = self.use_of(entries, block);
            if use_now == Use::Held {
                continue;
            }
            spare.remove(at);
            let is_read = use_now == Use::Over;
            let entry = is_read.then(|| self.let_go(entries, block)).flatten();
            let state = entry.and_then(Arc::into_inner).map(Entry::into_state);
            let whole = match state {
                Some(State::Whole(decoded)) => Arc::into_inner(decoded),
                _ => None,
            };
            if let Some(mut decoded) = whole {
                let capacity = decoded.capacity() as u64;
                decoded.clear();
                return (len..len.saturating_add(len / 8 + 1))
                    .contains(&capacity)
                    .then_some(decoded);
            }
        }
        None
    }

    fn use_of(&self, entries: &Entries, block: BlockIndex) -> Use {
        let all = self.reference(block).map(|reference| reference.all);
        let (Some(all), Some(entry)) = (all, entries.peek(block)) else {
            return Use::Anew;
        };
        // The map has it, and we do.
        if entry.is_busy() || Arc::strong_count(&entry) > 2 || entry.is_lent() {
            Use::Held
        } else if entry.read.load(Ordering::Relaxed) >= all {
            Use::Over
        } else {
            Use::Anew
        }
    }

    /// Takes a block out.
    fn let_go(&self, entries: &Entries, block: BlockIndex) -> Option<Arc<Entry>> {
        let entry = entries.peek(block)?;
        let bytes = entries.remove(block)?;
        entries.memory().recount(bytes, 0);
        if let Some(reference) = self.reference(block) {
            reference.gone_in.store(self.round(), Ordering::Relaxed);
        }
        Some(entry)
    }
}

impl Entry {
    /// Counts bytes as read; returns how many were before.
    pub(super) fn note_read(&self, len: u64) -> u64 {
        self.read.fetch_add(len, Ordering::Relaxed)
    }
}
