//! Reading Frozen data in place: positions, integers, strings, lists and columns.
//!
//! An [`Object`] is one value at one place; from the root one goes down field by field.
//! What it hands out for good, a [`Column`] or a [`Span`], has been checked once against the length of the data
//! and needs no schema any more.
//! Source: docs/format.md, "Positions" to "Compound types".

mod column;

use durin_kernels::bits;

pub use column::{Column, Span, StringColumns};

use super::schema::{Layout, Schema};
use crate::limits::LIST_COUNT_MAX;
use crate::{Error, Result};

/// Field ids of the layouts of compound types.
mod id {
    pub(super) const OPTIONAL_IS_SET: i16 = 1;
    pub(super) const OPTIONAL_VALUE: i16 = 2;
    pub(super) const DISTANCE: i16 = 1;
    pub(super) const COUNT: i16 = 2;
    pub(super) const ITEM: i16 = 3;
}

/// What a field has that the schema does not mention: no bits, no fields, default values.
static EMPTY: Layout = Layout {
    size: 0,
    bits: 0,
    fields: Vec::new(),
};

/// One value: a layout and a position.
///
/// Nothing about it has been checked yet; each method checks what it reads.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    schema: &'a Schema,
    data: &'a [u8],
    layout: &'a Layout,
    /// Bytes from the start of the data. Distances count from here.
    start: u64,
    /// Bits from `start` to the bit area; may be more than 7.
    bit: u64,
}

/// A list, set or map: its items lie one after the other.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// The first item, also if there is none.
    first: Object<'a>,
    count: u64,
}

impl<'a> Object<'a> {
    /// Returns the whole value in `data`.
    ///
    /// # Errors
    /// `Corrupt` if the root of the schema is longer than the data.
    pub fn root(schema: &'a Schema, data: &'a [u8]) -> Result<Self> {
        let layout = schema.layout(schema.root).unwrap_or(&EMPTY);
        let data_len = data.len() as u64;
        let bits_len = u64::from(layout.bits).div_ceil(8);
        let root_len = u64::from(layout.size).max(bits_len);
        if root_len > data_len {
            return Err(Error::corrupt(format!(
                "root of {root_len} bytes in {data_len} bytes of data"
            )));
        }
        Ok(Self {
            schema,
            data,
            layout,
            start: 0,
            bit: 0,
        })
    }

    /// Returns whether the schema has this field.
    #[must_use]
    pub fn has_field(&self, id: i16) -> bool {
        self.layout.field(id).is_some()
    }

    /// Returns the field with this id of a struct; one that the schema does not have is empty.
    #[must_use]
    pub fn field(&self, id: i16) -> Self {
        let Some(field) = self.layout.field(id) else {
            return Self {
                layout: &EMPTY,
                ..*self
            };
        };
        let distance = u64::from(field.offset.unsigned_abs());
        let (byte, bit) = match field.offset {
            ..0 => (0, distance),
            0.. => (distance, 0),
        };
        Self {
            layout: self.schema.layout(field.layout).unwrap_or(&EMPTY),
            // Both began inside the data or a list's items: far from the end of 64 bits.
            start: self.start.saturating_add(byte),
            bit: self.bit.saturating_add(bit),
            ..*self
        }
    }

    /// Reads the field with this id of a struct; errors say its `name`.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(&self, id: i16, name: &str, read: impl FnOnce(Self) -> Result<T>) -> Result<T> {
        read(self.field(id)).map_err(|error| error.context(name))
    }

    /// Reads an unsigned integer of at most `bits_max` bits.
    ///
    /// # Errors
    /// `Corrupt` if the layout is wider or the data ends before.
    pub fn uint(&self, bits_max: u32) -> Result<u64> {
        let column = self.column(1, 0, bits_max)?;
        Ok(column.get(self.data, 0).unwrap_or(0))
    }

    /// Reads an unsigned integer of at most 32 bits.
    ///
    /// # Errors
    /// As [`Self::uint`].
    #[expect(clippy::cast_possible_truncation, reason = "read from at most 32 bits")]
    pub fn u32(&self) -> Result<u32> {
        self.uint(u32::BITS).map(|value| value as u32)
    }

    /// Reads an unsigned integer of at most 64 bits.
    ///
    /// # Errors
    /// As [`Self::uint`].
    pub fn u64(&self) -> Result<u64> {
        self.uint(u64::BITS)
    }

    /// Reads a bool: the first bit, however many there are.
    ///
    /// # Errors
    /// `Corrupt` if the data ends before.
    pub fn bool(&self) -> Result<bool> {
        if self.layout.bits == 0 {
            return Ok(false);
        }
        let first_bit = self.first_bit(1)?;
        Ok(bits::read(self.data, first_bit, 1) != 0)
    }

    /// Returns the value of an optional; `None` if it is not set.
    ///
    /// # Errors
    /// `Corrupt` if the data ends before.
    pub fn optional(&self) -> Result<Option<Self>> {
        let is_set = self.field(id::OPTIONAL_IS_SET).bool()?;
        Ok(is_set.then(|| self.field(id::OPTIONAL_VALUE)))
    }

    /// Reads the value of an optional, if it is set.
    ///
    /// # Errors
    /// `Corrupt` if the data ends before, and those of `read`.
    pub fn optional_with<T>(&self, read: impl FnOnce(Self) -> Result<T>) -> Result<Option<T>> {
        self.optional()?.map(read).transpose()
    }

    /// Finds a string.
    ///
    /// # Errors
    /// `Corrupt` if it does not lie inside the data.
    pub fn string(&self) -> Result<Span> {
        let len = self.read(id::COUNT, "length", |object| object.u64())?;
        if len == 0 {
            return Ok(Span::default());
        }
        let distance = self.read(id::DISTANCE, "distance", |object| object.u64())?;
        let data_len = self.data.len() as u64;
        Span::checked(self.start, distance, len, data_len)
    }

    /// Finds a list, set or map.
    ///
    /// # Errors
    /// `Corrupt` if it does not lie inside the data or has more than [`LIST_COUNT_MAX`] items.
    pub fn list(&self) -> Result<List<'a>> {
        let count = self.read(id::COUNT, "count", |object| object.u64())?;
        let item = self.field(id::ITEM).layout;
        let at = |start| List {
            first: Self {
                layout: item,
                start,
                bit: 0,
                ..*self
            },
            count,
        };
        if count == 0 {
            return Ok(at(0));
        }
        if count > LIST_COUNT_MAX {
            return Err(Error::corrupt(format!("{count} items in one list")));
        }
        let distance = self.read(id::DISTANCE, "distance", |object| object.u64())?;
        // No overflow: fewer than 2^33 items of less than 2^31 bytes.
        let len = match item.size {
            0 => (count * u64::from(item.bits)).div_ceil(8),
            size => count * u64::from(size),
        };
        let data_len = self.data.len() as u64;
        Span::checked(self.start, distance, len, data_len).map(|span| at(span.start))
    }

    /// Returns the column of `len` integers of at most `bits_max` bits of which this is the first.
    fn column(&self, len: u64, stride_bits: u64, bits_max: u32) -> Result<Column> {
        let bits = u32::from(self.layout.bits);
        if bits > bits_max {
            return Err(Error::corrupt(format!(
                "{bits} bits for an integer of {bits_max}"
            )));
        }
        if bits == 0 || len == 0 {
            // Reads nothing, so that its place does not matter.
            return Ok(Column {
                len,
                ..Column::default()
            });
        }
        let too_far = || self.outside(u64::from(bits));
        let total = (len - 1)
            .checked_mul(stride_bits)
            .and_then(|total| total.checked_add(u64::from(bits)))
            .ok_or_else(too_far)?;
        Ok(Column {
            first_bit: self.first_bit(total)?,
            stride_bits,
            len,
            bits,
        })
    }

    /// Returns the bit at which the bit area begins, if it and `total` bits from there lie inside the data.
    fn first_bit(&self, total: u64) -> Result<u64> {
        let data_bits = (self.data.len() as u64).saturating_mul(8);
        self.start
            .checked_mul(8)
            .and_then(|first| first.checked_add(self.bit))
            .filter(|first| matches!(first.checked_add(total), Some(end) if end <= data_bits))
            .ok_or_else(|| self.outside(total))
    }

    fn outside(&self, bits: u64) -> Error {
        Error::corrupt(format!(
            "{bits} bits at byte {} and bit {} lie outside the {} bytes of data",
            self.start,
            self.bit,
            self.data.len()
        ))
    }
}

impl<'a> List<'a> {
    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns item `index`, or `None` behind the last.
    #[must_use]
    pub fn item(&self, index: u64) -> Option<Object<'a>> {
        if index >= self.count {
            return None;
        }
        let layout = self.first.layout;
        // No overflow: `Object::list` has checked that all items lie inside the data.
        Some(match layout.size {
            0 => Object {
                bit: index * u64::from(layout.bits),
                ..self.first
            },
            size => Object {
                start: self.first.start + index * u64::from(size),
                ..self.first
            },
        })
    }

    /// Returns all items in turn.
    pub fn items(self) -> impl Iterator<Item = Object<'a>> {
        (0..self.count).filter_map(move |index| self.item(index))
    }

    /// Returns the items of a list of integers of at most `bits_max` bits.
    ///
    /// # Errors
    /// `Corrupt` if the layout is wider or an item lies outside the data.
    pub fn column(&self, bits_max: u32) -> Result<Column> {
        self.first.column(self.count, self.stride_bits(), bits_max)
    }

    /// Returns one integer field, of at most `bits_max` bits, of all items of a list of structs or pairs.
    ///
    /// # Errors
    /// `Corrupt` if the layout is wider or a value lies outside the data.
    pub fn field_column(&self, id: i16, bits_max: u32) -> Result<Column> {
        let field = self.first.field(id);
        field.column(self.count, self.stride_bits(), bits_max)
    }

    /// Returns the strings of a list of strings: where the distances of item `i` count from, in bytes from the start
    /// of the data, is `start + i * stride`.
    ///
    /// # Errors
    /// `Corrupt` if a distance or length lies outside the data; the strings themselves are looked at when used.
    pub fn string_columns(&self) -> Result<StringColumns> {
        let columns = |id, name: &str| {
            self.field_column(id, u64::BITS)
                .map_err(|error| error.context(name))
        };
        Ok(StringColumns {
            distance: columns(id::DISTANCE, "distance")?,
            len: columns(id::COUNT, "length")?,
            start: self.first.start,
            stride: u64::from(self.first.layout.size),
        })
    }

    fn stride_bits(&self) -> u64 {
        let layout = self.first.layout;
        match layout.size {
            0 => u64::from(layout.bits),
            size => 8 * u64::from(size),
        }
    }
}

#[cfg(test)]
mod tests;
