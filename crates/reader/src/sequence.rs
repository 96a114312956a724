//! Tells sequential readers from random ones, by file and by block.

use durin_format::BlockIndex;

use crate::sync::{AtomicU64, Ordering};

/// Files that are told apart. Two that fall together only make each other look random.
const SLOT_COUNT: usize = 64;

/// Where the last read of each file ended, as far as there are slots.
pub(crate) struct Sequences {
    slots: [AtomicU64; SLOT_COUNT],
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Sequences {
    /// Notes a read of `start..end` of a content, and returns whether it continues the one before.
    /// One slot holds content and offset in one number, so that readers need no lock.
    pub(crate) fn continues(&self, content: u32, start: u64, end: u64) -> bool {
        let slot = usize::try_from(content).unwrap_or(0) % SLOT_COUNT;
        let Some(slot) = self.slots.get(slot) else {
            return false;
        };
        let before = slot.swap(mark(content, end), Ordering::Relaxed);
        start > 0 && before == mark(content, start)
    }
}

/// How many blocks in a row were read in order, by whichever thread.
///
/// The block and the length of the run are one number, so that readers need no lock.
pub(crate) struct BlockRun(AtomicU64);

impl Default for BlockRun {
    fn default() -> Self {
        // The block after the last possible one does not exist, so that no first block continues a run.
        Self(AtomicU64::new(u64::from(u32::MAX) << 32))
    }
}

impl BlockRun {
    /// Notes that `block` is being read; returns how many blocks in a row were, when it is the first read of this one,
    /// otherwise 0.
    pub(crate) fn note(&self, block: BlockIndex) -> u32 {
        let before = self.0.load(Ordering::Relaxed);
        let (last, run) = (before >> 32, before & u64::from(u32::MAX));
        let block = u64::from(block.0);
        if last == block {
            return 0;
        }
        let run = if block == last + 1 {
            run.saturating_add(1)
        } else {
            0
        };
        let run = run.min(u64::from(u32::MAX));
        self.0.store(block << 32 | run, Ordering::Relaxed);
        u32::try_from(run).unwrap_or(u32::MAX)
    }
}

fn mark(content: u32, offset: u64) -> u64 {
    // Any odd number does: offsets of one file stay different, those of others rarely meet.
    offset ^ u64::from(content).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_read_at_the_end_of_the_last_continues() {
        let sequences = Sequences::default();
        assert!(!sequences.continues(7, 0, 100));
        assert!(sequences.continues(7, 100, 200));
        assert!(!sequences.continues(7, 100, 200));
        assert!(!sequences.continues(8, 200, 300), "another file");
        assert!(sequences.continues(7, 200, 300));
    }

    #[test]
    fn blocks_in_order_make_a_run() {
        let run = BlockRun::default();
        let noted = [0, 0, 1, 1, 2, 3, 9, 10, 9].map(|block| run.note(BlockIndex(block)));
        assert_eq!(noted, [0, 0, 1, 0, 2, 3, 0, 1, 0]);
    }
}
