//! Taking Compact bytes apart.

use super::Type;
use crate::error::{Error, Result};
use crate::limits::THRIFT_DEPTH_MAX;

/// Reads Compact values from bytes that nobody has checked.
///
/// Every error is of kind [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) and names the byte at which it was found,
/// or of kind [`ErrorKind::Limit`](crate::ErrorKind::Limit) where values nest too deep.
///
/// A caller that reads nested structs goes down by calling [`next_field`](Self::next_field) with a fresh `last_id`, so
/// that the depth is what its code says; only [`skip`](Self::skip) follows nesting that the bytes choose, up to
/// [`THRIFT_DEPTH_MAX`].
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Returns the number of bytes that follow.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    /// Reads the header of the next field of a struct: its id and type, or `None` at the struct's end.
    ///
    /// `last_id` is the id of the field before, 0 at the start of the struct. For a bool field the type is the value,
    /// see [`Type::as_bool`], and nothing else is to be read.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end, the type is none or the id does not fit.
    pub fn next_field(&mut self, last_id: &mut i16) -> Result<Option<(i16, Type)>> {
        let at = self.pos;
        let header = self.read_u8()?;
        if header == 0 {
            return Ok(None);
        }
        let kind = type_at(at, header & 0x0F)?;
        let delta = i16::from(header >> 4);
        let id = match delta {
            0 => self.read_i16()?,
            _ => last_id
                .checked_add(delta)
                .ok_or_else(|| corrupt(at, "field id above 32767"))?,
        };
        *last_id = id;
        Ok(Some((id, kind)))
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end.
    pub fn read_u8(&mut self) -> Result<u8> {
        let byte = *self
            .bytes
            .get(self.pos)
            .ok_or_else(|| corrupt(self.pos, "unexpected end"))?;
        self.pos += 1;
        Ok(byte)
    }

    /// Reads a bool that is an element of a collection; fields carry theirs in their type.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end or the byte is neither 1 nor 2.
    pub fn read_bool(&mut self) -> Result<bool> {
        let at = self.pos;
        match self.read_u8()? {
            1 => Ok(true),
            2 => Ok(false),
            other => Err(corrupt(at, &format!("{other} is not a bool"))),
        }
    }

    /// Reads an integer of 16 bits.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end or the number does not fit.
    pub fn read_i16(&mut self) -> Result<i16> {
        let at = self.pos;
        let value = unzigzag(self.read_varint()?);
        i16::try_from(value).map_err(|_| corrupt(at, &format!("{value} does not fit 16 bits")))
    }

    /// Reads an integer of 32 bits.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end or the number does not fit.
    pub fn read_i32(&mut self) -> Result<i32> {
        let at = self.pos;
        let value = unzigzag(self.read_varint()?);
        i32::try_from(value).map_err(|_| corrupt(at, &format!("{value} does not fit 32 bits")))
    }

    /// Reads an integer of 64 bits.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end or the number does not fit.
    pub fn read_i64(&mut self) -> Result<i64> {
        self.read_varint().map(unzigzag)
    }

    /// Reads a binary or string.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end.
    pub fn read_binary(&mut self) -> Result<&'a [u8]> {
        let at = self.pos;
        let len = self.read_varint()?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.remaining())
            .ok_or_else(|| {
                corrupt(
                    at,
                    &format!("{len} bytes announced, {} left", self.remaining()),
                )
            })?;
        self.read_bytes(len)
    }

    /// Reads the header of a list or set: the type of its elements and their number.
    ///
    /// The number is no larger than the bytes that follow could hold, so that room for them may be made at once.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end, a type is none or the number is too large.
    pub fn list_header(&mut self) -> Result<(Type, usize)> {
        let at = self.pos;
        let header = self.read_u8()?;
        let count = match header >> 4 {
            15 => self.read_varint()?,
            count => u64::from(count),
        };
        // An empty list of a later release may hold anything, even nothing: its element type is not used.
        let kind = match (count, header & 0x0F) {
            (0, nibble) => Type::from_nibble(nibble).unwrap_or(Type::Struct),
            (_, nibble) => type_at(at, nibble)?,
        };
        Ok((kind, self.checked_count(at, count, kind.element_len_min())?))
    }

    /// Reads the header of a map: the types of its keys and values and the number of pairs; no types when it is empty.
    ///
    /// The number is no larger than the bytes that follow could hold, so that room for them may be made at once.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end, a type is none or the number is too large.
    pub fn map_header(&mut self) -> Result<Option<(Type, Type, usize)>> {
        let at = self.pos;
        let count = self.read_varint()?;
        if count == 0 {
            return Ok(None);
        }
        let header = self.read_u8()?;
        let key = type_at(at, header >> 4)?;
        let value = type_at(at, header & 0x0F)?;
        let len_min = key.element_len_min() + value.element_len_min();
        Ok(Some((key, value, self.checked_count(at, count, len_min)?)))
    }

    /// Passes over the value of a field of type `kind`.
    ///
    /// # Errors
    /// `Corrupt` when the value is malformed, `Limit` when it nests deeper than [`THRIFT_DEPTH_MAX`].
    pub fn skip(&mut self, kind: Type) -> Result<()> {
        self.skip_value(kind, THRIFT_DEPTH_MAX)
    }

    /// Passes over an element of a collection, for which a bool, unlike in a field, takes a byte.
    ///
    /// # Errors
    /// As [`skip`](Self::skip).
    pub fn skip_element(&mut self, kind: Type) -> Result<()> {
        self.skip_element_value(kind, THRIFT_DEPTH_MAX)
    }

    fn skip_value(&mut self, kind: Type, depth: u32) -> Result<()> {
        match kind {
            Type::True | Type::False => Ok(()),
            Type::Byte => self.read_u8().map(drop),
            Type::I16 => self.read_i16().map(drop),
            Type::I32 => self.read_i32().map(drop),
            Type::I64 => self.read_i64().map(drop),
            Type::Double => self.read_bytes(8).map(drop),
            Type::Uuid => self.read_bytes(16).map(drop),
            Type::Binary => self.read_binary().map(drop),
            Type::List | Type::Set => {
                let inner = self.deeper(depth)?;
                let (kind, count) = self.list_header()?;
                (0..count).try_for_each(|_| self.skip_element_value(kind, inner))
            }
            Type::Map => {
                let inner = self.deeper(depth)?;
                let Some((key, value, count)) = self.map_header()? else {
                    return Ok(());
                };
                (0..count).try_for_each(|_| {
                    self.skip_element_value(key, inner)?;
                    self.skip_element_value(value, inner)
                })
            }
            Type::Struct => {
                let inner = self.deeper(depth)?;
                let mut last_id = 0;
                while let Some((_, kind)) = self.next_field(&mut last_id)? {
                    self.skip_value(kind, inner)?;
                }
                Ok(())
            }
        }
    }

    fn skip_element_value(&mut self, kind: Type, depth: u32) -> Result<()> {
        match kind {
            Type::True | Type::False => self.read_bool().map(drop),
            _ => self.skip_value(kind, depth),
        }
    }

    fn deeper(&self, depth: u32) -> Result<u32> {
        depth.checked_sub(1).ok_or_else(|| {
            Error::limit(format!(
                "compact data at byte {}: nested deeper than THRIFT_DEPTH_MAX = {THRIFT_DEPTH_MAX}",
                self.pos
            ))
        })
    }

    fn checked_count(&self, at: usize, count: u64, element_len_min: usize) -> Result<usize> {
        let count_max = self.remaining() / element_len_min;
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= count_max)
            .ok_or_else(|| {
                corrupt(
                    at,
                    &format!("{count} elements announced, at most {count_max} can follow"),
                )
            })
    }

    fn read_bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self
            .pos
            .checked_add(len)
            .and_then(|end| self.bytes.get(self.pos..end))
            .ok_or_else(|| corrupt(self.pos, "unexpected end"))?;
        self.pos += len;
        Ok(bytes)
    }

    fn read_varint(&mut self) -> Result<u64> {
        let at = self.pos;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_u8()?;
            let group = u64::from(byte & 0x7F);
            if shift == 63 && group > 1 {
                break;
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt(at, "varint of more than 64 bits"))
    }
}

fn type_at(at: usize, nibble: u8) -> Result<Type> {
    Type::from_nibble(nibble).ok_or_else(|| corrupt(at, &format!("{nibble} is not a type")))
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

fn corrupt(at: usize, what: &str) -> Error {
    Error::corrupt(format!("compact data at byte {at}: {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn check_i64(bytes: &[u8], expect: Option<i64>) {
        assert_eq!(Reader::new(bytes).read_i64().ok(), expect, "{bytes:x?}");
    }

    #[test]
    fn varints() {
        check_i64(&[0], Some(0));
        check_i64(&[1], Some(-1));
        check_i64(
            &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            Some(i64::MAX),
        );
        check_i64(
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            Some(i64::MIN),
        );
        check_i64(
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 3],
            None,
        );
        check_i64(&[0x80; 11], None);
        check_i64(&[0x80], None);
        check_i64(&[], None);
    }

    #[test]
    fn narrow_integers_do_not_wrap() {
        assert_eq!(Reader::new(&[0xFE, 0xFF, 3]).read_i16().unwrap(), i16::MAX);
        assert_eq!(Reader::new(&[0xFF, 0xFF, 3]).read_i16().unwrap(), i16::MIN);
        assert!(Reader::new(&[0x80, 0x80, 4]).read_i16().is_err());
        assert_eq!(
            Reader::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
                .read_i32()
                .unwrap(),
            i32::MIN
        );
        assert!(
            Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x10])
                .read_i32()
                .is_err()
        );
    }

    #[test]
    fn ids_may_go_down() {
        // `45 02 01 02 1B`: how a schema of release 0.14 starts.
        let mut reader = Reader::new(&[0x45, 0x02, 0x01, 0x02, 0x1B, 0x00, 0x00]);
        let mut last_id = 0;
        assert_eq!(
            reader.next_field(&mut last_id).unwrap(),
            Some((4, Type::I32))
        );
        assert_eq!(reader.read_i32().unwrap(), 1);
        assert_eq!(
            reader.next_field(&mut last_id).unwrap(),
            Some((1, Type::True))
        );
        assert_eq!(
            reader.next_field(&mut last_id).unwrap(),
            Some((2, Type::Map))
        );
        assert_eq!(reader.map_header().unwrap(), None);
        assert_eq!(reader.next_field(&mut last_id).unwrap(), None);
        assert_eq!((reader.pos(), reader.remaining()), (7, 0));
    }

    #[test]
    fn counts_are_bounded_by_what_follows() {
        let error = Reader::new(&[0xF5, 0xFF, 0xFF, 0xFF, 0x7F, 0])
            .list_header()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "compact data at byte 0: 268435455 elements announced, at most 1 can follow"
        );
        assert!(Reader::new(&[3, 0x44, 0, 0, 0, 0, 0]).map_header().is_err());
        assert!(
            Reader::new(&[0x27, 0, 0, 0, 0, 0, 0, 0, 0])
                .list_header()
                .is_err()
        );
        assert!(Reader::new(&[5, b'a']).read_binary().is_err());
    }

    #[test]
    fn skips_every_type() {
        let value = [
            0x11, 0x12, 0x13, 7, 0x14, 2, 0x15, 2, 0x16, 2, // bools, byte, integers
            0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x18, 2, b'h', b'i', // double, binary
            0x19, 0x21, 1, 2, 0x1A, 0x15, 2, // list of bool, set of i32
            0x1B, 1, 0x8C, 1, b'k', 0x13, 9, 0, 0x1B, 0, // map of binary to struct, empty map
            0x1C, 0x11, 0, 0x1D, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
            15, // struct, uuid
            0,
        ];
        let mut reader = Reader::new(&value);
        reader.skip(Type::Struct).unwrap();
        assert_eq!(reader.remaining(), 0);
        for len in 0..value.len() {
            let error = Reader::new(&value[..len]).skip(Type::Struct).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "cut to {len} bytes");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let error = Reader::new(&[0x19; 1000]).skip(Type::List).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let error = Reader::new(&[0x1C; 1000]).skip(Type::Struct).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn types_14_and_15_are_errors() {
        for header in [0x1E, 0x1F, 0x0F] {
            assert!(Reader::new(&[header, 0, 0]).next_field(&mut 0).is_err());
        }
        let mut last_id = i16::MAX;
        assert!(Reader::new(&[0x13, 0]).next_field(&mut last_id).is_err());
    }
}
