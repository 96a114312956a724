//! Where blocks end: before contents that are alike and would not all fit into what is left of the block.
//!
//! Each block is compressed by itself. Of a group that the end of a block divides, the first contents in the next block
//! are compressed as if nothing were like them. A block that ends a little early costs less than that. How much of a
//! group will be stored is not known before it is cut; it is taken to be the share that was stored of the data before.
//!
//! Where images are read often, blocks of several groups end at a smaller length: contents that are unlike each other
//! gain little from sharing a block, and who reads one of them has all decoded that lies before it.

/// A block ends early only if it is as full as this, in quarters of its length.
const FULL_QUARTERS_MIN: u64 = 3;

/// How long blocks get, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockLens {
    /// Any block.
    pub(super) full: usize,
    /// One of several groups, if it can end between two of different contents.
    pub(super) mixed: usize,
}

/// Returns the length of slots for blocks that may end early at a length, all as powers of two: as much as such blocks
/// may lack, so that they have not less than three slots and leave less than one unused.
pub(super) fn slot_bits(early_bits: u32) -> u32 {
    early_bits.saturating_sub(2)
}

/// Returns how many places in blocks are used or left unused by so many bytes of data, at most.
pub(super) fn places_max(data_len: u64) -> u64 {
    data_len.saturating_add(data_len.div_ceil(FULL_QUARTERS_MIN))
}

/// How much of the data was new, of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewShare {
    seen: u64,
    stored: u64,
}

impl NewShare {
    /// Counts data that were cut.
    pub(super) fn see(&mut self, len: usize) {
        self.seen += len as u64;
    }

    /// Counts data that were new.
    pub(super) fn store(&mut self, len: usize) {
        self.stored += len as u64;
    }

    /// Makes all so far count half as much.
    pub(super) fn fade(&mut self) {
        self.seen /= 2;
        self.stored /= 2;
    }

    /// Whether a block with `open_len` bytes had better end before a group of `group_len` bytes.
    ///
    /// Not if it would leave much of the block unused, or the group is divided in any case.
    pub(super) fn ends_before(&self, group_len: u64, open_len: usize, lens: BlockLens) -> bool {
        let (open, full, mixed) = (open_len as u64, lens.full as u64, lens.mixed as u64);
        let share = u128::from(group_len) * u128::from(self.stored) / u128::from(self.seen.max(1));
        let expected = u64::try_from(share).unwrap_or(u64::MAX);
        let is_too_much =
            |len: u64| open >= len / 4 * FULL_QUARTERS_MIN && open.saturating_add(expected) > len;
        mixed < full && is_too_much(mixed) || is_too_much(full) && expected <= full / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENS: BlockLens = BlockLens {
        full: 1000,
        mixed: 1000,
    };

    #[test]
    fn a_block_ends_before_what_does_not_fit() {
        let mut share = NewShare::default();
        assert!(!share.ends_before(1 << 40, 900, LENS), "nothing known");
        share.see(4000);
        share.store(1000);
        let rows = [
            (400, 900, false, "fits"),
            (404, 900, true, "does not"),
            (2000, 750, true, "half a block"),
            (2004, 900, false, "is divided in any case"),
            (2000, 740, false, "the block is too empty"),
            (u64::MAX, 1000, false, "any length"),
        ];
        for (group_len, open_len, ends, what) in rows {
            assert_eq!(share.ends_before(group_len, open_len, LENS), ends, "{what}");
        }
        share.fade();
        share.see(1000);
        share.store(1500);
        assert!(share.ends_before(400, 900, LENS), "the latest counts most");
    }

    #[test]
    fn a_block_of_several_groups_ends_at_a_smaller_length() {
        let mut share = NewShare::default();
        share.see(1000);
        share.store(1000);
        let lens = BlockLens { mixed: 400, ..LENS };
        let rows = [
            (100, 300, false, "fits"),
            (101, 300, true, "does not"),
            (700, 300, true, "a group that goes on beyond that length"),
            (2000, 300, true, "one that is divided in any case"),
            (2000, 299, false, "the block is too empty"),
            (1, 800, true, "after a long group"),
        ];
        for (group_len, open_len, ends, what) in rows {
            assert_eq!(share.ends_before(group_len, open_len, lens), ends, "{what}");
        }
    }
}
