//! Brotli: a size, then one raw stream, possibly with a large window.

use std::fmt;

use ::brotli::enc::StandardAlloc;
use ::brotli::enc::encode::{
    BrotliEncoderInitParams, BrotliEncoderMaxCompressedSize, BrotliEncoderOperation,
    BrotliEncoderStateStruct,
};
use ::brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use durin_format::{Error, Result};

use crate::encoder::Encoder;
use crate::options::Options;
use crate::output::{fill, reserve_total, zeroed};
use crate::size_prefix;

/// The largest window of a stream without the large window extension.
const PLAIN_WINDOW_LOG2_MAX: u32 = 24;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrotliOptions {
    quality: u32,
    window_log2: u32,
}

impl BrotliOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        Ok(Self {
            quality: options.u32("quality", 0..=11)?.unwrap_or(11),
            window_log2: options.u32("lgwin", 10..=30)?.unwrap_or(22),
        })
    }

    pub(crate) fn encoder(&self) -> BrotliEncoder {
        BrotliEncoder(self.clone())
    }

    /// A window larger than the data takes memory and saves nothing.
    fn window_log2_for(&self, len: usize) -> u32 {
        let needed = len
            .checked_next_power_of_two()
            .map_or(u32::MAX, usize::trailing_zeros);
        self.window_log2.min(needed.max(10))
    }

    pub(crate) fn encoder_bytes(&self, block_len: usize) -> u64 {
        let window = 1_u64 << self.window_log2_for(block_len);
        // The ring buffer is twice the window; from quality 10 on, a tree has two links a position.
        let per_position = if self.quality >= 10 { 2 + 8 } else { 2 };
        window * per_position + (24 << 20)
    }
}

impl fmt::Display for BrotliOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "brotli:quality={}:lgwin={}",
            self.quality, self.window_log2
        )
    }
}

pub(crate) struct BrotliEncoder(BrotliOptions);

impl Encoder for BrotliEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut prefix = Vec::new();
        size_prefix::write(data.len() as u64, &mut prefix);
        let bound = BrotliEncoderMaxCompressedSize(data.len());
        zeroed(out, prefix.len() + bound)?;
        out.splice(..prefix.len(), prefix.iter().copied());

        let window_log2 = self.0.window_log2_for(data.len());
        let mut params = BrotliEncoderInitParams();
        params.quality = self.0.quality.cast_signed();
        params.lgwin = window_log2.cast_signed();
        params.large_window = window_log2 > PLAIN_WINDOW_LOG2_MAX;
        params.size_hint = data.len();
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        state.params = params;

        let (mut input_left, mut input_offset) = (data.len(), 0);
        let (mut room, mut offset) = (bound, prefix.len());
        while !state.is_finished() {
            let went_well = state.compress_stream(
                BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
                &mut input_left,
                data,
                &mut input_offset,
                &mut room,
                out,
                &mut offset,
                &mut None,
                &mut |_, _, _, _| (),
            );
            if !went_well {
                return Err(Error::limit("brotli: the encoder failed"));
            }
            if room == 0 {
                room = data.len() / 16 + 4096;
                let len = out.len() + room;
                reserve_total(out, len)?;
                out.resize(len, 0);
            }
        }
        out.truncate(offset);
        Ok(())
    }
}

pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    let (len, _) = size_prefix::parse(payload).map_err(|error| error.context("brotli"))?;
    Ok(len)
}

pub(crate) struct BrotliDecoder {
    /// Accepts large windows. Its ring buffer grows with the data, however large a window a stream announces.
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    /// Bytes of the payload taken so far, the size included.
    consumed: usize,
    finished: bool,
}

impl BrotliDecoder {
    pub(crate) fn new(payload: &[u8]) -> Result<Self> {
        let (_, consumed) = size_prefix::parse(payload)?;
        let alloc = StandardAlloc::default;
        Ok(Self {
            state: Box::new(BrotliState::new(alloc(), alloc(), alloc())),
            consumed,
            finished: false,
        })
    }

    /// Appends to `out` until it holds `want` of all `len` bytes.
    pub(crate) fn decode_to(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        want: usize,
        len: usize,
    ) -> Result<()> {
        reserve_total(out, len)?;
        fill(out, want, |piece| self.process(payload, piece))?;
        if out.len() < want {
            return Err(Error::corrupt(format!(
                "brotli: stream of {} bytes, expected {len}",
                out.len()
            )));
        }
        if out.len() < len {
            return Ok(());
        }
        if !self.finished {
            self.process(payload, &mut [])?;
        }
        if !self.finished {
            return Err(Error::corrupt(format!(
                "brotli: stream of more than the expected {len} bytes"
            )));
        }
        if self.consumed != payload.len() {
            return Err(Error::corrupt("brotli: bytes after the stream"));
        }
        Ok(())
    }

    /// Fills `target` as far as the stream goes and returns by how many bytes.
    fn process(&mut self, payload: &[u8], target: &mut [u8]) -> Result<usize> {
        let mut input_left = payload.len().saturating_sub(self.consumed);
        let (mut room, mut written) = (target.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut self.consumed,
            payload,
            &mut room,
            &mut written,
            target,
            &mut 0,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultSuccess => self.finished = true,
            BrotliResult::NeedsMoreOutput => {}
            // The whole payload has been given.
            BrotliResult::NeedsMoreInput => {
                return Err(Error::corrupt("brotli: the stream ends early"));
            }
            BrotliResult::ResultFailure => return Err(Error::corrupt("brotli: malformed stream")),
        }
        Ok(written)
    }
}
