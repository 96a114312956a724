//! What has been found and checked once: columns of integers, places of strings.

use std::ops::Range;

use durin_kernels::bits;

use crate::{Error, Result};

/// One integer (or bool) field of all items of a list: value `i` is the `bits`-bit field at bit
/// `first_bit + i * stride_bits` of the data.
///
/// All values lie inside the data that the column was made for, and none has more bits than its type.
/// With other data it reads other numbers, and zeros behind the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub(super) first_bit: u64,
    pub(super) stride_bits: u64,
    pub(super) len: u64,
    pub(super) bits: u32,
}

/// A string: a range of bytes that lies inside the data that it was found in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Bytes from the start of the data.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

impl Column {
    /// Returns the number of items of the list.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the list has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the width of a value; 0 if all are 0 and nothing is stored.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns value `index`, or `None` behind the last.
    #[inline]
    #[must_use]
    pub fn get(&self, data: &[u8], index: u64) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        // No overflow: the last value lies inside the data.
        let bit = self.first_bit + index * self.stride_bits;
        Some(bits::read(data, bit, self.bits))
    }

    /// Returns value `index` of a column of at most 32 bits, or `None` behind the last.
    #[inline]
    #[must_use]
    pub fn get_u32(&self, data: &[u8], index: u64) -> Option<u32> {
        self.get(data, index)
            .and_then(|value| u32::try_from(value).ok())
    }

    /// Returns all values in turn.
    pub fn iter<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = u64> + use<'d> {
        let column = *self;
        (0..column.len).map_while(move |index| column.get(data, index))
    }
}

/// Where the strings of a plain list are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringColumns {
    pub(super) distance: Column,
    pub(super) len: Column,
    pub(super) start: u64,
    pub(super) stride: u64,
}

impl StringColumns {
    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.is_empty()
    }

    /// Returns where string `index` is; `None` behind the last.
    ///
    /// # Errors
    /// `Corrupt` if it does not lie inside the data.
    pub fn get(&self, data: &[u8], index: u64) -> Result<Option<Span>> {
        let Some(len) = self.len.get(data, index) else {
            return Ok(None);
        };
        if len == 0 {
            return Ok(Some(Span::default()));
        }
        let distance = self.distance.get(data, index).unwrap_or(0);
        // No overflow: `Object::list` has checked that all items lie inside the data.
        let start = self.start + index * self.stride;
        Span::checked(start, distance, len, data.len() as u64).map(Some)
    }
}

impl Span {
    /// Returns the bytes; none at all if `data` is not what the span was found in and shorter.
    #[must_use]
    pub fn bytes(self, data: &[u8]) -> &[u8] {
        self.range()
            .and_then(|range| data.get(range))
            .unwrap_or(&[])
    }

    /// Returns the part from `offset` on that is `len` long, both in bytes; `None` if the span is shorter.
    #[must_use]
    pub fn part(self, offset: u64, len: u64) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then_some(Self {
            start: self.start + offset,
            len,
        })
    }

    pub(super) fn checked(origin: u64, distance: u64, len: u64, data_len: u64) -> Result<Self> {
        let span = origin
            .checked_add(distance)
            .filter(|start| matches!(start.checked_add(len), Some(end) if end <= data_len))
            .map(|start| Self { start, len });
        span.ok_or_else(|| {
            Error::corrupt(format!(
                "{len} bytes at distance {distance} from byte {origin} lie outside the {data_len} bytes of data"
            ))
        })
    }

    fn range(self) -> Option<Range<usize>> {
        let start = usize::try_from(self.start).ok()?;
        let len = usize::try_from(self.len).ok()?;
        Some(start..start.checked_add(len)?)
    }
}
