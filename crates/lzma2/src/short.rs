//! The nearest matches of a few bytes, from tables of where bytes with the same hash stood last.
//!
//! Tables and candidates are all over the memory. So a batch of positions is looked up at once, ahead of the parser: the
//! processor waits for many of them at the same time, which takes a third of the time of one look-up after the other.

use crate::Error;
use crate::bytes::word8;
use crate::memory::zeros;

/// The tables: for each how many bytes it looks at, and the logarithm of its size.
const TABLES: [(u32, u32); TABLE_COUNT] = [(2, 16), (3, 16), (4, 20), (6, 20)];
pub(crate) const TABLE_COUNT: usize = 4;
const BATCH_LEN: usize = 64;
/// Lengths are known up to this one.
pub(crate) const LEN_KNOWN_MAX: u32 = 8;

/// An earlier place with the same hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    pub(crate) start: u32,
    /// How many bytes are equal, up to [`LEN_KNOWN_MAX`].
    pub(crate) len: u32,
}

#[derive(Debug)]
pub(crate) struct ShortMatches {
    /// Positions + 1.
    tables: [Vec<u32>; TABLE_COUNT],
    /// Of positions from `batch_start` on.
    batch: Box<[[Candidate; TABLE_COUNT]; BATCH_LEN]>,
    batch_start: usize,
    /// Everything before is in the tables.
    next: usize,
}

impl ShortMatches {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut tables = [const { Vec::new() }; TABLE_COUNT];
        for (table, (_, bits)) in tables.iter_mut().zip(TABLES) {
            *table = zeros(1 << bits)?;
        }
        Ok(Self {
            tables,
            batch: Box::new([[Candidate::default(); TABLE_COUNT]; BATCH_LEN]),
            batch_start: 0,
            next: 0,
        })
    }

    /// Forgets everything; what is before `start` will not be looked at.
    pub(crate) fn reset(&mut self, start: usize) {
        for table in &mut self.tables {
            table.fill(0);
        }
        self.batch_start = start;
        self.next = start;
    }

    /// Returns candidates for matches of `position`, the shortest hash first.
    ///
    /// Called with positions that grow, on the whole; there are none for one before the latest batch.
    #[inline]
    pub(crate) fn at(&mut self, data: &[u8], position: usize) -> [Candidate; TABLE_COUNT] {
        while self.next <= position {
            self.look_up(data);
        }
        match position.checked_sub(self.batch_start) {
            Some(index) => self.batch[index & (BATCH_LEN - 1)],
            None => [Candidate::default(); TABLE_COUNT],
        }
    }

    fn look_up(&mut self, data: &[u8]) {
        self.batch_start = self.next;
        self.next += BATCH_LEN;
        let positions = self.batch_start..self.next;
        for (position, candidates) in positions.clone().zip(self.batch.iter_mut()) {
            let word = word8(data, position).unwrap_or(0);
            for ((table, (len, bits)), candidate) in
                self.tables.iter_mut().zip(TABLES).zip(candidates)
            {
                // The lowest bytes are the first ones.
                let hash = (word << (64 - 8 * len)).wrapping_mul(0x9E37_79B1_85EB_CA87);
                let place = &mut table[(hash >> (64 - bits)) as usize];
                candidate.start = *place;
                *place = position as u32 + 1;
            }
        }
        for (position, candidates) in positions.zip(self.batch.iter_mut()) {
            // The last few bytes of a block have no short matches.
            let word = word8(data, position);
            for candidate in candidates {
                let start = candidate.start.wrapping_sub(1);
                let other = word8(data, start as usize);
                let different = word.unwrap_or(0) ^ other.unwrap_or(0);
                let is_known = word.is_some() && other.is_some();
                candidate.start = start;
                candidate.len = (different.trailing_zeros() >> 3) * u32::from(is_known);
            }
        }
    }
}
