//! Small summaries of contents, by which `order` finds contents that are alike.
//!
//! In: the bytes of a content (not its holes), once, in pieces of any size. Out: 64 bytes, and for similarity as much for
//! each slice of a large content. Costs about a cycle per byte for similarity and some ten for Nilsimsa.

use durin_kernels::nilsimsa::Counters;
use durin_kernels::shingles::next_below;

/// How many words a sketch has.
pub(crate) const SKETCH_WORDS: usize = 16;

/// How many words the sketch of a slice has: a slice has to be told from others much like it.
pub(crate) const SLICE_SKETCH_WORDS: usize = 32;

/// How much of a content is looked at for its similarity. Behind that are data of a size that few versions of are kept,
/// and all of it would be read once more.
const SKETCHED_LEN_MAX: u64 = 256 << 20;

/// How long the slices of large contents are at least, which are ordered by themselves. Of 64 KiB to 1 MiB on versions of
/// programs, 128 and 256 KiB made the smallest images (docs/ordering.md).
const SLICE_LEN_MIN: u64 = 256 << 10;

/// What is sketched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SketchKind {
    /// Nothing: the order does not look at contents.
    None,
    /// The sixteen least hashes of all places of a content (MinHash).
    Similarity,
    /// The Nilsimsa digest.
    Nilsimsa,
}

/// The summary of one content. What the words mean depends on the kind; those of a content without bytes are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sketch {
    words: [u32; SKETCH_WORDS],
}

/// The sketch of a slice: its least hashes, the least first, and 0 where there are no more.
pub(crate) type SliceSketch = [u32; SLICE_SKETCH_WORDS];

/// The sketches of the slices of a large content, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slices {
    /// At least two, or none if the content is not large.
    pub(crate) sketches: Box<[SliceSketch]>,
    /// How long all are but the last one.
    slice_len: u64,
}

/// Makes sketches, one after the other.
#[derive(Debug)]
pub(crate) struct Sketcher {
    state: State,
}

#[derive(Debug)]
enum State {
    None,
    Similarity(Box<Similarity>),
    Nilsimsa(Box<Counters>),
}

/// The state of a sketch for similarity.
#[derive(Debug)]
struct Similarity {
    /// Bytes from the start of the content from which on nothing is looked at.
    end: u64,
    hash: u64,
    /// Of the slices before the current one, or of all of a small content.
    whole: Minima<SKETCH_WORDS>,
    /// Of the current slice of a large one.
    slice: Minima<SLICE_SKETCH_WORDS>,
    /// How long slices are, and how many there will be.
    slice_len: u64,
    slice_count: u64,
    slices: Vec<SliceSketch>,
}

/// The least hashes so far, in ascending order.
#[derive(Clone, Copy, Debug)]
struct Minima<const COUNT: usize> {
    least: [u64; COUNT],
}

impl Sketcher {
    /// Of contents whose slices are `slice_len` bytes long.
    pub(crate) fn new(kind: SketchKind, slice_len: u64) -> Self {
        let state = match kind {
            SketchKind::None => State::None,
            SketchKind::Similarity => State::Similarity(Box::new(Similarity::new(0, slice_len))),
            SketchKind::Nilsimsa => State::Nilsimsa(Box::default()),
        };
        Self { state }
    }

    /// Begins a content of so many bytes.
    pub(crate) fn begin(&mut self, len: u64) {
        match &mut self.state {
            State::None => {}
            State::Similarity(state) => **state = Similarity::new(len, state.slice_len),
            State::Nilsimsa(counters) => **counters = Counters::default(),
        }
    }

    /// Takes the bytes from `offset` on, which lie behind all taken before.
    pub(crate) fn update(&mut self, offset: u64, data: &[u8]) {
        match &mut self.state {
            State::None => {}
            State::Similarity(state) => state.update(offset, data),
            State::Nilsimsa(counters) => counters.update(data),
        }
    }

    /// Whether bytes from `offset` on would not change the sketch.
    pub(crate) fn has_enough(&self, offset: u64) -> bool {
        match &self.state {
            State::None => true,
            State::Similarity(state) => offset >= state.end,
            State::Nilsimsa(_) => false,
        }
    }

    /// Returns the sketch of the content, and those of its slices.
    pub(crate) fn finish(&mut self) -> (Sketch, Slices) {
        match &mut self.state {
            State::None => Default::default(),
            State::Similarity(state) => state.finish(),
            State::Nilsimsa(counters) => {
                let digest = std::mem::take(&mut **counters).digest();
                (Sketch::of_digest(digest), Slices::default())
            }
        }
    }
}

/// Returns how long slices must be for contents of these lengths to have no more than `slices_max`, if that is possible.
pub(crate) fn slice_len(lens: impl Iterator<Item = u64>, slices_max: u64) -> u64 {
    let large = lens.filter(|len| *len >= 2 * SLICE_LEN_MIN);
    let sketched: u64 = large.map(|len| len.min(SKETCHED_LEN_MAX)).sum();
    let mut slice_len = SLICE_LEN_MIN;
    while slice_len < SKETCHED_LEN_MAX && sketched / slice_len > slices_max {
        slice_len *= 2;
    }
    slice_len
}

/// How many slices a content of `len` bytes has; the last one goes on to its end.
fn slice_count(len: u64, slice_len: u64) -> u64 {
    (len.min(SKETCHED_LEN_MAX) / slice_len).max(1)
}

impl Slices {
    /// Where each slice ends that a content has, in bytes from its start.
    pub(crate) fn ends(&self, len: u64) -> impl Iterator<Item = u64> {
        let count = self.sketches.len() as u64;
        (1..=count).map(move |number| {
            if number == count {
                len
            } else {
                number * self.slice_len
            }
        })
    }
}

impl Similarity {
    fn new(len: u64, slice_len: u64) -> Self {
        Self {
            end: SKETCHED_LEN_MAX,
            hash: 0,
            whole: Minima::EMPTY,
            slice: Minima::EMPTY,
            slice_len,
            slice_count: slice_count(len, slice_len),
            slices: Vec::new(),
        }
    }

    fn update(&mut self, offset: u64, data: &[u8]) {
        let (mut offset, mut data) = (offset, data);
        if self.slice_count == 1 {
            let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
            let data = &data[..data.len().min(left)];
            self.whole.update(&mut self.hash, data);
            return;
        }
        while !data.is_empty() && offset < self.end {
            let slice = (offset / self.slice_len).min(self.slice_count - 1);
            while (self.slices.len() as u64) < slice {
                self.end_slice();
            }
            let end = if slice + 1 < self.slice_count {
                (slice + 1) * self.slice_len
            } else {
                self.end
            };
            let len = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let (here, rest) = data.split_at(len.min(data.len()));
            self.slice.update(&mut self.hash, here);
            offset += here.len() as u64;
            data = rest;
        }
    }

    fn end_slice(&mut self) {
        let slice = std::mem::replace(&mut self.slice, Minima::EMPTY);
        for hash in slice.least.into_iter().filter(|hash| *hash != u64::MAX) {
            self.whole.add(hash);
        }
        self.slices.push(slice.words());
    }

    fn finish(&mut self) -> (Sketch, Slices) {
        if self.slice_count > 1 {
            // There may be nothing but holes at the end.
            while (self.slices.len() as u64) < self.slice_count {
                self.end_slice();
            }
        }
        let whole = Sketch {
            words: self.whole.words(),
        };
        let sketches = std::mem::take(&mut self.slices).into();
        let slice_len = self.slice_len;
        *self = Self::new(0, slice_len);
        let slices = Slices {
            sketches,
            slice_len,
        };
        (whole, slices)
    }
}

impl<const COUNT: usize> Minima<COUNT> {
    const EMPTY: Self = Self {
        least: [u64::MAX; COUNT],
    };

    fn update(&mut self, hash: &mut u64, data: &[u8]) {
        let mut data = data;
        // The limit falls quickly, and nearly no hash of a long content is below it.
        while let Some(taken) = next_below(data, hash, self.least[COUNT - 1]) {
            data = &data[taken..];
            self.add(*hash);
        }
    }

    fn add(&mut self, hash: u64) {
        match self.least.binary_search(&hash) {
            Err(place) if place < COUNT => {
                self.least.copy_within(place..COUNT - 1, place + 1);
                self.least[place] = hash;
            }
            _ => {}
        }
    }

    fn words(self) -> [u32; COUNT] {
        self.least.map(|hash| match hash {
            u64::MAX => 0,
            hash => scattered(hash).max(1),
        })
    }
}

/// Shortens a hash that is known to be small.
fn scattered(hash: u64) -> u32 {
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    u32::try_from(mixed >> 32).unwrap_or(0)
}

impl Sketch {
    /// The words: for similarity the hashes, the least first, and 0 where there are no more.
    pub(crate) fn words(&self) -> &[u32; SKETCH_WORDS] {
        &self.words
    }

    /// How many hashes there are.
    #[cfg(test)]
    pub(crate) fn hash_count(&self) -> u32 {
        self.words.iter().map(|word| u32::from(*word != 0)).sum()
    }

    /// The Nilsimsa digest.
    pub(crate) fn digest(&self) -> [u64; 4] {
        let mut words = self.words.iter().map(|word| u64::from(*word));
        std::array::from_fn(|_| words.next().unwrap_or(0) | words.next().unwrap_or(0) << 32)
    }

    fn of_digest(digest: [u64; 4]) -> Self {
        let halves = digest.into_iter().flat_map(|word| {
            let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
            [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes)
        });
        let mut words = [0; SKETCH_WORDS];
        for (to, half) in words.iter_mut().zip(halves) {
            *to = half;
        }
        Self { words }
    }

    /// A sketch of made-up hashes.
    pub(crate) fn of_words(words: [u32; SKETCH_WORDS]) -> Self {
        Self { words }
    }
}

/// How many hashes two sketches share, of which both or none are of slices.
pub(crate) fn shared(words: &[u32], others: &[u32]) -> u32 {
    match (words.try_into(), others.try_into()) {
        (Ok(words), Ok(others)) => shared_of::<SKETCH_WORDS>(words, others),
        _ => match (words.try_into(), others.try_into()) {
            (Ok(words), Ok(others)) => shared_of::<SLICE_SKETCH_WORDS>(words, others),
            _ => 0,
        },
    }
}

/// All with all: a processor compares sixteen at once, and there is no branch to guess.
fn shared_of<const COUNT: usize>(words: &[u32; COUNT], others: &[u32; COUNT]) -> u32 {
    let has = |word: u32| {
        let equal = others.iter().map(|other| u32::from(*other == word));
        equal.sum::<u32>().min(1) * u32::from(word != 0)
    };
    words.iter().map(|word| has(*word)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_LEN: u64 = SLICE_LEN_MIN;

    fn likeness(one: &Sketch, other: &Sketch) -> u32 {
        shared(one.words(), other.words())
    }

    fn sketch(kind: SketchKind, data: &[u8], piece: usize) -> Sketch {
        sketches(kind, data, piece).0
    }

    fn sketches(kind: SketchKind, data: &[u8], piece: usize) -> (Sketch, Slices) {
        let mut sketcher = Sketcher::new(kind, SLICE_LEN);
        sketcher.begin(21);
        sketcher.update(0, b"something else before");
        sketcher.finish();
        sketcher.begin(data.len() as u64);
        for (number, bytes) in (0..).zip(data.chunks(piece)) {
            sketcher.update(number * piece as u64, bytes);
        }
        sketcher.finish()
    }

    fn noise(seed: u32, len: u32) -> Vec<u8> {
        let word = |n: u32| (n ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(n % 31);
        (0..len).flat_map(|n| word(n).to_le_bytes()).collect()
    }

    #[test]
    fn pieces_do_not_matter() {
        let data = noise(1, 5000);
        for kind in [
            SketchKind::None,
            SketchKind::Similarity,
            SketchKind::Nilsimsa,
        ] {
            let whole = sketch(kind, &data, data.len());
            assert_eq!(sketch(kind, &data, 1), whole, "{kind:?}");
            assert_eq!(sketch(kind, &data, 777), whole, "{kind:?}");
            assert_eq!(whole == Sketch::default(), kind == SketchKind::None);
        }
    }

    #[test]
    fn shared_hashes_tell_how_much_is_shared() {
        let kind = SketchKind::Similarity;
        let data = noise(1, 5000);
        let whole = sketch(kind, &data, 4096);
        assert_eq!((whole.hash_count(), likeness(&whole, &whole)), (16, 16));

        let mut edited = data.clone();
        edited.splice(7000..7010, *b"a few words more");
        assert!(likeness(&sketch(kind, &edited, 4096), &whole) >= 14);

        let half = [&data[..10_000], &noise(2, 2500)].concat();
        let shared = likeness(&sketch(kind, &half, 4096), &whole);
        assert!((2..14).contains(&shared), "{shared}");

        assert_eq!(likeness(&sketch(kind, &noise(3, 5000), 4096), &whole), 0);
    }

    #[test]
    fn little_to_hash() {
        let kind = SketchKind::Similarity;
        let empty = sketch(kind, b"", 1);
        assert_eq!((empty.hash_count(), likeness(&empty, &empty)), (0, 0));
        assert_eq!(sketch(kind, b"abc", 1).hash_count(), 3);
        // Sixteen bytes of one kind push the others out; from there on the hash stays the same.
        assert!(sketch(kind, &[7; 100_000], 4096).hash_count() <= 16);
    }

    #[test]
    fn digests_come_back() {
        let digest = [1, u64::MAX, 0, 1 << 63];
        assert_eq!(Sketch::of_digest(digest).digest(), digest);
    }

    #[test]
    fn slices_have_sketches_of_their_own() {
        let kind = SketchKind::Similarity;
        let slice_words = u32::try_from(SLICE_LEN / 4).expect("some ten thousand");
        let part = |seed| noise(seed, slice_words);
        let data = [part(1), part(2), part(3), noise(4, 100)].concat();
        let (whole, slices) = sketches(kind, &data, 100_003);
        assert_eq!(slices.sketches.len(), 3);
        let ends: Vec<_> = slices.ends(data.len() as u64).collect();
        assert_eq!(ends, [SLICE_LEN, 2 * SLICE_LEN, data.len() as u64]);
        assert_eq!(sketches(kind, &data, 4096), (whole, slices.clone()));

        // A slice is found again elsewhere, and the whole is what it would be without slices.
        let moved = [part(5), part(2)].concat();
        let (_, others) = sketches(kind, &moved, 4096);
        assert!(shared(&slices.sketches[1], &others.sketches[1]) > 28);
        assert_eq!(shared(&slices.sketches[0], &others.sketches[0]), 0);
        let mut plain = Minima::<SKETCH_WORDS>::EMPTY;
        plain.update(&mut 0, &data);
        assert_eq!(whole.words, plain.words());
    }

    #[test]
    fn holes_are_in_no_slice() {
        let mut sketcher = Sketcher::new(SketchKind::Similarity, SLICE_LEN);
        let data = noise(1, 1000);
        sketcher.begin(4 * SLICE_LEN);
        sketcher.update(2 * SLICE_LEN + 5, &data);
        let (whole, slices) = sketcher.finish();
        let none = [0; SLICE_SKETCH_WORDS];
        let is_empty: Vec<_> = slices.sketches.iter().map(|words| *words == none).collect();
        assert_eq!(is_empty, [true, true, false, true]);
        assert_eq!(whole.hash_count(), 16);
    }

    #[test]
    fn slices_are_longer_where_there_would_be_too_many() {
        const MIB: u64 = 1 << 20;
        let len_of = |count: usize, len, max| slice_len([len].repeat(count).into_iter(), max);
        assert_eq!(len_of(10, MIB, 40), SLICE_LEN);
        assert_eq!(len_of(10, MIB, 39), 2 * SLICE_LEN);
        assert_eq!(len_of(10, MIB, 10), 4 * SLICE_LEN);
        // Only so much of a large content is sketched, and nothing of a small one.
        assert_eq!(len_of(1, 1 << 40, 1024), SLICE_LEN);
        assert_eq!(len_of(1000, 2 * SLICE_LEN - 1, 1), SLICE_LEN);
        assert_eq!(len_of(1000, MIB, 0), SKETCHED_LEN_MAX);
        assert_eq!(slice_count(1 << 40, SKETCHED_LEN_MAX), 1);
    }
}
