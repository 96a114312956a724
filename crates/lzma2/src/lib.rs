//! An LZMA2 encoder for blocks that are in memory as a whole, several times faster than those that search a binary tree.
//!
//! In: a block. Out: an `.xz` stream or the bare LZMA2 data, which every decoder reads. `finder` sorts all positions of the
//! block and so knows the matches of each; `short` finds near matches of a few bytes; `shapes` chooses how a part of the
//! block is modelled; `parse` chooses packets by `price`; `model` and `range` encode them; `packer` stores what packets, or a
//! look at whether it is `noise`, say not to shrink; `chunks` and `container` are the formats around. Matches of different prefixes, and packets of different parts of a block, are found by several threads,
//! which share them and their memory as a `crew`.
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
mod crew;
mod filter;
mod finder;
mod memory;
mod model;
mod noise;
mod packer;
mod parse;
mod price;
mod range;
mod shapes;
mod short;
mod steps;

use std::fmt;
use std::sync::Arc;

use crew::Tables;
pub use crew::{Crew, Member, THREADS_PER_TABLE, helped};
pub use filter::Filter;
use finder::Finder;
pub use memory::prefer_huge_pages;
use parse::Input;
pub use shapes::Given;

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
    /// How literals and positions are modelled, as far as that is not to be chosen for each part of the block.
    pub given: Given,
    /// A match of this length is taken without looking for a better one: 2 to 273.
    pub nice_len: u32,
    /// What is done to the data before.
    pub filter: Option<Filter>,
}

impl Options {
    fn check(&self, data: &[u8]) -> Result<(), Error> {
        let fits = self.given.is_valid()
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

/// The memory that encoding takes, in bytes. The output is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderBytes {
    /// For each block that is encoded: see [`Crew`].
    pub tables: u64,
    /// For each thread.
    pub thread: u64,
}

impl EncoderBytes {
    /// For blocks of up to `block_len` bytes; `filters` if some are filtered.
    #[must_use]
    pub fn of(block_len: usize, filters: bool) -> Self {
        /// The tables of short matches, prices, the model, and what is sorted at a time.
        const STATE_BYTES: u64 = 14 << 20;
        let filtered = if filters { block_len as u64 } else { 0 };
        let [matches, finding] = Finder::bytes(block_len);
        Self {
            tables: matches + filtered,
            thread: STATE_BYTES + finding,
        }
    }
}

/// Encodes any number of blocks, one after the other.
#[derive(Debug)]
pub struct Encoder {
    crew: Arc<Crew>,
}

impl Encoder {
    /// Makes an encoder for a thread that is a member of `crew`.
    #[must_use]
    pub fn new(crew: Arc<Crew>) -> Self {
        Self { crew }
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
        let crew = &*self.crew;
        crew.with_tables(|tables| {
            let Tables { finder, filtered } = tables;
            let Some(filter) = options.filter else {
                return encode(finder, data, options, crew, out);
            };
            filtered.clear();
            filtered
                .try_reserve_exact(data.len())
                .map_err(|_| Error::Memory)?;
            filtered.extend_from_slice(data);
            filter.apply(filtered);
            encode(finder, filtered, options, crew, out)
        })
    }
}

fn encode(
    finder: &mut Finder,
    data: &[u8],
    options: &Options,
    crew: &Crew,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    finder.fill(data, crew)?;
    let input = Input {
        data,
        finder,
        distance_max: options.dict_len,
        nice_len: options.nice_len,
    };
    chunks::encode(&input, options.given, crew, out)
}
