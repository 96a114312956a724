//! Decoding one block, step by step.

use std::sync::Arc;

use durin_codec::Decoder;
use durin_format::section::CompressionType;
use durin_format::{BlockIndex, Error, Result};
use durin_source::Source;

use super::entries::Entries;
use super::shared::Counters;
use super::slot::Slots;
use super::state::State;
use crate::sections::Section;
use crate::sync::Ordering;

/// Bytes decoded in one go, after which others who wait for the block get their turn. A random read costs the decode of
/// this much beyond what it needs at most; a sequential one takes a lock so much less often.
const STEP_LEN: u64 = 256 << 10;

/// What an entry needs to know to decode its block.
pub(super) struct Work<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) slots: &'a Slots,
    pub(super) counters: &'a Counters,
    pub(super) block: BlockIndex,
    pub(super) section: &'a Section,
    pub(super) compression: CompressionType,
    pub(super) block_size: u64,
    /// See [`crate::CacheOptions::whole_permille`].
    pub(super) whole_permille: u64,
    /// The most that the cache is to hold, in bytes.
    pub(super) bytes_max: u64,
    /// Where memory comes from that is used again.
    pub(super) entries: &'a Entries,
}

impl Work<'_> {
    /// Reads and verifies the payload and makes a decoder for it.
    pub(super) fn open(&self) -> Result<State> {
        let memory = self.entries.memory();
        let mut payload = memory.payload_room(self.section.payload_len);
        self.slots
            .payload_into(self.source, self.section, &mut payload)?;
        let mut decoder = Decoder::new(self.compression, &payload, self.block_size)?;
        let mut decoded = Vec::new();
        if decoder.uncompressed_len() == 0 {
            // Nothing is to come, and the payload must say so.
            decoder.decode_to(&payload, &mut decoded, 0)?;
            return Ok(State::Whole(Arc::new(decoded)));
        }
        if let Some(spare) = self.entries.spare(decoder.uncompressed_len()) {
            decoded = spare;
            decoder.note_used_buffer();
        }
        Ok(State::Partial {
            decoder,
            payload,
            room: decoded.capacity() as u64,
            decoded,
        })
    }

    /// Decodes a step towards `wanted` bytes.
    pub(super) fn decode(
        &self,
        decoder: &mut Decoder,
        payload: &[u8],
        decoded: &mut Vec<u8>,
        wanted: u64,
    ) -> Result<()> {
        let len = decoder.uncompressed_len();
        let before = decoded.len() as u64;
        // Each step ends at a multiple of the step length, so that sequential readers rarely come for a few bytes.
        let step = (before / STEP_LEN + 1).saturating_mul(STEP_LEN);
        let target = wanted.min(step).max(before + 1).min(len);
        let target = usize::try_from(target)
            .map_err(|_| Error::limit(format!("{len} bytes do not fit into memory")))?;
        decoder.decode_to(payload, decoded, target)?;
        if decoded.len() < target {
            return Err(Error::corrupt(format!(
                "decoding stopped: expected {target} bytes, found {}",
                decoded.len()
            )));
        }
        let made = decoded.len() as u64 - before;
        self.counters
            .decoded_bytes
            .fetch_add(made, Ordering::Relaxed);
        Ok(())
    }
}
