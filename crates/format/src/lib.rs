//! The DwarFS on-disk format: bytes to typed structures and back.
//!
//! This crate does no I/O, starts no thread and asks no clock.
//! Everything it parses is untrusted: each bad input is an [`Error`] of kind [`ErrorKind::Corrupt`],
//! [`ErrorKind::Unsupported`] or [`ErrorKind::Limit`], never a panic.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

pub mod cursor;
pub mod digest;
pub mod dump;
pub mod error;
pub mod frozen;
pub mod fsst;
pub mod history;
pub mod ids;
pub mod index;
pub mod json;
pub mod limits;
pub mod locate;
pub mod metadata;
pub mod section;
pub mod string_table;
pub mod thrift;

pub use error::{Error, ErrorKind, Location, Result};
pub use ids::{BlockIndex, InodeNum, SectionNum};
