//! The one reader of untrusted bytes: bounded, little-endian, failing with the offset.

use crate::{Error, Result};

/// A place in a byte string that moves forward as values are read.
///
/// A read that does not fit fails with [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt), names the offset
/// inside the string, and leaves the cursor where it was.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, pos: 0 }
    }

    /// Returns how many bytes have been read.
    #[must_use]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Returns how many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.pos)
    }

    /// Returns whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns the bytes that are left, without reading them.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.pos..).unwrap_or(&[])
    }

    /// Reads `len` bytes, which stay where they are.
    ///
    /// # Errors
    /// `Corrupt` if fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.rest().get(..len).ok_or_else(|| {
            Error::corrupt(format!(
                "unexpected end of data at byte {}: expected {len} more bytes, found {}",
                self.pos,
                self.remaining()
            ))
        })?;
        self.pos += len;
        Ok(bytes)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// `Corrupt` if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Corrupt` at the end of the data.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Reads two bytes.
    ///
    /// # Errors
    /// `Corrupt` at the end of the data.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads four bytes.
    ///
    /// # Errors
    /// `Corrupt` at the end of the data.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads eight bytes.
    ///
    /// # Errors
    /// `Corrupt` at the end of the data.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads an unsigned LEB128 number of at most 64 bits.
    ///
    /// # Errors
    /// `Corrupt` at the end of the data, after ten bytes, or if the value does not fit.
    pub fn varint(&mut self) -> Result<u64> {
        let start = self.pos;
        let result = self.varint_inner();
        if result.is_err() {
            self.pos = start;
        }
        result
    }

    fn varint_inner(&mut self) -> Result<u64> {
        let start = self.pos;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && group > 1 {
                break;
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::corrupt(format!(
            "varint at byte {start} does not fit into 64 bits"
        )))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reads_little_endian_and_stops_at_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(cursor.u8().unwrap(), 1);
        assert_eq!(cursor.u16().unwrap(), 0x0302);
        assert_eq!(cursor.u32().unwrap(), 0x0706_0504);
        assert!(cursor.is_empty());
        assert_eq!(
            cursor.u64().unwrap_err().to_string(),
            "unexpected end of data at byte 7: expected 8 more bytes, found 0"
        );
        assert_eq!(cursor.pos(), 7);
    }

    #[test]
    fn varints_end_at_64_bits() {
        let check = |bytes: &[u8], expect: Option<u64>| {
            let mut cursor = Cursor::new(bytes);
            let got = cursor.varint().ok();
            assert_eq!(got, expect, "{bytes:x?}");
            assert_eq!(cursor.pos(), if expect.is_some() { bytes.len() } else { 0 });
        };
        check(&[0], Some(0));
        check(&[0x80, 1], Some(128));
        check(&[0xff; 9], None);
        let mut longest = [0xff; 10];
        longest[9] = 1;
        check(&longest, Some(u64::MAX));
        longest[9] = 2;
        check(&longest, None);
        check(&[0x80; 11], None);
        check(&[], None);
    }
}
