//! Builds images of real trees and looks at them with the reader, which shares only the format with the writer.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod block_cache;
mod categories;
mod contents;
mod determinism;
mod faults;
mod harness;
mod input;
mod metadata;
mod order;
mod read_ahead;
mod round_trip;
mod script;
mod segment;
