//! Zstandard: one frame that tells its content size.

use std::fmt;

use durin_format::{Error, Result};
use zstd_safe::zstd_sys::{self, ZSTD_cParameter as Parameter};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, WriteBuf};

use crate::decompressed::Decompressed;
use crate::encoder::Encoder;
use crate::options::Options;
use crate::output::reserve_total;
use crate::pages::prepare_pages;
use crate::sample::Probe;

mod context;

use context::Context;

const LEVEL_DEFAULT: i32 = 22;

/// The library's error codes are the numbers below zero, as a `size_t`.
const NO_MEMORY: zstd_safe::ErrorCode =
    (zstd_sys::ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize).wrapping_neg();

/// A parameter of the library that an option sets to a number.
struct RawKey {
    name: &'static str,
    min: u32,
    max: u32,
    parameter: Parameter,
}

/// Ranges as `ZSTD_cParam_getBounds` gives them for 64 bits.
const RAW_KEYS: [RawKey; 11] = [
    raw_key("wlog", 10, 31, Parameter::ZSTD_c_windowLog),
    raw_key("hlog", 6, 30, Parameter::ZSTD_c_hashLog),
    raw_key("clog", 6, 30, Parameter::ZSTD_c_chainLog),
    raw_key("slog", 1, 30, Parameter::ZSTD_c_searchLog),
    raw_key("mml", 3, 7, Parameter::ZSTD_c_minMatch),
    raw_key("tlen", 0, 1 << 17, Parameter::ZSTD_c_targetLength),
    raw_key("strat", 1, 9, Parameter::ZSTD_c_strategy),
    raw_key("lhlog", 6, 30, Parameter::ZSTD_c_ldmHashLog),
    raw_key("lmml", 4, 4096, Parameter::ZSTD_c_ldmMinMatch),
    raw_key("lblog", 1, 8, Parameter::ZSTD_c_ldmBucketSizeLog),
    raw_key("lhrlog", 0, 25, Parameter::ZSTD_c_ldmHashRateLog),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZstdOptions {
    level: i32,
    long: bool,
    /// Looks first whether a block is worth compressing.
    tune: bool,
    /// Same places as [`RAW_KEYS`].
    raw: [Option<u32>; RAW_KEYS.len()],
}

impl ZstdOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        let levels = i64::from(zstd_safe::min_c_level())..=i64::from(zstd_safe::max_c_level());
        let level = options.integer("level", levels)?;
        let mut raw = [None; RAW_KEYS.len()];
        for (value, key) in raw.iter_mut().zip(&RAW_KEYS) {
            *value = options.u32(key.name, key.min..=key.max)?;
        }
        Ok(Self {
            level: level
                .and_then(|level| i32::try_from(level).ok())
                .unwrap_or(LEVEL_DEFAULT),
            long: options.flag("long")?,
            tune: options.flag("tune")?,
            raw,
        })
    }

    pub(crate) fn encoder(&self, block_len: usize) -> Result<ZstdEncoder> {
        let mut context = Context::new()?;
        for (parameter, value) in self.parameters(block_len) {
            context.set(parameter, value)?;
        }
        Ok(ZstdEncoder {
            context,
            options: self.clone(),
            probe: if self.tune { Probe::new() } else { None },
        })
    }

    fn parameters(&self, block_len: usize) -> Vec<(Parameter, i32)> {
        let mut parameters = vec![(Parameter::ZSTD_c_compressionLevel, self.level)];
        if self.long {
            parameters.push((Parameter::ZSTD_c_enableLongDistanceMatching, 1));
            let window = long_window_log2(block_len).cast_signed();
            parameters.push((Parameter::ZSTD_c_windowLog, window));
        }
        // After those of `long`, so that an explicit `wlog` wins.
        for (key, value) in RAW_KEYS.iter().zip(self.raw) {
            parameters.extend(value.map(|value| (key.parameter, value.cast_signed())));
        }
        parameters
    }

    /// The table of `long` for data of this length where `lhrlog` says how many positions have an entry, as log2.
    ///
    /// Left to itself, the library subtracts without a look at which is larger, and makes the largest table there is.
    fn long_hash_log(&self, len: usize) -> Option<u32> {
        if !self.long || self.raw(Parameter::ZSTD_c_ldmHashLog).is_some() {
            return None;
        }
        let rate = self.raw(Parameter::ZSTD_c_ldmHashRateLog)?;
        let window = self.raw(Parameter::ZSTD_c_windowLog).unwrap_or(30);
        let window = window.min(long_window_log2(len));
        Some(window.saturating_sub(rate).clamp(6, 30))
    }

    /// What the user has said of a parameter.
    fn raw(&self, parameter: Parameter) -> Option<u32> {
        let mut given = RAW_KEYS.iter().zip(self.raw);
        given.find_map(|(key, value)| value.filter(|_| key.parameter == parameter))
    }

    #[expect(unsafe_code, reason = "the safe wrapper has no estimates")]
    pub(crate) fn encoder_bytes(&self, block_len: usize) -> u64 {
        // SAFETY: a function from integers to integers, defined for all of them.
        let mut parameters = unsafe { zstd_sys::ZSTD_getCParams(self.level, block_len as u64, 0) };
        for (parameter, value) in self.parameters(block_len) {
            let value = value.cast_unsigned();
            match parameter {
                Parameter::ZSTD_c_windowLog => parameters.windowLog = value,
                Parameter::ZSTD_c_hashLog => parameters.hashLog = value,
                Parameter::ZSTD_c_chainLog => parameters.chainLog = value,
                _ => {}
            }
        }
        // SAFETY: as above; the values are in the ranges of the library.
        let tables = unsafe { zstd_sys::ZSTD_estimateCCtxSize_usingCParams(parameters) };
        // The hash table of `long` has entries of eight bytes, by default one for each 128 bytes of window.
        let hash_log = self.raw(Parameter::ZSTD_c_ldmHashLog);
        let long = match hash_log.or_else(|| self.long_hash_log(block_len)) {
            _ if !self.long => 0,
            // Beside it there is a byte for each bucket.
            Some(hash_log) => (9 << hash_log) + (1 << 20),
            None => block_len / 16 + (1 << 20),
        };
        let tune = if self.tune {
            Probe::bytes(block_len)
        } else {
            0
        };
        tables.saturating_add(long) as u64 + tune
    }
}

impl fmt::Display for ZstdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zstd:level={}", self.level)?;
        if self.long {
            f.write_str(":long")?;
        }
        for (key, value) in RAW_KEYS.iter().zip(self.raw) {
            if let Some(value) = value {
                write!(f, ":{}={value}", key.name)?;
            }
        }
        if self.tune {
            f.write_str(":tune")?;
        }
        Ok(())
    }
}

const fn raw_key(name: &'static str, min: u32, max: u32, parameter: Parameter) -> RawKey {
    RawKey {
        name,
        min,
        max,
        parameter,
    }
}

/// The window that covers a whole block, as far as readers must support it (2^30).
fn long_window_log2(block_len: usize) -> u32 {
    block_len
        .checked_next_power_of_two()
        .map_or(30, usize::trailing_zeros)
        .clamp(10, 30)
}

pub(crate) struct ZstdEncoder {
    context: Context,
    options: ZstdOptions,
    probe: Option<Probe>,
}

impl Encoder for ZstdEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if let Some(hash_log) = self.options.long_hash_log(data.len()) {
            let hash_log = hash_log.cast_signed();
            self.context.set(Parameter::ZSTD_c_ldmHashLog, hash_log)?;
        }
        // In one call, so that the frame tells its content size and the window is no larger than the data.
        self.context.compress(data, out)
    }

    fn is_worth_it(&mut self, data: &[u8]) -> bool {
        self.probe
            .as_mut()
            .is_none_or(|probe| probe.is_worth_it(data))
    }
}

/// Returns the content size of the one frame that `payload` is.
pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    let len = content_len(payload)?;
    let frame_len = zstd_safe::find_frame_compressed_size(payload)
        .map_err(|code| failure(code, Error::corrupt))?;
    if frame_len != payload.len() {
        return Err(Error::corrupt(format!(
            "zstd: frame of {frame_len} bytes, but the payload has {}",
            payload.len()
        )));
    }
    Ok(len)
}

/// Returns the content size that the header of the frame at the beginning of `payload` tells.
fn content_len(payload: &[u8]) -> Result<u64> {
    if payload.first_chunk() != Some(&zstd_safe::MAGICNUMBER.to_le_bytes()) {
        return Err(Error::corrupt("zstd: no frame"));
    }
    zstd_safe::get_frame_content_size(payload)
        .map_err(|_| Error::corrupt("zstd: malformed frame header"))?
        .ok_or_else(|| Error::corrupt("zstd: frame without content size"))
}

/// Decodes a frame block by block into one buffer that serves as the window, too.
pub(crate) struct ZstdDecoder {
    context: DCtx<'static>,
    /// Bytes of the payload taken so far.
    consumed: usize,
    /// Bytes of the payload up to the end of the next frame header or block; 0 when the frame has ended.
    ///
    /// Given no more than that, the library stops after each block (of up to 128 KiB).
    next: usize,
    /// Address and capacity of the buffer, to which the context keeps pointers; `None` before the first block.
    buffer: Option<(usize, usize)>,
    /// Bytes of the buffer up to which pages have been made for it.
    prepared: usize,
}

/// What the library wants to see of a frame first (`ZSTD_FRAMEHEADERSIZE_PREFIX`).
const HEADER_PREFIX_LEN: usize = 5;

/// Bytes of a payload that [`decompress_from`] asks for at once: more than a block, and few enough that they are still in the
/// processor's second level cache when they are decoded.
const PIECE_LEN: usize = 256 << 10;

/// Lets every window pass: the output is the window, and its size has been checked.
const WINDOW_LOG_MAX: u32 = 31;

/// Bytes whose pages are made at a time: of the size that a payload claims, nothing more may come.
const STEP_LEN: usize = 256 << 10;

/// Has pages made for the next step of `out` towards `want` bytes, once it has come to where they were made up to.
fn prepare_step(out: &mut Vec<u8>, want: usize, prepared: &mut usize) {
    if out.len() >= *prepared {
        let step = want.saturating_sub(out.len()).min(STEP_LEN);
        *prepared = out.len() + step;
        prepare_pages(out, step);
    }
}

impl ZstdDecoder {
    pub(crate) fn new() -> Result<Self> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::limit("zstd: no memory"))?;
        for parameter in [
            DParameter::WindowLogMax(WINDOW_LOG_MAX),
            DParameter::StableOutBuffer(true),
        ] {
            context
                .set_parameter(parameter)
                .map_err(|code| failure(code, Error::unsupported))?;
        }
        Ok(Self {
            context,
            consumed: 0,
            next: HEADER_PREFIX_LEN,
            buffer: None,
            prepared: 0,
        })
    }

    /// Is told that all of the buffer has been written before.
    pub(crate) fn note_used_buffer(&mut self) {
        self.prepared = usize::MAX;
    }

    pub(crate) fn state_bytes(&self) -> u64 {
        self.context.sizeof() as u64
    }

    /// Appends to `out` until it holds at least `want` of all `len` bytes.
    pub(crate) fn decode_to(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        want: usize,
        len: usize,
    ) -> Result<()> {
        reserve_total(out, len)?;
        let buffer = (out.as_ptr().addr(), out.capacity());
        match self.buffer {
            None if want == len => return self.decode_at_once(payload, out, len),
            None => {}
            Some(before) if before == buffer => {}
            Some(_) => self.restart(out)?,
        }
        self.buffer = Some(buffer);
        while out.len() < want || (out.len() == len && self.next != 0) {
            prepare_step(out, want, &mut self.prepared);
            self.decode_block(payload, out)?;
        }
        // The caller's buffer may have more room than asked for.
        if out.len() > len {
            return Err(wrong_len());
        }
        Ok(())
    }

    fn decode_at_once(&mut self, payload: &[u8], out: &mut Vec<u8>, len: usize) -> Result<()> {
        self.context
            .decompress(out, payload)
            .map_err(|code| failure(code, Error::corrupt))?;
        self.next = 0;
        if out.len() != len {
            return Err(wrong_len());
        }
        Ok(())
    }

    fn decode_block(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let rest = payload.get(self.consumed..).unwrap_or_default();
        let mut input = InBuffer::around(rest.get(..self.next).unwrap_or(rest));
        let filled = out.len();
        if self.advance(&mut input, out, filled)? == filled && input.pos() == 0 {
            return Err(ends_early());
        }
        self.consumed += input.pos();
        if self.next == 0 && self.consumed != payload.len() {
            return Err(bytes_after());
        }
        Ok(())
    }

    /// Decodes the next `piece` of the payload, of any length, to `out` from byte `filled` on.
    fn decode_piece(
        &mut self,
        piece: &[u8],
        out: &mut Decompressed,
        filled: &mut usize,
    ) -> Result<()> {
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            if *filled >= self.prepared {
                out.prepare(*filled, STEP_LEN);
                self.prepared = *filled + STEP_LEN;
            }
            if self.next == 0 {
                return Err(bytes_after());
            }
            let before = (input.pos(), *filled);
            *filled = self.advance(&mut input, &mut **out, *filled)?;
            if (input.pos(), *filled) == before {
                return Err(wrong_len());
            }
        }
        Ok(())
    }

    /// Takes from `input` and writes to `out` from byte `filled` on; returns how many bytes there are then.
    fn advance<Out: WriteBuf + ?Sized>(
        &mut self,
        input: &mut InBuffer<'_>,
        out: &mut Out,
        filled: usize,
    ) -> Result<usize> {
        let mut output = OutBuffer::around_pos(out, filled);
        self.next = self
            .context
            .decompress_stream(&mut output, input)
            .map_err(|code| failure(code, Error::corrupt))?;
        Ok(output.pos())
    }

    /// Checks after the last piece that the frame has ended with it and had `len` bytes.
    fn finish(&self, filled: usize, len: usize) -> Result<()> {
        if self.next != 0 {
            return Err(ends_early());
        }
        if filled != len {
            return Err(wrong_len());
        }
        Ok(())
    }

    /// Starts again because the caller's buffer has moved, so that the window is no longer where the context knows it.
    fn restart(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.context
            .reset(ResetDirective::SessionOnly)
            .map_err(|code| failure(code, Error::unsupported))?;
        out.clear();
        self.consumed = 0;
        self.next = HEADER_PREFIX_LEN;
        self.prepared = 0;
        Ok(())
    }
}

/// Decompresses a payload of `payload_len` bytes piece by piece as `read` gives it; `check` sees what it will come to before
/// there is room for that.
pub(crate) fn decompress_from(
    payload_len: usize,
    read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    check: impl FnOnce(u64) -> Result<usize>,
) -> Result<Decompressed> {
    let mut pieces = vec![0; PIECE_LEN.min(payload_len)];
    let first = pieces.len();
    read(&mut pieces)?;
    let len = check(content_len(&pieces)?)?;
    let mut out = Decompressed::lazily_zeroed(len)?;
    let mut filled = 0;
    let mut decoder = ZstdDecoder::new()?;
    decoder.decode_piece(&pieces, &mut out, &mut filled)?;
    let mut left = payload_len - first;
    while left > 0 {
        pieces.truncate(left);
        read(&mut pieces)?;
        decoder.decode_piece(&pieces, &mut out, &mut filled)?;
        left -= pieces.len();
    }
    decoder.finish(filled, len)?;
    Ok(out)
}

fn ends_early() -> Error {
    Error::corrupt("zstd: the frame ends early")
}

fn bytes_after() -> Error {
    Error::corrupt("zstd: bytes after the frame")
}

fn wrong_len() -> Error {
    Error::corrupt("zstd: frame of another size than its header says")
}

/// What went wrong, as an error of `kind`, unless it was memory.
fn failure(code: zstd_safe::ErrorCode, kind: fn(String) -> Error) -> Error {
    let kind = if code == NO_MEMORY {
        Error::limit
    } else {
        kind
    };
    kind(format!("zstd: {}", zstd_safe::get_error_name(code)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> ZstdOptions {
        ZstdOptions::parse(&mut Options::parse(text).unwrap()).unwrap()
    }

    /// A decoder that finds no memory may find some later.
    #[test]
    fn want_of_memory_is_no_damage() {
        assert_eq!(
            zstd_safe::get_error_name(NO_MEMORY),
            "Allocation error : not enough memory"
        );
        let kind = |code| failure(code, Error::corrupt).kind();
        assert_eq!(kind(NO_MEMORY), durin_format::ErrorKind::Limit);
        assert_eq!(kind(NO_MEMORY - 1), durin_format::ErrorKind::Corrupt);
    }

    #[test]
    fn the_table_of_long_is_no_larger_than_its_window_asks_for() {
        let hash_log = |text: &str, len| parse(text).long_hash_log(len);
        for (rate, len, expect) in [
            (13, 3000, 6),
            (7, 1 << 20, 13),
            (0, 1 << 24, 24),
            (25, 0, 6),
        ] {
            let found = hash_log(&format!("zstd:long:lhrlog={rate}"), len);
            assert_eq!(found, Some(expect), "{rate} {len}");
        }
        assert_eq!(hash_log("zstd:long:lhrlog=4:wlog=20", 1 << 24), Some(16));
        for text in ["zstd:lhrlog=13", "zstd:long", "zstd:long:lhrlog=9:lhlog=20"] {
            assert_eq!(hash_log(text, 3000), None, "{text}");
        }
    }

    #[test]
    fn the_table_of_long_is_counted() {
        let bytes = |text: &str| parse(text).encoder_bytes(1 << 20);
        let plain = bytes("zstd:level=3:long");
        assert!(bytes("zstd:level=3:long:lhlog=24") >= plain + (7 << 24));
        assert!(bytes("zstd:level=3:long:lhrlog=0") >= plain + (7 << 20));
        assert!(bytes("zstd:level=3:lhlog=28") < plain);
    }
}
