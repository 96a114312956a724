//! Writing a value as the data of a section.

use std::borrow::Borrow;

use durin_kernels::bits;

use super::node::{Node, Position};
use super::value::Value;

/// The zero bytes after the last array: the reference loads whole words and may touch 7 bytes beyond a field.
const TAIL_LEN: usize = 8;

/// How the beginnings of arrays are aligned. It has no meaning for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// Only maps are aligned.
    #[default]
    Current,
    /// As up to format 2.2: arrays of chunks, directories and inodes, too.
    Legacy,
}

impl Alignment {
    pub(crate) fn of_list<V: Value>(self) -> u64 {
        match self {
            Self::Current => 1,
            Self::Legacy => V::LEGACY_ALIGN,
        }
    }
}

/// The data of a section as it grows.
#[derive(Debug)]
pub(crate) struct Output {
    alignment: Alignment,
    data: Vec<u8>,
}

/// Returns `value` as the data of a section, laid out as `root` says.
pub(crate) fn write<V: Value>(value: &V, root: &Node, alignment: Alignment) -> Vec<u8> {
    let mut out = Output {
        alignment,
        data: vec![0; root.size as usize],
    };
    value.write(root, &mut out, Position::default());
    out.data.resize(out.data.len() + TAIL_LEN, 0);
    out.data
}

impl Output {
    /// Writes an integer of the width of `node`.
    ///
    /// # Panics
    /// If it is wider: the layout was not solved for this value.
    pub(crate) fn integer(&mut self, node: &Node, at: Position, value: u64) {
        assert!(
            u64::BITS - value.leading_zeros() <= node.bits,
            "a layout of {} bits for {value}",
            node.bits
        );
        if value > 0 {
            bits::write(&mut self.data, at.start * 8 + at.bit, node.bits, value);
        }
    }

    /// Writes a string of which the whole has the parts distance and count.
    pub(crate) fn string(&mut self, node: &Node, at: Position, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        let [distance, count] = node.parts();
        let place = self.data.len() as u64;
        self.data.extend_from_slice(value);
        self.integer(&distance.node, at.of(distance), place - at.start);
        self.integer(&count.node, at.of(count), value.len() as u64);
    }

    /// Writes a list of which the whole has the parts distance, count and item.
    pub(crate) fn list<V: Value>(
        &mut self,
        node: &Node,
        at: Position,
        items: impl ExactSizeIterator<Item = impl Borrow<V>>,
        align: u64,
    ) {
        let [distance, count, item] = node.parts();
        self.integer(&count.node, at.of(count), items.len() as u64);
        let item_bits = u64::from(item.node.bits);
        let array_len = (items.len() as u64 * item_bits).div_ceil(8);
        if array_len == 0 {
            return;
        }
        let start = self.reserve(array_len, align);
        self.integer(&distance.node, at.of(distance), start - at.start);
        for (value, index) in items.zip(0..) {
            let at = Position {
                start,
                bit: index * item_bits,
            };
            value.borrow().write(&item.node, self, at);
        }
    }

    /// Returns how a list of `V` is aligned.
    pub(crate) fn list_align<V: Value>(&self) -> u64 {
        self.alignment.of_list::<V>()
    }

    /// Appends zeros for an array and returns where it starts.
    fn reserve(&mut self, len: u64, align: u64) -> u64 {
        let start = (self.data.len() as u64).next_multiple_of(align);
        let end = usize::try_from(start + len).expect("the value itself is in memory and larger");
        self.data.resize(end, 0);
        start
    }
}
