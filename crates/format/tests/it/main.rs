//! Tests of the format on random values, and on what releases of the reference wrote: the public test vectors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod damage;
mod image;
mod names;
mod properties;
mod real;
mod refreeze;
mod worked_example;
