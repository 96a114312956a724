//! The layouts of a known type, one node for each use of a type in its tree.
//!
//! A schema lists layouts by number and shares equal ones. Here they form the tree that the type has,
//! so that code which knows the type finds the layout of each part by its place, without a search.

use super::schema::{Field, Layout, Schema};
use crate::error::{Error, Result};

/// How one use of a type is laid out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Bytes of an item that is byte-aligned, else 0.
    pub(crate) size: u32,
    /// Bits of the bit area.
    pub(crate) bits: u32,
    /// The parts in the order of their type's declaration, present in the schema or not.
    pub(crate) members: Vec<Member>,
}

/// A part of a compound type and where it is, from the position of the whole.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: i16,
    pub(crate) byte: u32,
    pub(crate) bit: u32,
    pub(crate) node: Node,
}

/// Where an object is: its bit area begins `bit` bits after byte `start`; its distances count from `start`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    pub(crate) start: u64,
    pub(crate) bit: u64,
}

impl Position {
    /// Returns the position of a part of the object that is here.
    ///
    /// It wraps only for a `start` near 2^64, which is checked where an array's start is computed.
    pub(crate) fn of(self, member: &Member) -> Self {
        Self {
            start: self.start.wrapping_add(u64::from(member.byte)),
            bit: self.bit.wrapping_add(u64::from(member.bit)),
        }
    }
}

impl Node {
    /// Returns an empty node of a type whose parts are `members`.
    pub(crate) fn of(members: impl IntoIterator<Item = (i16, Self)>) -> Self {
        let members = members.into_iter().map(|(id, node)| Member {
            id,
            byte: 0,
            bit: 0,
            node,
        });
        Self {
            members: members.collect(),
            ..Self::default()
        }
    }

    /// Returns the parts of a type that has `N` of them.
    ///
    /// # Panics
    /// If the node was made for another type.
    pub(crate) fn parts<const N: usize>(&self) -> &[Member; N] {
        let parts = self.members.as_slice().try_into();
        parts.expect("a node has the parts of the type it was made for")
    }

    /// As [`parts`](Self::parts), to change them.
    pub(crate) fn parts_mut<const N: usize>(&mut self) -> &mut [Member; N] {
        let parts = self.members.as_mut_slice().try_into();
        parts.expect("a node has the parts of the type it was made for")
    }

    /// Whether the layout takes no room, and so is left out of a schema.
    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0 && self.bits == 0
    }

    /// Fills an empty node from the schema's layout `number`; parts that the schema leaves out stay empty.
    ///
    /// This follows the type and not the schema, so that layouts which contain themselves do no harm.
    pub(crate) fn resolve(&mut self, schema: &Schema, number: u16) -> Result<()> {
        let layout = schema.layouts.get(usize::from(number)).ok_or_else(|| {
            Error::corrupt(format!(
                "layout {number} is missing from the schema of {} layouts",
                schema.layouts.len()
            ))
        })?;
        self.size = layout.size;
        self.bits = u32::from(layout.bits);
        for member in &mut self.members {
            if let Some(field) = layout.fields.iter().find(|field| field.id == member.id) {
                let distance = u32::from(field.offset.unsigned_abs());
                (member.byte, member.bit) = if field.offset < 0 {
                    (0, distance)
                } else {
                    (distance, 0)
                };
                member.node.resolve(schema, field.layout)?;
            }
        }
        Ok(())
    }

    /// Returns the schema that tells a reader of this layout.
    ///
    /// Layouts are numbered depth first, parts before the whole, in the order of declaration; equal ones share a
    /// number.
    ///
    /// # Errors
    /// `Limit` when a struct is wider than the schema can say.
    pub(crate) fn to_schema(&self) -> Result<Schema> {
        let mut layouts = Vec::new();
        let root = self.number(&mut layouts)?;
        Ok(Schema { layouts, root })
    }

    fn number(&self, layouts: &mut Vec<Layout>) -> Result<u16> {
        let mut fields = Vec::new();
        for member in self.members.iter().filter(|member| !member.node.is_empty()) {
            fields.push(Field {
                id: member.id,
                layout: member.node.number(layouts)?,
                offset: member.schema_offset()?,
            });
        }
        let bits = i16::try_from(self.bits).map_err(|_| too_wide(self.bits))?;
        let layout = Layout {
            size: self.size,
            bits: bits.unsigned_abs(),
            fields,
        };
        // A few hundred layouts at most: a search is as fast as a table, and its order needs no thought.
        let number = layouts.iter().position(|known| *known == layout);
        let number = number.unwrap_or_else(|| {
            layouts.push(layout);
            layouts.len() - 1
        });
        u16::try_from(number).map_err(|_| Error::limit("more layouts than a schema can number"))
    }
}

impl Member {
    /// Bit offsets are negative in a schema; a byte offset is as it is; 0 is both.
    fn schema_offset(&self) -> Result<i16> {
        let offset = if self.bit > 0 {
            i16::try_from(self.bit).map(|bit| -bit)
        } else {
            i16::try_from(self.byte)
        };
        offset.map_err(|_| too_wide(self.bit.max(self.byte)))
    }
}

fn too_wide(width: u32) -> Error {
    Error::limit(format!(
        "a struct of {width} bits: a schema can tell of 32767"
    ))
}
