//! Decoding blocks outside of the cache, for those who take all they want from a block at once.
//!
//! Nothing is kept, so nothing is thrown out either: what goes through the blocks one by one decodes each exactly once,
//! into buffers of its own that it uses again.

use durin_codec::Decoder;
use durin_format::section::CompressionType;
use durin_format::{BlockIndex, ErrorKind, Result};

use super::BlockCache;
use super::shared::{Shared, check_end, place};
use super::slot::Kind;
use crate::payload;
use crate::perfmon::{Operation, Perfmon};
use crate::sync::Ordering;

/// Bytes decoded between two looks at them: few enough to be in a processor's cache still when somebody writes them.
const STEP_LEN: usize = 512 << 10;

impl BlockCache {
    /// Replaces `decoded` by the bytes of a block up to `end` at least, or all of them where there are fewer.
    /// `payload` is room for what is decoded. Calls `step` with all that is decoded so far, now and then and at the end,
    /// and ends with its error if it has one.
    ///
    /// # Errors
    /// As [`Self::read`], and those of `step`.
    pub fn decode_alone(
        &self,
        block: BlockIndex,
        end: u64,
        payload: &mut Vec<u8>,
        decoded: &mut Vec<u8>,
        step: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let shared = &self.shared;
        let section = shared.slots.section(block)?;
        decoded.clear();
        match shared.slots.kind(shared.source.as_ref(), block)? {
            Kind::Stored => {
                let len = end.min(section.payload_len);
                payload::read_into(shared.source.as_ref(), section, len, decoded)
                    .and_then(|()| step(decoded))
            }
            Kind::Compressed(compression) => {
                let source = shared.source.as_ref();
                let read = shared.slots.payload_into(source, section, payload);
                read.and_then(|()| shared.decode_alone(payload, compression, end, decoded, step))
            }
            Kind::Failed(error) => return Err(error),
        }
        .map_err(|error| match error.kind() {
            ErrorKind::Cancelled => error,
            _ => place(error, block, section),
        })
    }

    /// Compares what somebody wants of a block with the length of what [`Self::decode_alone`] gave.
    ///
    /// # Errors
    /// `Corrupt` if `end` is beyond `len`.
    pub fn check_end(&self, block: BlockIndex, end: u64, len: u64) -> Result<()> {
        let section = self.shared.slots.section(block)?;
        check_end(end, len).map_err(|error| place(error, block, section))
    }
}

impl Shared {
    fn decode_alone(
        &self,
        payload: &[u8],
        compression: CompressionType,
        end: u64,
        decoded: &mut Vec<u8>,
        step: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let _timer = Perfmon::start(self.perfmon.as_deref(), Operation::BlockDecode);
        let mut decoder = Decoder::new(compression, payload, self.block_size)?;
        let len = usize::try_from(decoder.uncompressed_len()).unwrap_or(usize::MAX);
        let want = usize::try_from(end).unwrap_or(usize::MAX).min(len);
        loop {
            let next = want.min(decoded.len().saturating_add(STEP_LEN));
            decoder.decode_to(payload, decoded, next)?;
            step(decoded)?;
            if decoded.len() >= want || decoded.len() < next {
                break;
            }
        }
        let made = decoded.len() as u64;
        self.counters
            .decoded_bytes
            .fetch_add(made, Ordering::Relaxed);
        check_end(want as u64, made)
    }
}
