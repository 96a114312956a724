//! Test support, dev only: what a test needs around an image, and nothing that knows our own code.
//!
//! Trees are read through the kernel ([`tree`]) and compared in words ([`compare`]), so that a fault shared by our
//! builder and our reader cannot hide itself.
//! [`made_tree`] makes the odd tree that every round trip must survive, [`vectors`] and [`manifest`] give the public
//! images and what each must contain, [`run`] and [`mount`] run the programs, [`python`] an independent decoder.
//! [`stress`] makes trees that take much memory, and [`memory_group`] holds a program to a limit.
//!
//! ```
//! use durin_testkit::tree::{Digest, TreeOptions, snapshot};
//!
//! let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("a"), b"hello")?;
//! let tree = snapshot(dir.path(), &TreeOptions { digest: Digest::Full })?;
//! assert_eq!(tree.nodes.len(), 2, "the root and one file");
//! assert_eq!(tree.find(b"a").map(|node| node.size), Some(5));
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod compare;
pub mod io_uring;
pub mod json;
pub mod made_tree;
pub mod manifest;
pub mod memory_group;
pub mod mount;
pub mod over;
pub mod programs;
pub mod python;
pub mod random;
pub mod roundtrip;
pub mod run;
pub mod skip;
pub mod stress;
pub mod tree;
pub mod vectors;
