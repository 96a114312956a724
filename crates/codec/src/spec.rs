//! What a user asks for: an algorithm with its options.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use durin_format::section::CompressionType;
use durin_format::{Error, Result};
use durin_lzma2::Crew;

use crate::brotli::BrotliOptions;
use crate::encoder::Encoder;
use crate::flac::FlacOptions;
use crate::lz4::{Lz4Encoder, Lz4hcOptions};
use crate::lzma::LzmaOptions;
use crate::null::NullEncoder;
use crate::options::Options;
use crate::ricepp::RiceppOptions;
use crate::zstd::ZstdOptions;
use crate::{flac, lz4, ricepp};

/// A compression algorithm with all its options, each in its range.
///
/// Its text form is `name:key=value:flag`; [`Display`](fmt::Display) gives the canonical one, which parses to an equal
/// value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec(Algorithm);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Algorithm {
    Null,
    Lz4,
    Lz4hc(Lz4hcOptions),
    Zstd(ZstdOptions),
    Lzma(LzmaOptions),
    Brotli(BrotliOptions),
    Flac(FlacOptions),
    Ricepp(RiceppOptions),
}

impl Spec {
    /// Stores everything as it is.
    pub const NULL: Self = Self(Algorithm::Null);

    /// Parses `name:key=value:flag`.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown algorithm or key (naming the known ones), a key given twice, and a value out of
    /// its range (naming the range).
    pub fn parse(text: &str) -> Result<Self> {
        let mut options = Options::parse(text)?;
        let options = &mut options;
        Ok(Self(match options.name() {
            "null" => Algorithm::Null,
            "lz4" => Algorithm::Lz4,
            "lz4hc" => Algorithm::Lz4hc(Lz4hcOptions::parse(options)?),
            "zstd" => Algorithm::Zstd(ZstdOptions::parse(options)?),
            "lzma" => Algorithm::Lzma(LzmaOptions::parse(options)?),
            "brotli" => Algorithm::Brotli(BrotliOptions::parse(options)?),
            "flac" => Algorithm::Flac(FlacOptions::parse(options)?),
            "ricepp" => Algorithm::Ricepp(RiceppOptions::parse(options)?),
            other => {
                return Err(Error::invalid_input(format!(
                    "unknown compression algorithm \"{other}\""
                )));
            }
        }))
    }

    /// Returns the type that a section compressed so carries.
    ///
    /// `lz4hc` makes what any LZ4 decoder reads and is marked as LZ4.
    #[must_use]
    pub fn compression_type(&self) -> CompressionType {
        match self.0 {
            Algorithm::Null => CompressionType::None,
            Algorithm::Lz4 | Algorithm::Lz4hc(_) => CompressionType::Lz4,
            Algorithm::Zstd(_) => CompressionType::Zstd,
            Algorithm::Lzma(_) => CompressionType::Lzma,
            Algorithm::Brotli(_) => CompressionType::Brotli,
            Algorithm::Flac(_) => CompressionType::Flac,
            Algorithm::Ricepp(_) => CompressionType::Ricepp,
        }
    }

    /// Returns whether everything is stored as it is.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0 == Algorithm::Null
    }

    /// Returns whether repetitions are found however far apart in a block they are; LZ4 looks 64 KiB back.
    #[must_use]
    pub fn sees_whole_blocks(&self) -> bool {
        matches!(
            self.0,
            Algorithm::Zstd(_) | Algorithm::Lzma(_) | Algorithm::Brotli(_)
        )
    }

    /// Returns whether [`Self::encoder`] needs to be told the layout of the data.
    #[must_use]
    pub fn requires_metadata(&self) -> bool {
        matches!(self.0, Algorithm::Flac(_) | Algorithm::Ricepp(_))
    }

    /// Makes an encoder for one thread.
    ///
    /// `block_len` is the most bytes it will be given at once; `metadata` is the JSON object that describes the
    /// category of the data.
    ///
    /// # Errors
    /// `InvalidInput` when the algorithm needs metadata that is missing or that it cannot handle, or when options do
    /// not go together; `Limit` when memory does not suffice.
    pub fn encoder(&self, block_len: usize, metadata: Option<&str>) -> Result<Box<dyn Encoder>> {
        self.encoder_for(&Arc::new(Crew::alone()), block_len, metadata)
    }

    /// Makes an encoder, as [`encoder`](Self::encoder) does, for a thread that is a member of `crew`.
    ///
    /// # Errors
    /// As there.
    pub fn encoder_for(
        &self,
        crew: &Arc<Crew>,
        block_len: usize,
        metadata: Option<&str>,
    ) -> Result<Box<dyn Encoder>> {
        Ok(match &self.0 {
            Algorithm::Null => Box::new(NullEncoder),
            Algorithm::Lz4 => Box::new(Lz4Encoder::fast()),
            Algorithm::Lz4hc(options) => Box::new(options.encoder()),
            Algorithm::Zstd(options) => Box::new(options.encoder(block_len)?),
            Algorithm::Lzma(options) => Box::new(options.encoder(block_len, crew)?),
            Algorithm::Brotli(options) => Box::new(options.encoder()),
            Algorithm::Flac(options) => Box::new(options.encoder(metadata)?),
            Algorithm::Ricepp(options) => Box::new(options.encoder(metadata)?),
        })
    }

    /// Estimates the memory that one encoder uses, in bytes, its output included, for blocks of up to `block_len` bytes.
    #[must_use]
    pub fn encoder_bytes(&self, block_len: usize) -> u64 {
        let EncoderMemory { own, shared, .. } = self.encoder_memory(block_len);
        own.saturating_add(shared)
    }

    /// As [`encoder_bytes`](Self::encoder_bytes), but tells apart what encoders of one crew share.
    #[must_use]
    pub fn encoder_memory(&self, block_len: usize) -> EncoderMemory {
        let output = block_len as u64 + block_len as u64 / 128 + 1024;
        let memory = match &self.0 {
            Algorithm::Null => EncoderMemory::default(),
            Algorithm::Lz4 | Algorithm::Lz4hc(_) => EncoderMemory::own(lz4::ENCODER_BYTES),
            Algorithm::Zstd(options) => EncoderMemory::own(options.encoder_bytes(block_len)),
            Algorithm::Lzma(options) => options.encoder_memory(block_len),
            Algorithm::Brotli(options) => EncoderMemory::own(options.encoder_bytes(block_len)),
            Algorithm::Flac(_) => EncoderMemory::own(flac::encoder_bytes(block_len)),
            Algorithm::Ricepp(_) => EncoderMemory::own(ricepp::ENCODER_BYTES),
        };
        EncoderMemory {
            own: output.saturating_add(memory.own),
            ..memory
        }
    }
}

/// The memory that encoders of one crew take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderMemory {
    /// Each of them.
    pub own: u64,
    /// What is there once for [`THREADS_PER_TABLE`](crate::THREADS_PER_TABLE) threads.
    pub shared: u64,
    /// A thread that helps and has no encoder; 0 if none can help.
    pub helper: u64,
}

impl EncoderMemory {
    /// That of encoders which share nothing.
    pub(crate) fn own(own: u64) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// Enough for either of two kinds of encoders.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            own: self.own.max(other.own),
            shared: self.shared.max(other.shared),
            helper: self.helper.max(other.helper),
        }
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Algorithm::Null => f.write_str("null"),
            Algorithm::Lz4 => f.write_str("lz4"),
            Algorithm::Lz4hc(options) => options.fmt(f),
            Algorithm::Zstd(options) => options.fmt(f),
            Algorithm::Lzma(options) => options.fmt(f),
            Algorithm::Brotli(options) => options.fmt(f),
            Algorithm::Flac(options) => options.fmt(f),
            Algorithm::Ricepp(options) => options.fmt(f),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::help::algorithms;
    use durin_format::ErrorKind;

    #[test]
    fn shows_the_canonical_text() {
        for (text, canonical) in [
            ("null", "null"),
            ("lz4", "lz4"),
            ("lz4hc", "lz4hc:level=9"),
            ("zstd", "zstd:level=22"),
            ("zstd:long:level=-5", "zstd:level=-5:long"),
            (
                "zstd:strat=3:wlog=20:level=1",
                "zstd:level=1:wlog=20:strat=3",
            ),
            ("lzma", "lzma:level=9"),
            (
                "lzma:binary=x86:extreme:level=6:depth=7:nice=32:mf=bt3:mode=fast:dict_size=20",
                "lzma:level=6:dict_size=20:extreme:binary=x86:mode=fast:mf=bt3:nice=32:depth=7",
            ),
            (
                "lzma:tune:pb=0:lp=1:lc=2:level=3",
                "lzma:level=3:lc=2:lp=1:pb=0:tune",
            ),
            ("zstd:tune:tlen=64", "zstd:level=22:tlen=64:tune"),
            ("brotli:lgwin=30", "brotli:quality=11:lgwin=30"),
            ("flac:exhaustive", "flac:level=5:exhaustive"),
            ("ricepp", "ricepp:block_size=128"),
        ] {
            let spec = Spec::parse(text).unwrap();
            assert_eq!(spec.to_string(), canonical);
            assert_eq!(Spec::parse(canonical).unwrap(), spec);
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            (
                "",
                "unknown compression algorithm \"\" (known: null, lz4, lz4hc, zstd, lzma, brotli, flac, ricepp)",
            ),
            ("lz4:level=1", "lz4: unknown option \"level\" (it has none)"),
            ("lz4hc:level=13", "lz4hc: level=13 is not from 0 to 12"),
            (
                "zstd:level=x",
                "zstd: level=x is not a number from -131072 to 22",
            ),
            ("zstd:level", "zstd: level needs a value, as in level=..."),
            ("zstd:long=1", "zstd: long takes no value"),
            ("zstd:level=1:level=2", "zstd: level is given twice"),
            (
                "brotli:level=1",
                "brotli: unknown option \"level\" (known: quality, lgwin)",
            ),
            (
                "lzma:mf=bt5",
                "lzma: mf=bt5 is not one of hc3, hc4, bt2, bt3, bt4",
            ),
            (
                "ricepp:block_size=15",
                "ricepp: block_size=15 is not from 16 to 512",
            ),
            ("ricepp:", "ricepp: unknown option \"\" (known: block_size)"),
        ] {
            let error = Spec::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn ranges_are_those_of_the_help() {
        for algorithm in algorithms() {
            for (key, text) in algorithm.options {
                let Some((min, rest)) = text.split_once("..") else {
                    continue;
                };
                let max: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let (min, max): (i64, i64) = (min.parse().unwrap(), max.parse().unwrap());
                let accepts =
                    |value: i64| Spec::parse(&format!("{}:{key}={value}", algorithm.name)).is_ok();
                assert!(accepts(min) && accepts(max), "{} {key}", algorithm.name);
                assert!(
                    !accepts(min - 1) && !accepts(max + 1),
                    "{} {key}",
                    algorithm.name
                );
            }
        }
    }

    #[test]
    fn estimates_memory_by_block() {
        for (text, block_len, least, most) in [
            ("null", 1 << 20, 1 << 20, 2 << 20),
            ("zstd:level=22", 16 << 20, 32 << 20, 512 << 20),
            ("zstd:level=1", 16 << 20, 16 << 20, 32 << 20),
            ("lzma:level=9", 16 << 20, 100 << 20, 256 << 20),
            ("lzma:level=9", 64 << 20, 700 << 20, 900 << 20),
            ("lzma:level=9:tune", 16 << 20, 150 << 20, 300 << 20),
            ("zstd:level=22:tune", 16 << 20, 100 << 20, 512 << 20),
            ("brotli", 16 << 20, 40 << 20, 256 << 20),
            ("lz4hc", 1 << 20, 1 << 20, 2 << 20),
        ] {
            let bytes = Spec::parse(text).unwrap().encoder_bytes(block_len);
            assert!((least..=most).contains(&bytes), "{text}: {bytes}");
        }
    }
}
