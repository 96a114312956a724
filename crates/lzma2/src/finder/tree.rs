//! Finds for each position of a sorted bucket its nearest earlier matches of every length.
//!
//! Neighbours in the sorted order that share at least so many bytes form an interval, and intervals form a tree: the
//! intervals around a position are all its matches, longer ones inside of shorter ones. Positions are visited in the
//! order of the block. Each interval remembers the latest position that was visited in it, so that the way from a
//! position to the root meets the nearest match of each length. Ways are cut short where one was walked before: an
//! interval that was visited points to its position, whose link leads on upwards.

use super::{Finder, Found};

/// Intervals that share less are not matches worth keeping: shorter ones are found by tables of their own, and are not worth
/// much farther away than these know. In noise all positions have some, for which there would be most to do.
const LEN_MIN: u32 = 4;

/// So many positions ahead the place for the matches is made ready.
const LOOKAHEAD: usize = 16;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Links are an interval, or a position by its index in the bucket, in the low bits; and above them the bytes that the
/// interval shares, 0 for a position.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By interval: the one around it, until it is visited; then the latest position.
    intervals: Vec<u32>,
    /// By index + 1: the interval that leads on from here.
    links: Vec<u32>,
    open: Vec<u32>,
}

impl Tree {
    /// Makes the tree of positions in the order of `keys`, whose low bits are indexes; `shared` has how many bytes each
    /// shares with the one before.
    pub(super) fn build(&mut self, keys: &[u64], index_mask: u64, shared: &[u8]) {
        let count = keys.len();
        self.intervals.clear();
        self.intervals.resize(count + 1, 0);
        self.links.clear();
        self.links.resize(count + 1, 0);
        self.open.clear();
        self.open.push(0);
        let mut top = 0_u32;
        let mut interval_count = 1;
        for (rank, key) in keys.iter().enumerate() {
            let index = (*key & index_mask) as usize + 1;
            // What this position shares with the next one.
            let len = match shared.get(rank + 1) {
                Some(len) if u32::from(*len) >= LEN_MIN => u32::from(*len),
                _ => 0,
            };
            let top_len = top >> INDEX_BITS;
            if len > top_len {
                self.open.push(top);
                top = len << INDEX_BITS | interval_count;
                interval_count += 1;
                self.links[index] = top;
                continue;
            }
            self.links[index] = top;
            if len == top_len {
                continue;
            }
            while len < top >> INDEX_BITS {
                let closed = (top & INDEX_MASK) as usize;
                let around = self.open.pop().unwrap_or(0);
                if len > around >> INDEX_BITS {
                    self.open.push(around);
                    top = len << INDEX_BITS | interval_count;
                    interval_count += 1;
                } else {
                    top = around;
                }
                self.intervals[closed] = top;
            }
        }
    }

    /// Puts the matches of every position.
    pub(super) fn each_match(&mut self, positions: &[u32], finder: &Finder) {
        for (index, position) in (1_u32..).zip(positions) {
            if let Some(later) = positions.get(index as usize + LOOKAHEAD) {
                finder.prepare(*later);
            }
            let matches = self.visit(positions, index, *position);
            finder.put(*position, matches);
        }
    }

    fn visit(&mut self, positions: &[u32], index: u32, position: u32) -> [Option<Found>; 2] {
        let mut interval = std::mem::take(&mut self.links[index as usize]);
        if interval == 0 {
            return [None, None];
        }
        // Upwards through intervals where nobody has been.
        let mut above = self.intervals[(interval & INDEX_MASK) as usize];
        while above > INDEX_MASK {
            self.intervals[(interval & INDEX_MASK) as usize] = index;
            interval = above;
            above = self.intervals[(interval & INDEX_MASK) as usize];
        }
        let mut choice = Choice::new(position);
        if above == 0 {
            self.intervals[(interval & INDEX_MASK) as usize] = index;
            return choice.matches;
        }
        let mut earlier = above;
        loop {
            // The latest position of `interval` is that of an interval inside, if that was visited later.
            let mut next = self.links[earlier as usize];
            while next > interval {
                earlier = self.intervals[(next & INDEX_MASK) as usize];
                next = self.links[earlier as usize];
            }
            self.intervals[(interval & INDEX_MASK) as usize] = index;
            self.links[earlier as usize] = interval;
            choice.offer(Found {
                start: positions[earlier as usize - 1],
                len: interval >> INDEX_BITS,
            });
            if next == 0 {
                return choice.matches;
            }
            interval = next;
            earlier = self.intervals[(interval & INDEX_MASK) as usize];
        }
    }
}

/// Chooses the matches to keep.
struct Choice {
    position: u32,
    matches: [Option<Found>; 2],
    longest_len: u32,
    longest_bits: u32,
    best: i32,
}

impl Choice {
    fn new(position: u32) -> Self {
        Self {
            position,
            matches: [None, None],
            longest_len: 0,
            longest_bits: 0,
            best: 0,
        }
    }

    /// Takes matches from the longest to the shortest.
    #[inline]
    fn offer(&mut self, found: Found) {
        let bits = 32 - (self.position - found.start).leading_zeros();
        if self.matches[0].is_none() {
            self.matches[0] = Some(found);
            self.longest_len = found.len;
            self.longest_bits = bits;
            return;
        }
        /// What a byte that a match does not cover costs, in bits.
        const BYTE_COST: i32 = 2;
        let saved = (self.longest_bits as i32 - bits as i32)
            - BYTE_COST * (self.longest_len as i32 - found.len as i32);
        if self.matches[1].is_none() || saved > self.best {
            self.best = saved;
            self.matches[1] = Some(found);
        }
    }
}
