//! The DwarFS on-disk format: bytes to typed structures and back.
//!
//! This crate does no I/O, starts no thread and asks no clock.
//! Everything it parses is untrusted: each bad input is an [`Error`] of kind [`ErrorKind::Corrupt`],
//! [`ErrorKind::Unsupported`] or [`ErrorKind::Limit`], never a panic.
//!
//! ```
//! use durin_format::frozen::schema::Schema;
//! use durin_format::metadata::{Metadata, Tables};
//!
//! let metadata = Metadata {
//!     modes: vec![0o040_755, 0o100_644],
//!     names: vec![b"hello.txt".to_vec()],
//!     ..Metadata::default()
//! };
//! let frozen = metadata.freeze()?;
//!
//! // A reader looks into the frozen bytes in place.
//! let tables = Tables::resolve(&Schema::parse(&frozen.schema)?, &frozen.data)?;
//! assert_eq!(tables.modes.get(&frozen.data, 1), Some(0o100_644));
//! assert_eq!(tables.modes.get(&frozen.data, 2), None);
//! let mut buf = Vec::new();
//! assert_eq!(tables.names.get(&frozen.data, 0, &mut buf)?, b"hello.txt");
//! # Ok::<(), durin_format::Error>(())
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

pub mod cursor;
pub mod digest;
pub mod dump;
pub mod error;
pub mod events;
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
pub mod sha512_256;
pub mod string_table;
pub mod thrift;

pub use error::{Error, ErrorKind, Location, Result};
pub use ids::{BlockIndex, InodeNum, SectionNum};
