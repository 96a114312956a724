//! How often bytes occur: what can be saved without repetitions.

use std::borrow::Cow;

/// Bytes of a piece whose distribution is looked at first: enough to know it to a hundredth.
const PLACES_LEN: usize = 16 << 10;
/// In so many places.
const PLACE_COUNT: usize = 16;

/// How often each byte occurs.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [u32; 256],
    total: u32,
}

impl Histogram {
    /// Counts all bytes of `data`.
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        // Four tables, so that equal bytes in a row do not wait for each other.
        let mut tables = [[0_u32; 256]; 4];
        let (chunks, rest) = data.as_chunks::<4>();
        for chunk in chunks {
            for (table, byte) in tables.iter_mut().zip(chunk) {
                table[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            tables[0][usize::from(*byte)] += 1;
        }
        let [first, others @ ..] = tables;
        let mut counts = first;
        for table in others {
            for (count, more) in counts.iter_mut().zip(table) {
                *count += more;
            }
        }
        Self {
            counts,
            total: u32::try_from(data.len()).unwrap_or(u32::MAX),
        }
    }

    /// Counts the bytes in some places of `data` only, up to 16 KiB.
    #[must_use]
    pub fn of_sample(data: &[u8]) -> Self {
        Self::of(&places(data))
    }

    /// Counts how much bytes differ from those `distance` bytes before them.
    pub(crate) fn of_changes(data: &[u8], distance: usize) -> Self {
        let later = data.get(distance..).unwrap_or_default();
        let change = |(byte, before): (&u8, &u8)| byte.wrapping_sub(*before);
        let changes: Vec<u8> = later.iter().zip(data).map(change).collect();
        Self::of(&changes)
    }

    /// The entropy, with what a small sample lacks added.
    #[must_use]
    pub fn bits_per_byte(&self) -> f64 {
        let total = f64::from(self.total.max(1));
        let present = self.counts.iter().filter(|count| **count > 0);
        let bits: f64 = present
            .clone()
            .map(|count| {
                let count = f64::from(*count);
                count * (total / count).log2()
            })
            .sum();
        // Source: Miller and Madow, 1955.
        let others = u16::try_from(present.count().saturating_sub(1)).unwrap_or(u16::MAX);
        let lacking = f64::from(others) / (2.0 * total) * std::f64::consts::LOG2_E;
        (bits / total + lacking).min(8.0)
    }
}

/// Some places of `data`, one after the other; all of it, if it is small.
pub(crate) fn places(data: &[u8]) -> Cow<'_, [u8]> {
    const PLACE_LEN: usize = PLACES_LEN / PLACE_COUNT;
    if data.len() <= PLACES_LEN {
        return Cow::Borrowed(data);
    }
    let places = data
        .chunks(data.len() / PLACE_COUNT)
        .take(PLACE_COUNT)
        .flat_map(|share| share.get(..PLACE_LEN).unwrap_or(share));
    Cow::Owned(places.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy() {
        let bits = |data: &[u8]| Histogram::of(data).bits_per_byte();
        assert!(bits(&[7; 1000]) < 0.001);
        assert!((bits(&[1, 2].repeat(4000)) - 1.0).abs() < 0.001);
        let all: Vec<u8> = (0..=255).collect();
        assert!(bits(&all.repeat(100)) > 7.99);
        assert!(bits(&[]) < 0.001);
    }

    #[test]
    fn changes_are_counted_at_a_distance() {
        let steps: Vec<u8> = (0..200).flat_map(|n| [n, 255 - n]).collect();
        let bits = |distance| Histogram::of_changes(&steps, distance).bits_per_byte();
        assert!(bits(2) < 1.1 && bits(1) > 6.0);
        assert!(bits(400) < 0.001);
    }

    #[test]
    fn places_are_spread() {
        for len in [0, 1, PLACES_LEN, PLACES_LEN + 1, 100_003] {
            let data = vec![1; len];
            assert_eq!(places(&data).len(), len.min(PLACES_LEN), "{len}");
        }
        let halves = [vec![0; 50_000], vec![1; 50_000]].concat();
        let ones = places(&halves).iter().filter(|byte| **byte == 1).count();
        assert_eq!(ones * 2, PLACES_LEN);
    }
}
