//! An LZMA2 encoder for blocks that are in memory as a whole, several times faster than those that search a binary tree.
//!
//! In: a block. Out: an `.xz` stream or the bare LZMA2 data, which every decoder reads. `finder` sorts all positions of the
//! block and so knows the matches of each; `short` finds near matches of a few bytes; `parse` chooses packets by `price`;
//! `model` and `range` encode them; `chunks` and `container` are the formats around.
//!
//! What is written depends on the data and the options alone, on every machine.

#![expect(
    clippy::cast_possible_truncation,
    reason = "positions and lengths of a block fit 32 bits, which `Encoder::check` sees to; bytes are cut out of words"
)]

mod bytes;
mod chunks;
mod container;
mod crc;
mod filter;
mod finder;
mod memory;
mod model;
mod parse;
mod price;
mod range;
mod short;
mod steps;

use std::fmt;

use chunks::Chunks;
pub use filter::Filter;
use finder::Finder;
pub use memory::prefer_huge_pages;
use model::Shape;
use parse::{Input, Parser};
use price::Prices;
use range::RangeEncoder;
use short::ShortMatches;

/// The longest block that can be encoded.
pub const BLOCK_LEN_MAX: usize = 1 << 30;
/// The smallest and the largest dictionary.
pub const DICT_LEN_MIN: u32 = 1 << 12;

/// Why a block was not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is not enough memory for the tables.
    Memory,
    /// The block is longer than [`BLOCK_LEN_MAX`].
    TooLong,
    /// An option is out of its range.
    Options,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "no memory for the encoder",
            Self::TooLong => "a block of more than 1 GiB",
            Self::Options => "options that do not go together (lc + lp is at most 4)",
        })
    }
}

impl std::error::Error for Error {}

/// How a block is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How far back matches may reach, which is the memory that decoding takes.
    pub dict_len: u32,
    /// How many bits of the byte before choose the statistics of a literal.
    pub lc: u32,
    /// How many bits of the position choose the statistics of a literal; `lc + lp` is at most 4.
    pub lp: u32,
    /// How many bits of the position choose the statistics of packets; at most 4.
    pub pb: u32,
    /// A match of this length is taken without looking for a better one: 2 to 273.
    pub nice_len: u32,
    /// What is done to machine code before.
    pub filter: Option<Filter>,
}

impl Options {
    fn check(&self, data: &[u8]) -> Result<(), Error> {
        let fits = self.lc.saturating_add(self.lp) <= 4
            && self.pb <= 4
            && (2..=273).contains(&self.nice_len)
            && self.dict_len >= DICT_LEN_MIN;
        if !fits {
            return Err(Error::Options);
        }
        if data.len() > BLOCK_LEN_MAX {
            return Err(Error::TooLong);
        }
        Ok(())
    }
}

/// Returns the memory that an encoder uses for blocks of up to `block_len` bytes, in bytes; `filters` if some are filtered.
///
/// The output is not counted. `after` bytes are used by others when a block has been encoded, before the next one: what finds
/// matches has been given back then.
#[must_use]
pub fn encoder_bytes(block_len: usize, filters: bool, after: u64) -> u64 {
    /// The tables of short matches, prices, the model, and what is sorted at a time.
    const STATE_BYTES: u64 = 10 << 20;
    let filtered = if filters { block_len as u64 } else { 0 };
    let [matches, finding] = Finder::bytes(block_len);
    STATE_BYTES + matches + finding.max(after) + filtered
}

/// The memory of an encoder, for any number of blocks, one after the other.
#[derive(Debug)]
pub struct Encoder {
    finder: Finder,
    short: ShortMatches,
    parser: Parser,
    prices: Prices,
    range: RangeEncoder,
    filtered: Vec<u8>,
}

impl Encoder {
    /// Makes an encoder with its small tables.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            finder: Finder::new(),
            short: ShortMatches::new()?,
            parser: Parser::new(),
            prices: Prices::new(),
            range: RangeEncoder::new(),
            filtered: Vec::new(),
        })
    }

    /// Replaces `out` by an `.xz` stream of one block with CRC64.
    ///
    /// # Errors
    /// All of [`Error`].
    pub fn xz(&mut self, data: &[u8], options: &Options, out: &mut Vec<u8>) -> Result<(), Error> {
        options.check(data)?;
        out.clear();
        let start = container::begin(options.filter, options.dict_len, out);
        self.append(data, options, out)?;
        container::end(start, data, out);
        Ok(())
    }

    /// Replaces `out` by LZMA2 data without a container.
    ///
    /// # Errors
    /// All of [`Error`].
    pub fn lzma2(
        &mut self,
        data: &[u8],
        options: &Options,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        options.check(data)?;
        out.clear();
        self.append(data, options, out)
    }

    fn append(&mut self, data: &[u8], options: &Options, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(filter) = options.filter else {
            return self.encode(data, options, out);
        };
        let mut filtered = std::mem::take(&mut self.filtered);
        filtered.clear();
        filtered
            .try_reserve_exact(data.len())
            .map_err(|_| Error::Memory)?;
        filtered.extend_from_slice(data);
        filter.apply(&mut filtered);
        let result = self.encode(&filtered, options, out);
        self.filtered = filtered;
        result
    }

    fn encode(&mut self, data: &[u8], options: &Options, out: &mut Vec<u8>) -> Result<(), Error> {
        self.finder.fill(data)?;
        self.short.reset();
        let input = Input {
            data,
            finder: &self.finder,
            distance_max: options.dict_len,
            nice_len: options.nice_len,
        };
        let shape = Shape {
            lc: options.lc,
            lp: options.lp,
            pb: options.pb,
        };
        Chunks {
            parser: &mut self.parser,
            short: &mut self.short,
            range: &mut self.range,
            prices: &mut self.prices,
        }
        .encode(&input, shape, out);
        Ok(())
    }
}
