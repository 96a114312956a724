//! Hot inner loops behind safe functions: bit fields, zero runs, rolling and similarity hashes, content-defined
//! anchors, lengths of equal data.
//!
//! No I/O, no allocation. Nothing here can fail: what an argument asks for beyond the data reads as zero.

pub mod anchors;
pub mod bits;
pub mod equal;
pub mod nilsimsa;
pub mod shingles;
pub mod zeros;
