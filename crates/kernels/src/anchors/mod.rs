//! Content-defined anchors: places that depend on the bytes in front of them only.
//!
//! A hash of the last [`WINDOW`] bytes rolls over the data (of the gear kind: shift, and add a number for the byte).
//! Places where it is below a threshold are anchors, so that equal data have equal anchors wherever they lie. Where
//! there is none for `reach` places, the place with the smallest hash among each `reach` is one too (winnowing), which
//! makes a promise of what would be likely only: data of `WINDOW - 1 + reach` bytes that occur twice share an anchor,
//! be they random or all but constant. Serial code: 0.5 to 1 ns a byte where one place in 128 is an anchor
//! (`cargo bench --profile fast -p durin-kernels`). Rare anchors are found in another way (`sparse`), at 0.1 to 0.2 ns
//! a byte, with the same promise.

mod sparse;

/// Bytes that an anchor depends on; those of the hash.
pub const WINDOW: usize = 64;
/// Anchors found per expected anchor, at most: data made up to have anchors everywhere cost no more than this.
const EXCESS_MAX: usize = 8;
/// From one anchor in 2^9 bytes on, looking at the bytes between them costs more than the anchors.
const SPARSE_BITS: u32 = 9;
/// One random number a byte.
const GEAR: [u64; 256] = gear();

/// A sequence of good mixtures (splitmix64, public domain).
const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0x6475_7269_6e00_0001_u64;
    let mut at = 0;
    while at < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[at] = z ^ (z >> 31);
        at += 1;
    }
    table
}

/// How dense anchors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Density {
    /// One place in 2^`bits` is an anchor.
    pub bits: u32,
    /// Places without an anchor, at most; at least 1.
    pub reach: usize,
}

/// How many anchors may still be found.
struct Budget(usize);

impl Budget {
    fn of(data: &[u8], density: Density) -> Self {
        let expected = data.len() >> density.bits.min(63);
        Self(expected.saturating_mul(EXCESS_MAX) + EXCESS_MAX)
    }

    /// Whether there was one left.
    fn take(&mut self) -> bool {
        let has_left = self.0 > 0;
        self.0 -= usize::from(has_left);
        has_left
    }
}

/// Calls `found` for each anchor of `data`, in order, with the place of the last byte of its window and its hash.
pub fn find(data: &[u8], density: Density, found: impl FnMut(usize, u64)) {
    if density.bits >= SPARSE_BITS {
        sparse::find(data, density, found);
    } else {
        find_dense(data, density, found);
    }
}

fn find_dense(data: &[u8], density: Density, mut found: impl FnMut(usize, u64)) {
    let threshold = u64::MAX >> density.bits.min(63);
    let mut budget = Budget::of(data, density);
    let mut emit = |place, hash| budget.take().then(|| found(place, mix(hash))).is_some();
    let Some((warm, rest)) = data.split_at_checked(WINDOW - 1) else {
        return;
    };
    let mut hash = warm.iter().fold(0, |hash, byte| roll(hash, *byte));
    // The first place without an anchor before it.
    let mut gap = WINDOW - 1;
    let (mut last, mut last_place) = (u64::MAX, 0);
    for (place, byte) in (WINDOW - 1..).zip(rest) {
        hash = roll(hash, *byte);
        if hash <= threshold {
            // In a stretch of one byte value each place has the same hash: one of them will do.
            if hash == last && place - last_place < density.reach && place == gap {
                gap = place + 1;
                continue;
            }
            if place - gap >= density.reach {
                winnow(data, gap, place, density.reach, &mut emit);
            }
            emit(place, hash);
            (last, last_place) = (hash, place);
            gap = place + 1;
        }
    }
    if data.len() - gap >= density.reach {
        winnow(data, gap, data.len(), density.reach, &mut emit);
    }
}

fn roll(hash: u64, byte: u8) -> u64 {
    (hash << 1).wrapping_add(GEAR[usize::from(byte)])
}

/// Spreads what the hashes of anchors differ in over all bits.
fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9fb2_1c65_1e98_df25);
    (hash ^ (hash >> 35)).wrapping_mul(0x9fb2_1c65_1e98_df25) ^ (hash >> 28)
}

/// Emits the place of the smallest hash of each `reach` places between `from` and `to`, the last one of equal ones.
/// These places have no anchor, and are at least `reach`.
///
/// From one such place, the next is the first with a hash as small, or if there is none within reach, the one with the
/// smallest hash within reach. The hash of a place is all that is needed to roll on from there.
fn winnow(
    data: &[u8],
    from: usize,
    to: usize,
    reach: usize,
    emit: &mut impl FnMut(usize, u64) -> bool,
) {
    let warm = &data[from + 1 - WINDOW..from];
    let mut hash = warm.iter().fold(0, |hash, byte| roll(hash, *byte));
    let (mut least, mut at) = (u64::MAX, from);
    for (place, byte) in (from..).zip(&data[from..from + reach]) {
        hash = roll(hash, *byte);
        (least, at) = if hash <= least {
            (hash, place)
        } else {
            (least, at)
        };
    }
    let mut left = emit(at, least);
    let (mut emitted, mut emitted_at) = (least, at);
    while left {
        let end = data.len().min(to).min(at + 1 + reach);
        let is_whole = at + reach < to;
        let (mut next, mut next_at) = (u64::MAX, at);
        let mut hash = least;
        for (place, byte) in (at + 1..).zip(&data[at + 1..end]) {
            hash = roll(hash, *byte);
            (next, next_at) = if hash <= next {
                (hash, place)
            } else {
                (next, next_at)
            };
            if hash <= least {
                break;
            }
        }
        if next_at == at || next > least && !is_whole {
            return;
        }
        (least, at) = (next, next_at);
        // In a stretch with a short period one of many equal ones will do.
        if least != emitted || at - emitted_at >= reach {
            left = emit(at, least);
            (emitted, emitted_at) = (least, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use durin_testkit::random::Random;

    use super::*;

    const DENSITY: Density = Density {
        bits: 6,
        reach: 193,
    };
    /// As level 1 of `mkdwarfs` has them.
    const SPARSE: Density = of_options(13, 2);

    /// As `-W` and `-w` of `mkdwarfs` make them.
    const fn of_options(window_bits: u32, step_bits: u32) -> Density {
        Density {
            bits: window_bits - step_bits,
            reach: (1 << window_bits) - (WINDOW - 1),
        }
    }

    fn all(data: &[u8], density: Density) -> Vec<(usize, u64)> {
        let mut anchors = Vec::new();
        find(data, density, |place, hash| anchors.push((place, hash)));
        anchors
    }

    fn random(len: usize, seed: u64) -> Vec<u8> {
        Random::new(seed).bytes(len)
    }

    #[test]
    fn random_data_have_the_density_asked_for() {
        for bits in [4, 7, 8, 9, 10, 12] {
            let density = Density {
                bits,
                reach: 8 << bits,
            };
            let anchors = all(&random(1 << 22, 3), density);
            let expected = (1 << 22) >> bits;
            assert!(
                anchors.len() > expected * 8 / 10 && anchors.len() < expected * 12 / 10,
                "{bits}: {}",
                anchors.len()
            );
            assert!(anchors.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    /// Data of many kinds, `len` bytes or a little more or less.
    fn kinds(len: usize, seed: u64) -> [(&'static str, Vec<u8>); 6] {
        let random = |len, more| random(len, 100 * seed + more);
        let words: Vec<_> = (0..30)
            .map(|word| random(3 + word % 7, 30 + word as u64))
            .collect();
        [
            ("random", random(len, 1)),
            (
                "few values",
                random(len, 2).iter().map(|byte| byte / 250).collect(),
            ),
            (
                "words",
                random(len / 6, 3)
                    .iter()
                    .flat_map(|byte| words[usize::from(*byte) % words.len()].clone())
                    .collect(),
            ),
            (
                "runs",
                random(len / 100, 4)
                    .iter()
                    .flat_map(|byte| [*byte; 100])
                    .collect(),
            ),
            ("period", random(77, 5).repeat(len / 77)),
            ("long period", random(len / 40 + 1, 6).repeat(40)),
        ]
    }

    /// The promise, wherever the copy lies.
    #[test]
    fn copies_share_an_anchor() {
        let others = [(11, 2), (12, 2), (13, 3), (14, 2), (15, 1)];
        let others = others.map(|(window, step)| of_options(window, step));
        for (seed, density) in (1..).zip(others.into_iter().chain([DENSITY, SPARSE])) {
            let len = WINDOW - 1 + density.reach;
            for (name, data) in kinds(20 * len, seed) {
                let own: std::collections::HashSet<u64> = all(&data, density)
                    .into_iter()
                    .map(|(_, hash)| hash)
                    .collect();
                for start in (0..data.len() - len).step_by(len / 7) {
                    let mut copy = random(300 + start % 37, 21);
                    copy.extend_from_slice(&data[start..start + len]);
                    copy.extend(random(300, 22));
                    let found = all(&copy, density);
                    let is_known = found.iter().any(|(_, hash)| own.contains(hash));
                    assert!(is_known, "{name} at {start}, {density:?}, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn constant_data_have_few_anchors() {
        for (density, len) in [(DENSITY, 10_000), (SPARSE, 100_000)] {
            for byte in 0..=255 {
                let anchors = all(&vec![byte; len], density);
                let expected = len / density.reach;
                assert!(
                    anchors.len().abs_diff(expected) <= 2,
                    "{byte}: {}, {density:?}",
                    anchors.len()
                );
            }
        }
    }

    #[test]
    fn places_are_ends_of_windows() {
        let data = random(5000, 17);
        for (place, hash) in all(&data, DENSITY) {
            let window = &data[place + 1 - WINDOW..=place];
            assert_eq!(mix(window.iter().fold(0, |h, b| roll(h, *b))), hash);
        }
        for len in 0..WINDOW {
            assert!(all(&data[..len], DENSITY).is_empty());
        }
        // As short as can be.
        let every = Density { bits: 0, reach: 1 };
        assert_eq!(all(&data[..WINDOW], every).len(), 1);
    }
}
