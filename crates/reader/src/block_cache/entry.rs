//! One compressed block: its decoder and what it has made so far.

use durin_codec::Decoder;
use durin_format::section::CompressionType;
use durin_format::{BlockIndex, Error, Result};
use durin_source::Source;

use super::slot::{Failure, Slots};
use super::{Counters, check_end, place};
use crate::sections::Section;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, lock, read, write};

/// Bytes decoded in one go, after which others who wait for the block get their turn. A random read costs the decode of
/// this much beyond what it needs at most; a sequential one takes a lock so much less often.
const STEP_LEN: u64 = 256 << 10;

/// When this share of a block (in tenths) is wanted, the rest is decoded too: the decoder and the payload, which
/// take memory as the rest would, can go then.
const WHOLE_TENTHS: u64 = 8;

/// Bytes that a decoder takes beside its window, as far as an estimate goes.
const DECODER_BYTES: u64 = 1 << 16;

/// What an entry needs to know to decode its block.
pub(super) struct Work<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) slots: &'a Slots,
    pub(super) counters: &'a Counters,
    pub(super) block: BlockIndex,
    pub(super) section: &'a Section,
    pub(super) compression: CompressionType,
    pub(super) block_size: u64,
}

/// A compressed block in the cache.
pub(super) struct Entry {
    state: RwLock<State>,
    /// Time of the last use on the clock of the cache.
    pub(super) used: AtomicU64,
    account: Mutex<Account>,
}

/// Bytes of an entry as the cache counts them.
enum Account {
    Held(u64),
    /// The cache has thrown the entry out; what readers still do with it is not counted.
    Gone,
}

enum State {
    Fresh,
    Partial {
        decoder: Decoder,
        payload: Vec<u8>,
        decoded: Vec<u8>,
    },
    Whole(Vec<u8>),
    Failed(Failure),
}

impl Entry {
    pub(super) fn new(now: u64) -> Self {
        Self {
            state: RwLock::new(State::Fresh),
            used: AtomicU64::new(now),
            account: Mutex::new(Account::Held(0)),
        }
    }

    /// Copies the bytes from `offset` on; false if they are not decoded yet.
    pub(super) fn copy(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        read(&self.state).copy(offset, buf)
    }

    /// Decodes until the bytes from `offset` on are there, and copies them.
    pub(super) fn decode_and_copy(
        &self,
        work: &Work<'_>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        loop {
            // Another reader may have decoded them while this one waited.
            let mut state = write(&self.state);
            if state.copy(offset, buf)? {
                return Ok(());
            }
            self.step(&mut state, work, |len| check_end(end, len).map(|()| end))?;
        }
    }

    /// Decodes the whole block.
    pub(super) fn decode_all(&self, work: &Work<'_>) -> Result<()> {
        loop {
            let mut state = write(&self.state);
            match &*state {
                State::Whole(_) => return Ok(()),
                State::Failed(failure) => return Err(failure.error()),
                State::Fresh | State::Partial { .. } => self.step(&mut state, work, Ok)?,
            }
        }
    }

    /// The uncompressed size.
    pub(super) fn len(&self, work: &Work<'_>) -> Result<u64> {
        let mut state = write(&self.state);
        if let State::Fresh = *state {
            self.step(&mut state, work, |_| Ok(0))?;
        }
        match &*state {
            State::Whole(decoded) => Ok(decoded.len() as u64),
            State::Partial { decoder, .. } => Ok(decoder.uncompressed_len()),
            State::Failed(failure) => Err(failure.error()),
            State::Fresh => Ok(0),
        }
    }

    /// Takes the entry out of the books and returns what it counted for.
    pub(super) fn close_account(&self) -> u64 {
        match std::mem::replace(&mut *lock(&self.account), Account::Gone) {
            Account::Held(bytes) => bytes,
            Account::Gone => 0,
        }
    }

    /// Counts the entry anew; `held` is the sum of the cache.
    pub(super) fn count(&self, held: &AtomicU64) {
        let bytes = read(&self.state).bytes();
        if let Account::Held(counted) = &mut *lock(&self.account) {
            let before = std::mem::replace(counted, bytes);
            held.fetch_add(bytes, Ordering::Relaxed);
            held.fetch_sub(before, Ordering::Relaxed);
        }
    }

    /// Opens the block or decodes a step. `wanted` gets the uncompressed size and says how far to go.
    fn step(
        &self,
        state: &mut State,
        work: &Work<'_>,
        wanted: impl FnOnce(u64) -> Result<u64>,
    ) -> Result<()> {
        let result = match state {
            State::Fresh => work.open().map(|opened| *state = opened),
            State::Partial {
                decoder,
                payload,
                decoded,
            } => {
                let len = decoder.uncompressed_len();
                // What a reader wants too much of is no fault of the block.
                let wanted = wanted(len).map_err(|error| place(error, work.block, work.section))?;
                work.decode(decoder, payload, decoded, wanted)
            }
            State::Whole(decoded) => {
                let len = decoded.len() as u64;
                return wanted(len)
                    .map(drop)
                    .map_err(|error| place(error, work.block, work.section));
            }
            State::Failed(failure) => return Err(failure.error()),
        };
        if let Err(error) = result {
            let error = place(error, work.block, work.section);
            *state = Failure::lasting(&error).map_or(State::Fresh, State::Failed);
            return Err(error);
        }
        if let State::Partial {
            decoder, decoded, ..
        } = state
            && decoded.len() as u64 == decoder.uncompressed_len()
            && !decoded.is_empty()
        {
            *state = State::Whole(std::mem::take(decoded));
        }
        Ok(())
    }
}

impl State {
    fn copy(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let decoded = match self {
            Self::Whole(decoded) | Self::Partial { decoded, .. } => decoded,
            Self::Fresh => return Ok(false),
            Self::Failed(failure) => return Err(failure.error()),
        };
        let found = usize::try_from(offset)
            .ok()
            .and_then(|offset| decoded.get(offset..)?.get(..buf.len()));
        let Some(found) = found else {
            return Ok(false);
        };
        buf.copy_from_slice(found);
        Ok(true)
    }

    /// Bytes of memory in use. Of what was reserved and never touched the system has made nothing yet.
    fn bytes(&self) -> u64 {
        match self {
            Self::Fresh | Self::Failed(_) => DECODER_BYTES / 64,
            Self::Whole(decoded) => decoded.len() as u64,
            Self::Partial {
                decoder,
                payload,
                decoded,
            } => {
                let decoded = decoded.len() as u64;
                let window = decoder.state_bytes().min(decoded + DECODER_BYTES);
                decoded + payload.len() as u64 + window
            }
        }
    }
}

impl Work<'_> {
    /// Reads and verifies the payload and makes a decoder for it.
    fn open(&self) -> Result<State> {
        let payload = self.slots.payload(self.source, self.section)?;
        let decoder = Decoder::new(self.compression, &payload, self.block_size)?;
        let mut decoded = Vec::new();
        if decoder.uncompressed_len() == 0 {
            // Nothing is to come, and the payload must say so.
            let mut decoder = decoder;
            decoder.decode_to(&payload, &mut decoded, 0)?;
            return Ok(State::Whole(decoded));
        }
        Ok(State::Partial {
            decoder,
            payload,
            decoded,
        })
    }

    /// Decodes a step towards `wanted` bytes.
    fn decode(
        &self,
        decoder: &mut Decoder,
        payload: &[u8],
        decoded: &mut Vec<u8>,
        wanted: u64,
    ) -> Result<()> {
        let len = decoder.uncompressed_len();
        let before = decoded.len() as u64;
        let target = if wanted >= len / 10 * WHOLE_TENTHS {
            len
        } else {
            wanted
        };
        // Each step ends at a multiple of the step length, so that sequential readers rarely come for a few bytes.
        let step = (before / STEP_LEN + 1).saturating_mul(STEP_LEN);
        let target = target.max(wanted).min(step).max(before + 1).min(len);
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
