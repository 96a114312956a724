//! The types that structs are made of: integers, bools, strings, optionals, lists, sets and maps.

use std::collections::{BTreeMap, BTreeSet};

use super::node::{Node, Position};
use super::solve::Solver;
use super::thaw::Thaw;
use super::value::Value;
use super::write::Output;
use crate::error::{Error, Result};

/// A type that lists can hold. A byte is none: bytes make a string.
pub(crate) trait Item: Value {}

impl Item for u32 {}
impl Item for u64 {}
impl Item for Vec<u8> {}

/// An integer type; its size is how maps of it are aligned.
pub(crate) trait Integer: Value + Copy + Ord {
    const BYTES: u64;
}

macro_rules! integer {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            const BYTES: u64 = ($type::BITS / 8) as u64;
        }

        impl Value for $type {
            const FLAT: bool = true;

            fn shape() -> Node {
                Node::default()
            }

            fn measure(&self, _: &mut Node, solver: &mut Solver, _: u64) -> u32 {
                solver.width(Self::BITS - self.leading_zeros())
            }

            fn write(&self, node: &Node, out: &mut Output, at: Position) {
                out.integer(node, at, u64::from(*self));
            }

            fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
                let value = thaw.integer(node, at, Self::BITS)?;
                Ok(Self::try_from(value).expect("the width of the layout was checked"))
            }
        }
    )*};
}
integer!(u8 u32 u64);

impl Value for bool {
    const FLAT: Self = true;

    fn shape() -> Node {
        Node::default()
    }

    fn measure(&self, _: &mut Node, _: &mut Solver, _: u64) -> u32 {
        u32::from(*self)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        out.integer(node, at, u64::from(*self));
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        thaw.bool(node, at)
    }
}

/// A string.
impl Value for Vec<u8> {
    const FLAT: bool = false;

    fn shape() -> Node {
        Node::of([(1, u64::shape()), (2, u64::shape())])
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let [distance, count] = node.parts_mut();
        let len = self.len() as u64;
        let bytes_distance = solver.reserve(start, len, 1);
        let end = solver.place(distance, &bytes_distance, start, 0);
        solver.place(count, &len, start, end)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        out.string(node, at, self);
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        thaw.string(node, at)
    }
}

impl<V: Value> Value for Option<V> {
    const FLAT: bool = V::FLAT;

    fn shape() -> Node {
        Node::of([(1, bool::shape()), (2, V::shape())])
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        let [isset, inner] = node.parts_mut();
        let end = solver.place(isset, &self.is_some(), start, 0);
        match self {
            Some(value) => solver.place(inner, value, start, end),
            None => end,
        }
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        let [isset, inner] = node.parts();
        if let Some(value) = self {
            true.write(&isset.node, out, at.of(isset));
            value.write(&inner.node, out, at.of(inner));
        }
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        let [isset, inner] = node.parts();
        if !thaw.bool(&isset.node, at.of(isset))? {
            return Ok(None);
        }
        V::thaw(&inner.node, thaw, at.of(inner)).map(Some)
    }
}

pub(crate) fn list_shape<V: Value>() -> Node {
    Node::of([(1, u64::shape()), (2, u64::shape()), (3, V::shape())])
}

impl<V: Item> Value for Vec<V> {
    const FLAT: bool = false;

    fn shape() -> Node {
        list_shape::<V>()
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        let align = solver.list_align::<V>();
        solver.list::<V>(node, self.iter(), align, start)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        let align = out.list_align::<V>();
        out.list::<V>(node, at, self.iter(), align);
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        thaw.list(node, at)
    }
}

impl<V: Item + Ord> Value for BTreeSet<V> {
    const FLAT: bool = false;

    fn shape() -> Node {
        list_shape::<V>()
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        solver.list::<V>(node, self.iter(), 1, start)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        out.list::<V>(node, at, self.iter(), 1);
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        let items = thaw.list(node, at)?;
        if !items.is_sorted_by(|a: &V, b| a < b) {
            return Err(Error::corrupt("the elements of a set do not ascend"));
        }
        Ok(items.into_iter().collect())
    }
}

/// The item of a map.
impl<K: Integer, V: Integer> Value for (K, V) {
    const FLAT: bool = true;

    fn shape() -> Node {
        Node::of([(1, K::shape()), (2, V::shape())])
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        let [key, value] = node.parts_mut();
        let end = solver.place(key, &self.0, start, 0);
        solver.place(value, &self.1, start, end)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        let [key, value] = node.parts();
        self.0.write(&key.node, out, at.of(key));
        self.1.write(&value.node, out, at.of(value));
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        let [key, value] = node.parts();
        Ok((
            K::thaw(&key.node, thaw, at.of(key))?,
            V::thaw(&value.node, thaw, at.of(value))?,
        ))
    }
}

/// Maps are aligned for the wider of their two types, whatever the width on disk.
fn map_align<K: Integer, V: Integer>() -> u64 {
    K::BYTES.max(V::BYTES)
}

impl<K: Integer, V: Integer> Value for BTreeMap<K, V> {
    const FLAT: bool = false;

    fn shape() -> Node {
        list_shape::<(K, V)>()
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        let pairs = self.iter().map(|(key, value)| (*key, *value));
        solver.list::<(K, V)>(node, pairs, map_align::<K, V>(), start)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        let pairs = self.iter().map(|(key, value)| (*key, *value));
        out.list::<(K, V)>(node, at, pairs, map_align::<K, V>());
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        let pairs = thaw.list(node, at)?;
        if !pairs.is_sorted_by(|a: &(K, V), b| a.0 < b.0) {
            return Err(Error::corrupt("the keys of a map do not ascend"));
        }
        Ok(pairs.into_iter().collect())
    }
}
