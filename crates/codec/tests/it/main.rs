//! Every algorithm from the outside: round trips, decoding in steps, damaged payloads, and the images of others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::print_stderr,
    reason = "tests"
)]

mod damage;
mod data;
mod flac;
mod incremental;
mod round_trip;
mod vectors;
