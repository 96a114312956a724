//! From pixels to the bit stream.

use durin_format::{Error, Result};

use super::bits::BitWriter;
use super::{Header, PixelLayout, code};
use crate::encoder::Encoder;
use crate::size_prefix;

pub(crate) struct RiceppEncoder {
    header: Header,
    /// The folded differences of one component in one round; kept for its memory.
    folded: Vec<u16>,
}

impl RiceppEncoder {
    pub(super) fn new(header: Header) -> Self {
        Self {
            header,
            folded: Vec::new(),
        }
    }
}

impl Encoder for RiceppEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Header {
            block_size,
            component_count,
            pixels,
        } = self.header;
        let (words, _) = data.as_chunks::<2>();
        if !data.len().is_multiple_of(2 * component_count) {
            return Err(Error::invalid_input(format!(
                "ricepp: {} bytes are no whole pixels of {component_count} components",
                data.len()
            )));
        }
        out.clear();
        size_prefix::write(data.len() as u64, out);
        out.extend(self.header.encode());

        let mut bits = BitWriter::new(out);
        let mut last = [0; super::COMPONENTS_MAX];
        for (component, last) in last.iter_mut().enumerate().take(component_count) {
            // The first pixel itself, so that the first difference is 0.
            *last = words.get(component).map_or(0, |word| pixels.load(*word));
            bits.write(u64::from(*last), 16);
        }
        for round in words.chunks(block_size * component_count) {
            for (component, last) in last.iter_mut().enumerate().take(component_count) {
                let part = || {
                    round
                        .iter()
                        .copied()
                        .skip(component)
                        .step_by(component_count)
                };
                encode_part(&mut bits, part, last, pixels, &mut self.folded);
            }
        }
        bits.finish();
        Ok(())
    }
}

/// Encodes the words of one component in one round; `last` is the pixel before.
fn encode_part<Words: Iterator<Item = [u8; 2]>>(
    bits: &mut BitWriter<'_>,
    part: impl Fn() -> Words,
    last: &mut u16,
    pixels: PixelLayout,
    folded: &mut Vec<u16>,
) {
    folded.clear();
    let mut exact = true;
    for word in part() {
        let pixel = pixels.load(word);
        exact &= pixels.store(pixel) == word;
        folded.push(fold(pixel.wrapping_sub(*last)));
        *last = pixel;
    }
    match choose(folded).filter(|_| exact) {
        Some(Choice::Same) => bits.write(code::SAME, 4),
        Some(Choice::Rice { low_bits }) => {
            bits.write(u64::from(low_bits) + 1, 4);
            for &value in folded.iter() {
                bits.write_unary(u64::from(value >> low_bits));
                bits.write(u64::from(value) & ((1 << low_bits) - 1), low_bits);
            }
        }
        None => {
            bits.write(code::RAW, 4);
            for word in part() {
                bits.write(u64::from(u16::from_le_bytes(word)), 16);
            }
        }
    }
}

enum Choice {
    Same,
    Rice { low_bits: u32 },
}

/// Returns the shortest code, `None` where none is shorter than the words themselves.
fn choose(folded: &[u16]) -> Option<Choice> {
    if folded.iter().all(|value| *value == 0) {
        return Some(Choice::Same);
    }
    let low_bits_max = u32::try_from(code::RICE_MAX - 1).unwrap_or(0);
    let count = folded.len() as u64;
    let cost = |low_bits: u32| {
        let ones: u64 = folded
            .iter()
            .map(|value| u64::from(value >> low_bits))
            .sum();
        count * (u64::from(low_bits) + 1) + ones
    };
    // Around the logarithm of the mean; the cost has one minimum.
    let sum: u64 = folded.iter().map(|value| u64::from(*value)).sum();
    let guess = (sum / count).checked_ilog2().unwrap_or(0);
    let candidates = guess.saturating_sub(1)..=(guess + 1).min(low_bits_max);
    let (cost, low_bits) = candidates.map(|k| (cost(k), k)).min()?;
    (cost < 16 * count).then_some(Choice::Rice { low_bits })
}

/// Turns 0, -1, 1, -2, ... (modulo 2^16) into 0, 1, 2, 3, ...
fn fold(difference: u16) -> u16 {
    let signed = difference.cast_signed();
    ((signed << 1) ^ (signed >> 15)).cast_unsigned()
}
