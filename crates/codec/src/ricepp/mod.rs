//! RICEPP: Rice codes of differences between the 16-bit pixels of raw camera and telescope images.
//!
//! A payload is the uncompressed size, a [`Header`] and a bit stream: the first pixel of each component, then rounds of
//! up to `block_size` pixels a component, each component's part with its own code.
//!
//! Source: the specification's section 3.7.

use std::fmt;

use durin_format::thrift::{Reader, Type, Writer};
use durin_format::{Error, Result};

use crate::layout::Layout;
use crate::options::Options;
use crate::size_prefix;

mod bits;
mod decode;
mod encode;

pub(crate) use decode::RiceppDecoder;
pub(crate) use encode::RiceppEncoder;

/// The differences of a round.
pub(crate) const ENCODER_BYTES: u64 = 1 << 13;

const VERSION: i16 = 1;
const BLOCK_SIZE_MAX: usize = 512;
const COMPONENTS_MAX: usize = 2;
const UNUSED_LSBS_MAX: u32 = 8;

/// How a round codes the pixels of a component, four bits.
mod code {
    /// All pixels are as the one before.
    pub(super) const SAME: u64 = 0;
    /// The largest that means differences, with one low bit less than its value.
    pub(super) const RICE_MAX: u64 = 14;
    /// The words as they are.
    pub(super) const RAW: u64 = 15;
}

/// What stands between the size and the bit stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Pixels of a round and component.
    block_size: usize,
    component_count: usize,
    pixels: PixelLayout,
}

/// How a pixel lies in its two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PixelLayout {
    unused_lsb_count: u32,
    big_endian: bool,
}

impl PixelLayout {
    fn load(self, bytes: [u8; 2]) -> u16 {
        self.ordered(u16::from_le_bytes(bytes)) >> self.unused_lsb_count
    }

    fn store(self, pixel: u16) -> [u8; 2] {
        self.ordered(pixel << self.unused_lsb_count).to_le_bytes()
    }

    fn ordered(self, word: u16) -> u16 {
        if self.big_endian {
            word.swap_bytes()
        } else {
            word
        }
    }
}

impl Header {
    /// Parses the struct at the start of `bytes` and returns how many bytes it takes.
    fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let (mut block_size, mut components, mut bytes_per_sample) = (0_i32, 0_i16, 0_u8);
        let (mut unused_lsb_count, mut big_endian, mut version) = (0_u8, false, 0_i16);
        let mut last_id = 0;
        while let Some(field) = reader.next_field(&mut last_id)? {
            match field {
                (1, Type::I32) => block_size = reader.read_i32()?,
                (2, Type::I16) => components = reader.read_i16()?,
                (3, Type::Byte) => bytes_per_sample = reader.read_u8()?,
                (4, Type::Byte) => unused_lsb_count = reader.read_u8()?,
                (5, kind @ (Type::True | Type::False)) => big_endian = kind == Type::True,
                (6, Type::I16) => version = reader.read_i16()?,
                (_, kind) => reader.skip(kind)?,
            }
        }
        if version > VERSION {
            return Err(Error::unsupported(format!("ricepp version {version}")));
        }
        check(version == VERSION, "ricepp_version", &version)?;
        check(bytes_per_sample == 2, "bytes_per_sample", &bytes_per_sample)?;
        let unused = u32::from(unused_lsb_count);
        check(unused <= UNUSED_LSBS_MAX, "unused_lsb_count", &unused)?;
        let in_range =
            |value: i32, max| usize::try_from(value).is_ok_and(|v| (1..=max).contains(&v));
        check(
            in_range(block_size, BLOCK_SIZE_MAX),
            "block_size",
            &block_size,
        )?;
        let component_count = i32::from(components);
        check(
            in_range(component_count, COMPONENTS_MAX),
            "component_count",
            &component_count,
        )?;
        let header = Self {
            block_size: usize::try_from(block_size).unwrap_or(BLOCK_SIZE_MAX),
            component_count: usize::try_from(component_count).unwrap_or(COMPONENTS_MAX),
            pixels: PixelLayout {
                unused_lsb_count: unused,
                big_endian,
            },
        };
        Ok((header, reader.pos()))
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut last_id = 0;
        let small = |value: usize| i16::try_from(value).unwrap_or(i16::MAX);
        writer.i32_field(&mut last_id, 1, i32::from(small(self.block_size)));
        writer.i16_field(&mut last_id, 2, small(self.component_count));
        writer.field(&mut last_id, 3, Type::Byte);
        writer.u8(2);
        writer.field(&mut last_id, 4, Type::Byte);
        writer.u8(u8::try_from(self.pixels.unused_lsb_count).unwrap_or(u8::MAX));
        writer.bool_field(&mut last_id, 5, self.pixels.big_endian);
        writer.i16_field(&mut last_id, 6, VERSION);
        writer.stop();
        writer.into_bytes()
    }
}

fn check(right: bool, name: &str, value: &dyn fmt::Display) -> Result<()> {
    if right {
        Ok(())
    } else {
        Err(Error::corrupt(format!("ricepp: {name} is {value}")))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RiceppOptions {
    block_size: u32,
}

impl RiceppOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        Ok(Self {
            block_size: options.u32("block_size", 16..=512)?.unwrap_or(128),
        })
    }

    pub(crate) fn encoder(&self, metadata: Option<&str>) -> Result<RiceppEncoder> {
        let layout = Layout::parse("ricepp", metadata)?;
        layout.number("bytes_per_sample", 2..=2)?;
        Ok(RiceppEncoder::new(Header {
            block_size: self.block_size as usize,
            component_count: layout.number("component_count", 1..=2)? as usize,
            pixels: PixelLayout {
                unused_lsb_count: layout.number("unused_lsb_count", 0..=UNUSED_LSBS_MAX)?,
                big_endian: layout.is("endianness", "big", "little")?,
            },
        }))
    }
}

impl fmt::Display for RiceppOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ricepp:block_size={}", self.block_size)
    }
}

pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    let (len, _) = size_prefix::parse(payload).map_err(|error| error.context("ricepp"))?;
    if len % 2 != 0 {
        return Err(Error::corrupt(format!(
            "ricepp: {len} bytes are no pixels of two bytes"
        )));
    }
    Ok(len)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::encoder::Encoder;

    fn header(block_size: usize, component_count: usize, lsbs: u32, big_endian: bool) -> Header {
        Header {
            block_size,
            component_count,
            pixels: PixelLayout {
                unused_lsb_count: lsbs,
                big_endian,
            },
        }
    }

    fn round_trip(header: Header, data: &[u8]) -> usize {
        let mut payload = vec![1, 2, 3];
        RiceppEncoder::new(header)
            .encode(data, &mut payload)
            .unwrap();
        assert_eq!(uncompressed_len(&payload).unwrap(), data.len() as u64);
        let mut out = Vec::new();
        RiceppDecoder::new(&payload)
            .unwrap()
            .decode(&payload, &mut out, data.len())
            .unwrap();
        assert_eq!(out, data);
        payload.len()
    }

    /// A ramp with noise of `noise_bits`, and jumps every 999 pixels.
    fn pixels(count: u32, noise_bits: u32, layout: PixelLayout) -> Vec<u8> {
        let mut state = 1_u32;
        let mut pixel = |index: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = state >> (32 - noise_bits);
            let value = index / 7 + index / 999 * 20_000 + noise;
            layout.store(u16::try_from(value & 0xFFFF).unwrap() >> layout.unused_lsb_count)
        };
        (0..count).flat_map(&mut pixel).collect()
    }

    #[test]
    fn every_layout_survives() {
        for block_size in [16, 33, 128, 512] {
            for components in [1, 2] {
                for lsbs in [0, 1, 4, 8] {
                    for big_endian in [false, true] {
                        let header = header(block_size, components, lsbs, big_endian);
                        for noise_bits in [1, 4, 9, 16] {
                            for count in [0, 2, 1000, 4096] {
                                round_trip(header, &pixels(count, noise_bits, header.pixels));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn codes_are_as_short_as_the_noise() {
        let header = header(128, 1, 0, true);
        let len = round_trip(header, &pixels(100_000, 4, header.pixels));
        assert!(len < 100_000 * 6 / 8, "{len} bytes");
        assert!(round_trip(header, &[9; 200_000]) < 500);
    }

    #[test]
    fn pixels_with_used_low_bits_stay_as_they_are() {
        let data: Vec<u8> = (0..=255).cycle().take(5000).collect();
        round_trip(header(128, 2, 8, false), &data);
        round_trip(header(128, 1, 3, true), &data);
    }

    #[test]
    fn half_pixels_are_refused() {
        let mut encoder = RiceppEncoder::new(header(128, 2, 0, true));
        for len in [1, 2, 7] {
            assert!(encoder.encode(&vec![0; len], &mut Vec::new()).is_err());
        }
    }
}
