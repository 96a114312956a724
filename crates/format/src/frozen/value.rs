//! What the types of the metadata have in common: each can be measured, written and thawed.

use super::node::{Node, Position};
use super::solve::Solver;
use super::thaw::Thaw;
use super::write::Output;
use crate::error::Result;

/// A type that Frozen2 can store.
///
/// The node that the methods get was made by [`shape`](Self::shape) of the same type.
pub(crate) trait Value: Sized {
    /// Whether values have no data out of line, so that their layout depends on nothing but themselves.
    const FLAT: bool;

    /// How a list of these was aligned up to format 2.2, in bytes.
    const LEGACY_ALIGN: u64 = 1;

    /// Returns the tree of this type's layouts, all empty.
    fn shape() -> Node;

    /// Lets the layouts below `node` grow until this value fits, and returns the bits it needs.
    ///
    /// `start` is the byte that distances count from.
    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32;

    /// Writes this value at `at`, where the output has zeros.
    fn write(&self, node: &Node, out: &mut Output, at: Position);

    /// Reads a value from `at`.
    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self>;
}

/// Makes a struct a [`Value`]: its fields with their ids, in the order in which they are laid out.
macro_rules! frozen_struct {
    (@align) => { 1 };
    (@align $align:literal) => { $align };
    ($name:ident $([legacy_align = $align:literal])? { $($id:literal $field:ident: $type:ty,)* }) => {
        impl $crate::frozen::value::Value for $name {
            const FLAT: bool = true $(&& <$type as $crate::frozen::value::Value>::FLAT)*;
            const LEGACY_ALIGN: u64 = $crate::frozen::value::frozen_struct!(@align $($align)?);

            fn shape() -> $crate::frozen::node::Node {
                $crate::frozen::node::Node::of(
                    [$(($id, <$type as $crate::frozen::value::Value>::shape()),)*],
                )
            }

            fn measure(
                &self,
                node: &mut $crate::frozen::node::Node,
                solver: &mut $crate::frozen::solve::Solver,
                start: u64,
            ) -> u32 {
                let [$($field,)*] = node.parts_mut();
                let bits = 0;
                $(let bits = solver.place($field, &self.$field, start, bits);)*
                bits
            }

            fn write(
                &self,
                node: &$crate::frozen::node::Node,
                out: &mut $crate::frozen::write::Output,
                at: $crate::frozen::node::Position,
            ) {
                let [$($field,)*] = node.parts();
                $(self.$field.write(&$field.node, out, at.of($field));)*
            }

            fn thaw(
                node: &$crate::frozen::node::Node,
                thaw: &mut $crate::frozen::thaw::Thaw<'_>,
                at: $crate::frozen::node::Position,
            ) -> $crate::Result<Self> {
                let [$($field,)*] = node.parts();
                Ok(Self {
                    $($field: thaw.field($field, at, stringify!($field))?,)*
                })
            }
        }
    };
}
pub(crate) use frozen_struct;
