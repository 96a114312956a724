//! Counting for the Nilsimsa digest.
//!
//! For each byte, eight trigrams of it and the four bytes before it are hashed to one of 256 counters each.
//! This is the classic digest of spam filters; the vectors below, which its implementations share, pin it.

/// A permutation of all bytes.
const SCRAMBLED: [u8; 256] = scrambled();

/// Walks through the bytes in a scattered way, and takes the next one that is free.
const fn scrambled() -> [u8; 256] {
    let mut table = [0; 256];
    let mut is_taken = [false; 256];
    let mut at = 0;
    let mut value: u8 = 0;
    while at < table.len() {
        value = value.wrapping_mul(53).wrapping_add(1).rotate_left(1);
        while is_taken[value as usize] {
            value = value.wrapping_add(1);
        }
        is_taken[value as usize] = true;
        table[at] = value;
        at += 1;
    }
    table
}

/// The counters of one text.
#[derive(Clone, Debug)]
pub struct Counters {
    counts: [u64; 256],
    /// The bytes before the next, the last one first.
    before: [u8; 4],
    len: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: [0; 256],
            before: [0; 4],
            len: 0,
        }
    }
}

fn bucket(a: u8, b: u8, c: u8, salt: u8) -> usize {
    let scramble = |byte: u8| SCRAMBLED[usize::from(byte)];
    let left = scramble(a.wrapping_add(salt)) ^ scramble(b).wrapping_mul(2 * salt + 1);
    usize::from(left.wrapping_add(scramble(c ^ scramble(salt))))
}

impl Counters {
    /// Takes the next bytes of the text.
    pub fn update(&mut self, data: &[u8]) {
        let ramp = usize::try_from(4_u64.saturating_sub(self.len)).unwrap_or(4);
        let (first, rest) = data.split_at(ramp.min(data.len()));
        for byte in first {
            self.count_near_start(*byte);
        }
        for byte in rest {
            self.count(*byte);
        }
    }

    /// Counts the trigrams of the first bytes, before which there are less than four.
    fn count_near_start(&mut self, byte: u8) {
        let [w0, w1, w2, _] = self.before;
        if self.len >= 2 {
            self.counts[bucket(byte, w0, w1, 0)] += 1;
        }
        if self.len >= 3 {
            self.counts[bucket(byte, w0, w2, 1)] += 1;
            self.counts[bucket(byte, w1, w2, 2)] += 1;
        }
        self.before = [byte, w0, w1, w2];
        self.len += 1;
    }

    #[inline]
    fn count(&mut self, byte: u8) {
        let [w0, w1, w2, w3] = self.before;
        let counts = &mut self.counts;
        counts[bucket(byte, w0, w1, 0)] += 1;
        counts[bucket(byte, w0, w2, 1)] += 1;
        counts[bucket(byte, w1, w2, 2)] += 1;
        counts[bucket(byte, w0, w3, 3)] += 1;
        counts[bucket(byte, w1, w3, 4)] += 1;
        counts[bucket(byte, w2, w3, 5)] += 1;
        counts[bucket(w3, w0, byte, 6)] += 1;
        counts[bucket(w3, w2, byte, 7)] += 1;
        self.before = [byte, w0, w1, w2];
        self.len += 1;
    }

    /// Returns the digest: a bit is set if its counter is above the average. Bit `i` is bit `i % 64` of word `i / 64`.
    #[must_use]
    pub fn digest(&self) -> [u64; 4] {
        let trigrams = match self.len {
            0..=2 => 0,
            3 => 1,
            4 => 4,
            len => 8 * len - 28,
        };
        let average = trigrams / 256;
        let mut words = [0; 4];
        for (word, counts) in words.iter_mut().zip(self.counts.chunks_exact(64)) {
            for (bit, count) in counts.iter().enumerate() {
                *word |= u64::from(*count > average) << bit;
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest as it is usually written: hexadecimal, bit 255 first.
    fn hex(text: &[u8]) -> String {
        let mut counters = Counters::default();
        let (head, tail) = text.split_at(text.len() / 3);
        counters.update(head);
        counters.update(tail);
        let words = counters.digest();
        words
            .iter()
            .rev()
            .map(|word| format!("{word:016x}"))
            .collect()
    }

    #[test]
    fn public_vectors() {
        let check = |text: &str, digest: &str| assert_eq!(hex(text.as_bytes()), digest, "{text}");
        check(
            "",
            "0000000000000000000000000000000000000000000000000000000000000000",
        );
        check(
            "abcdefgh",
            "14c8118000000000030800000004042004189020001308014088003280000078",
        );
        check(
            "abcdefghijk",
            "14c811840010000c0328200108040630041890200217582d4098103280000078",
        );
    }
}
