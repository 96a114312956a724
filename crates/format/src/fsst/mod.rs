//! FSST: compressing short strings by a table of up to 255 symbols of 1 to 8 bytes.
//!
//! A compressed string is a sequence of codes, each of which stands for a symbol; code 255 says that the next byte
//! stands for itself. Any string can be decompressed alone, which is what makes it fit for names.
//! Source: docs/format.md, "Strings".

mod decode;
mod encode;
mod train;

pub use encode::Encoder;

/// The code that says: the next byte is meant literally.
pub(crate) const ESCAPE: u8 = 255;

/// Most symbols of a table: one code is the escape.
pub(crate) const SYMBOL_COUNT_MAX: usize = 255;

/// Longest symbol in bytes.
pub(crate) const SYMBOL_LEN_MAX: usize = 8;

/// What stands before the symbols in a serialized table.
pub(crate) const HEADER_LEN: usize = 17;

/// The version of the serialized form.
pub(crate) const FORMAT_VERSION: u32 = 20_190_218;

/// The lengths of symbols in the order in which codes are given to them.
pub(crate) const LENGTHS_IN_CODE_ORDER: [u8; 8] = [2, 3, 4, 5, 6, 7, 8, 1];

/// What each code stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolTable {
    /// Symbol `c` belongs to code `c`; at most [`SYMBOL_COUNT_MAX`], ordered as [`LENGTHS_IN_CODE_ORDER`] says
    /// (but a parsed table may be in any order: it is only decoded with).
    pub(crate) symbols: Vec<Symbol>,
}

/// A string of 1 to 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Symbol {
    /// The bytes, then zeros.
    pub(crate) bytes: [u8; SYMBOL_LEN_MAX],
    /// How many of them count: 1 to 8.
    pub(crate) len: u8,
}

impl Symbol {
    /// Takes the first 8 bytes at most.
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut symbol = Self::default();
        for (to, from) in symbol.bytes.iter_mut().zip(text) {
            *to = *from;
            symbol.len += 1;
        }
        symbol
    }

    /// Returns the bytes that count.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}
