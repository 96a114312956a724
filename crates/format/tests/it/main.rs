//! Tests of the format on random values, and on what releases of the reference wrote.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod image;
mod names;
mod properties;
mod refreeze;
