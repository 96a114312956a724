//! The range encoder: turns binary decisions and their probabilities into bytes.

/// The chance that a bit is 0, as a share of [`PROBABILITY_ONE`].
pub(crate) type Probability = u16;

const PROBABILITY_LOG2: u32 = 11;
pub(crate) const PROBABILITY_ONE: u32 = 1 << PROBABILITY_LOG2;
pub(crate) const PROBABILITY_START: Probability = 1 << (PROBABILITY_LOG2 - 1);
/// How fast probabilities follow the data.
const MOVE_SHIFT: u32 = 5;

/// Encodes into a buffer that grows.
#[derive(Debug)]
pub(crate) struct RangeEncoder {
    low: u64,
    range: u32,
    /// The last byte that a carry may still change, and how many there are with the `0xFF` after it.
    cache: u8,
    cache_len: usize,
    out: Vec<u8>,
}

/// Where an encoder was, to go back there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    low: u64,
    range: u32,
    cache: u8,
    cache_len: usize,
    out_len: usize,
}

impl RangeEncoder {
    pub(crate) fn new() -> Self {
        Self {
            low: 0,
            range: u32::MAX,
            cache: 0,
            cache_len: 1,
            out: Vec::new(),
        }
    }

    /// Starts anew and forgets what was encoded.
    pub(crate) fn restart(&mut self) {
        self.low = 0;
        self.range = u32::MAX;
        self.cache = 0;
        self.cache_len = 1;
        self.out.clear();
    }

    /// An upper bound of what [`finish`](Self::finish) would give now.
    pub(crate) fn len(&self) -> usize {
        self.out.len() + self.cache_len + 4
    }

    /// How many bits were encoded, to about one.
    pub(crate) fn bits(&self) -> usize {
        8 * (self.out.len() + self.cache_len - 1) + self.range.leading_zeros() as usize
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            low: self.low,
            range: self.range,
            cache: self.cache,
            cache_len: self.cache_len,
            out_len: self.out.len(),
        }
    }

    /// Forgets what was encoded since `mark`.
    pub(crate) fn restore(&mut self, mark: Mark) {
        self.low = mark.low;
        self.range = mark.range;
        self.cache = mark.cache;
        self.cache_len = mark.cache_len;
        self.out.truncate(mark.out_len);
    }

    /// Ends the stream and returns it.
    pub(crate) fn finish(&mut self) -> &[u8] {
        for _ in 0..5 {
            self.shift_low();
        }
        &self.out
    }

    #[inline]
    pub(crate) fn bit(&mut self, probability: &mut Probability, bit: u32) {
        let chance = u32::from(*probability);
        let bound = (self.range >> PROBABILITY_LOG2) * chance;
        if bit == 0 {
            self.range = bound;
            *probability += ((PROBABILITY_ONE - chance) >> MOVE_SHIFT) as Probability;
        } else {
            self.low += u64::from(bound);
            self.range -= bound;
            *probability -= (chance >> MOVE_SHIFT) as Probability;
        }
        self.normalize();
    }

    /// As [`bit`](Self::bit), without a branch: for bits of literals, which are as likely one as the other in what hardly
    /// shrinks. A processor that expects the wrong one loses more time than all of this takes.
    #[inline]
    pub(crate) fn literal_bit(&mut self, probability: &mut Probability, bit: u32) {
        let chance = u32::from(*probability);
        let bound = (self.range >> PROBABILITY_LOG2) * chance;
        let is_one = bit.wrapping_neg();
        self.low += u64::from(bound & is_one);
        self.range = bound.wrapping_add(self.range.wrapping_sub(bound.wrapping_mul(2)) & is_one);
        // A 32nd of the way to 1 after a zero, to 0 after a one, rounded as in `bit`: towards no move at all.
        let target = !is_one & (PROBABILITY_ONE - ((1 << MOVE_SHIFT) - 1));
        let step = chance.wrapping_sub(target).cast_signed() >> MOVE_SHIFT;
        *probability = chance.wrapping_sub(step.cast_unsigned()) as Probability;
        self.normalize();
    }

    /// The lowest `count` bits of `value`, highest first, each as likely as not.
    #[inline]
    pub(crate) fn direct(&mut self, value: u32, count: u32) {
        for shift in (0..count).rev() {
            self.range >>= 1;
            if value >> shift & 1 != 0 {
                self.low += u64::from(self.range);
            }
            self.normalize();
        }
    }

    #[inline]
    fn normalize(&mut self) {
        // A bound is at least an 2048th of the range, so that one byte is enough.
        if self.range < 1 << 24 {
            self.range <<= 8;
            self.shift_low();
        }
    }

    fn shift_low(&mut self) {
        let carry = (self.low >> 32) as u8;
        if carry != 0 || (self.low as u32) < 0xFF00_0000 {
            self.out.push(self.cache.wrapping_add(carry));
            for _ in 1..self.cache_len {
                self.out.push(0xFF_u8.wrapping_add(carry));
            }
            self.cache_len = 0;
            self.cache = (self.low >> 24) as u8;
        }
        self.cache_len += 1;
        self.low = (self.low & 0x00FF_FFFF) << 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_literals_are_encoded_as_any() {
        let mut encoders = [RangeEncoder::new(), RangeEncoder::new()];
        let mut probabilities = [[PROBABILITY_START; 256]; 2];
        // Of each statistic a different share is ones: none, all, and much between.
        let mut random = 1_u32;
        for number in 0..1_000_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = number % 256;
            let bit = u32::from((random >> 24) as usize * 255 < index * 256);
            encoders[0].bit(&mut probabilities[0][index], bit);
            encoders[1].literal_bit(&mut probabilities[1][index], bit);
        }
        assert_eq!(probabilities[0], probabilities[1]);
        let [plain, literal] = &mut encoders;
        assert!(plain.finish() == literal.finish());
    }
}
