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
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::crew::{Crew, THREADS_PER_TABLE};
use crate::memory::{grow, prefetch};
use sort::Bucket;

/// Matches are told apart up to this length; longer ones are found at the nearest place that shares so many bytes.
pub(crate) const DEPTH_MAX: usize = 67;

const PREFIX_COUNT: usize = 1 << 16;
/// A thread distributes this share of all positions at a time, to save memory;
const POSITIONS_SHARE: usize = 8;
/// of those with one prefix, up to this share;
const PREFIX_SHARE: usize = 4;
/// of small blocks, as many as this.
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
    /// Two packed matches each. Threads that find matches write at places all over it, each at its own.
    table: Vec<AtomicU64>,
    packing: Packing,
}

impl Default for Finder {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            packing: Packing::for_len(0),
        }
    }
}

impl Finder {
    /// The memory for a block of that length, in bytes: to have its matches, and for each thread that finds them.
    pub(crate) fn bytes(len: usize) -> [u64; 2] {
        /// A position, its copy, and the byte.
        const BYTES_PER_POSITION: usize = 2 * size_of::<u32>() + 1;
        let table = len as u64 * size_of::<AtomicU64>() as u64;
        // At worst all positions that are there at a time are in one bucket, which is copied to be split, with a byte of
        // each. Of prefixes that are more frequent than others by far, there are few: one at a time, hardly more.
        let [range, prefix] = [POSITIONS_SHARE, PREFIX_SHARE]
            .map(|share| (room(len, share) * BYTES_PER_POSITION) as u64);
        [table + (prefix - range), range]
    }

    /// Finds the matches of all positions of `data`, and keeps only those.
    pub(crate) fn fill(&mut self, data: &[u8], crew: &Crew) -> Result<(), Error> {
        self.packing = Packing::for_len(data.len());
        grow(&mut self.table, data.len())?;
        let Some(last) = data.len().checked_sub(1) else {
            return Ok(());
        };
        *self.table[last].get_mut() = 0;
        let runs = runs::find(data);
        for run in &runs {
            self.fill_run(run);
        }
        let mut counts = vec![0_u32; PREFIX_COUNT];
        for (_, piece) in outside(data, &runs) {
            for pair in piece.windows(2) {
                counts[usize::from(prefix(pair[0], pair[1]))] += 1;
            }
        }
        let ranges = ranges(&counts, room(data.len(), POSITIONS_SHARE));
        let filling = Filling {
            data,
            runs: &runs,
            counts: &counts,
            finder: self,
        };
        let fill = |sorter: &mut Sorter, number: usize| match ranges.get(number) {
            Some(range) => filling.range(sorter, range.clone()),
            None => Ok(()),
        };
        let filled = crew.each(
            ranges.len(),
            THREADS_PER_TABLE,
            || Ok(Sorter::default()),
            fill,
        )?;
        filled.into_iter().collect()
    }

    /// The longest match of `position`, and another one.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> [Option<Found>; 2] {
        let packed = self.table[position].load(Ordering::Relaxed);
        [
            self.packing.unpack(packed as u32),
            self.packing.unpack((packed >> 32) as u32),
        ]
    }

    /// The matches of `position` come soon.
    #[inline]
    fn prepare(&self, position: u32) {
        prefetch(&self.table, position as usize);
    }

    #[inline]
    fn put(&self, position: u32, matches: [Option<Found>; 2]) {
        let [longest, near] =
            matches.map(|found| found.map_or(0, |found| self.packing.pack(found)));
        let packed = u64::from(near) << 32 | u64::from(longest);
        self.table[position as usize].store(packed, Ordering::Relaxed);
    }

    /// Lengths from this one on may be greater than they say.
    pub(crate) fn len_known_max(&self) -> u32 {
        self.packing.len_max().min(DEPTH_MAX as u32)
    }

    /// Keeps what a block of that length would have kept of the matches.
    #[cfg(test)]
    pub(crate) fn keep_as_of(&mut self, len: usize) {
        let (before, after) = (self.packing, Packing::for_len(len));
        for packed in &mut self.table {
            let both = packed.get_mut();
            let [longest, near] = [*both as u32, (*both >> 32) as u32]
                .map(|packed| before.unpack(packed).map_or(0, |found| after.pack(found)));
            *both = u64::from(near) << 32 | u64::from(longest);
        }
        self.packing = after;
    }

    fn fill_run(&mut self, run: &runs::Run) {
        for position in run.inner() {
            let found = Found {
                start: (position - run.period) as u32,
                len: DEPTH_MAX as u32,
            };
            *self.table[position].get_mut() = self.packing.pack(found).into();
        }
    }
}

/// What a thread finds matches with.
#[derive(Debug, Default)]
struct Sorter {
    /// Positions by prefix.
    positions: Vec<u32>,
    bucket: Bucket,
}

/// What threads find the matches of.
struct Filling<'a> {
    data: &'a [u8],
    runs: &'a [runs::Run],
    /// How many positions each prefix has.
    counts: &'a [u32],
    finder: &'a Finder,
}

impl Filling<'_> {
    /// Finds the matches of positions with a prefix of `prefixes`.
    ///
    /// Where there is one prefix with more than a share of all of them, which hardly happens, they find only matches in
    /// their part of the block.
    fn range(&self, sorter: &mut Sorter, prefixes: Range<usize>) -> Result<(), Error> {
        let mut offsets = vec![0; PREFIX_COUNT];
        let mut total = 0;
        for prefix in prefixes.clone() {
            offsets[prefix] = total;
            total += self.counts[prefix];
        }
        let [room, room_max] =
            [POSITIONS_SHARE, PREFIX_SHARE].map(|share| room(self.data.len(), share));
        let wanted = (total as usize).clamp(room, room_max);
        grow(&mut sorter.positions, wanted)?;
        if total as usize > room_max {
            self.in_parts(sorter, prefixes.start, room_max);
            return Ok(());
        }
        let positions = &mut sorter.positions;
        each_of(
            self.data,
            self.runs,
            prefixes.clone(),
            |prefix, position| {
                let offset = &mut offsets[prefix];
                positions[*offset as usize] = position;
                *offset += 1;
            },
        );
        let mut start = 0;
        for count in &self.counts[prefixes] {
            let end = start + *count as usize;
            self.bucket(sorter, start..end);
            start = end;
        }
        Ok(())
    }

    fn in_parts(&self, sorter: &mut Sorter, wanted: usize, room: usize) {
        let mut len = 0;
        each_of(self.data, self.runs, wanted..wanted + 1, |_, position| {
            if len == room {
                self.bucket(sorter, 0..len);
                len = 0;
            }
            sorter.positions[len] = position;
            len += 1;
        });
        self.bucket(sorter, 0..len);
    }

    fn bucket(&self, sorter: &mut Sorter, range: Range<usize>) {
        let Sorter { positions, bucket } = sorter;
        bucket.each_match(self.data, &mut positions[range], 2, self.finder);
    }
}

/// How many positions a share is.
fn room(len: usize, share: usize) -> usize {
    (len / share).max(POSITIONS_MIN)
}

/// Divides the prefixes into ranges whose positions are up to `room`, or those of one prefix.
fn ranges(counts: &[u32], room: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < counts.len() {
        let end = range_end(counts, start, room);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Returns where a range of prefixes from `first` on ends.
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

/// The pieces between runs, with one byte more at their end, and where they start.
fn outside<'a>(data: &'a [u8], runs: &[runs::Run]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let last = data.len().saturating_sub(1);
    let ends = runs.iter().map(runs::Run::inner);
    let mut start = 0;
    ends.chain(std::iter::once(last..last))
        .filter_map(move |skipped| {
            let piece = data.get(start..=skipped.start.min(last));
            let piece = piece.map(|piece| (start, piece));
            start = skipped.end.max(start);
            piece
        })
}

/// Two bytes as a number that orders them.
#[inline]
fn prefix(first: u8, second: u8) -> u16 {
    u16::from(first) << 8 | u16::from(second)
}

/// Calls `each` with the prefix and the position of every two bytes outside of runs that are one of `prefixes`.
///
/// Most are not. So they are compared many at a time, and without a branch for each.
fn each_of(
    data: &[u8],
    runs: &[runs::Run],
    prefixes: Range<usize>,
    mut each: impl FnMut(usize, u32),
) {
    const STEP: usize = 32;
    let Some(last) = prefixes.end.checked_sub(prefixes.start + 1) else {
        return;
    };
    let (first, last) = (prefixes.start as u16, last as u16);
    for (start, piece) in outside(data, runs) {
        let mut at = 0;
        while let Some(step) = piece.get(at..at + STEP + 1) {
            let mut are_wanted = [0_u8; STEP];
            for (index, is_wanted) in are_wanted.iter_mut().enumerate() {
                let prefix = prefix(step[index], step[index + 1]);
                *is_wanted = u8::from(prefix.wrapping_sub(first) <= last);
            }
            let mut wanted = bits(&are_wanted);
            while wanted != 0 {
                let index = wanted.trailing_zeros() as usize % STEP;
                let prefix = prefix(step[index], step[index + 1]);
                each(usize::from(prefix), (start + at + index) as u32);
                wanted &= wanted - 1;
            }
            at += STEP;
        }
        for (position, pair) in (start + at..).zip(piece[at..].windows(2)) {
            let prefix = usize::from(prefix(pair[0], pair[1]));
            if prefixes.contains(&prefix) {
                each(prefix, position as u32);
            }
        }
    }
}

/// A bit for each of the bytes, which are 0 or 1.
#[inline]
fn bits(flags: &[u8; 32]) -> u32 {
    let (words, _) = flags.as_chunks::<8>();
    words.iter().rev().fold(0, |bits, word| {
        // Moves bit 8 * n to bit 56 + n.
        let moved = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080);
        bits << 8 | (moved >> 56) as u32
    })
}
