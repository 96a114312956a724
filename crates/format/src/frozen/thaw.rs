//! Reading a whole value from any valid layout.
//!
//! The bytes are not trusted. Each array, string and integer is checked against the end of the data;
//! what could still be large beyond reason, items of no bits and strings that overlap, draws on a budget.

use durin_kernels::bits;

use super::node::{Member, Node, Position};
use super::schema::Schema;
use super::value::Value;
use crate::error::{Error, Result};
use crate::limits::{
    THAW_ITEM_COUNT_MAX, THAW_ITEMS_PER_BYTE_MAX, THAW_STRING_BYTES_MAX, THAW_STRING_EXPANSION_MAX,
};

/// The data of a section, and what of the budget is left.
#[derive(Debug)]
pub(crate) struct Thaw<'a> {
    data: &'a [u8],
    items_left: u64,
    string_bytes_left: u64,
}

/// Reads the root value of a section.
pub(crate) fn thaw<V: Value>(schema: &Schema, data: &[u8]) -> Result<V> {
    let mut root = V::shape();
    root.resolve(schema, schema.root)?;
    let data_len = data.len() as u64;
    let mut thaw = Thaw {
        data,
        items_left: THAW_ITEM_COUNT_MAX
            .saturating_add(data_len.saturating_mul(THAW_ITEMS_PER_BYTE_MAX)),
        string_bytes_left: THAW_STRING_BYTES_MAX
            .saturating_add(data_len.saturating_mul(THAW_STRING_EXPANSION_MAX)),
    };
    V::thaw(&root, &mut thaw, Position::default())
}

impl Thaw<'_> {
    /// Reads a part of the object at `at`; errors tell its name.
    pub(crate) fn field<V: Value>(
        &mut self,
        member: &Member,
        at: Position,
        name: &str,
    ) -> Result<V> {
        V::thaw(&member.node, self, at.of(member)).map_err(|error| error.context(name))
    }

    /// Reads an integer of a type of `bits_max` bits.
    pub(crate) fn integer(&self, node: &Node, at: Position, bits_max: u32) -> Result<u64> {
        if node.bits > bits_max {
            return Err(Error::corrupt(format!(
                "{} bits for an integer of {bits_max}",
                node.bits
            )));
        }
        self.bits(at, node.bits)
    }

    /// Reads a bool: one bit, if its layout has any.
    pub(crate) fn bool(&self, node: &Node, at: Position) -> Result<bool> {
        Ok(self.bits(at, node.bits.min(1))? != 0)
    }

    /// Reads a string of which the whole has the parts distance and count.
    pub(crate) fn string(&mut self, node: &Node, at: Position) -> Result<Vec<u8>> {
        let [distance, count] = node.parts();
        let len = self.integer(&count.node, at.of(count), u64::BITS)?;
        if len == 0 {
            return Ok(Vec::new());
        }
        let start = self.array_start(distance, at)?;
        let bytes = self.slice(start, len)?.to_vec();
        self.string_bytes_left = self
            .string_bytes_left
            .checked_sub(len)
            .ok_or_else(|| Error::limit("strings that overlap exceed THAW_STRING_BYTES_MAX"))?;
        Ok(bytes)
    }

    /// Reads a list of which the whole has the parts distance, count and item.
    pub(crate) fn list<V: Value>(&mut self, node: &Node, at: Position) -> Result<Vec<V>> {
        let [distance, count, item] = node.parts();
        let item_count = self.integer(&count.node, at.of(count), u64::BITS)?;
        if item_count == 0 {
            return Ok(Vec::new());
        }
        let item = &item.node;
        let stride = Stride::of(item);
        let start = self.array_start(distance, at)?;
        let array_len = stride
            .array_len(item_count)
            .ok_or_else(|| Error::corrupt(format!("an array of {item_count} items")))?;
        self.slice(start, array_len)?;
        self.items_left = self.items_left.checked_sub(item_count).ok_or_else(|| {
            Error::limit(format!(
                "an array of {item_count} items exceeds what {} bytes of metadata may hold, see THAW_ITEM_COUNT_MAX",
                self.data.len()
            ))
        })?;
        let mut items = Vec::with_capacity(usize::try_from(item_count).unwrap_or(0));
        for index in 0..item_count {
            items.push(V::thaw(item, self, stride.position(start, index))?);
        }
        Ok(items)
    }

    fn array_start(&self, distance: &Member, at: Position) -> Result<u64> {
        // A distance counts from the whole, not from where the distance itself is.
        let value = self.integer(&distance.node, at.of(distance), u64::BITS)?;
        at.start
            .checked_add(value)
            .ok_or_else(|| Error::corrupt(format!("a distance of {value} bytes")))
    }

    fn bits(&self, at: Position, width: u32) -> Result<u64> {
        if width == 0 {
            return Ok(0);
        }
        let bit = at
            .start
            .checked_mul(8)
            .and_then(|bits| bits.checked_add(at.bit));
        let end = bit.and_then(|bit| bit.checked_add(u64::from(width)));
        match (bit, end) {
            (Some(bit), Some(end)) if end <= self.data.len() as u64 * 8 => {
                Ok(bits::read(self.data, bit, width))
            }
            _ => Err(Error::corrupt(format!(
                "a field of {width} bits at byte {} bit {} reaches beyond the data of {} bytes",
                at.start,
                at.bit,
                self.data.len()
            ))),
        }
    }

    fn slice(&self, start: u64, len: u64) -> Result<&[u8]> {
        let range = start.checked_add(len).and_then(|end| {
            let start = usize::try_from(start).ok()?;
            self.data.get(start..usize::try_from(end).ok()?)
        });
        range.ok_or_else(|| {
            Error::corrupt(format!(
                "{len} bytes at byte {start} reach beyond the data of {} bytes",
                self.data.len()
            ))
        })
    }
}

/// How far the items of an array are apart.
#[derive(Clone, Copy)]
enum Stride {
    Bytes(u64),
    Bits(u64),
}

impl Stride {
    fn of(item: &Node) -> Self {
        match item.size {
            0 => Self::Bits(u64::from(item.bits)),
            size => Self::Bytes(u64::from(size)),
        }
    }

    fn array_len(self, item_count: u64) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => item_count.checked_mul(bytes),
            Self::Bits(bits) => item_count.checked_mul(bits).map(|bits| bits.div_ceil(8)),
        }
    }

    /// Returns where item `index` is; does not overflow once the array was found to be inside the data.
    fn position(self, start: u64, index: u64) -> Position {
        match self {
            Self::Bytes(bytes) => Position {
                start: start.wrapping_add(index.wrapping_mul(bytes)),
                bit: 0,
            },
            Self::Bits(bits) => Position {
                start,
                bit: index.wrapping_mul(bits),
            },
        }
    }
}
