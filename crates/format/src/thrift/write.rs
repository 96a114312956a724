//! Putting Compact bytes together.

use super::Type;

/// Writes Compact values to memory.
///
/// A struct is its fields, then [`stop`](Self::stop). As in [`Reader::next_field`](super::Reader::next_field), `last_id`
/// is the id of the field before in the same struct, 0 at its start.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Starts with nothing written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes the header of a field; its value is to follow, except for a bool.
    pub fn field(&mut self, last_id: &mut i16, id: i16, kind: Type) {
        let delta = id
            .checked_sub(*last_id)
            .and_then(|delta| u8::try_from(delta).ok());
        match delta {
            Some(delta @ 1..=15) => self.out.push((delta << 4) | kind.nibble()),
            _ => {
                self.out.push(kind.nibble());
                self.i16(id);
            }
        }
        *last_id = id;
    }

    /// Writes a bool field.
    pub fn bool_field(&mut self, last_id: &mut i16, id: i16, value: bool) {
        self.field(last_id, id, if value { Type::True } else { Type::False });
    }

    /// Writes a field of 16 bits.
    pub fn i16_field(&mut self, last_id: &mut i16, id: i16, value: i16) {
        self.field(last_id, id, Type::I16);
        self.i16(value);
    }

    /// Writes a field of 32 bits.
    pub fn i32_field(&mut self, last_id: &mut i16, id: i16, value: i32) {
        self.field(last_id, id, Type::I32);
        self.i32(value);
    }

    /// Writes a field of 64 bits.
    pub fn i64_field(&mut self, last_id: &mut i16, id: i16, value: i64) {
        self.field(last_id, id, Type::I64);
        self.i64(value);
    }

    /// Writes a binary or string field.
    pub fn binary_field(&mut self, last_id: &mut i16, id: i16, value: &[u8]) {
        self.field(last_id, id, Type::Binary);
        self.binary(value);
    }

    /// Writes the headers of a list field; its `count` elements are to follow.
    pub fn list_field(&mut self, last_id: &mut i16, id: i16, element: Type, count: usize) {
        self.field(last_id, id, Type::List);
        self.list_header(element, count);
    }

    /// Writes the headers of a set field; its `count` elements are to follow.
    pub fn set_field(&mut self, last_id: &mut i16, id: i16, element: Type, count: usize) {
        self.field(last_id, id, Type::Set);
        self.list_header(element, count);
    }

    /// Writes the headers of a map field; its `count` keys and values are to follow in turn.
    pub fn map_field(&mut self, last_id: &mut i16, id: i16, key: Type, value: Type, count: usize) {
        self.field(last_id, id, Type::Map);
        self.map_header(key, value, count);
    }

    /// Ends a struct.
    pub fn stop(&mut self) {
        self.out.push(0);
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Writes a bool that is an element of a collection.
    pub fn bool(&mut self, value: bool) {
        self.out.push(if value { 1 } else { 2 });
    }

    /// Writes an integer of 16 bits without a field header.
    pub fn i16(&mut self, value: i16) {
        self.i64(i64::from(value));
    }

    /// Writes an integer of 32 bits without a field header.
    pub fn i32(&mut self, value: i32) {
        self.i64(i64::from(value));
    }

    /// Writes an integer of 64 bits without a field header.
    pub fn i64(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// Writes a binary or string without a field header.
    pub fn binary(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Writes the header of a list or set.
    pub fn list_header(&mut self, element: Type, count: usize) {
        match u8::try_from(count) {
            Ok(count @ 0..=14) => self.out.push((count << 4) | element.nibble()),
            _ => {
                self.out.push(0xF0 | element.nibble());
                self.varint(count as u64);
            }
        }
    }

    /// Writes the header of a map; the types are left out when it is empty.
    pub fn map_header(&mut self, key: Type, value: Type, count: usize) {
        self.varint(count as u64);
        if count > 0 {
            self.out.push((key.nibble() << 4) | value.nibble());
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "both are below 128")]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(0x80 | (value & 0x7F) as u8);
            value >>= 7;
        }
        self.out.push(value as u8);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::Reader;
    use super::*;

    #[test]
    fn short_and_long_field_headers() {
        let mut writer = Writer::new();
        let mut last_id = 0;
        writer.i32_field(&mut last_id, 4, 1);
        writer.bool_field(&mut last_id, 1, true);
        writer.bool_field(&mut last_id, 16, false);
        writer.bool_field(&mut last_id, 32, true);
        writer.stop();
        assert_eq!(writer.into_bytes(), [0x45, 2, 0x01, 2, 0xF2, 0x01, 64, 0]);
    }

    #[test]
    fn collection_headers() {
        let mut writer = Writer::new();
        writer.list_header(Type::Struct, 14);
        writer.list_header(Type::Struct, 15);
        writer.map_header(Type::I16, Type::Struct, 0);
        writer.map_header(Type::I16, Type::Struct, 200);
        assert_eq!(writer.into_bytes(), [0xEC, 0xFC, 15, 0, 0xC8, 1, 0x4C]);
    }

    #[test]
    fn integers_come_back() {
        for value in [0, 1, -1, 63, 64, -65, i64::MAX, i64::MIN] {
            let mut writer = Writer::new();
            writer.i64(value);
            let bytes = writer.into_bytes();
            assert_eq!(Reader::new(&bytes).read_i64().unwrap(), value);
        }
    }
}
