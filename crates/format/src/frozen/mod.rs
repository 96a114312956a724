//! Frozen2: one value of a known struct type as bit-packed fields, whose widths and places a schema tells.
//!
//! [`schema`] is that description, [`view`] reads the data in place, and the rest turns owned values into both and
//! back.
//! Source: docs/format.md, "Frozen2".

pub(crate) mod node;
pub mod schema;
pub(crate) mod solve;
pub(crate) mod thaw;
pub(crate) mod types;
pub(crate) mod value;
pub mod view;
pub(crate) mod write;

pub use solve::Widths;
pub use write::Alignment;
