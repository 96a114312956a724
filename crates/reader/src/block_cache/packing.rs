//! Blocks that readers keep coming back to, held in less room: [`durin_codec::Packed`].
//!
//! Readers at random places of more than the cache holds come back to blocks that have gone, and each is decoded again
//! for a few bytes. Such a block is packed when it would go the next time, so that the same memory holds two to four
//! times as many. Packing costs about what decoding does, and does no good where the blocks still do not fit. So it has
//! to earn what it costs: it goes on as long as readers find what has been packed.

use durin_format::BlockIndex;

use crate::sync::{AtomicU64, OnceLock, Ordering};

/// Of blocks that go unpacked because packing did not pay, this share (one in so many) is what is tried all the same.
const TRIAL_SHARE: u64 = 16;

/// What packing may cost, in bytes decoded at the speed of zstd.
pub(super) struct Packing {
    credit: AtomicU64,
    credit_max: u64,
}

impl Packing {
    /// Packing for a cache of so many bytes, which are what it may cost before it has to pay.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            credit: AtomicU64::new(bytes_max),
            credit_max: bytes_max.saturating_mul(2),
        }
    }

    /// Whether a block of so many bytes may be packed.
    pub(super) fn has_credit(&self, bytes: u64) -> bool {
        self.credit.load(Ordering::Relaxed) >= bytes
    }

    /// Notes that so many bytes have been packed.
    pub(super) fn spend(&self, bytes: u64) {
        self.change(|credit| credit.saturating_sub(bytes));
    }

    /// Notes that decoding was saved, which would have cost so much.
    pub(super) fn earn(&self, cost: u64) {
        self.change(|credit| credit.saturating_add(cost).min(self.credit_max));
    }

    /// Notes that a block of so many bytes was not packed for want of credit.
    pub(super) fn pass(&self, bytes: u64) {
        self.earn(bytes / TRIAL_SHARE);
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let change = |credit| Some(change(credit));
        // There always is a value, so that this cannot fail.
        self.credit
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change)
            .ok();
    }
}

/// A set of blocks, a bit for each block of the image from the first one on that is put in.
#[derive(Default)]
pub(super) struct BlockSet(OnceLock<Box<[AtomicU64]>>);

impl BlockSet {
    pub(super) fn insert(&self, block: BlockIndex, block_count: u32) {
        let words = || {
            (0..block_count.div_ceil(u64::BITS))
                .map(|_| AtomicU64::new(0))
                .collect()
        };
        let (word, bit) = place(block);
        if let Some(word) = self.0.get_or_init(words).get(word) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn contains(&self, block: BlockIndex) -> bool {
        let (word, bit) = place(block);
        let word = self.0.get().and_then(|words| words.get(word));
        word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }
}

fn place(block: BlockIndex) -> (usize, u64) {
    let word = usize::try_from(block.0 / u64::BITS).unwrap_or(usize::MAX);
    (word, 1 << (block.0 % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_lives_on_what_it_saves() {
        let packing = Packing::new(100);
        packing.spend(60);
        assert!(packing.has_credit(40));
        assert!(!packing.has_credit(41));
        packing.spend(60);
        // What was not packed lets it try again now and then.
        for _ in 0..TRIAL_SHARE {
            assert!(!packing.has_credit(32));
            packing.pass(32);
        }
        assert!(packing.has_credit(32));
        packing.earn(1000);
        assert!(packing.has_credit(200));
        assert!(!packing.has_credit(201));
    }

    #[test]
    fn blocks_are_told_apart() {
        let set = BlockSet::default();
        assert!(!set.contains(BlockIndex(0)));
        for block in [0, 63, 64, 129, 200] {
            set.insert(BlockIndex(block), 130);
        }
        let found: Vec<_> = (0..300)
            .filter(|&block| set.contains(BlockIndex(block)))
            .collect();
        assert_eq!(found, [0, 63, 64, 129]);
    }
}
