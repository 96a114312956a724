//! The programs from end to end: real images, real mounts, real trees, and all that can go wrong.
//!
//! Everything is compared by the test kit, which knows none of our code, or by readers that others wrote.

#![expect(clippy::unwrap_used, reason = "tests")]

mod atomic;
mod cycles;
mod damaged_blocks;
mod determinism;
mod driver_memory;
mod foreign_readers;
mod fsx;
mod fuzz;
mod hostile;
mod hostile_bytes;
mod hotness;
mod interrupted_rewriting;
mod many_files;
mod read_only;
mod rewriting;
mod round_trip;
mod soft_errors;
mod stress;
mod support;
mod tight_places;
mod vectors;
