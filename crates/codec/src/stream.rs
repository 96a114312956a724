//! Compressed streams as the tools of every system know them: `gzip`, `bzip2`, `lz4`, `xz` and `zstd`.
//!
//! All these formats allow several streams one after the other, which stand for their contents one after the other. So
//! a [`StreamFormat`] gives an [`Encoder`] that makes one whole stream of each chunk, and any number of threads may work at
//! once; the bytes depend on the length of chunks alone.

use std::io::Write as _;
use std::ops::RangeInclusive;

use bzip2::{Action, Compress as Bzip2, Compression as Bzip2Level, Status as Bzip2Status};
use durin_format::{Error, Result};
use flate2::{Compress as Deflate, Compression, FlushCompress, Status};

use crate::encoder::Encoder;
use crate::spec::Spec;

/// Room that is added when a compressor has filled what there was.
const GROWTH: usize = 64 << 10;

/// A format of compressed streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// `gzip`; no time and no name are stored.
    Gzip,
    /// `bzip2`.
    Bzip2,
    /// Frames of `lz4`.
    Lz4,
    /// `xz`.
    Xz,
    /// Frames of `zstd`.
    Zstd,
}

impl StreamFormat {
    /// Levels that can be asked for.
    #[must_use]
    pub fn levels(self) -> RangeInclusive<u32> {
        match self {
            Self::Gzip | Self::Xz => 0..=9,
            Self::Bzip2 => 1..=9,
            Self::Lz4 => 0..=12,
            Self::Zstd => 1..=22,
        }
    }

    /// The level where none is asked for: that of the tool of the same name.
    #[must_use]
    pub fn default_level(self) -> u32 {
        match self {
            Self::Gzip | Self::Xz => 6,
            Self::Bzip2 => 9,
            Self::Lz4 => 1,
            Self::Zstd => 3,
        }
    }

    /// Bytes of a chunk at `level`: so many that what chunks do not know of each other costs a percent or so, and as few as
    /// that allows, since each thread needs the memory.
    #[must_use]
    pub fn chunk_len(self, level: u32) -> usize {
        match self {
            // Thirty times its window.
            Self::Gzip => 1 << 20,
            // The length of its own blocks, so that nothing changes at all.
            Self::Bzip2 => 100_000 * usize::try_from(level).unwrap_or(9) - 19,
            Self::Lz4 => 4 << 20,
            // Three times the window, as xz itself does with threads.
            Self::Xz => 3 << if level < 6 { 22 } else { 23 },
            Self::Zstd => match level {
                0..=9 => 16 << 20,
                _ => 64 << 20,
            },
        }
    }

    /// Makes an encoder that replaces `out` by a whole stream at each call, also for nothing at all.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such level, `Limit` if memory does not suffice.
    pub fn encoder(self, level: u32) -> Result<Box<dyn Encoder>> {
        if !self.levels().contains(&level) {
            let levels = self.levels();
            return Err(Error::invalid_input(format!(
                "compression level {level}: expected {} to {}",
                levels.start(),
                levels.end()
            )));
        }
        let chunk_len = self.chunk_len(level);
        Ok(match self {
            Self::Gzip => Box::new(Gzip {
                deflate: Deflater::new(level),
            }),
            Self::Bzip2 => Box::new(Bzip2Encoder { level }),
            Self::Lz4 => Box::new(Lz4Frame { level }),
            // The payloads of sections are just such streams.
            Self::Xz => Spec::parse(&format!("lzma:level={level}"))?.encoder(chunk_len, None)?,
            Self::Zstd => Spec::parse(&format!("zstd:level={level}"))?.encoder(chunk_len, None)?,
        })
    }
}

/// Makes raw Deflate, as in archives of type zip.
pub struct Deflater {
    state: Deflate,
}

impl Deflater {
    /// Makes a compressor of a level 0 to 9.
    #[must_use]
    pub fn new(level: u32) -> Self {
        Self {
            state: Deflate::new(Compression::new(level.min(9)), false),
        }
    }

    /// Compresses `data` without reference to what came before, and adds them to `out`. What is not the end is continued by
    /// the next call, of this compressor or another.
    ///
    /// # Errors
    /// `Limit` if memory does not suffice.
    pub fn compress(&mut self, data: &[u8], is_end: bool, out: &mut Vec<u8>) -> Result<()> {
        self.state.reset();
        let flush = if is_end {
            FlushCompress::Finish
        } else {
            FlushCompress::Sync
        };
        out.reserve(data.len() / 2 + GROWTH);
        loop {
            let done = usize::try_from(self.state.total_in()).unwrap_or(usize::MAX);
            let rest = data.get(done..).unwrap_or_default();
            let status = self
                .state
                .compress_vec(rest, out, flush)
                .map_err(|error| Error::limit("deflate").with_source(error))?;
            let has_room = out.len() < out.capacity();
            match status {
                Status::StreamEnd => return Ok(()),
                Status::Ok | Status::BufError if has_room && !is_end => return Ok(()),
                Status::Ok | Status::BufError => out.reserve(GROWTH),
            }
        }
    }
}

struct Gzip {
    deflate: Deflater,
}

impl Encoder for Gzip {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        // Magic, Deflate, no flags, no time, nothing about the level, Unix.
        out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        self.deflate.compress(data, true, out)?;
        out.extend_from_slice(&crc32fast::hash(data).to_le_bytes());
        // The format counts modulo 2^32, and chunks are shorter.
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        Ok(())
    }
}

struct Bzip2Encoder {
    level: u32,
}

impl Encoder for Bzip2Encoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(data.len() / 2 + GROWTH);
        let mut state = Bzip2::new(Bzip2Level::new(self.level), 0);
        loop {
            let done = usize::try_from(state.total_in()).unwrap_or(usize::MAX);
            let rest = data.get(done..).unwrap_or_default();
            let status = state
                .compress_vec(rest, out, Action::Finish)
                .map_err(|error| Error::limit("bzip2").with_source(error))?;
            if status == Bzip2Status::StreamEnd {
                return Ok(());
            }
            out.reserve(GROWTH);
        }
    }
}

struct Lz4Frame {
    level: u32,
}

impl Encoder for Lz4Frame {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let failed = |error: std::io::Error| Error::limit("lz4").with_source(error);
        out.clear();
        let mut encoder = ::lz4::EncoderBuilder::new()
            .level(self.level)
            .block_size(::lz4::BlockSize::Max4MB)
            .block_mode(::lz4::BlockMode::Independent)
            .build(std::mem::take(out))
            .map_err(failed)?;
        encoder.write_all(data).map_err(failed)?;
        let (made, result) = encoder.finish();
        result.map_err(failed)?;
        *out = made;
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Read as _;

    use super::*;

    const ALL: [StreamFormat; 5] = [
        StreamFormat::Gzip,
        StreamFormat::Bzip2,
        StreamFormat::Lz4,
        StreamFormat::Xz,
        StreamFormat::Zstd,
    ];

    fn decode(format: StreamFormat, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match format {
            StreamFormat::Gzip => flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out),
            StreamFormat::Bzip2 => bzip2::read::MultiBzDecoder::new(bytes).read_to_end(&mut out),
            StreamFormat::Lz4 => ::lz4::Decoder::new(bytes).unwrap().read_to_end(&mut out),
            StreamFormat::Xz => {
                liblzma::read::XzDecoder::new_multi_decoder(bytes).read_to_end(&mut out)
            }
            StreamFormat::Zstd => {
                out = vec![0; 4 << 20];
                let len = zstd_safe::decompress(&mut out[..], bytes).unwrap();
                out.truncate(len);
                Ok(0)
            }
        }
        .unwrap();
        out
    }

    #[test]
    fn streams_come_back_at_all_levels() {
        let mut data = b"some text that repeats ".repeat(20_000);
        let mut state = 1_u32;
        data.extend((0..100_000).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        }));
        for format in ALL {
            for level in [*format.levels().start(), format.default_level()] {
                let mut encoder = format.encoder(level).unwrap();
                let mut out = Vec::new();
                for content in [&data[..], b"", b"x"] {
                    encoder.encode(content, &mut out).unwrap();
                    assert!(decode(format, &out) == content, "{format:?} {level}");
                }
            }
            assert!(format.encoder(format.levels().end() + 1).is_err());
        }
    }

    #[test]
    fn deflate_in_pieces() {
        let data = b"some text that repeats ".repeat(20_000);
        let mut whole = Vec::new();
        for (number, piece) in data.chunks(100_000).enumerate() {
            let is_end = (number + 1) * 100_000 >= data.len();
            Deflater::new(6)
                .compress(piece, is_end, &mut whole)
                .unwrap();
        }
        let mut out = Vec::new();
        flate2::read::DeflateDecoder::new(&whole[..])
            .read_to_end(&mut out)
            .unwrap();
        assert!(out == data);
        let mut nothing = Vec::new();
        Deflater::new(6).compress(b"", true, &mut nothing).unwrap();
        assert_eq!(nothing, [3, 0]);
    }
}
