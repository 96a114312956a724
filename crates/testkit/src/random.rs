//! Pseudo-random bytes that are the same on every run: test data must not depend on a seed that nobody wrote down.

/// A small generator (splitmix64); its sequence is a function of the seed alone.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, which must not be 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns `len` bytes that no codec can shrink.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// Returns `len` bytes of made-up prose that every codec shrinks.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        const SYLLABLES: [&str; 16] = [
            "du", "rin", "ka", "zad", "mor", "ia", "bel", "gor", "thal", "en", "os", "ri", "ath",
            "um", "il", "ve",
        ];
        let mut text = Vec::with_capacity(len + 16);
        while text.len() < len {
            let word = self.next();
            for turn in 0..=(word % 4) {
                let pick = usize::try_from((word >> (8 + 4 * turn)) % 16).unwrap_or(0);
                text.extend_from_slice(SYLLABLES[pick].as_bytes());
            }
            text.push(if word.is_multiple_of(11) { b'\n' } else { b' ' });
        }
        text.truncate(len);
        text
    }
}
