//! The Thrift Compact protocol, as far as DwarFS uses it.
//!
//! The schema of the metadata, the history and the headers of FLAC and RICEPP payloads are Compact structs:
//! fields, each with its id and wire type, up to a stop byte.
//! [`Reader`] takes such bytes apart and [`Writer`] puts them together; which fields a struct has, their callers know.
//!
//! Both keep no stack of open structs. The id of the field before, from which the next id is counted,
//! belongs to the caller: one `i16` a struct, 0 at its start.
//!
//! ```
//! use durin_format::thrift::{Reader, Type, Writer};
//!
//! let mut writer = Writer::new();
//! let mut last_id = 0;
//! writer.i32_field(&mut last_id, 1, -5);
//! writer.binary_field(&mut last_id, 9, b"from a later release");
//! writer.stop();
//! let bytes = writer.into_bytes();
//!
//! let mut reader = Reader::new(&bytes);
//! let (mut last_id, mut number) = (0, 0);
//! while let Some(field) = reader.next_field(&mut last_id)? {
//!     match field {
//!         (1, Type::I32) => number = reader.read_i32()?,
//!         // An unknown field, or one of another type than expected: left out.
//!         (_, other) => reader.skip(other)?,
//!     }
//! }
//! assert_eq!((number, reader.remaining()), (-5, 0));
//! # Ok::<(), durin_format::Error>(())
//! ```
//!
//! Source: docs/format.md, "Thrift Compact protocol"; `Compact protocol encoding` of the Apache Thrift documentation.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

/// A wire type: the low nibble of a field header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A bool field that is true; in a collection header, a bool.
    True,
    /// A bool field that is false; in a collection header, a bool.
    False,
    /// One byte.
    Byte,
    /// A zigzag varint of 16 bits.
    I16,
    /// A zigzag varint of 32 bits.
    I32,
    /// A zigzag varint of 64 bits.
    I64,
    /// Eight bytes.
    Double,
    /// A length and that many bytes.
    Binary,
    /// A list header and its elements.
    List,
    /// As a list.
    Set,
    /// A map header and its keys and values in turn.
    Map,
    /// Fields up to a stop byte.
    Struct,
    /// Sixteen bytes.
    Uuid,
}

impl Type {
    /// Returns the value of a bool field, which is in its type; `None` for another type.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False => Some(false),
            _ => None,
        }
    }

    fn from_nibble(nibble: u8) -> Option<Self> {
        Some(match nibble {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return None,
        })
    }

    fn nibble(self) -> u8 {
        match self {
            Self::True => 1,
            Self::False => 2,
            Self::Byte => 3,
            Self::I16 => 4,
            Self::I32 => 5,
            Self::I64 => 6,
            Self::Double => 7,
            Self::Binary => 8,
            Self::List => 9,
            Self::Set => 10,
            Self::Map => 11,
            Self::Struct => 12,
            Self::Uuid => 13,
        }
    }

    /// The least number of bytes that an element of this type takes inside a collection.
    fn element_len_min(self) -> usize {
        match self {
            Self::Double => 8,
            Self::Uuid => 16,
            _ => 1,
        }
    }
}
