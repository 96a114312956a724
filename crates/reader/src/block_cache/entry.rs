//! One compressed block: its decoder and what it has made so far.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use durin_codec::Packed;
use durin_format::section::CompressionType;
use durin_format::{BlockIndex, Result};

use super::entries::Candidate;
use super::kept::Kept;
use super::memory::CacheMemory;
use super::shared::{check_end, place};
use super::slot::Failure;
use super::state::{Rest, State};
use super::work::Work;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock, RwLockWriteGuard, lock};
use crate::target::ReadTarget;

/// Pieces of a block are kept in place of it when they are no more than this part of it.
const KEPT_SHARE: u64 = 2;

/// A block is packed where it takes so many quarters of its size at most.
const PACKED_QUARTERS: usize = 3;

/// A compressed block in the cache.
pub(super) struct Entry {
    state: RwLock<State>,
    /// Time of the last use on the clock of the cache; 0 before the first.
    pub(super) used: AtomicU64,
    /// The same in milliseconds since the cache was made.
    pub(super) used_ms: AtomicU64,
    /// How often readers came back.
    pub(super) comebacks: AtomicU64,
    /// Bytes that readers took.
    pub(super) read: AtomicU64,
    /// Whether it had to go before, and readers came back.
    has_returned: bool,
    /// How long it had not been used when it was packed, on the clock of the cache; 0: it is not packed.
    packed_age: AtomicU64,
    /// Threads that are decoding it.
    busy: AtomicU64,
    /// Whether one of them reads its payload, which takes as long as the disk or the network does.
    is_opening: AtomicBool,
    account: Mutex<Account>,
    memory: CacheMemory,
}

/// An entry as the cache counts it.
#[derive(Clone, Copy, Default)]
struct Account {
    bytes: u64,
    cost: u64,
    address: (usize, usize),
    form: Form,
    /// The cache has thrown the entry out; what readers still do with it is not counted.
    is_closed: bool,
}

/// What there is of a block in memory, as the cache counts it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The beginning of it, or nothing.
    #[default]
    Partial,
    Whole,
    /// The pieces that are still wanted.
    Pieces,
    Packed,
}

/// What came of packing a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    Packed,
    /// Packed it would not be much smaller. Nothing has changed.
    TooLarge,
    /// Somebody is changing it. Nothing has changed.
    InUse,
}

impl Entry {
    /// An entry of which nothing is there. `has_returned` if there was one that had to go.
    pub(super) fn new(memory: CacheMemory, has_returned: bool) -> Self {
        Self {
            has_returned,
            packed_age: AtomicU64::new(0),
            state: RwLock::new(State::Fresh),
            used: AtomicU64::new(0),
            used_ms: AtomicU64::new(0),
            comebacks: AtomicU64::new(0),
            read: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            is_opening: AtomicBool::new(false),
            account: Mutex::new(Account::default()),
            memory,
        }
    }

    /// What there is of the block.
    pub(super) fn into_state(self) -> State {
        self.state.into_inner()
    }

    /// Whether a thread is decoding it.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    pub(super) fn candidate(&self, block: BlockIndex) -> Candidate {
        let account = *lock(&self.account);
        Candidate {
            block,
            used: self.used.load(Ordering::Relaxed),
            used_ms: self.used_ms.load(Ordering::Relaxed),
            bytes: account.bytes,
            cost: account.cost,
            is_protected: self.comebacks.load(Ordering::Relaxed) > 0,
            form: account.form,
            has_returned: self.has_returned,
            address: account.address,
        }
    }

    /// Whether a reader has a part of it, as far as that can be told without waiting.
    pub(super) fn is_lent(&self) -> bool {
        self.state.try_read().is_none_or(|state| state.is_lent())
    }

    /// Gives `len` bytes from `offset` on; false, and none of them, if they are not decoded yet.
    pub(super) fn give(
        &self,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<bool> {
        self.state.read().give(offset, len, target)
    }

    /// As [`Self::give`], but also false where a thread reads the payload: a step of decoding is waited for, a disk is not.
    pub(super) fn give_soon(
        &self,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<bool> {
        /// Some steps of decoding.
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        while !self.is_opening.load(Ordering::Relaxed) {
            if let Some(state) = self.state.try_read_for(LOOK_AGAIN) {
                return state.give(offset, len, target);
            }
        }
        Ok(false)
    }

    /// Decodes until `len` bytes from `offset` on are there, and gives them.
    pub(super) fn decode_and_give(
        &self,
        work: &Work<'_>,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Rest> {
        let end = offset.saturating_add(len as u64);
        let _busy = Busy::new(&self.busy);
        let mut state = self.state.write();
        loop {
            // Another reader may have decoded them while this one waited.
            if state.give(offset, len, target)? {
                return Ok(self.rest(&state, work));
            }
            self.step(&mut state, work, |len| check_end(end, len).map(|()| end))?;
            give_way(&mut state);
        }
    }

    /// Decodes at least as far as `end`, if the block is so long: all of it where a reader would have that done, too.
    pub(super) fn decode_to(&self, work: &Work<'_>, end: u64) -> Result<()> {
        let mut end = end;
        let _busy = Busy::new(&self.busy);
        let mut state = self.state.write();
        loop {
            if let State::Failed(failure) = &*state {
                return Err(failure.error());
            }
            if !state.lacks(end) {
                if self.rest(&state, work) == Rest::Wait {
                    return Ok(());
                }
                end = u64::MAX;
            }
            self.step(&mut state, work, |len| Ok(end.min(len)))?;
            give_way(&mut state);
        }
    }

    /// What is left to do. Readers who come back will come again, and only all of a block can be packed.
    fn rest(&self, state: &State, work: &Work<'_>) -> Rest {
        state.rest(
            work,
            self.has_returned && self.memory.packing().has_credit(work.block_size),
        )
    }

    /// Whether somebody has to decode for what is before `end`, as far as that can be told without waiting.
    pub(super) fn lacks(&self, end: u64) -> bool {
        self.state.try_read().is_some_and(|state| state.lacks(end))
    }

    /// The uncompressed size.
    pub(super) fn len(&self, work: &Work<'_>) -> Result<u64> {
        let mut state = self.state.write();
        if state.is_to_open() {
            self.step(&mut state, work, |_| Ok(0))?;
        }
        match &*state {
            State::Whole(decoded) => Ok(decoded.len() as u64),
            State::Partial { decoder, .. } => Ok(decoder.uncompressed_len()),
            State::Packed(packed) => Ok(packed.len() as u64),
            State::Failed(failure) => Err(failure.error()),
            State::Fresh | State::Kept(_) => Ok(0),
        }
    }

    /// Whether there are only pieces of it.
    pub(super) fn is_kept(&self) -> bool {
        lock(&self.account).form == Form::Pieces
    }

    /// Gives back all memory but that of the ranges, which are in order. False if that would not be worth it or somebody
    /// is using the entry: nothing has changed then.
    pub(super) fn keep_only(&self, ranges: Vec<Range<u32>>) -> bool {
        let Some(mut state) = self.state.try_write() else {
            return false;
        };
        let before = state.bytes();
        let append = |offset, len, to: &mut Vec<u8>| state.append(offset, len, to);
        let copied = Kept::copy(ranges, append);
        let is_worth_it = |kept: &Kept| !kept.is_empty() && kept.bytes() < before / KEPT_SHARE;
        let Some(kept) = copied.filter(is_worth_it) else {
            return false;
        };
        self.replace(&mut state, State::Kept(kept), Form::Pieces)
    }

    /// Packs a whole block, which has not been used for `age` on the clock of the cache. For the thread that throws out.
    pub(super) fn pack(&self, age: u64) -> Attempt {
        let packed = match self.state.try_read().as_deref() {
            Some(State::Whole(decoded)) => {
                Packed::new(decoded, decoded.len() / 4 * PACKED_QUARTERS)
            }
            _ => return Attempt::InUse,
        };
        let Some(packed) = packed else {
            return Attempt::TooLarge;
        };
        // Nobody but this thread makes anything else of a whole block, and who holds the lock only copies from it.
        let mut state = self.state.write();
        self.packed_age.store(age.max(1), Ordering::Relaxed);
        if self.replace(&mut state, State::Packed(packed), Form::Packed) {
            Attempt::Packed
        } else {
            Attempt::InUse
        }
    }

    /// Replaces what there is of the block by less; false if the entry has been thrown out.
    fn replace(&self, state: &mut State, less: State, form: Form) -> bool {
        let mut account = lock(&self.account);
        if account.is_closed {
            return false;
        }
        // To decode it again costs what it did.
        let before = std::mem::replace(&mut account.bytes, less.bytes());
        (account.address, account.form) = ((0, 0), form);
        self.memory.recount(before, less.bytes());
        *state = less;
        true
    }

    /// Notes a use, `gap` after the last one: without packing the block would not have been there.
    pub(super) fn note_use(&self, gap: u64) {
        let age = self.packed_age.load(Ordering::Relaxed);
        if age > 0 && gap >= age {
            self.memory.packing().earn(lock(&self.account).cost);
        }
    }

    /// Takes the entry out of the books and returns what it counted for.
    pub(super) fn close_account(&self) -> u64 {
        let mut account = lock(&self.account);
        account.is_closed = true;
        std::mem::take(&mut account.bytes)
    }

    /// Counts the entry anew.
    fn count(&self, state: &State, compression: CompressionType) {
        let mut account = lock(&self.account);
        if account.is_closed {
            return;
        }
        let bytes = state.bytes();
        let before = std::mem::replace(&mut account.bytes, bytes);
        account.cost = state.decoded_len() * cost_of(compression);
        (account.address, account.form) = (state.address(), state.form());
        self.memory.recount(before, bytes);
    }

    /// Opens the block or decodes a step. `wanted` gets the uncompressed size and says how far to go.
    fn step(
        &self,
        state: &mut State,
        work: &Work<'_>,
        wanted: impl FnOnce(u64) -> Result<u64>,
    ) -> Result<()> {
        let result = match state {
            State::Fresh | State::Kept(_) | State::Packed(_) => {
                self.packed_age.store(0, Ordering::Relaxed);
                self.is_opening.store(true, Ordering::Relaxed);
                let opened = work.open();
                self.is_opening.store(false, Ordering::Relaxed);
                opened.map(|opened| *state = opened)
            }
            State::Partial {
                decoder,
                payload,
                decoded,
                ..
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
            self.count(state, work.compression);
            return Err(error);
        }
        if let State::Partial {
            decoder,
            decoded,
            payload,
            ..
        } = state
            && decoded.len() as u64 == decoder.uncompressed_len()
            && !decoded.is_empty()
        {
            self.memory.take_payload(std::mem::take(payload));
            *state = State::Whole(Arc::new(std::mem::take(decoded)));
        }
        // While it is being decoded, too: several large blocks in the making are most of what a small cache has.
        self.count(state, work.compression);
        self.memory.trim();
        Ok(())
    }
}

/// Lets those go first who wait for a block while it is decoded further: what they want may be there by now.
fn give_way(state: &mut RwLockWriteGuard<'_, State>) {
    RwLockWriteGuard::bump(state);
}

/// Counts a thread that decodes.
struct Busy<'a>(&'a AtomicU64);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What decoding a byte costs beside zstd, in whole numbers. Rough, and enough to tell them apart.
fn cost_of(compression: CompressionType) -> u64 {
    match compression {
        CompressionType::Lzma => 10,
        CompressionType::Brotli | CompressionType::Flac => 3,
        _ => 1,
    }
}
