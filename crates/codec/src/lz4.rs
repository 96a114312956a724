//! LZ4: a size of 32 bits, then one raw block.
//!
//! `lz4` and `lz4hc` differ in how hard they search; the result is read the same way.

mod in_place;

use std::fmt;

use ::lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use durin_format::{Error, Result};

use crate::decompressed::Decompressed;
use crate::encoder::Encoder;
use crate::options::Options;
use crate::output::{reserve_total, zeroed};

/// What the library allocates for the slower of the two (`LZ4_STREAMHC_MINSIZE`), rounded up.
pub(crate) const ENCODER_BYTES: u64 = 1 << 18;

/// The most bytes that one byte of a block can stand for: one more in the length of a match.
const EXPANSION_MAX: usize = 255;

const PREFIX_LEN: usize = 4;

const MALFORMED: &str = "lz4: malformed block, or one of more bytes than its size";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lz4hcOptions {
    level: u32,
}

impl Lz4hcOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        Ok(Self {
            level: options.u32("level", 0..=12)?.unwrap_or(9),
        })
    }

    pub(crate) fn encoder(&self) -> Lz4Encoder {
        Lz4Encoder::new(CompressionMode::HIGHCOMPRESSION(self.level.cast_signed()))
    }
}

impl fmt::Display for Lz4hcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lz4hc:level={}", self.level)
    }
}

pub(crate) struct Lz4Encoder {
    mode: CompressionMode,
    /// Room for the worst case, kept, as clearing it again for each block would take a good part of the time.
    room: Vec<u8>,
}

impl Lz4Encoder {
    pub(crate) fn fast() -> Self {
        Self::new(CompressionMode::DEFAULT)
    }

    fn new(mode: CompressionMode) -> Self {
        Self {
            mode,
            room: Vec::new(),
        }
    }
}

impl Encoder for Lz4Encoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if data.is_empty() {
            // The size, and a token without literals. The library would compute addresses before those of an empty
            // slice, which wrap around: level 12 then reads from anywhere.
            *out = vec![0; PREFIX_LEN + 1];
            return Ok(());
        }
        // The library counts in 31 bits; this checks it as well.
        let bound = compress_bound(data.len())
            .map_err(|error| Error::limit(format!("lz4: {} bytes: {error}", data.len())))?;
        if self.room.len() < PREFIX_LEN + bound {
            zeroed(&mut self.room, PREFIX_LEN + bound)?;
        }
        let len = compress_to_buffer(data, Some(self.mode), true, &mut self.room)
            .map_err(|error| Error::limit("lz4").with_source(error))?;
        out.clear();
        reserve_total(out, len)?;
        out.extend_from_slice(self.room.get(..len).unwrap_or_default());
        Ok(())
    }
}

pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    match payload.first_chunk::<PREFIX_LEN>() {
        Some(prefix) => Ok(u64::from(u32::from_le_bytes(*prefix))),
        None => Err(Error::corrupt(format!(
            "lz4: payload of {} bytes, without its size",
            payload.len()
        ))),
    }
}

/// Replaces `out` by all `len` bytes of `payload`.
pub(crate) fn decode(payload: &[u8], out: &mut Vec<u8>, len: usize) -> Result<()> {
    let block = payload.get(PREFIX_LEN..).unwrap_or_default();
    let expected = checked_len(block.len(), len)?;
    zeroed(out, len)?;
    let found =
        decompress_to_buffer(block, Some(expected), out).map_err(|_| Error::corrupt(MALFORMED))?;
    check_found(found, len)
}

/// Decompresses a payload of `payload_len` bytes, which `read` gives from start to end; `check` gets the uncompressed size
/// before anything is allocated.
///
/// The block is read to the end of the memory that it is decoded to, so that the system need not make pages for a buffer.
pub(crate) fn decompress_from(
    payload_len: usize,
    read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    check: impl FnOnce(u64) -> Result<usize>,
) -> Result<Decompressed> {
    let mut prefix = [0; PREFIX_LEN];
    let prefix = prefix
        .get_mut(..payload_len.min(PREFIX_LEN))
        .unwrap_or_default();
    read(prefix)?;
    let len = check(uncompressed_len(prefix)?)?;
    let block_len = payload_len - PREFIX_LEN;
    checked_len(block_len, len)?;
    // What is longer than it was does not fit behind itself.
    if block_len >= len {
        let mut payload = Vec::new();
        zeroed(&mut payload, payload_len)?;
        let (start, block) = payload.split_at_mut(PREFIX_LEN);
        start.copy_from_slice(prefix);
        read(block)?;
        let mut out = Vec::new();
        decode(&payload, &mut out, len)?;
        return Ok(out.into());
    }
    let mut out = Decompressed::zeroed(len + in_place::margin(len))?;
    let start = out.len() - block_len;
    read(out.get_mut(start..).unwrap_or_default())?;
    let found = in_place::decode(&mut out, start, len).ok_or_else(|| Error::corrupt(MALFORMED))?;
    check_found(found, len)?;
    out.truncate(len);
    Ok(out)
}

/// What a block stands for, as the library counts it, if a block of this length can.
fn checked_len(block_len: usize, len: usize) -> Result<i32> {
    // The library takes the length of its input modulo 2^32.
    if i32::try_from(block_len).is_err() {
        return Err(Error::corrupt("lz4: block above 2 GiB"));
    }
    if len > block_len.saturating_mul(EXPANSION_MAX) {
        return Err(Error::corrupt(format!(
            "lz4: size of {len} bytes, which a block of {block_len} cannot have"
        )));
    }
    i32::try_from(len)
        .map_err(|_| Error::corrupt(format!("lz4: size of {len} bytes is above 2 GiB")))
}

fn check_found(found: usize, len: usize) -> Result<()> {
    if found != len {
        return Err(Error::corrupt(format!(
            "lz4: block of {found} bytes, expected {len}"
        )));
    }
    Ok(())
}
