//! How holes are stored: as blocks and a rest, unless that needs more bits than the sizes of chunks have anyway.

use std::collections::BTreeMap;

use durin_format::metadata::Chunk;
use durin_format::{Error, Result};

/// Marks a chunk whose size is the place of a large hole. Source: format specification, 7.5 and erratum 1.
const LARGE_HOLE: u32 = u32::MAX;

/// Makes the chunks of holes.
#[derive(Clone, Debug)]
pub struct Holes {
    block_index: u32,
    block_size_bits: u32,
    /// Holes of this length and more are large.
    large_len_min: u64,
    any: bool,
    large: Vec<u64>,
    places: BTreeMap<u64, u32>,
}

impl Holes {
    /// For an image with so many blocks of up to 2^`block_size_bits` bytes, whose largest data chunk has
    /// `chunk_len_max` bytes.
    #[must_use]
    pub fn new(block_count: u32, block_size_bits: u32, chunk_len_max: u32) -> Self {
        let size_bits = u32::BITS - chunk_len_max.leading_zeros();
        Self {
            block_index: block_count,
            block_size_bits,
            // Both are at most 31.
            large_len_min: 1 << (size_bits + block_size_bits).min(u64::BITS - 1),
            any: false,
            large: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Returns the chunk for a hole of `len` bytes.
    ///
    /// # Errors
    /// `Limit` if there are more large holes than can be numbered.
    pub fn chunk(&mut self, len: u64) -> Result<Chunk> {
        self.any = true;
        let block = self.block_index;
        if len >= self.large_len_min {
            return Ok(Chunk {
                block,
                offset: LARGE_HOLE,
                size: self.large_place(len)?,
            });
        }
        let blocks = len >> self.block_size_bits;
        let rest = len & ((1 << self.block_size_bits) - 1);
        let (Ok(size), Ok(offset)) = (u32::try_from(blocks), u32::try_from(rest)) else {
            return Err(Error::limit("a hole does not fit into a chunk"));
        };
        Ok(Chunk {
            block,
            offset,
            size,
        })
    }

    /// Returns the lengths of large holes, or nothing if there was no hole at all.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u64>> {
        self.any.then_some(self.large)
    }

    fn large_place(&mut self, len: u64) -> Result<u32> {
        if let Some(place) = self.places.get(&len) {
            return Ok(*place);
        }
        let place = u32::try_from(self.large.len())
            .map_err(|_| Error::limit("more than 2^32 different lengths of holes"))?;
        self.large.push(len);
        self.places.insert(len, place);
        Ok(place)
    }
}
