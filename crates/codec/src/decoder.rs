//! Decompressing a payload, at once or as far as somebody wants it.

use durin_format::section::CompressionType;
use durin_format::{Error, Result};

use crate::brotli::BrotliDecoder;
use crate::decompressed::Decompressed;
use crate::flac::FlacDecoder;
use crate::lzma::LzmaDecoder;
use crate::ricepp::RiceppDecoder;
use crate::zstd::ZstdDecoder;
use crate::{brotli, flac, lz4, lzma, null, ricepp, zstd};

/// Decompresses one payload, continuing where it stopped.
///
/// Payload and output stay with the caller; a decoder only keeps what lies between two calls.
/// After an error it gives nothing but that error's kind again.
pub struct Decoder {
    compression: CompressionType,
    payload_len: usize,
    uncompressed_len: usize,
    state: State,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Going,
    Finished,
    Failed,
}

enum State {
    Null,
    Lzma(LzmaDecoder),
    Zstd(ZstdDecoder),
    Lz4,
    Brotli(BrotliDecoder),
    Flac(FlacDecoder),
    Ricepp(RiceppDecoder),
}

impl Decoder {
    /// Prepares to decompress `payload`, whose uncompressed size must be known from it and at most `output_max` bytes.
    ///
    /// # Errors
    /// `Corrupt` when `payload` is malformed as far as that shows without decompressing it, or too large;
    /// `Unsupported` for an algorithm that this release does not know; `Limit` when memory does not suffice.
    pub fn new(compression: CompressionType, payload: &[u8], output_max: u64) -> Result<Self> {
        let len = uncompressed_len(compression, payload, output_max)?;
        let uncompressed_len = in_memory(len)?;
        let state = match compression {
            CompressionType::None => State::Null,
            CompressionType::Lzma => State::Lzma(LzmaDecoder::new()?),
            CompressionType::Zstd => State::Zstd(ZstdDecoder::new()?),
            CompressionType::Lz4 | CompressionType::Lz4hc => State::Lz4,
            CompressionType::Brotli => State::Brotli(BrotliDecoder::new(payload)?),
            CompressionType::Flac => State::Flac(FlacDecoder::new(payload)?),
            CompressionType::Ricepp => State::Ricepp(RiceppDecoder::new(payload)?),
            CompressionType::Unknown(code) => return Err(unknown(code)),
        };
        Ok(Self {
            compression,
            payload_len: payload.len(),
            uncompressed_len,
            state,
            progress: Progress::Going,
        })
    }

    /// Returns the size of the whole output in bytes.
    #[must_use]
    pub fn uncompressed_len(&self) -> u64 {
        self.uncompressed_len as u64
    }

    /// Tells that the buffer that [`Self::decode_to`] is going to get has all its pages, because it served before.
    pub fn note_used_buffer(&mut self) {
        if let State::Zstd(decoder) = &mut self.state {
            decoder.note_used_buffer();
        }
    }

    /// Returns whether [`Self::decode_to`] saves work when less than everything is wanted.
    #[must_use]
    pub fn is_incremental(&self) -> bool {
        !matches!(self.state, State::Lz4 | State::Ricepp(_))
    }

    /// Estimates the memory that this decoder keeps beside payload and output, in bytes.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        let window = self.uncompressed_len as u64;
        match &self.state {
            State::Null | State::Lz4 | State::Ricepp(_) => 0,
            // Their windows are buffers of their own that fill as the output does.
            State::Lzma(_) => window + (1 << 16),
            State::Brotli(_) => window.next_power_of_two() + (1 << 16),
            State::Zstd(decoder) => decoder.state_bytes(),
            State::Flac(decoder) => decoder.state_bytes(),
        }
    }

    /// Appends to `out` until it has at least `want` bytes, or all of them where there are fewer.
    ///
    /// `payload` must be the bytes that [`Self::new`] got and `out` what earlier calls left, empty at first.
    /// The call that reaches the end also checks that the payload ends there.
    ///
    /// # Errors
    /// `Corrupt` when the payload is malformed, `Limit` when memory does not suffice.
    ///
    /// # Panics
    /// When `payload` has another length than the one that [`Self::new`] got.
    pub fn decode_to(&mut self, payload: &[u8], out: &mut Vec<u8>, want: usize) -> Result<()> {
        assert_eq!(payload.len(), self.payload_len, "another payload was given");
        let len = self.uncompressed_len;
        let want = want.min(len);
        match self.progress {
            Progress::Finished => return Ok(()),
            Progress::Failed => {
                return Err(Error::corrupt(format!(
                    "{}: malformed payload",
                    self.compression.name()
                )));
            }
            // All of nothing is still to be checked.
            Progress::Going if out.len() >= want && want < len => return Ok(()),
            Progress::Going => {}
        }
        let result = self.advance(payload, out, want);
        self.progress = match &result {
            Err(_) => Progress::Failed,
            Ok(()) if out.len() == len => Progress::Finished,
            Ok(()) => Progress::Going,
        };
        debug_assert!(result.is_err() || (want..=len).contains(&out.len()));
        result
    }

    fn advance(&mut self, payload: &[u8], out: &mut Vec<u8>, want: usize) -> Result<()> {
        let len = self.uncompressed_len;
        match &mut self.state {
            State::Null => {
                crate::output::reserve_total(out, len)?;
                null::decode_to(payload, out, want);
                Ok(())
            }
            State::Lzma(decoder) => decoder.decode_to(payload, out, want, len),
            State::Zstd(decoder) => decoder.decode_to(payload, out, want, len),
            State::Lz4 => lz4::decode(payload, out, len),
            State::Brotli(decoder) => decoder.decode_to(payload, out, want, len),
            State::Flac(decoder) => decoder.decode_to(payload, out, want, len),
            State::Ricepp(decoder) => decoder.decode(payload, out, len),
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("compression", &self.compression)
            .field("uncompressed_len", &self.uncompressed_len)
            .finish_non_exhaustive()
    }
}

/// Decompresses all of `payload`, which must come to at most `output_max` bytes.
///
/// # Errors
/// Those of [`Decoder::new`] and [`Decoder::decode_to`].
pub fn decompress(
    compression: CompressionType,
    payload: &[u8],
    output_max: u64,
) -> Result<Vec<u8>> {
    let mut decoder = Decoder::new(compression, payload, output_max)?;
    let mut out = Vec::new();
    decoder.decode_to(payload, &mut out, usize::MAX)?;
    Ok(out)
}

/// Returns the uncompressed size of `payload` in bytes without decompressing it.
///
/// # Errors
/// `Corrupt` when the size is missing, malformed or above `output_max`; `Unsupported` for an unknown algorithm.
pub fn uncompressed_len(
    compression: CompressionType,
    payload: &[u8],
    output_max: u64,
) -> Result<u64> {
    let len = match compression {
        CompressionType::None => payload.len() as u64,
        CompressionType::Lzma => lzma::uncompressed_len(payload)?,
        CompressionType::Zstd => zstd::uncompressed_len(payload)?,
        CompressionType::Lz4 | CompressionType::Lz4hc => lz4::uncompressed_len(payload)?,
        CompressionType::Brotli => brotli::uncompressed_len(payload)?,
        CompressionType::Flac => flac::uncompressed_len(payload)?,
        CompressionType::Ricepp => ricepp::uncompressed_len(payload)?,
        CompressionType::Unknown(code) => return Err(unknown(code)),
    };
    check_len(compression, len, output_max)?;
    Ok(len)
}

/// Decompresses all of a payload of `payload_len` bytes, which must come to at most `output_max` bytes. `read` fills what
/// it gets with the bytes that follow those it gave before.
///
/// Of zstd, no more than a piece of the payload is in memory at once, and it is decoded before the next is asked for;
/// of lz4, the payload is in the memory of the output.
///
/// # Errors
/// Those of [`decompress`] and of `read`.
pub fn decompress_from(
    compression: CompressionType,
    payload_len: usize,
    output_max: u64,
    read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<Decompressed> {
    let check = |len| check_len(compression, len, output_max).and_then(|()| in_memory(len));
    match compression {
        CompressionType::Zstd => return zstd::decompress_from(payload_len, read, check),
        CompressionType::Lz4 | CompressionType::Lz4hc => {
            return lz4::decompress_from(payload_len, read, check);
        }
        _ => {}
    }
    let mut payload = Decompressed::zeroed(payload_len)?;
    read(&mut payload)?;
    if compression == CompressionType::None {
        check_len(compression, payload_len as u64, output_max)?;
        return Ok(payload);
    }
    decompress(compression, &payload, output_max).map(Decompressed::from)
}

fn check_len(compression: CompressionType, len: u64, output_max: u64) -> Result<()> {
    if len > output_max {
        return Err(Error::corrupt(format!(
            "{}: uncompressed size {len} is above the {output_max} bytes allowed here",
            compression.name()
        )));
    }
    Ok(())
}

fn in_memory(len: u64) -> Result<usize> {
    usize::try_from(len)
        .map_err(|_| Error::limit(format!("{len} bytes do not fit the address space")))
}

fn unknown(code: u16) -> Error {
    Error::unsupported(format!("compression type {code}"))
}
