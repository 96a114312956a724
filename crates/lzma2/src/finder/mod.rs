//! Finds for each position of a block where the same bytes stood before, by sorting all positions.
//!
//! Positions are distributed by their first two bytes; each bucket is sorted by what follows (`sort`), which gives how
//! many bytes neighbours share; and a walk through the bucket in the order of the block (`tree`) tells for each position
//! the longest matches and the nearest among them. A bucket fits the processor's caches: memory as large as the block is
//! touched a few times for a position, at addresses that are known well before, where a binary tree follows links that
//! nothing can foresee. Of all matches of a position two are kept: see [`Matches`].
//!
//! Work is bounded for any data: a position is sorted at most `DEPTH_MAX / 5` times, and runs of short periods, of which
//! one block can be made, are not sorted at all (`runs`).

mod runs;
mod sort;
mod tree;

use std::ops::Range;

use crate::Error;
use crate::memory::grow;
use sort::Bucket;

/// Matches are told apart up to this length; longer ones are found at the nearest place that shares so many bytes.
pub(crate) const DEPTH_MAX: usize = 67;

const PREFIX_COUNT: usize = 1 << 16;
/// This share of all positions is distributed at a time, to save memory.
const POSITIONS_SHARE: usize = 4;
const POSITIONS_MIN: usize = 1 << 16;

/// A match: where it begins, and how long it is at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Packs matches into 32 bits: as many as the block needs for the place, the rest for the length.
#[derive(Clone, Copy, Debug)]
struct Packing {
    start_bits: u32,
}

impl Packing {
    fn for_len(len: usize) -> Self {
        let start_bits = usize::BITS - len.saturating_sub(1).leading_zeros();
        // Lengths of 16 bits serve nothing.
        Self {
            start_bits: start_bits.clamp(16, 30),
        }
    }

    /// The greatest length that fits; a length that is packed as this may be greater.
    fn len_max(self) -> u32 {
        u32::MAX >> self.start_bits
    }

    fn pack(self, found: Found) -> u32 {
        found.len.min(self.len_max()) << self.start_bits | found.start
    }

    fn unpack(self, packed: u32) -> Option<Found> {
        let len = packed >> self.start_bits;
        (len != 0).then(|| Found {
            start: packed & !(u32::MAX << self.start_bits),
            len,
        })
    }
}

/// The two matches of each position: the longest, and the one that gives up few bytes to be much nearer.
#[derive(Debug)]
pub(crate) struct Finder {
    table: Vec<[u32; 2]>,
    packing: Packing,
    /// Positions by prefix, for a range of prefixes at a time.
    positions: Vec<u32>,
    bucket: Bucket,
}

impl Finder {
    pub(crate) fn new() -> Self {
        Self {
            table: Vec::new(),
            packing: Packing::for_len(0),
            positions: Vec::new(),
            bucket: Bucket::new(),
        }
    }

    /// The memory for a block of that length, in bytes: to have its matches, and besides to find them.
    pub(crate) fn bytes(len: usize) -> [u64; 2] {
        let table = len as u64 * size_of::<[u32; 2]>() as u64;
        let positions = (len / POSITIONS_SHARE).max(POSITIONS_MIN) as u64 * size_of::<u32>() as u64;
        // At worst all positions that are there at a time are in one bucket, which is copied to be split.
        [table, positions * 2]
    }

    /// Finds the matches of all positions of `data`, and keeps only those.
    pub(crate) fn fill(&mut self, data: &[u8]) -> Result<(), Error> {
        self.packing = Packing::for_len(data.len());
        grow(&mut self.table, data.len())?;
        let Some(last) = data.len().checked_sub(1) else {
            return Ok(());
        };
        self.table[last] = [0; 2];
        let runs = runs::find(data);
        for run in &runs {
            self.fill_run(run);
        }
        let mut counts = vec![0_u32; PREFIX_COUNT];
        each_outside(data, &runs, |prefix, _| counts[prefix] += 1);
        let room = (data.len() / POSITIONS_SHARE).max(POSITIONS_MIN);
        grow(&mut self.positions, room)?;
        let mut first = 0;
        while first < PREFIX_COUNT {
            let end = range_end(&counts, first, room);
            self.fill_range(data, &runs, &counts, first..end);
            first = end;
        }
        self.positions = Vec::new();
        self.bucket.release();
        Ok(())
    }

    /// The longest match of `position`, and another one.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> [Option<Found>; 2] {
        let [longest, near] = self.table[position];
        [self.packing.unpack(longest), self.packing.unpack(near)]
    }

    /// Lengths from this one on may be greater than they say.
    pub(crate) fn len_known_max(&self) -> u32 {
        self.packing.len_max().min(DEPTH_MAX as u32)
    }

    fn fill_run(&mut self, run: &runs::Run) {
        for position in run.inner() {
            let found = Found {
                start: (position - run.period) as u32,
                len: DEPTH_MAX as u32,
            };
            self.table[position] = [self.packing.pack(found), 0];
        }
    }

    /// Finds the matches of positions with a prefix from `first` to before `end`, at most `room` at a time.
    ///
    /// More of them than that have one prefix, which hardly happens; they find only matches in their part of the block.
    fn fill_range(
        &mut self,
        data: &[u8],
        runs: &[runs::Run],
        counts: &[u32],
        prefixes: Range<usize>,
    ) {
        let mut offsets = vec![u32::MAX; PREFIX_COUNT];
        let mut total = 0;
        for prefix in prefixes.clone() {
            offsets[prefix] = total;
            total += counts[prefix];
        }
        if total as usize > self.positions.len() {
            self.fill_in_parts(data, runs, prefixes.start);
            return;
        }
        let positions = &mut self.positions;
        each_outside(data, runs, |prefix, position| {
            let offset = &mut offsets[prefix];
            if *offset != u32::MAX {
                positions[*offset as usize] = position;
                *offset += 1;
            }
        });
        let mut start = 0;
        for count in &counts[prefixes] {
            let end = start + *count as usize;
            self.fill_bucket(data, start..end);
            start = end;
        }
    }

    fn fill_in_parts(&mut self, data: &[u8], runs: &[runs::Run], wanted: usize) {
        let mut len = 0;
        each_outside(data, runs, |prefix, position| {
            if prefix != wanted {
                return;
            }
            if len == self.positions.len() {
                self.fill_bucket(data, 0..len);
                len = 0;
            }
            self.positions[len] = position;
            len += 1;
        });
        self.fill_bucket(data, 0..len);
    }

    fn fill_bucket(&mut self, data: &[u8], range: Range<usize>) {
        let (table, packing) = (&mut self.table, self.packing);
        let positions = &mut self.positions[range];
        self.bucket
            .each_match(data, positions, 2, &mut |position, matches| {
                let mut packed = [0; 2];
                for (target, found) in packed.iter_mut().zip(matches) {
                    if let Some(found) = found {
                        *target = packing.pack(found);
                    }
                }
                table[position as usize] = packed;
            });
    }
}

/// Returns where a range of prefixes from `first` on ends whose positions are about `room`.
fn range_end(counts: &[u32], first: usize, room: usize) -> usize {
    let mut total = counts[first] as usize;
    let mut end = first + 1;
    while let Some(count) = counts.get(end) {
        total += *count as usize;
        if total > room {
            break;
        }
        end += 1;
    }
    end
}

/// Calls `each` with the prefix and the position of every two bytes outside of runs.
fn each_outside(data: &[u8], runs: &[runs::Run], mut each: impl FnMut(usize, u32)) {
    let last = data.len().saturating_sub(1);
    let mut start = 0;
    let ends = runs.iter().map(runs::Run::inner);
    let ends = ends.chain(std::iter::once(last..last));
    for skipped in ends {
        let end = skipped.start.min(last);
        if let Some(piece) = data.get(start..=end) {
            let mut before = usize::from(piece[0]);
            for (position, byte) in (start as u32..).zip(&piece[1..]) {
                let prefix = (before << 8 | usize::from(*byte)) & (PREFIX_COUNT - 1);
                each(prefix, position);
                before = prefix;
            }
        }
        start = skipped.end.max(start);
    }
}
