//! How many blocks the chunks of one content are spread over.
//!
//! Each block that a reader of a small file must open beside the first costs it a decompression. So repetitions in
//! further blocks must be the longer, the more of the allowance of all small files so far has been used up.

use crate::dedupe::ContentIndex;

/// Blocks beyond the first that 100 small files may have on average; the promise is 30.
const FURTHER_PER_100: u64 = 25;
/// The same for the first few files, which are no average yet.
const FURTHER_FIRST: u64 = 16;
/// A repetition of this length is worth a block whatever the allowance says: reading it takes as long as the rest.
const LONG_ENOUGH: usize = 256 << 10;
/// Blocks of one content that are remembered; a content in more of them is not small.
const BLOCKS_MAX: usize = 64;

/// The blocks of the current content, and the allowance.
#[derive(Debug, Default)]
pub(super) struct Spread {
    current: Option<ContentIndex>,
    is_small: bool,
    blocks: Vec<u64>,
    /// Small contents so far.
    pub(super) files: u64,
    /// Blocks that these touch in all.
    pub(super) touched: u64,
}

impl Spread {
    /// Begins a content, unless it is the one that was begun last.
    pub(super) fn begin(&mut self, content: ContentIndex, is_small: bool) {
        if self.current == Some(content) {
            return;
        }
        self.finish();
        self.current = Some(content);
        self.is_small = is_small;
    }

    /// Counts the last content.
    pub(super) fn finish(&mut self) {
        if self.current.take().is_some() && self.is_small && !self.blocks.is_empty() {
            self.files += 1;
            self.touched += self.blocks.len() as u64;
        }
        self.blocks.clear();
    }

    /// Notes a block that the current content has a chunk in.
    pub(super) fn touch(&mut self, block: u64) {
        if self.is_small && !self.blocks.contains(&block) && self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(block);
        }
    }

    /// Whether a block would be a further one for the current content, which is small.
    pub(super) fn is_further(&self, block: u64) -> bool {
        self.is_small && !self.blocks.contains(&block)
    }

    /// Returns how long a repetition in `block` must be, if `least` is enough where that costs no further block.
    ///
    /// `will_touch` is a block that the content is going to have a part in, too.
    pub(super) fn required(&self, least: usize, block: u64, will_touch: Option<u64>) -> usize {
        if !self.is_small || self.blocks.contains(&block) || will_touch == Some(block) {
            return least;
        }
        let will_touch = will_touch.filter(|block| !self.blocks.contains(block));
        let here = self.blocks.len() + usize::from(will_touch.is_some());
        if here == 0 {
            return least;
        }
        let allowed = self.files * FURTHER_PER_100 / 100 + FURTHER_FIRST;
        let used = self.touched.saturating_sub(self.files) + here as u64;
        let shift = match used * 16 / allowed {
            0..8 => here - 1,
            8..11 => here,
            11..13 => here + 1,
            13..15 => here + 2,
            15 => here + 3,
            _ => return LONG_ENOUGH.max(least),
        };
        least
            .saturating_mul(1 << shift.min(20))
            .min(LONG_ENOUGH.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_bounded() {
        let mut spread = Spread::default();
        let mut taken = 0;
        for content in 0..10_000 {
            spread.begin(content, true);
            // Each file has its own data and could have two repetitions elsewhere.
            for block in [1, 2, 3] {
                if spread.required(512, block, None) <= 4000 {
                    spread.touch(block);
                    taken += 1;
                }
            }
        }
        spread.finish();
        assert_eq!(spread.files, 10_000);
        assert_eq!(spread.touched, taken);
        assert!((12_000..13_000).contains(&taken), "{taken}");
    }

    #[test]
    fn long_repetitions_and_large_files_are_free() {
        let mut spread = Spread::default();
        for content in 0..1000 {
            spread.begin(content, true);
            for block in 0..8 {
                spread.touch(block);
            }
        }
        assert_eq!(spread.required(512, 9, None), LONG_ENOUGH);
        assert_eq!(spread.required(512, 7, None), 512, "touched already");
        spread.begin(5000, false);
        assert_eq!(spread.required(512, 9, Some(8)), 512);
        spread.begin(5001, true);
        assert_eq!(spread.required(512, 9, None), 512, "the first block");
        assert_eq!(spread.required(512, 9, Some(9)), 512, "no further block");
    }
}
