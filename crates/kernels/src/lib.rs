//! Hot inner loops behind safe functions: bit fields and zero runs.
//!
//! No I/O, no allocation. Nothing here can fail: what an argument asks for beyond the data reads as zero.

pub mod bits;
pub mod zeros;
