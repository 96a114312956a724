//! Bits from the least significant one of each byte upwards.

use durin_format::{Error, Result};

/// Reads bits of bytes that nobody has checked.
pub(super) struct BitReader<'a> {
    rest: &'a [u8],
    /// The next bits, lowest first; those above `bit_count` are zero.
    window: u64,
    bit_count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            window: 0,
            bit_count: 0,
        }
    }

    /// Reads a number of up to 16 bits.
    pub(super) fn read(&mut self, count: u32) -> Result<u64> {
        debug_assert!(count <= 16);
        if self.bit_count < count {
            self.refill();
            if self.bit_count < count {
                return Err(ends_early());
            }
        }
        let value = self.window & ((1 << count) - 1);
        self.drop_bits(count);
        Ok(value)
    }

    /// Returns how many zeros precede the next one, which is taken as well.
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
        let count = self.window.trailing_zeros();
        self.drop_bits(count + 1);
        Ok(zeros + u64::from(count))
    }

    /// Checks that nothing but the padding of the last byte is left.
    pub(super) fn finish(mut self) -> Result<()> {
        self.refill();
        if self.bit_count >= 8 || self.window != 0 {
            return Err(Error::corrupt("ricepp: bits after the last pixel"));
        }
        Ok(())
    }

    fn drop_bits(&mut self, count: u32) {
        self.window = self.window.checked_shr(count).unwrap_or(0);
        self.bit_count -= count;
    }

    /// Fills the window as far as whole bytes go.
    fn refill(&mut self) {
        // Not all eight at once, which would be a shift by 64.
        let room = ((64 - self.bit_count) / 8).min(7) as usize;
        if let Some(word) = self.rest.first_chunk() {
            let bits = u64::from_le_bytes(*word) & ((1 << (room * 8)) - 1);
            self.window |= bits << self.bit_count;
            self.rest = self.rest.get(room..).unwrap_or_default();
            self.bit_count += 8 * u32::try_from(room).unwrap_or(0);
            return;
        }
        for _ in 0..room {
            let Some((byte, rest)) = self.rest.split_first() else {
                return;
            };
            self.window |= u64::from(*byte) << self.bit_count;
            self.bit_count += 8;
            self.rest = rest;
        }
    }
}

fn ends_early() -> Error {
    Error::corrupt("ricepp: the bit stream ends early")
}

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    window: u64,
    /// Fewer than 8 between two calls.
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

    /// Writes the low `count` bits of `value`, which has no others; at most 32.
    pub(super) fn write(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 32 && value >> count == 0);
        self.window |= value << self.bit_count;
        self.bit_count += count;
        while self.bit_count >= 8 {
            let [byte, ..] = self.window.to_le_bytes();
            self.out.push(byte);
            self.window >>= 8;
            self.bit_count -= 8;
        }
    }

    pub(super) fn write_unary(&mut self, mut zeros: u64) {
        while zeros >= 16 {
            self.write(0, 16);
            zeros -= 16;
        }
        self.write(1 << zeros, u32::try_from(zeros).unwrap_or(16) + 1);
    }

    /// Fills the last byte with zeros.
    pub(super) fn finish(mut self) {
        if self.bit_count > 0 {
            self.write(0, 8 - self.bit_count);
        }
    }
}
