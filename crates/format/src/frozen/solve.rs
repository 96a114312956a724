//! Finding the narrowest layout for a value.
//!
//! Widths of fields depend on distances, and distances on the sizes of everything placed before.
//! So the value is passed over until no layout grows any more. Layouts never shrink, which keeps that finite.
//!
//! Lists of [flat](Value::FLAT) items, nearly all of the metadata, are looked at in the first pass only: what they
//! contribute is the width of each column, which no later pass can change. The other passes cost next to nothing.
//!
//! Source: docs/format.md, "Choosing layouts"; `tests/it/refreeze.rs` pins that every byte is the reference's.

use std::borrow::Borrow;

use super::node::{Member, Node};
use super::value::Value;
use super::write::Alignment;

/// What a pass over a value needs to remember.
#[derive(Debug)]
pub(crate) struct Solver {
    alignment: Alignment,
    widths: Widths,
    /// Bytes from the start of the section at which the next array goes.
    cursor: u64,
    /// Whether a layout grew in this pass.
    grew: bool,
    first_pass: bool,
}

/// How wide integers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Widths {
    /// As many bits as the largest takes, as the reference has them.
    #[default]
    Bits,
    /// As many whole bytes. A compressor, which sees bytes, so finds values that repeat.
    Bytes,
}

/// Returns the layout of `value` as the root of a section.
pub(crate) fn solve<V: Value>(value: &V, alignment: Alignment, widths: Widths) -> Node {
    let mut root = V::shape();
    let mut solver = Solver {
        alignment,
        widths,
        cursor: 0,
        grew: true,
        first_pass: true,
    };
    while solver.grew {
        solver.grew = false;
        solver.cursor = u64::from(root.size);
        // Follows the bits by one pass: the reference rounds up what it knew when the pass began.
        let size = root.bits.div_ceil(8);
        let bits = value.measure(&mut root, &mut solver, 0);
        solver.grow(&mut root.bits, bits);
        solver.grow(&mut root.size, size);
        solver.first_pass = false;
    }
    root
}

impl Solver {
    /// Places a part of an object at bit `end`, where the parts before it end, and returns where it ends.
    pub(crate) fn place<V: Value>(
        &mut self,
        member: &mut Member,
        value: &V,
        start: u64,
        end: u32,
    ) -> u32 {
        let bits = value.measure(&mut member.node, self, start);
        self.grow(&mut member.node.bits, bits);
        member.bit = end;
        end + member.node.bits
    }

    /// Returns the width of a field for an integer of so many bits.
    pub(crate) fn width(&self, bits: u32) -> u32 {
        match self.widths {
            Widths::Bits => bits,
            Widths::Bytes => bits.next_multiple_of(8),
        }
    }

    /// Measures a list of which the whole has the parts distance, count and item.
    pub(crate) fn list<V: Value>(
        &mut self,
        node: &mut Node,
        items: impl ExactSizeIterator<Item = impl Borrow<V>>,
        align: u64,
        start: u64,
    ) -> u32 {
        let [distance, count, item] = node.parts_mut();
        let item_count = items.len() as u64;
        let end = self.place(count, &item_count, start, 0);
        // What is known of the items' width before they are measured: in the first pass, nothing.
        let array_len = (item_count * u64::from(item.node.bits)).div_ceil(8);
        let array_distance = self.reserve(start, array_len, align);
        let end = self.place(distance, &array_distance, start, end);
        if self.first_pass || !V::FLAT {
            for value in items {
                self.place(item, value.borrow(), start + array_distance, 0);
            }
        }
        end
    }

    /// Makes room for `len` bytes out of line and returns their distance from `start`.
    ///
    /// Assumes the most padding that `align` can take, as nothing is known of where things will be.
    pub(crate) fn reserve(&mut self, start: u64, len: u64, align: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let at = self.cursor.max(start) + (align - 1);
        self.cursor = at + len;
        at - start
    }

    /// Returns how a list of `V` is aligned.
    pub(crate) fn list_align<V: Value>(&self) -> u64 {
        self.alignment.of_list::<V>()
    }

    fn grow(&mut self, width: &mut u32, needed: u32) {
        if needed > *width {
            *width = needed;
            self.grew = true;
        }
    }
}
