//! How far a compressed block has been decoded, and what that takes.

use std::sync::Arc;

use durin_codec::{Decoder, Packed};
use durin_format::Result;

use super::entry::Form;
use super::kept::Kept;
use super::slot::Failure;
use super::work::Work;
use crate::target::{Loan, ReadTarget};

/// Bytes that a decoder takes beside its window, as far as an estimate goes.
const DECODER_BYTES: u64 = 1 << 16;

/// The share of the cache that the state of one decoder may have for long.
const WINDOW_SHARE: u64 = 8;

/// What is left to do for a block from which somebody has got what he wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing, until somebody wants more.
    Wait,
    /// The rest should be decoded, too.
    Decode,
}

/// What there is of a block.
pub(super) enum State {
    Fresh,
    Partial {
        decoder: Decoder,
        payload: Vec<u8>,
        decoded: Vec<u8>,
        /// Bytes of memory that were in use for it before the first was decoded.
        room: u64,
    },
    /// Readers may have parts of it for a while, whatever becomes of it here.
    Whole(Arc<Vec<u8>>),
    /// It was whole or nearly so, and the memory is used for something else now.
    Kept(Kept),
    /// All of it, in less room.
    Packed(Packed),
    Failed(Failure),
}

impl State {
    /// Gives `len` bytes from `offset` on; false, and none of them, if they are not decoded yet.
    pub(super) fn give(
        &self,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<bool> {
        if let Self::Failed(failure) = self {
            return Err(failure.error());
        }
        let Ok(offset) = usize::try_from(offset) else {
            return Ok(false);
        };
        if let Self::Packed(packed) = self {
            let end = offset.saturating_add(len);
            return Ok(end <= packed.len() && packed.copy(offset, target.room(len)));
        }
        if let Self::Whole(decoded) = self
            && let Some(loan) = Loan::of(decoded, offset, len)
        {
            if !target.lend(&loan) {
                target.room(len).copy_from_slice(loan.bytes());
            }
            return Ok(true);
        }
        let found = self.find(offset, len);
        if let Some(found) = found {
            target.room(len).copy_from_slice(found);
        }
        Ok(found.is_some())
    }

    /// Whether a reader has a part of it.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self, Self::Whole(decoded) if Arc::strong_count(decoded) > 1)
    }

    /// Appends the bytes from `offset` on; false if they are not there.
    pub(super) fn append(&self, offset: usize, len: usize, to: &mut Vec<u8>) -> bool {
        if let Self::Packed(packed) = self {
            let start = to.len();
            to.resize(start + len, 0);
            let is_there = packed.copy(offset, to.get_mut(start..).unwrap_or_default());
            to.truncate(if is_there { start + len } else { start });
            return is_there;
        }
        let found = self.find(offset, len);
        to.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    }

    /// The bytes from `offset` on, if they are there as they are.
    fn find(&self, offset: usize, len: usize) -> Option<&[u8]> {
        match self {
            Self::Whole(decoded) => decoded.get(offset..)?.get(..len),
            Self::Partial { decoded, .. } => decoded.get(offset..)?.get(..len),
            Self::Kept(kept) => kept.find(offset, len),
            Self::Fresh | Self::Packed(_) | Self::Failed(_) => None,
        }
    }

    pub(super) fn form(&self) -> Form {
        match self {
            Self::Fresh | Self::Partial { .. } | Self::Failed(_) => Form::Partial,
            Self::Whole(_) => Form::Whole,
            Self::Kept(_) => Form::Pieces,
            Self::Packed(_) => Form::Packed,
        }
    }

    /// Whether decoding begins with the first byte.
    pub(super) fn is_to_open(&self) -> bool {
        matches!(self, Self::Fresh | Self::Kept(_))
    }

    /// Whether there is more to decode for what is before `end`.
    pub(super) fn lacks(&self, end: u64) -> bool {
        match self {
            Self::Fresh | Self::Kept(_) => true,
            Self::Partial {
                decoder, decoded, ..
            } => (decoded.len() as u64) < end.min(decoder.uncompressed_len()),
            Self::Whole(_) | Self::Packed(_) | Self::Failed(_) => false,
        }
    }

    /// What is left to do. `is_to_stay` if what has been decoded should become a whole block.
    pub(super) fn rest(&self, work: &Work<'_>, is_to_stay: bool) -> Rest {
        let Self::Partial {
            decoder, decoded, ..
        } = self
        else {
            return Rest::Wait;
        };
        let (made, len) = (decoded.len() as u64, decoder.uncompressed_len());
        let is_most = made.saturating_mul(1000) >= len.saturating_mul(work.whole_permille);
        // The block without its decoder takes half as much memory.
        let has_large_state = decoder.state_bytes().min(made) > work.bytes_max / WINDOW_SHARE;
        // What does not stay in the cache would be decoded for nothing.
        let fits = len <= work.bytes_max / 2;
        if fits && (is_most || has_large_state || is_to_stay) {
            Rest::Decode
        } else {
            Rest::Wait
        }
    }

    /// What has been decoded.
    fn decoded(&self) -> &[u8] {
        match self {
            Self::Whole(decoded) => decoded,
            Self::Partial { decoded, .. } => decoded,
            Self::Fresh | Self::Kept(_) | Self::Packed(_) | Self::Failed(_) => &[],
        }
    }

    pub(super) fn decoded_len(&self) -> u64 {
        self.decoded().len() as u64
    }

    pub(super) fn address(&self) -> (usize, usize) {
        let decoded = self.decoded();
        (decoded.as_ptr().addr(), decoded.len())
    }

    /// Bytes of memory in use. Of what was reserved and never touched the system has made nothing yet.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Fresh | Self::Failed(_) => DECODER_BYTES / 64,
            Self::Whole(decoded) => decoded.len() as u64,
            Self::Kept(kept) => kept.bytes(),
            Self::Packed(packed) => packed.memory_bytes(),
            Self::Partial {
                decoder,
                payload,
                decoded,
                room,
            } => {
                let decoded = (decoded.len() as u64).max(*room);
                let window = decoder.state_bytes().min(decoded + DECODER_BYTES);
                // A payload may be in the memory of a longer one.
                decoded + payload.capacity() as u64 + window
            }
        }
    }
}
