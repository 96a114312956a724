//! The nearest matches of a few bytes, from tables of where bytes with the same hash stood last.
//!
//! Tables and candidates are all over the memory. So positions are looked up in batches, ahead of the parser: while it
//! works on one batch, what the next one compares is fetched, and the places in the tables of the one after that.

use crate::Error;
use crate::bytes::word8;
use crate::memory::{prefetch, zeros};
use crate::parse::Input;

/// The tables: for each how many bytes it looks at, and the logarithm of its size.
const TABLES: [(u32, u32); TABLE_COUNT] = [(2, 16), (3, 16), (4, 20), (6, 20)];
pub(crate) const TABLE_COUNT: usize = 4;
/// Tables up to this size stay in the processor's caches.
const CACHED_BITS_MAX: u32 = 16;
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

type Batch = [[Candidate; TABLE_COUNT]; BATCH_LEN];

#[derive(Debug)]
pub(crate) struct ShortMatches {
    /// Positions + 1.
    tables: [Vec<u32>; TABLE_COUNT],
    /// Of positions from `batch_start` on.
    batch: Box<Batch>,
    batch_start: usize,
    /// Where the next batch begins.
    next: usize,
    /// The places that the next batch compares, if it is in the tables already.
    ahead: Box<Batch>,
    is_ahead: bool,
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
            ahead: Box::new([[Candidate::default(); TABLE_COUNT]; BATCH_LEN]),
            is_ahead: false,
        })
    }

    /// Forgets everything; what is before `start` will not be looked at.
    pub(crate) fn reset(&mut self, start: usize) {
        for table in &mut self.tables {
            table.fill(0);
        }
        self.batch_start = start;
        self.next = start;
        self.is_ahead = false;
    }

    /// Goes on at `position`, and leaves out what is before.
    pub(crate) fn skip(&mut self, position: usize) {
        if position > self.next {
            self.batch_start = position;
            self.next = position;
            self.is_ahead = false;
        }
    }

    /// Returns candidates for matches of `position`, the shortest hash first.
    ///
    /// Called with positions that grow, on the whole; there are none for one before the latest batch.
    #[inline]
    pub(crate) fn at(&mut self, input: &Input<'_>, position: usize) -> [Candidate; TABLE_COUNT] {
        while self.next <= position {
            self.look_up(input);
        }
        match position.checked_sub(self.batch_start) {
            Some(index) => self.batch[index & (BATCH_LEN - 1)],
            None => [Candidate::default(); TABLE_COUNT],
        }
    }

    fn look_up(&mut self, input: &Input<'_>) {
        let data = input.data;
        if !self.is_ahead {
            self.insert(data);
            self.is_ahead = true;
        }
        std::mem::swap(&mut self.batch, &mut self.ahead);
        self.batch_start = self.next;
        self.next += BATCH_LEN;
        self.insert(data);
        self.prepare(data, self.next + BATCH_LEN);
        self.prepare_ends(input);
        self.compare(data);
    }

    /// Puts the next batch into the tables, and takes the places that stood there.
    fn insert(&mut self, data: &[u8]) {
        for (position, candidates) in (self.next..).zip(self.ahead.iter_mut()) {
            let word = word8(data, position).unwrap_or(0);
            for ((table, shape), candidate) in self.tables.iter_mut().zip(TABLES).zip(candidates) {
                let place = &mut table[place(word, shape)];
                candidate.start = place.wrapping_sub(1);
                *place = position as u32 + 1;
                prefetch(data, candidate.start as usize);
            }
        }
    }

    /// Fetches the places in the tables for a batch from `start` on.
    fn prepare(&self, data: &[u8], start: usize) {
        for word in (start..start + BATCH_LEN).map_while(|position| word8(data, position)) {
            for (table, shape) in self.tables.iter().zip(TABLES) {
                if shape.1 > CACHED_BITS_MAX {
                    prefetch(table, place(word, shape));
                }
            }
        }
    }

    /// Fetches what follows on the matches of the next batch, to which the parser compares what follows there.
    fn prepare_ends(&self, input: &Input<'_>) {
        let end = (self.next + BATCH_LEN).min(input.data.len());
        for position in self.next..end {
            for found in input.finder.at(position).into_iter().flatten() {
                prefetch(input.data, (found.start + found.len) as usize);
            }
        }
    }

    fn compare(&mut self, data: &[u8]) {
        for (position, candidates) in (self.batch_start..).zip(self.batch.iter_mut()) {
            // The last few bytes of a block have no short matches.
            let word = word8(data, position);
            for candidate in candidates {
                let other = word8(data, candidate.start as usize);
                let different = word.unwrap_or(0) ^ other.unwrap_or(0);
                let is_known = word.is_some() && other.is_some();
                candidate.len = (different.trailing_zeros() >> 3) * u32::from(is_known);
            }
        }
    }
}

/// The place in a table for the first bytes of `word`.
#[inline]
fn place(word: u64, (len, bits): (u32, u32)) -> usize {
    // The lowest bytes are the first ones.
    let hash = (word << (64 - 8 * len)).wrapping_mul(0x9E37_79B1_85EB_CA87);
    (hash >> (64 - bits)) as usize
}
