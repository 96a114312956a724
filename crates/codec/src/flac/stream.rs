//! The parts of a FLAC stream that are not sound: its start and the header of each frame.

use durin_format::{Error, Result};

use super::bits::{BitReader, BitWriter};
use super::crc::crc8;

const MARKER: &[u8; 4] = b"fLaC";
const BLOCK_HEADER_LEN: usize = 4;
const STREAM_INFO_LEN: usize = 34;
const LAST_BLOCK: u8 = 0x80;

/// Where sound begins in a stream without further metadata.
pub(super) const START_LEN: usize = MARKER.len() + BLOCK_HEADER_LEN + STREAM_INFO_LEN;

/// What every DwarFS image says, whatever the source's rate.
const SAMPLE_RATE: u64 = 48_000;

/// The fourteen bits that start a frame, and a reserved one.
const SYNC: u64 = 0x3FFE << 1;

/// What STREAMINFO tells of the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamInfo {
    pub(super) channel_count: usize,
    pub(super) bits: u32,
    /// Samples of one channel; 0 when unknown.
    pub(super) sample_count: u64,
}

/// What an encoder knows at the end.
pub(super) struct StreamStats {
    pub(super) block_len: u32,
    pub(super) frame_len_min: usize,
    pub(super) frame_len_max: usize,
}

/// Parses the start of a stream and returns where its first frame begins.
pub(super) fn parse_start(stream: &[u8]) -> Result<(StreamInfo, usize)> {
    let mut rest = stream
        .strip_prefix(MARKER)
        .ok_or_else(|| Error::corrupt("no FLAC stream"))?;
    let mut info = None;
    loop {
        let (header, after) = rest
            .split_first_chunk::<BLOCK_HEADER_LEN>()
            .ok_or_else(|| Error::corrupt("the stream ends within its metadata"))?;
        let [kind, a, b, c] = *header;
        let len = u32::from_le_bytes([c, b, a, 0]) as usize;
        let (body, after) = after
            .split_at_checked(len)
            .ok_or_else(|| Error::corrupt("the stream ends within its metadata"))?;
        // STREAMINFO is the first block and the only one that matters here.
        match info {
            None if kind & !LAST_BLOCK == 0 => info = Some(parse_stream_info(body)?),
            None => return Err(Error::corrupt("the stream does not start with STREAMINFO")),
            Some(_) => {}
        }
        rest = after;
        if let (Some(info), true) = (info, kind & LAST_BLOCK != 0) {
            return Ok((info, stream.len() - rest.len()));
        }
    }
}

fn parse_stream_info(body: &[u8]) -> Result<StreamInfo> {
    if body.len() != STREAM_INFO_LEN {
        return Err(Error::corrupt(format!(
            "STREAMINFO of {} bytes",
            body.len()
        )));
    }
    let mut bits = BitReader::new(body);
    // Block sizes, frame sizes and sample rate: nothing here depends on them.
    bits.read(32)?;
    bits.read(48)?;
    bits.read(20)?;
    Ok(StreamInfo {
        channel_count: bits.read_u32(3)? as usize + 1,
        bits: bits.read_u32(5)? + 1,
        sample_count: bits.read(36)?,
    })
}

/// Writes the start of a stream.
pub(super) fn write_start(info: &StreamInfo, stats: &StreamStats, out: &mut Vec<u8>) {
    out.extend_from_slice(MARKER);
    let mut bits = BitWriter::new(out);
    bits.write(u64::from(LAST_BLOCK), 8);
    bits.write(STREAM_INFO_LEN as u64, 24);
    bits.write(u64::from(stats.block_len), 16);
    bits.write(u64::from(stats.block_len), 16);
    for len in [stats.frame_len_min, stats.frame_len_max] {
        // 0 stands for unknown.
        bits.write(
            u64::try_from(len)
                .ok()
                .filter(|len| *len < 1 << 24)
                .unwrap_or(0),
            24,
        );
    }
    bits.write(SAMPLE_RATE, 20);
    bits.write(info.channel_count as u64 - 1, 3);
    bits.write(u64::from(info.bits) - 1, 5);
    bits.write(
        Some(info.sample_count)
            .filter(|count| *count < 1 << 36)
            .unwrap_or(0),
        36,
    );
    // No MD5: the sections of an image have better checksums.
    for _ in 0..4 {
        bits.write(0, 32);
    }
    bits.finish();
}

/// How the channels of a frame are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    /// Each as it is.
    Independent(usize),
    LeftSide,
    SideRight,
    MidSide,
}

impl Channels {
    pub(super) fn count(self) -> usize {
        match self {
            Self::Independent(count) => count,
            _ => 2,
        }
    }

    /// Returns whether the channel `index` is a difference, which takes one bit more.
    pub(super) fn is_side(self, index: usize) -> bool {
        match self {
            Self::Independent(_) => false,
            Self::LeftSide | Self::MidSide => index == 1,
            Self::SideRight => index == 0,
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        match code {
            0..=7 => usize::try_from(code + 1).ok().map(Self::Independent),
            8 => Some(Self::LeftSide),
            9 => Some(Self::SideRight),
            10 => Some(Self::MidSide),
            _ => None,
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::Independent(count) => count as u64 - 1,
            Self::LeftSide => 8,
            Self::SideRight => 9,
            Self::MidSide => 10,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Samples of one channel.
    pub(super) sample_count: usize,
    pub(super) channels: Channels,
    /// Bits of a sample; `None` to take them from STREAMINFO.
    pub(super) bits: Option<u32>,
}

/// Sample sizes that have a code, by code.
const BITS_BY_CODE: [Option<u32>; 8] = [
    None,
    Some(8),
    Some(12),
    None,
    Some(16),
    Some(20),
    Some(24),
    Some(32),
];

/// Parses the header of a frame at the start of `bytes`; the reader is left behind it.
pub(super) fn parse_frame_header(bits: &mut BitReader<'_>, bytes: &[u8]) -> Result<FrameHeader> {
    if bits.read(15)? != SYNC {
        return Err(Error::corrupt("no frame where one should be"));
    }
    // Whether frames or samples are numbered.
    bits.read(1)?;
    let (len_code, rate_code) = (bits.read_u32(4)?, bits.read(4)?);
    let (channels_code, bits_code) = (bits.read(4)?, bits.read_u32(3)?);
    let reserved = bits.read(1)?;
    skip_coded_number(bits)?;
    let sample_count = match len_code {
        0 => None,
        1 => Some(192),
        2..=5 => Some(576 << (len_code - 2)),
        6 => Some(bits.read_u32(8)? + 1),
        7 => Some(bits.read_u32(16)? + 1),
        _ => Some(256 << (len_code - 8)),
    };
    match rate_code {
        12 => bits.read(8)?,
        13 | 14 => bits.read(16)?,
        15 => return Err(Error::corrupt("frame with an invalid sample rate")),
        _ => 0,
    };
    let header_len = bits.byte_offset();
    if bits.read(8)? != u64::from(crc8(bytes.get(..header_len).unwrap_or_default())) {
        return Err(Error::corrupt("frame header with a wrong checksum"));
    }
    let sample_count =
        sample_count.ok_or_else(|| Error::corrupt("frame of a reserved block size"))?;
    let channels = Channels::from_code(channels_code)
        .ok_or_else(|| Error::corrupt("frame with reserved channels"))?;
    if bits_code == 3 || reserved != 0 {
        return Err(Error::corrupt("frame with reserved bits"));
    }
    Ok(FrameHeader {
        sample_count: sample_count as usize,
        channels,
        bits: BITS_BY_CODE.get(bits_code as usize).copied().flatten(),
    })
}

/// Writes the header of frame `number`.
pub(super) fn write_frame_header(header: &FrameHeader, number: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let bits_code = BITS_BY_CODE
        .iter()
        .position(|bits| bits.is_some() && *bits == header.bits)
        .unwrap_or(0);
    let mut bits = BitWriter::new(out);
    // One bit more: blocks of one size, so that frames are numbered.
    bits.write(SYNC << 1, 16);
    // The block size follows in 16 bits; the sample rate is that of STREAMINFO, whose code 10 is 48 kHz.
    bits.write(7, 4);
    bits.write(10, 4);
    bits.write(header.channels.code(), 4);
    bits.write(bits_code as u64, 3);
    bits.write(0, 1);
    write_coded_number(&mut bits, number);
    bits.write(header.sample_count as u64 - 1, 16);
    bits.finish();
    let crc = crc8(out.get(start..).unwrap_or_default());
    out.push(crc);
}

/// Passes over a number in the manner of UTF-8, extended to 36 bits.
fn skip_coded_number(bits: &mut BitReader<'_>) -> Result<()> {
    let first = bits.read_u32(8)?;
    let ones = (first << 24).leading_ones();
    let more = match ones {
        0 => 0,
        2..=7 => ones - 1,
        _ => return Err(Error::corrupt("frame with a malformed number")),
    };
    for _ in 0..more {
        if bits.read(2)? != 0b10 {
            return Err(Error::corrupt("frame with a malformed number"));
        }
        bits.read(6)?;
    }
    Ok(())
}

fn write_coded_number(bits: &mut BitWriter<'_>, number: u32) {
    if number < 0x80 {
        return bits.write(u64::from(number), 8);
    }
    // `more` further bytes of 6 bits each, and what the first byte has left: 6 - more.
    let mut more = 1;
    while u64::from(number) >> (6 * more + 6 - more) != 0 {
        more += 1;
    }
    let ones = (0xFF00_u64 >> (more + 1)) & 0xFF;
    bits.write(ones | u64::from(number) >> (6 * more), 8);
    for byte in (0..more).rev() {
        bits.write(0x80 | (u64::from(number) >> (6 * byte)) & 0x3F, 8);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_utf8() {
        for number in [
            'a',
            '\u{7F}',
            '\u{80}',
            '\u{7FF}',
            '\u{800}',
            '\u{FFFF}',
            '\u{10FFFF}',
        ] {
            let mut bytes = Vec::new();
            let mut bits = BitWriter::new(&mut bytes);
            write_coded_number(&mut bits, u32::from(number));
            bits.finish();
            assert_eq!(bytes, number.to_string().as_bytes());
        }
    }

    #[test]
    fn headers_survive() {
        for number in [0, 127, 128, 70_000, 1 << 26, u32::MAX >> 1] {
            for (bits, sample_count) in [(Some(24), 1), (None, 4096), (Some(8), 65536)] {
                let header = FrameHeader {
                    sample_count,
                    channels: Channels::MidSide,
                    bits,
                };
                let mut bytes = Vec::new();
                write_frame_header(&header, number, &mut bytes);
                let mut reader = BitReader::new(&bytes);
                assert_eq!(parse_frame_header(&mut reader, &bytes).unwrap(), header);
                assert_eq!(reader.byte_offset(), bytes.len());
            }
        }
    }
}
