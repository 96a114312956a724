//! Hot inner loops behind safe functions: bit fields, zero runs, rolling and similarity hashes, content-defined
//! anchors, lengths of equal data, SHA-512 of several messages.
//!
//! No I/O, no allocation. Nothing here can fail: what an argument asks for beyond the data reads as zero.

pub mod anchors;
pub mod bits;
pub mod equal;
pub mod nilsimsa;
pub mod sha512;
pub mod shingles;
pub mod zeros;
