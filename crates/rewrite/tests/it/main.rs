//! Rewriting images: what is in them stays, whatever is done to them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;
mod damage;
mod hostile;
mod same;
mod sections;
