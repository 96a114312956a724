//! FLAC: sampled sound.
//!
//! A payload is the uncompressed size, a [`Header`] that tells how samples lie in the bytes, and a native FLAC stream
//! of 1 to 8 channels of 8 to 32 bits. The stream is written and read by code of our own: no C library that is free of
//! a build system of its own covers all of these widths, and of the formats here it is the one with a small, stable
//! and public specification.
//!
//! - `samples`: bytes to samples and back
//! - `bits`, `crc`, `stream`: what decoder and encoder share of the format
//! - `decode`: frame by frame
//! - `encode`, `subframe`, `lpc`, `rice`: choosing and writing the shortest representation
//!
//! Source: the specification's section 3.6; RFC 9639 for the stream.

use std::fmt;

use durin_format::thrift::{Reader, Type, Writer};
use durin_format::{Error, Result};

use crate::layout::Layout;
use crate::options::Options;
use crate::size_prefix;

mod bits;
mod crc;
mod decode;
mod encode;
mod lpc;
mod rice;
mod samples;
mod stream;
mod subframe;

pub(crate) use decode::FlacDecoder;
pub(crate) use encode::FlacEncoder;
use samples::SampleLayout;

const LEVEL_DEFAULT: u32 = 5;

/// Estimates the memory of an encoder: the samples of a block as numbers of 32 bits, from one to four bytes each.
pub(crate) fn encoder_bytes(block_len: usize) -> u64 {
    4 * block_len as u64 + (2 << 20)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlacOptions {
    level: u32,
    exhaustive: bool,
}

impl FlacOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        Ok(Self {
            level: options.u32("level", 0..=8)?.unwrap_or(LEVEL_DEFAULT),
            exhaustive: options.flag("exhaustive")?,
        })
    }

    pub(crate) fn encoder(&self, metadata: Option<&str>) -> Result<FlacEncoder> {
        let layout = sample_layout(&Layout::parse("flac", metadata)?)?;
        Ok(FlacEncoder::new(layout, self.level, self.exhaustive))
    }
}

impl fmt::Display for FlacOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flac:level={}", self.level)?;
        if self.exhaustive {
            f.write_str(":exhaustive")?;
        }
        Ok(())
    }
}

fn sample_layout(metadata: &Layout) -> Result<SampleLayout> {
    let bytes = metadata.number("bytes_per_sample", 1..=4)?;
    let layout = SampleLayout {
        channel_count: metadata.number("number_of_channels", 1..=8)? as usize,
        bits: metadata.number("bits_per_sample", 8..=8 * bytes)?,
        bytes: bytes as usize,
        signed: metadata.is("signedness", "signed", "unsigned")?,
        big_endian: metadata.is("endianness", "big", "little")?,
        low_padding: metadata.is("padding", "lsb", "msb")?,
    };
    if layout.bits == 32 && !layout.signed {
        // Source: the specification's section 3.6: the reference reads these wrongly.
        return Err(metadata.not_met("unsigned samples of 32 bits are not read everywhere"));
    }
    Ok(layout)
}

/// Bits of the header's flags.
mod flag {
    /// Bytes of a sample, less 1.
    pub(super) const BYTES: u8 = 0x03;
    pub(super) const LOW_PADDING: u8 = 0x20;
    pub(super) const SIGNED: u8 = 0x40;
    pub(super) const BIG_ENDIAN: u8 = 0x80;
    pub(super) const UNKNOWN: u8 = 0x1C;
}

/// Parses the struct at the start of `bytes` and returns how many bytes it takes.
fn parse_header(bytes: &[u8]) -> Result<(SampleLayout, usize)> {
    let mut reader = Reader::new(bytes);
    let (mut channels, mut bits, mut flags) = (0_i16, 0_u8, 0_u8);
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::I16) => channels = reader.read_i16()?,
            (2, Type::Byte) => bits = reader.read_u8()?,
            (3, Type::Byte) => flags = reader.read_u8()?,
            (_, kind) => reader.skip(kind)?,
        }
    }
    let layout = SampleLayout {
        channel_count: usize::try_from(channels).unwrap_or(0),
        bits: u32::from(bits),
        bytes: usize::from(flags & flag::BYTES) + 1,
        signed: flags & flag::SIGNED != 0,
        big_endian: flags & flag::BIG_ENDIAN != 0,
        low_padding: flags & flag::LOW_PADDING != 0,
    };
    if flags & flag::UNKNOWN != 0 {
        return Err(Error::unsupported(format!("flags {flags:#04x}")));
    }
    if !(1..=8).contains(&layout.channel_count) {
        return Err(Error::corrupt(format!("{channels} channels")));
    }
    if !(8..=8 * (u32::from(flags & flag::BYTES) + 1)).contains(&layout.bits) {
        return Err(Error::corrupt(format!(
            "{bits} bits in a sample of {} bytes",
            layout.bytes
        )));
    }
    Ok((layout, reader.pos()))
}

fn encode_header(layout: &SampleLayout) -> Vec<u8> {
    let mut flags = u8::try_from(layout.bytes - 1).unwrap_or(flag::BYTES);
    for (on, bit) in [
        (layout.low_padding, flag::LOW_PADDING),
        (layout.signed, flag::SIGNED),
        (layout.big_endian, flag::BIG_ENDIAN),
    ] {
        if on {
            flags |= bit;
        }
    }
    let mut writer = Writer::new();
    let mut last_id = 0;
    writer.i16_field(
        &mut last_id,
        1,
        i16::try_from(layout.channel_count).unwrap_or(i16::MAX),
    );
    writer.field(&mut last_id, 2, Type::Byte);
    writer.u8(u8::try_from(layout.bits).unwrap_or(u8::MAX));
    writer.field(&mut last_id, 3, Type::Byte);
    writer.u8(flags);
    writer.stop();
    writer.into_bytes()
}

pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    let (len, _) = size_prefix::parse(payload).map_err(|error| error.context("flac"))?;
    Ok(len)
}
