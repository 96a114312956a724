//! Anchors that lie far from each other.
//!
//! Where few places are anchors, most of the time goes to places that are none. So each place is asked a cheaper question
//! first, about its last [`LOOK`] bytes only, and many places at once: sums of products, which compilers turn into vector
//! instructions. The first of places in a row that pass is an anchor; a hash of all of the window tells anchors apart.
//!
//! Where no place passes for too long, all of that stretch is asked again with a lower bar, and what that leaves is winnowed.
//! The promise of [`super`] holds as before: of two equal pieces of that length, either has an anchor inside, and so has
//! the other at the same place, or both lie in stretches that are asked again.

use super::{Budget, Density, WINDOW, mix, winnow};

/// Bytes that decide whether a place is an anchor.
const LOOK: usize = 8;
/// Places asked at once, every second one.
const LANES: usize = 16;
/// Bytes that are looked at for twice as many places.
const LOOKED_AT: usize = 2 * LANES + LOOK - 1;
/// The question has 16 bits; of places that must be rarer than one in 2^12, the hash of the window decides the rest.
const LOOK_BITS_MAX: u32 = 12;
/// How much more likely a place passes when it is asked again, as a power of two: hardly any random data are left then, and
/// still fewer anchors are found than [`Budget`] allows, were all of the data asked again.
const LOWER_BITS: u32 = 2;
/// Odd, so that no bit of a byte is lost, and without a pattern.
const FACTORS: [i16; LOOK / 2] = [-25033, -15693, -31253, 32587];
/// So that zeros are no anchors.
const OFFSET: i16 = 27985;
const KEYS: [u64; WINDOW / 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0x2545_f491_4f6c_dd1d,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
];

/// As [`super::find`].
pub(super) fn find(data: &[u8], density: Density, found: impl FnMut(usize, u64)) {
    if data.len() < WINDOW {
        return;
    }
    let mut finder = Finder {
        data,
        density,
        budget: Budget::of(data, density),
        found,
    };
    finder.scan(WINDOW - 1, data.len(), density.bits);
}

struct Finder<'a, F> {
    data: &'a [u8],
    density: Density,
    budget: Budget,
    found: F,
}

impl<F: FnMut(usize, u64)> Finder<'_, F> {
    /// Finds the anchors of the places between `from`, which has a whole window, and `to`: one place in 2^`bits`, and more
    /// where those leave a gap.
    fn scan(&mut self, from: usize, to: usize, bits: u32) {
        let data = self.data;
        let look_bits = bits.min(LOOK_BITS_MAX);
        // The smallest of 2^16 numbers with signs, which processors of all ages compare.
        let threshold = i16::MIN + (i16::MAX >> look_bits) * 2 + 1;
        let rest = u64::MAX >> (bits.min(63) - look_bits);
        // The first place without an anchor before it.
        let mut gap = from;
        passing(data, from, to, threshold, |place, window| {
            let hash = identity(window);
            if hash > rest {
                return;
            }
            self.fill(gap, place, bits);
            self.emit(place, mix(hash));
            gap = place + 1;
        });
        self.fill(gap, to, bits);
    }

    /// Finds anchors between two places where there are none, if that is too long.
    fn fill(&mut self, from: usize, to: usize, bits: u32) {
        if to.saturating_sub(from) < self.density.reach {
            return;
        }
        if bits == self.density.bits {
            self.scan(from, to, bits - LOWER_BITS);
        } else {
            winnow(
                self.data,
                from,
                to,
                self.density.reach,
                &mut |place, hash| self.emit(place, mix(hash)),
            );
        }
    }

    /// Returns whether there may be more.
    fn emit(&mut self, place: usize, hash: u64) -> bool {
        let has_left = self.budget.take();
        if has_left {
            (self.found)(place, hash);
        }
        has_left
    }
}

/// Calls `pass` for each place between `from` and `to` whose last bytes pass and those of the place before do not, with its
/// window, in order. All of the places have windows. In a stretch of one byte value all places pass, or none.
fn passing(
    data: &[u8],
    from: usize,
    to: usize,
    threshold: i16,
    mut pass: impl FnMut(usize, &[u8; WINDOW]),
) {
    let bytes = data.get(..to).unwrap_or(data);
    // The place before the first one says whether that is the first in its row, and is none of those asked for.
    let mut place = from - 1;
    let mut passed = true;
    while place < to {
        let rest = bytes.get(place + 1 - LOOK..).unwrap_or_default();
        let skipped = none_passes(rest, threshold);
        place += skipped;
        passed &= skipped == 0;
        let rest = &rest[skipped..];
        let mut padded = [0; LOOKED_AT];
        let look = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        // Behind the end there are answers, too, to which no place belongs.
        let answers = ask::<0>(look).into_iter().zip(ask::<1>(look));
        for (place, answer) in (place..to).zip(answers.flat_map(|(even, odd)| [even, odd])) {
            let passes = answer <= threshold;
            if passes && !passed {
                let window = bytes
                    .get(place + 1 - WINDOW..)
                    .and_then(<[u8]>::first_chunk);
                if let Some(window) = window {
                    pass(place, window);
                }
            }
            passed = passes;
        }
        place += 2 * LANES;
    }
}

/// Returns how many places, in whole steps, go by before one of those asked at once passes.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "half the time with vectors of 32 bytes")
)]
fn none_passes(bytes: &[u8], threshold: i16) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function wants.
        return unsafe { none_passes_avx2(bytes, threshold) };
    }
    none_passes_portable(bytes, threshold)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn none_passes_avx2(bytes: &[u8], threshold: i16) -> usize {
    count_steps(bytes, threshold)
}

// Apart from what its caller keeps in registers, it needs half the time.
#[inline(never)]
fn none_passes_portable(bytes: &[u8], threshold: i16) -> usize {
    count_steps(bytes, threshold)
}

#[inline(always)]
fn count_steps(bytes: &[u8], threshold: i16) -> usize {
    let mut skipped = 0;
    while let Some(look) = bytes.get(skipped..).and_then(<[u8]>::first_chunk) {
        let (even, odd) = (ask::<0>(look), ask::<1>(look));
        let least = even.iter().zip(&odd).map(|(even, odd)| *even.min(odd));
        if least.fold(i16::MAX, i16::min) <= threshold {
            break;
        }
        skipped += 2 * LANES;
    }
    skipped
}

/// Asks every second place about its last bytes, those of the first place being the first from `START` on.
#[inline(always)]
fn ask<const START: usize>(bytes: &[u8; LOOKED_AT]) -> [i16; LANES] {
    let mut answers = [OFFSET; LANES];
    for (pair, factor) in FACTORS.iter().enumerate() {
        let words = &bytes[START + 2 * pair..];
        for (answer, word) in answers.iter_mut().zip(words.as_chunks().0) {
            *answer = answer.wrapping_add(i16::from_le_bytes(*word).wrapping_mul(*factor));
        }
    }
    answers
}

/// Hashes all of a window.
fn identity(window: &[u8; WINDOW]) -> u64 {
    let mut words = [0; WINDOW / 8];
    for (word, bytes) in words.iter_mut().zip(window.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut hash = 0;
    for (pair, keys) in words.as_chunks::<2>().0.iter().zip(KEYS.as_chunks::<2>().0) {
        let (low, high) = (pair[0] ^ keys[0]).carrying_mul(pair[1] ^ keys[1], 0);
        hash ^= low ^ high;
    }
    hash
}

#[cfg(test)]
mod tests {
    use durin_testkit::random::Random;

    use super::*;

    const REACH: usize = 1 << 20;

    fn places(data: &[u8], bits: u32) -> Vec<(usize, u64)> {
        let mut places = Vec::new();
        let density = Density { bits, reach: REACH };
        find(data, density, |place, hash| places.push((place, hash)));
        places
    }

    /// One place after the other, as the definition has it.
    fn one_by_one(data: &[u8], bits: u32) -> Vec<(usize, u64)> {
        let threshold = i32::from(i16::MIN) + (1 << (16 - bits)) - 1;
        let passes = |look: &[u8]| {
            let products = look.chunks(2).zip(FACTORS).map(|(pair, factor)| {
                i64::from(i16::from_le_bytes([pair[0], pair[1]])) * i64::from(factor)
            });
            let sum = products.sum::<i64>() + i64::from(OFFSET);
            (sum + (1 << 15)).rem_euclid(1 << 16) - (1 << 15) <= i64::from(threshold)
        };
        let windows = (WINDOW - 1..).zip(data.windows(WINDOW));
        windows
            .filter(|(_, window)| {
                let look = &window[WINDOW - LOOK - 1..];
                passes(&look[1..]) && !passes(&look[..LOOK])
            })
            .map(|(place, window)| (place, mix(identity(window.try_into().expect("a window")))))
            .collect()
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let data = Random::new(7).bytes(5000);
        for bits in [5, 9, 12] {
            // All lengths of what is left behind the last whole step, and data too short for a step.
            for len in (0..200).chain(4900..5000) {
                assert_eq!(places(&data[..len], bits), one_by_one(&data[..len], bits));
            }
        }
        assert!(!places(&data, 5).is_empty());
    }

    #[test]
    fn all_vectors_give_the_same() {
        let data = Random::new(10).bytes(100_000);
        for start in 0..1000 {
            for bits in [7, 12] {
                let threshold = i16::MIN + (i16::MAX >> bits) * 2 + 1;
                let expected = none_passes_portable(&data[start * 97..], threshold);
                assert_eq!(none_passes(&data[start * 97..], threshold), expected);
            }
        }
    }

    #[test]
    fn rarer_places_are_some_of_the_less_rare() {
        let data = Random::new(8).bytes(1 << 20);
        let common = places(&data, 12);
        let rare = places(&data, 15);
        assert!(!rare.is_empty() && rare.len() * 4 < common.len());
        assert!(rare.iter().all(|place| common.contains(place)));
    }

    #[test]
    fn data_made_to_pass_everywhere_have_no_more_anchors_than_allowed() {
        // A word of eight bytes that passes at the strictest bar, over and over, each time behind other bytes.
        let seed = Random::new(9).bytes(1 << 21);
        let passing = places(&seed, LOOK_BITS_MAX);
        let (place, _) = passing.first().expect("an anchor");
        let word = &seed[place + 1 - LOOK..=*place];
        let data: Vec<u8> = seed[..1 << 17]
            .chunks(LOOK)
            .flat_map(|other| [other, word].concat())
            .collect();
        let found = places(&data, LOOK_BITS_MAX).len();
        let expected = data.len() >> LOOK_BITS_MAX;
        assert!(found > expected && found <= 8 * (expected + 1), "{found}");
    }
}
