//! Small summaries of contents, by which `order` finds contents that are alike.
//!
//! In: the bytes of a content (not its holes), once, in pieces of any size. Out: 64 bytes. Costs about a cycle per byte
//! for similarity and some ten for Nilsimsa; allocates only when it is made.

use durin_kernels::nilsimsa::Counters;
use durin_kernels::shingles::next_below;

/// How many words a sketch has.
pub(crate) const SKETCH_WORDS: usize = 16;

/// How much of a content is looked at for its similarity. What is larger fills blocks by itself, so that its neighbours
/// hardly matter: time is better spent elsewhere.
const SKETCHED_LEN_MAX: usize = 64 << 20;

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

/// Makes sketches, one after the other.
#[derive(Debug)]
pub(crate) struct Sketcher {
    state: State,
}

#[derive(Debug)]
enum State {
    None,
    Similarity(Minima),
    Nilsimsa(Box<Counters>),
}

/// The least hashes so far, in ascending order.
#[derive(Clone, Copy, Debug)]
struct Minima {
    /// Bytes that may still come.
    left: usize,
    hash: u64,
    least: [u64; SKETCH_WORDS],
}

impl Sketcher {
    pub(crate) fn new(kind: SketchKind) -> Self {
        let state = match kind {
            SketchKind::None => State::None,
            SketchKind::Similarity => State::Similarity(Minima::EMPTY),
            SketchKind::Nilsimsa => State::Nilsimsa(Box::default()),
        };
        Self { state }
    }

    /// Takes the next bytes of the content.
    pub(crate) fn update(&mut self, data: &[u8]) {
        match &mut self.state {
            State::None => {}
            State::Similarity(minima) => minima.update(data),
            State::Nilsimsa(counters) => counters.update(data),
        }
    }

    /// Whether further bytes would not change the sketch.
    pub(crate) fn has_enough(&self) -> bool {
        match &self.state {
            State::None => true,
            State::Similarity(minima) => minima.left == 0,
            State::Nilsimsa(_) => false,
        }
    }

    /// Returns the sketch of what came since the last call.
    pub(crate) fn finish(&mut self) -> Sketch {
        match &mut self.state {
            State::None => Sketch::default(),
            State::Similarity(minima) => std::mem::replace(minima, Minima::EMPTY).sketch(),
            State::Nilsimsa(counters) => {
                let digest = std::mem::take(&mut **counters).digest();
                Sketch::of_digest(digest)
            }
        }
    }
}

impl Minima {
    const EMPTY: Self = Self {
        left: SKETCHED_LEN_MAX,
        hash: 0,
        least: [u64::MAX; SKETCH_WORDS],
    };

    fn update(&mut self, data: &[u8]) {
        let mut data = &data[..data.len().min(self.left)];
        self.left -= data.len();
        // The limit falls quickly, and nearly no hash of a long content is below it.
        while let Some(taken) = next_below(data, &mut self.hash, self.least[SKETCH_WORDS - 1]) {
            data = &data[taken..];
            if let Err(place) = self.least.binary_search(&self.hash) {
                self.least.copy_within(place..SKETCH_WORDS - 1, place + 1);
                self.least[place] = self.hash;
            }
        }
    }

    fn sketch(self) -> Sketch {
        let words = self.least.map(|hash| match hash {
            u64::MAX => 0,
            hash => scattered(hash).max(1),
        });
        Sketch { words }
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

    /// How many hashes both have.
    pub(crate) fn shared_with(&self, other: &Self) -> u32 {
        // All with all: a processor compares sixteen at once, and there is no branch to guess.
        let has = |word: u32| {
            let equal = other.words.iter().map(|other| u32::from(*other == word));
            equal.sum::<u32>().min(1) * u32::from(word != 0)
        };
        self.words.iter().map(|word| has(*word)).sum()
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
    #[cfg(test)]
    pub(crate) fn of_words(words: [u32; SKETCH_WORDS]) -> Self {
        Self { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(kind: SketchKind, data: &[u8], piece: usize) -> Sketch {
        let mut sketcher = Sketcher::new(kind);
        sketcher.update(b"something else before");
        sketcher.finish();
        for piece in data.chunks(piece) {
            sketcher.update(piece);
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
        assert_eq!((whole.hash_count(), whole.shared_with(&whole)), (16, 16));

        let mut edited = data.clone();
        edited.splice(7000..7010, *b"a few words more");
        assert!(sketch(kind, &edited, 4096).shared_with(&whole) >= 14);

        let half = [&data[..10_000], &noise(2, 2500)].concat();
        let shared = sketch(kind, &half, 4096).shared_with(&whole);
        assert!((2..14).contains(&shared), "{shared}");

        assert_eq!(sketch(kind, &noise(3, 5000), 4096).shared_with(&whole), 0);
    }

    #[test]
    fn little_to_hash() {
        let kind = SketchKind::Similarity;
        let empty = sketch(kind, b"", 1);
        assert_eq!((empty.hash_count(), empty.shared_with(&empty)), (0, 0));
        assert_eq!(sketch(kind, b"abc", 1).hash_count(), 3);
        // Sixteen bytes of one kind push the others out; from there on the hash stays the same.
        assert!(sketch(kind, &[7; 100_000], 4096).hash_count() <= 16);
    }

    #[test]
    fn digests_come_back() {
        let digest = [1, u64::MAX, 0, 1 << 63];
        assert_eq!(Sketch::of_digest(digest).digest(), digest);
    }
}
