//! The memory that caches share, and which of their blocks goes when there is none left.
//!
//! All images opened with the same [`CacheMemory`] count together. What goes is chosen in two steps. Blocks that
//! were used once, or in one sweep, go before those that readers came back to, of which as much stays as three quarters of
//! the memory: so a `tar` over the tree does not throw out the blocks of the programs that are running from it. Among
//! equals, the age of the last use decides, weighed by what holding the block costs against decoding it again:
//! an lzma block stays longer than a zstd block, and one whose payload and decoder take as much as its data goes sooner.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::entries::{Candidate, Entries};
use super::entry::Form;
use super::packing::Packing;
use super::payloads::Payloads;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// When there is no room, this share (in eighths) of what may be held is kept. Choosing takes a pass over all
/// entries, which throwing out several at a time pays for.
const KEPT_EIGHTHS: u64 = 7;

/// The same in 256ths where blocks are packed, for which a reader is waiting: each takes longer than the pass.
const PACKED_256THS: u64 = 255;

/// The share (in quarters) of the memory in which blocks that readers came back to are safe from those used once.
const PROTECTED_QUARTERS: u64 = 3;

/// The share of the memory that pieces of blocks may have, which are kept until somebody reads them.
const PIECES_SHARE: u64 = 2;

/// Why blocks go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// There is no room for others, and they may be wanted again.
    Room,
    /// Nobody uses them.
    Idle,
}

/// A block, or pieces of one, and the image it is of.
type Member = (Arc<Entries>, Candidate);

/// Memory for decompressed blocks. Clones share it.
#[derive(Clone)]
pub struct CacheMemory(Arc<Shared>);

struct Shared {
    bytes_max: u64,
    held: AtomicU64,
    held_most: AtomicU64,
    /// Counts uses; what was used last has the highest number.
    clock: AtomicU64,
    evictions: AtomicU64,
    packed_bytes: AtomicU64,
    started: Instant,
    /// Milliseconds from the start to the last use, about.
    last_use: AtomicU64,
    members: Mutex<Vec<Weak<Entries>>>,
    packing: Packing,
    payloads: Payloads,
    /// Held by the one thread that throws out.
    trimming: Mutex<()>,
}

impl CacheMemory {
    /// Memory of so many bytes: decoded data, payloads that are being decoded, and decoders.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Shared {
            bytes_max,
            held: AtomicU64::new(0),
            held_most: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            packed_bytes: AtomicU64::new(0),
            started: Instant::now(),
            last_use: AtomicU64::new(0),
            members: Mutex::new(Vec::new()),
            packing: Packing::new(bytes_max),
            payloads: Payloads::new(bytes_max),
            trimming: Mutex::new(()),
        }))
    }

    /// Returns the bytes held now by all images together.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Returns the most that was held at any time.
    #[must_use]
    pub fn held_bytes_most(&self) -> u64 {
        self.0.held_most.load(Ordering::Relaxed)
    }

    /// Returns the most that is to be held.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    pub(super) fn join(&self, entries: &Arc<Entries>) {
        let mut members = lock(&self.0.members);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(entries));
    }

    pub(super) fn packing(&self) -> &Packing {
        &self.0.packing
    }

    /// Memory for a payload, empty or with any contents.
    pub(super) fn payload_room(&self, len: u64) -> Vec<u8> {
        let room = self.0.payloads.take(len);
        self.recount(room.capacity() as u64, 0);
        room
    }

    /// Takes a payload that has been decoded.
    pub(super) fn take_payload(&self, payload: Vec<u8>) {
        let change = self.0.payloads.give(payload);
        self.recount(change.removed, change.added);
    }

    /// Gives back what is kept for payloads.
    pub(super) fn drop_payloads(&self) {
        self.recount(self.0.payloads.clear(), 0);
    }

    pub(super) fn evictions(&self) -> u64 {
        self.0.evictions.load(Ordering::Relaxed)
    }

    pub(super) fn packed_bytes(&self) -> u64 {
        self.0.packed_bytes.load(Ordering::Relaxed)
    }

    /// The time of a use.
    pub(super) fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes when the cache was used, in milliseconds since it was made.
    pub(super) fn note_use(&self) -> u64 {
        let now = self.now();
        self.0.last_use.store(now, Ordering::Relaxed);
        now
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long nobody has used it.
    pub(super) fn idle_time(&self) -> Duration {
        let last_use = self.0.last_use.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(last_use))
    }

    pub(super) fn last_use_ms(&self) -> u64 {
        self.0.last_use.load(Ordering::Relaxed)
    }

    pub(super) fn recount(&self, before: u64, after: u64) {
        let added = self.0.held.fetch_add(after, Ordering::Relaxed) + after;
        self.0.held.fetch_sub(before, Ordering::Relaxed);
        let held = added.saturating_sub(before);
        self.0.held_most.fetch_max(held, Ordering::Relaxed);
    }

    /// Throws out or packs until there is room. What is being decoded stays, so that a cache smaller than a block still
    /// decodes each block once.
    pub(super) fn trim(&self) {
        if self.held_bytes() <= self.0.bytes_max {
            return;
        }
        let _one_at_a_time = lock(&self.0.trimming);
        if self.held_bytes() > self.0.bytes_max {
            self.make_room(self.0.bytes_max / 8 * KEPT_EIGHTHS, Reason::Room);
        }
    }

    /// Throws out until at most so many bytes are held.
    pub(super) fn shrink(&self, bytes: u64) {
        let _one_at_a_time = lock(&self.0.trimming);
        self.make_room(bytes, Reason::Idle);
    }

    /// Throws out what `is_to_go` says.
    pub(super) fn throw_out_if(&self, is_to_go: &dyn Fn(&Candidate) -> bool) {
        let _one_at_a_time = lock(&self.0.trimming);
        for (entries, candidate) in self.candidates() {
            if is_to_go(&candidate) {
                self.throw_out(&entries, &candidate);
            }
        }
    }

    fn make_room(&self, bytes: u64, reason: Reason) {
        let mut all = self.candidates();
        let now = self.0.clock.load(Ordering::Relaxed);
        protect(&mut all, self.0.bytes_max / 4 * PROTECTED_QUARTERS);
        all.sort_by(|(_, a), (_, b)| {
            let protection = a.is_protected.cmp(&b.is_protected);
            protection.then_with(|| a.worth(now).total_cmp(&b.worth(now)))
        });
        let mut enough = bytes;
        for (entries, candidate) in self.throw_out_pieces(all, bytes / PIECES_SHARE) {
            if self.held_bytes() <= enough {
                break;
            }
            if entries.reduce(candidate.block) {
                continue;
            }
            if reason == Reason::Room && self.pack(&entries, &candidate, now) {
                enough = bytes.max(self.0.bytes_max / 256 * PACKED_256THS);
                continue;
            }
            if reason == Reason::Room {
                entries.note_thrown_out(candidate.block);
            }
            self.throw_out(&entries, &candidate);
        }
    }

    /// Packs a block that readers came back to, if that pays.
    fn pack(&self, entries: &Entries, candidate: &Candidate, now: u64) -> bool {
        if !candidate.has_returned || candidate.form != Form::Whole {
            return false;
        }
        if !self.packing().has_credit(candidate.bytes) {
            self.packing().pass(candidate.bytes);
            return false;
        }
        self.packing().spend(candidate.bytes);
        let is_packed = entries.pack(candidate.block, now.saturating_sub(candidate.used));
        if is_packed {
            let bytes = &self.0.packed_bytes;
            bytes.fetch_add(candidate.bytes, Ordering::Relaxed);
        }
        is_packed
    }

    /// Throws out pieces of blocks that have been read, and those worth least if there are too many. Takes `sorted`
    /// blocks and pieces, and returns the blocks.
    fn throw_out_pieces(&self, sorted: Vec<Member>, bytes_max: u64) -> Vec<Member> {
        let (pieces, blocks): (Vec<_>, Vec<_>) = sorted
            .into_iter()
            .partition(|(_, one)| one.form == Form::Pieces);
        let (wanted, read): (Vec<_>, Vec<_>) = pieces
            .into_iter()
            .partition(|(entries, one)| entries.wants(one.block));
        for (entries, one) in read {
            self.throw_out(&entries, &one);
        }
        let mut total: u64 = wanted.iter().map(|(_, one)| one.bytes).sum();
        for (entries, one) in wanted {
            if total <= bytes_max {
                break;
            }
            total -= one.bytes;
            self.throw_out(&entries, &one);
        }
        blocks
    }

    fn throw_out(&self, entries: &Entries, candidate: &Candidate) {
        if let Some(bytes) = entries.remove(candidate.block) {
            self.0.held.fetch_sub(bytes, Ordering::Relaxed);
            self.0.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn candidates(&self) -> Vec<Member> {
        let members: Vec<_> = lock(&self.0.members)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let mut all = Vec::new();
        for entries in members {
            let found = entries.candidates();
            all.extend(found.into_iter().map(|one| (Arc::clone(&entries), one)));
        }
        all
    }
}

/// Leaves the protection to those used last, as far as `bytes` go.
fn protect(all: &mut [Member], bytes: u64) {
    all.sort_unstable_by_key(|(_, candidate)| std::cmp::Reverse(candidate.used));
    let mut left = bytes;
    for (_, candidate) in all.iter_mut().filter(|(_, one)| one.is_protected) {
        candidate.is_protected = candidate.bytes <= left;
        left = left.saturating_sub(candidate.bytes);
    }
}

impl std::fmt::Debug for CacheMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheMemory")
            .field("bytes_max", &self.bytes_max())
            .field("held_bytes", &self.held_bytes())
            .finish_non_exhaustive()
    }
}
