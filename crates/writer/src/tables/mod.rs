//! Parts of the metadata that everybody who makes an image makes alike: tables of strings and values, times, holes.
//!
//! Used by a build, which describes a tree, and by those who describe an image anew.

mod holes;
mod strings;
mod units;
mod values;

pub use crate::status::Time;
pub use holes::Holes;
pub use strings::{Distinct, StoredStrings, Strings, distinct, pack};
pub use units::Units;
pub use values::Values;

/// Who made the image, in the form the reference uses.
pub const CREATOR: &str = concat!("libdurin v", env!("CARGO_PKG_VERSION"));
/// The separator in symbolic links.
pub const PATH_SEPARATOR: u32 = 47;
/// What readers must know to read holes.
pub const SPARSE_FEATURE: &[u8] = b"sparsefiles";
/// Files with at least this many chunks are in the size cache. Source: format specification, 7.7.
pub const SIZE_CACHE_CHUNKS_MIN: u64 = 128;

/// Replaces each value by what it adds to the one before.
pub fn to_differences<'a>(values: impl Iterator<Item = &'a mut u32>) {
    let mut before = 0;
    for value in values {
        let now = *value;
        *value = now - before;
        before = now;
    }
}
