//! Where anchors are: a hash table from an anchor's hash to places in the blocks.
//!
//! Eight bytes an entry: a tag, which is a part of the hash, over the place. Entries lie in buckets of one cache line,
//! and those of a full bucket in its neighbour, so that a look-up is two cache lines that the processor fetches at once.
//! The table doubles until it has as many entries as memory allows. Then it is thinned: anchors whose hash has a
//! further bit set are dropped, and neither stored nor looked up from then on, which halves the density of anchors
//! evenly over all data. What the table holds depends on the order of insertions and on its limits only.

use durin_codec::prefer_huge_pages;

/// Entries of a cache line.
const BUCKET_LEN: usize = 8;
/// Entries with the same tag, that is almost always of the same data, in two neighbouring buckets. The oldest make room
/// for the newest. It bounds the work on data that repeats the same few anchors over and over.
pub(super) const EQUAL_MAX: usize = 4;
/// Tags are not made shorter than this by thinning: at 16 entries a look-up, one in 16 would then be a false one.
const TAG_BITS_MIN: u32 = 8;
/// The first size of the table as a power of two, in buckets: 32 KiB.
const BUCKET_BITS_FIRST: u32 = 9;
/// The fewest bits of a place: 4 GiB.
const PLACE_BITS_MIN: u32 = 32;

type Bucket = [u64; BUCKET_LEN];

/// The places found for an anchor, the latest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    places: [u64; EQUAL_MAX],
    len: usize,
}

impl Found {
    pub(super) fn places(&self) -> &[u64] {
        &self.places[..self.len]
    }

    fn add(&mut self, place: u64) {
        if self.len < EQUAL_MAX {
            let at = self.places().partition_point(|known| *known > place);
            self.places.copy_within(at..self.len, at + 1);
            self.places[at] = place;
            self.len += 1;
        }
    }
}

/// The hash table.
pub(super) struct Index {
    buckets: Vec<Bucket>,
    bucket_bits: u32,
    place_bits: u32,
    /// Known bits of a tag.
    tag_bits: u32,
    /// Bits of the hash above those of bucket and tag that must be 0.
    thin_bits: u32,
    used: usize,
    /// As a power of two.
    bucket_bits_max: u32,
    /// Sixteenths of the table that may be in use.
    load_max: usize,
}

/// How large and how full an index gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexLimits {
    /// The most entries of the table, empty ones included; rounded down to a power of two.
    pub(crate) entries_max: usize,
    /// As the option `--bloom-filter-size`: 4 is two thirds full at most, each step up or down changes the spare room.
    pub(crate) room: u32,
}

impl Index {
    /// Makes an index for places below `place_max`.
    pub(super) fn new(limits: IndexLimits, place_max: u64) -> Self {
        let place_bits = (u64::BITS - place_max.leading_zeros()).clamp(PLACE_BITS_MIN, 44);
        let buckets_max = (limits.entries_max / BUCKET_LEN).max(2);
        let bucket_bits_max = buckets_max.ilog2();
        // A table for much data begins larger, so that tags keep many of their bits while it grows.
        let bucket_bits = BUCKET_BITS_FIRST
            .max(place_bits.saturating_sub(20))
            .min(bucket_bits_max);
        Self {
            buckets: empty_buckets(1 << bucket_bits),
            bucket_bits,
            place_bits,
            tag_bits: u64::BITS - place_bits,
            thin_bits: 0,
            used: 0,
            bucket_bits_max,
            load_max: match limits.room {
                0 | 1 => 14,
                2 | 3 => 12,
                4 => 10,
                5 => 5,
                6 => 3,
                _ => 2,
            },
        }
    }

    /// Whether anchors with this hash are stored and looked up.
    pub(super) fn takes(&self, hash: u64) -> bool {
        let above = hash >> (self.bucket_bits + self.tag_bits);
        above & low_bits(self.thin_bits) == 0
    }

    /// Whether there may be places for this hash. Meant for several hashes in a row, before anything is done with one:
    /// the processor then waits for the memory of all at once.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let (home, tag) = self.place_of(hash);
        let pair = [self.buckets[home], self.buckets[home ^ 1]];
        let mut any = false;
        for entry in pair.as_flattened() {
            any |= *entry >> self.place_bits == tag && *entry != 0;
        }
        any && self.takes(hash)
    }

    /// Returns the places that were stored with this hash, and maybe places of others.
    pub(super) fn find(&self, hash: u64) -> Found {
        let mut found = Found::default();
        let (home, tag) = self.place_of(hash);
        if self.takes(hash) {
            for entry in [self.buckets[home], self.buckets[home ^ 1]].as_flattened() {
                if *entry >> self.place_bits == tag && *entry != 0 {
                    found.add((*entry & low_bits(self.place_bits)) - 1);
                }
            }
        }
        found
    }

    /// Stores a place. Places must not fall from call to call.
    pub(super) fn insert(&mut self, hash: u64, place: u64) {
        if self.used * 16 >= self.buckets.len() * BUCKET_LEN * self.load_max {
            self.make_room();
        }
        if !self.takes(hash) || place + 1 >= low_bits(self.place_bits) {
            return;
        }
        let (home, tag) = self.place_of(hash);
        self.put(home, tag, place + 1);
    }

    fn place_of(&self, hash: u64) -> (usize, u64) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the bits that are left number a bucket, which is in memory"
        )]
        let home = (hash & low_bits(self.bucket_bits)) as usize;
        (home, (hash >> self.bucket_bits) & low_bits(self.tag_bits))
    }

    /// Puts an entry into its bucket or the neighbour; in place of the oldest with its tag if there are many, or of the
    /// oldest of all if there is no room.
    fn put(&mut self, home: usize, tag: u64, value: u64) {
        let entry = tag << self.place_bits | value;
        let pair = [self.buckets[home], self.buckets[home ^ 1]];
        let entries = pair.as_flattened();
        let is_equal = |known: u64| known != 0 && known >> self.place_bits == tag;
        let equal: usize = entries
            .iter()
            .map(|known| usize::from(is_equal(*known)))
            .sum();
        let free = entries.iter().position(|known| *known == 0);
        let at = match free {
            Some(at) if equal < EQUAL_MAX => {
                self.used += 1;
                at
            }
            _ => {
                let values = low_bits(self.place_bits);
                let age = |at: &usize| entries[*at] & values;
                let all = 0..entries.len();
                let oldest = if equal < EQUAL_MAX {
                    all.min_by_key(age)
                } else {
                    all.filter(|at| is_equal(entries[*at])).min_by_key(age)
                };
                oldest.unwrap_or(0)
            }
        };
        let bucket = if at < BUCKET_LEN { home } else { home ^ 1 };
        self.buckets[bucket][at % BUCKET_LEN] = entry;
    }

    #[cold]
    fn make_room(&mut self) {
        if self.bucket_bits < self.bucket_bits_max {
            self.grow();
        } else if self.tag_bits > TAG_BITS_MIN {
            self.thin();
        }
    }

    /// Doubles the table; the lowest bit of a tag becomes the highest of the bucket's number.
    fn grow(&mut self) {
        let larger = empty_buckets(self.buckets.len() * 2);
        let old = std::mem::replace(&mut self.buckets, larger);
        let old_bits = self.bucket_bits;
        self.bucket_bits += 1;
        self.tag_bits -= 1;
        self.used = 0;
        for (number, bucket) in old.iter().enumerate() {
            for entry in bucket.iter().filter(|entry| **entry != 0) {
                let tag = entry >> self.place_bits;
                let upper = if tag & 1 == 1 { 1 << old_bits } else { 0 };
                self.put(number | upper, tag >> 1, entry & low_bits(self.place_bits));
            }
        }
    }

    /// Drops the entries whose tag has its highest bit set.
    fn thin(&mut self) {
        self.tag_bits -= 1;
        self.thin_bits += 1;
        let drop_bit = 1 << (self.tag_bits + self.place_bits);
        let mut used = 0;
        for entry in self.buckets.as_flattened_mut() {
            if *entry & drop_bit != 0 {
                *entry = 0;
            }
            used += usize::from(*entry != 0);
        }
        self.used = used;
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> u64 {
        (self.buckets.len() * size_of::<Bucket>()) as u64
    }
}

/// A look-up goes to any place of the table, so that it is worth having few pages.
fn empty_buckets(count: usize) -> Vec<Bucket> {
    let mut buckets = Vec::with_capacity(count);
    prefer_huge_pages(&mut buckets);
    buckets.resize(count, [0; BUCKET_LEN]);
    buckets
}

fn low_bits(count: u32) -> u64 {
    if count == 0 {
        0
    } else {
        u64::MAX >> (u64::BITS - count)
    }
}

#[cfg(test)]
mod tests {
    use durin_testkit::random::Random;

    use super::*;

    const LIMITS: IndexLimits = IndexLimits {
        entries_max: 1 << 16,
        room: 4,
    };

    fn hashes(count: usize, seed: u64) -> Vec<u64> {
        let bytes = Random::new(seed).bytes(count * 8);
        let words = bytes.as_chunks::<8>().0;
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    #[test]
    fn what_was_stored_is_found_while_the_table_grows() {
        let mut index = Index::new(LIMITS, 1 << 20);
        let hashes = hashes(20_000, 1);
        for (hash, place) in hashes.iter().zip(0..) {
            index.insert(*hash, place);
        }
        assert!(index.bucket_bits > BUCKET_BITS_FIRST);
        assert_eq!(index.thin_bits, 0);
        let found = hashes
            .iter()
            .zip(0..)
            .filter(|(hash, place)| index.find(**hash).places().contains(place));
        let found = found.count();
        assert!(found > 19_900, "{found}");
        let others = self::hashes(20_000, 2);
        let wrong = others.iter().filter(|hash| index.may_have(**hash)).count();
        assert!(wrong < 10, "{wrong}");
    }

    #[test]
    fn a_full_table_is_thinned_evenly() {
        let mut index = Index::new(LIMITS, 1 << 20);
        let hashes = hashes(400_000, 3);
        for (hash, place) in hashes.iter().zip(0..) {
            index.insert(*hash, place);
        }
        assert_eq!(index.buckets.len() * BUCKET_LEN, LIMITS.entries_max);
        assert_eq!(index.thin_bits, 4);
        for range in [0..100_000, 300_000..400_000] {
            let found = hashes[range.clone()]
                .iter()
                .zip(range.start as u64..)
                .filter(|(hash, place)| index.find(**hash).places().contains(place))
                .count();
            assert!(found.abs_diff(100_000 / 16) < 600, "{found}");
        }
    }

    #[test]
    fn the_latest_of_many_equal_ones_are_kept() {
        let mut index = Index::new(LIMITS, 1 << 20);
        for place in 0..100_000 {
            index.insert(0x1234_5678_9abc_def0, place);
        }
        assert_eq!(
            index.find(0x1234_5678_9abc_def0).places(),
            [99_999, 99_998, 99_997, 99_996]
        );
        assert_eq!(index.used, EQUAL_MAX);
    }

    #[test]
    fn the_smallest_table_never_fails() {
        let limits = IndexLimits {
            entries_max: 0,
            room: 10,
        };
        let mut index = Index::new(limits, u64::MAX);
        for (hash, place) in hashes(100_000, 4).into_iter().zip(0..) {
            index.insert(hash, place << 24);
        }
        assert_eq!(index.memory(), 128);
    }
}
