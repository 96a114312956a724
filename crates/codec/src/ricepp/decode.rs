//! From the bit stream to pixels.

use durin_format::{Error, Result};

use super::bits::BitReader;
use super::{COMPONENTS_MAX, Header, PixelLayout, code};
use crate::output::zeroed;
use crate::size_prefix;

pub(crate) struct RiceppDecoder {
    header: Header,
    /// Bytes of the payload before the bit stream.
    stream_offset: usize,
}

impl RiceppDecoder {
    pub(crate) fn new(payload: &[u8]) -> Result<Self> {
        let (_, prefix_len) = size_prefix::parse(payload)?;
        let rest = payload.get(prefix_len..).unwrap_or_default();
        let (header, header_len) = Header::parse(rest).map_err(|error| error.context("ricepp"))?;
        Ok(Self {
            header,
            stream_offset: prefix_len + header_len,
        })
    }

    /// Replaces `out` by all `len` bytes of `payload`, an even number.
    pub(crate) fn decode(&self, payload: &[u8], out: &mut Vec<u8>, len: usize) -> Result<()> {
        let Header {
            block_size,
            component_count,
            pixels,
        } = self.header;
        let stream = payload.get(self.stream_offset..).unwrap_or_default();
        // Four bits stand for at most the pixels of a round and component.
        if len / 2 > stream.len().saturating_mul(2 * block_size) {
            return Err(Error::corrupt(format!(
                "ricepp: size of {len} bytes, which a stream of {} cannot have",
                stream.len()
            )));
        }
        let mut bits = BitReader::new(stream);
        let mut last = [0_u16; COMPONENTS_MAX];
        for last in last.iter_mut().take(component_count) {
            *last = read_word(&mut bits)?;
        }
        zeroed(out, len)?;
        let (words, _) = out.as_chunks_mut();
        for round in words.chunks_mut(block_size * component_count) {
            for (component, last) in last.iter_mut().enumerate().take(component_count) {
                let slots = round.iter_mut().skip(component).step_by(component_count);
                decode_part(&mut bits, slots, last, pixels)?;
            }
        }
        bits.finish()
    }
}

/// Decodes the pixels of one component in one round; `last` is its pixel before.
fn decode_part<'a>(
    bits: &mut BitReader<'_>,
    slots: impl Iterator<Item = &'a mut [u8; 2]>,
    last: &mut u16,
    pixels: PixelLayout,
) -> Result<()> {
    match bits.read(4)? {
        code::SAME => {
            let word = pixels.store(*last);
            slots.for_each(|slot| *slot = word);
        }
        code::RAW => {
            for slot in slots {
                *slot = read_word(bits)?.to_le_bytes();
                *last = pixels.load(*slot);
            }
        }
        rice => {
            // 1 to 14, as four bits can have no other value.
            let low_bits = u32::try_from(rice - 1).unwrap_or(0);
            for slot in slots {
                let folded = (bits.read_unary()? << low_bits) | bits.read(low_bits)?;
                *last = last.wrapping_add(unfold(folded));
                *slot = pixels.store(*last);
            }
        }
    }
    Ok(())
}

fn read_word(bits: &mut BitReader<'_>) -> Result<u16> {
    Ok(low_half(bits.read(16)?))
}

/// Turns 0, 1, 2, 3, ... into 0, -1, 1, -2, ..., modulo 2^16.
fn unfold(folded: u64) -> u16 {
    let half = low_half(folded >> 1);
    if folded & 1 == 0 { half } else { !half }
}

fn low_half(value: u64) -> u16 {
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high])
}
