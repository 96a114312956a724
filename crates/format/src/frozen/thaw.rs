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
        self.collect::<V, Vec<V>>(node, at)
    }

    /// Reads a list into any collection of its items.
    pub(crate) fn collect<V: Value, C: FromIterator<V> + Default>(
        &mut self,
        node: &Node,
        at: Position,
    ) -> Result<C> {
        let [distance, count, item] = node.parts();
        let item_count = self.integer(&count.node, at.of(count), u64::BITS)?;
        if item_count == 0 {
            return Ok(C::default());
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
        (0..item_count)
            .map(|index| V::thaw(item, self, stride.position(start, index)))
            .collect()
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::schema::{Field, Layout};
    use super::*;
    use crate::ErrorKind;

    /// Size, bits, and fields as (id, layout, offset).
    type Parts<'a> = (u32, u16, &'a [(i16, u16, i16)]);

    /// A schema of which the last of `layouts` is the root.
    fn schema(layouts: &[Parts<'_>]) -> Schema {
        let layout = |&(size, bits, fields): &Parts<'_>| Layout {
            size,
            bits,
            fields: fields
                .iter()
                .map(|&(id, layout, offset)| Field { id, layout, offset })
                .collect(),
        };
        Schema {
            layouts: layouts.iter().map(layout).collect(),
            root: u16::try_from(layouts.len() - 1).unwrap(),
        }
    }

    /// A list whose count and distance are the lower and upper half of byte 0.
    ///
    /// The fields of `item` may refer to layout 1, of `part_bits` bits.
    fn list_schema(item: Parts<'_>, part_bits: u16) -> Schema {
        let half = (0, 4, &[][..]);
        let list = (1, 8, &[(1, 0, -4), (2, 0, 0), (3, 2, 0)][..]);
        schema(&[half, (0, part_bits, &[]), item, list])
    }

    fn check_error<V: Value>(schema: &Schema, data: &[u8], kind: ErrorKind, expect: &str) {
        let error = thaw::<V>(schema, data).err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, expect));
    }

    #[test]
    fn items_are_bits_or_bytes_apart() {
        let bits = list_schema((0, 12, &[]), 0);
        let value: Vec<u32> = thaw(&bits, &[0x12, 0x21, 0x43, 0x65]).unwrap();
        assert_eq!(value, [0x321, 0x654]);
        let bytes = list_schema((2, 12, &[]), 0);
        let value: Vec<u32> = thaw(&bytes, &[0x12, 0x21, 0xF3, 0x54, 0xF6]).unwrap();
        assert_eq!(value, [0x321, 0x654]);
    }

    #[test]
    fn arrays_must_be_inside_the_data() {
        let schema = list_schema((0, 12, &[]), 0);
        check_error::<Vec<u32>>(
            &schema,
            &[0x12, 0x21, 0x43],
            ErrorKind::Corrupt,
            "3 bytes at byte 1 reach beyond the data of 3 bytes",
        );
        check_error::<Vec<u32>>(
            &schema,
            &[],
            ErrorKind::Corrupt,
            "a field of 4 bits at byte 0 bit 0 reaches beyond the data of 0 bytes",
        );
        check_error::<Vec<u8>>(
            &schema,
            &[0x13, 0x21, 0x43],
            ErrorKind::Corrupt,
            "3 bytes at byte 1 reach beyond the data of 3 bytes",
        );
    }

    #[test]
    fn an_item_must_be_inside_the_data_even_if_its_layout_says_less() {
        // The key of the pair claims 32 bits in an item of 8.
        let schema = list_schema((0, 8, &[(1, 1, 0)]), 32);
        let error = thaw::<BTreeMap<u32, u32>>(&schema, &[0x11, 7]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn integers_must_fit_their_type() {
        let schema = schema(&[(5, 33, &[])]);
        check_error::<u32>(
            &schema,
            &[0; 5],
            ErrorKind::Corrupt,
            "33 bits for an integer of 32",
        );
        assert_eq!(thaw::<u64>(&schema, &[0, 0, 0, 0, 0xFF]).unwrap(), 1 << 32);
    }

    #[test]
    fn items_of_no_bits_draw_on_a_budget() {
        let schema = schema(&[(0, 40, &[]), (5, 40, &[(2, 0, 0)])]);
        let count = |count: u64| count.to_le_bytes()[..5].to_vec();
        let items: Vec<u32> = thaw(&schema, &count(100_000)).unwrap();
        assert_eq!((items.len(), items[99_999]), (100_000, 0));
        check_error::<Vec<u64>>(
            &schema,
            &count(1 << 32),
            ErrorKind::Limit,
            "an array of 4294967296 items exceeds what 5 bytes of metadata may hold, see THAW_ITEM_COUNT_MAX",
        );
    }

    #[test]
    fn overlapping_strings_draw_on_a_budget() {
        // 15 strings of 119,000 bytes in 120,000: more than 4 times the data and a megabyte.
        let schema = list_schema((0, 17, &[(2, 1, 0)]), 17);
        let mut data = vec![0; 120_000];
        data[0] = 0x1F;
        for index in 0..15 {
            durin_kernels::bits::write(&mut data, 8 + index * 17, 17, 119_000);
        }
        check_error::<Vec<Vec<u8>>>(
            &schema,
            &data,
            ErrorKind::Limit,
            "strings that overlap exceed THAW_STRING_BYTES_MAX",
        );
    }

    #[test]
    fn sets_and_maps_must_ascend() {
        let schema = list_schema((0, 8, &[]), 0);
        let set: BTreeSet<u32> = thaw(&schema, &[0x13, 1, 2, 9]).unwrap();
        assert_eq!(set, BTreeSet::from([1, 2, 9]));
        for items in [[1, 1, 2], [3, 2, 4]] {
            let data = [&[0x13][..], &items].concat();
            check_error::<BTreeSet<u32>>(
                &schema,
                &data,
                ErrorKind::Corrupt,
                "the elements of a set do not ascend",
            );
        }
        let schema = list_schema((0, 8, &[(1, 1, 0), (2, 1, -4)]), 4);
        let map: BTreeMap<u32, u64> = thaw(&schema, &[0x12, 0x51, 0x62]).unwrap();
        assert_eq!(map, BTreeMap::from([(1, 5), (2, 6)]));
        check_error::<BTreeMap<u32, u64>>(
            &schema,
            &[0x12, 0x52, 0x62],
            ErrorKind::Corrupt,
            "the keys of a map do not ascend",
        );
    }

    #[test]
    fn layouts_that_contain_themselves_do_no_harm() {
        let schema = schema(&[(0, 8, &[(1, 0, 0), (2, 0, 0), (3, 0, 0)])]);
        drop(thaw::<Vec<Vec<u8>>>(&schema, &[1; 8]));
        drop(thaw::<Option<u64>>(&schema, &[1; 8]));
    }

    #[test]
    fn a_set_optional_without_value_holds_the_default() {
        let schema = schema(&[(0, 1, &[]), (1, 1, &[(1, 0, 0)])]);
        assert_eq!(thaw::<Option<u32>>(&schema, &[1]).unwrap(), Some(0));
        assert_eq!(
            thaw::<Option<Vec<u32>>>(&schema, &[1]).unwrap(),
            Some(vec![])
        );
        assert_eq!(thaw::<Option<u32>>(&schema, &[0]).unwrap(), None);
    }
}
