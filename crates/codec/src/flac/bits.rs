//! Bits from the most significant one of each byte downwards.

use durin_format::{Error, Result};

/// Reads bits of bytes that nobody has checked.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bytes that have gone into the window.
    taken: usize,
    /// The next bits, highest first; those after `bit_count` are zero.
    window: u64,
    bit_count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            taken: 0,
            window: 0,
            bit_count: 0,
        }
    }

    /// Reads a number of up to 56 bits.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> Result<u64> {
        debug_assert!(count <= 56);
        if self.bit_count < count {
            self.refill();
            if self.bit_count < count {
                return Err(ends_early());
            }
        }
        // In two steps, as a shift by 64 is none.
        let value = self.window >> 1 >> (63 - count);
        self.window <<= count;
        self.bit_count -= count;
        Ok(value)
    }

    /// As [`Self::read`], for up to 32 bits.
    pub(super) fn read_u32(&mut self, count: u32) -> Result<u32> {
        debug_assert!(count <= 32);
        Ok(u32::try_from(self.read(count)?).unwrap_or(u32::MAX))
    }

    /// Reads a number in two's complement, of up to 56 bits.
    pub(super) fn read_signed(&mut self, count: u32) -> Result<i64> {
        if count == 0 {
            return Ok(0);
        }
        let unused = 64 - count;
        Ok((self.read(count)? << unused).cast_signed() >> unused)
    }

    /// Returns how many zeros precede the next one, which is taken as well.
    #[inline]
    pub(super) fn read_unary(&mut self) -> Result<u64> {
        let mut zeros = 0;
        while self.window == 0 {
            zeros += u64::from(self.bit_count);
            self.bit_count = 0;
            self.refill();
            if self.bit_count == 0 {
                return Err(ends_early());
            }
        }
        let count = self.window.leading_zeros();
        self.window = self.window << count << 1;
        self.bit_count -= count + 1;
        Ok(zeros + u64::from(count))
    }

    /// Passes over the rest of the current byte.
    pub(super) fn align(&mut self) {
        let count = self.bit_count % 8;
        self.window <<= count;
        self.bit_count -= count;
    }

    /// Returns how many bytes have been read; the current one counts.
    pub(super) fn byte_offset(&self) -> usize {
        self.taken - (self.bit_count / 8) as usize
    }

    /// Fills the window as far as whole bytes go.
    #[inline]
    fn refill(&mut self) {
        // Not all eight at once, which would be a shift by 64.
        let room = ((64 - self.bit_count) / 8).min(7);
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        if let Some(word) = rest.first_chunk() {
            let bits = u64::from_le_bytes(*word).swap_bytes() & !(u64::MAX >> (room * 8));
            self.window |= bits >> self.bit_count;
            self.taken += room as usize;
            self.bit_count += room * 8;
            return;
        }
        for byte in rest.iter().take(room as usize) {
            self.window |= u64::from(*byte) << (56 - self.bit_count);
            self.bit_count += 8;
            self.taken += 1;
        }
    }
}

fn ends_early() -> Error {
    Error::corrupt("the stream ends early")
}

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The low `bit_count` bits, fewer than 8 between two calls.
    window: u64,
    bit_count: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            window: 0,
            bit_count: 0,
        }
    }

    /// Writes `value`, which has no more than `count` bits; at most 48.
    #[inline]
    pub(super) fn write(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 48 && value >> count == 0);
        self.window = (self.window << count) | value;
        self.bit_count += count;
        while self.bit_count >= 8 {
            self.bit_count -= 8;
            let [byte, ..] = (self.window >> self.bit_count).to_le_bytes();
            self.out.push(byte);
        }
    }

    /// Writes the low `count` bits of a number in two's complement; at most 48.
    pub(super) fn write_signed(&mut self, value: i64, count: u32) {
        if count > 0 {
            self.write(value.cast_unsigned() << (64 - count) >> (64 - count), count);
        }
    }

    #[inline]
    pub(super) fn write_unary(&mut self, mut zeros: u32) {
        while zeros >= 32 {
            self.write(0, 32);
            zeros -= 32;
        }
        self.write(1, zeros + 1);
    }

    /// Fills the last byte with zeros.
    pub(super) fn finish(mut self) {
        if self.bit_count > 0 {
            self.write(0, 8 - self.bit_count);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written() {
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        for step in 0..200_u32 {
            let count = step % 49;
            writer.write((1_u64 << count) - 1, count);
            writer.write_unary(step);
            writer.write_signed(-i64::from(step), 33);
        }
        writer.finish();
        let mut reader = BitReader::new(&bytes);
        for step in 0..200_u32 {
            let count = step % 49;
            assert_eq!(reader.read(count).unwrap(), (1_u64 << count) - 1);
            assert_eq!(reader.read_unary().unwrap(), u64::from(step));
            assert_eq!(reader.read_signed(33).unwrap(), -i64::from(step));
        }
        reader.align();
        assert_eq!(reader.byte_offset(), bytes.len());
        assert!(reader.read(1).is_err() && reader.read_unary().is_err());
    }
}
