//! The programs of durin: `mkdwarfs`, `dwarfs`, `dwarfsck`, `dwarfsextract`, and `durin`, which is all of them.
//!
//! Each module is a program: its options, and how they become one call of a library.
//! This crate is the only one that looks at the terminal, the environment and the clock.

mod common;
pub mod durin;
pub mod dwarfs;
pub mod dwarfsck;
pub mod dwarfsextract;
mod everyday;
#[cfg(feature = "mimalloc")]
pub mod mimalloc;
pub mod mkdwarfs;
