//! Frozen2: one value of a known struct type as bit-packed fields, whose widths and places a schema tells.
//!
//! [`schema`] is that description, [`view`] reads the data in place.
//! Source: docs/format.md, "Frozen2".

pub mod schema;
