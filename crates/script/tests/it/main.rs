//! What every engine must do, tried with each that is built in.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod conformance;
mod examples;
mod harness;
mod interruption;
mod mistakes;
