//! The compressed blocks of one image in the cache.

use std::collections::HashMap;
use std::sync::Arc;

use durin_format::BlockIndex;

use super::consumed::Consumed;
use super::entry::{Attempt, Entry, Form};
use super::memory::CacheMemory;
use super::packing::BlockSet;
use crate::outlook::Outlook;
use crate::sync::{Mutex, Ordering, lock};

/// Parts of the map with a lock each. A power of two well above the number of threads that read at the same time.
const SHARD_COUNT: usize = 16;

/// A use counts as coming back when there were so many others since the last one: reading on does not.
const COMEBACK_USES: u64 = 64;

/// All entries.
pub(super) struct Entries {
    shards: [Mutex<HashMap<u32, Arc<Entry>>>; SHARD_COUNT],
    memory: CacheMemory,
    /// What will be read, if that is known.
    outlook: Mutex<Option<Arc<Outlook>>>,
    /// What has been read, if that is of interest.
    pub(super) consumed: Option<Consumed>,
    block_count: u32,
    /// Blocks that had to go for want of room.
    thrown_out: BlockSet,
    /// Blocks that packing does not make smaller.
    unpackable: BlockSet,
}

/// A block that could go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) block: BlockIndex,
    /// The clock at its last use.
    pub(super) used: u64,
    /// Milliseconds of the memory's time at its last use.
    pub(super) used_ms: u64,
    pub(super) bytes: u64,
    /// What decoding it again would cost, in bytes of zstd.
    pub(super) cost: u64,
    /// Whether readers came back to it.
    pub(super) is_protected: bool,
    pub(super) form: Form,
    /// Whether it had to go before, and readers came back.
    pub(super) has_returned: bool,
    /// Where its data is in memory.
    pub(super) address: (usize, usize),
}

impl Candidate {
    /// What keeping it is worth; the lowest goes first.
    pub(super) fn worth(&self, now: u64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the order of a few is all that is wanted"
        )]
        let [cost, bytes, age] = [self.cost, self.bytes, now.saturating_sub(self.used)]
            .map(|number| (number + 1) as f64);
        cost / (bytes * age)
    }
}

impl Entries {
    /// No entry of `block_count` blocks.
    pub(super) fn new(memory: &CacheMemory, block_count: u32, lets_go: bool) -> Arc<Self> {
        let entries = Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            memory: memory.clone(),
            outlook: Mutex::new(None),
            consumed: lets_go.then(Consumed::default),
            block_count,
            thrown_out: BlockSet::default(),
            unpackable: BlockSet::default(),
        });
        memory.join(&entries);
        entries
    }

    pub(super) fn memory(&self) -> &CacheMemory {
        &self.memory
    }

    /// Memory of a block that has been read, for another of so many bytes.
    pub(super) fn spare(&self, len: u64) -> Option<Vec<u8>> {
        self.consumed.as_ref()?.take(self, len)
    }

    /// Whether a block has gone for good.
    pub(super) fn is_gone(&self, block: BlockIndex) -> bool {
        let consumed = self.consumed.as_ref();
        consumed.is_some_and(|consumed| consumed.is_gone(block))
    }

    /// Notes that somebody needs a block that is not there.
    pub(super) fn note_return(&self, block: BlockIndex) {
        if let Some(consumed) = &self.consumed {
            consumed.note_return(block);
        }
    }

    /// Notes that bytes of a block have been read.
    pub(super) fn note_read(&self, block: BlockIndex, len: u64) {
        if let Some(consumed) = &self.consumed
            && let Some(entry) = self.peek(block)
        {
            consumed.note(block, entry.note_read(len), len);
        }
    }

    pub(super) fn set_outlook(&self, outlook: Option<Arc<Outlook>>) {
        *lock(&self.outlook) = outlook;
    }

    /// Whether anything of a block is going to be read, as far as that is known.
    pub(super) fn wants(&self, block: BlockIndex) -> bool {
        self.outlook().is_some_and(|outlook| outlook.wants(block))
    }

    pub(super) fn outlook(&self) -> Option<Arc<Outlook>> {
        lock(&self.outlook).clone()
    }

    /// Gives back what nobody is going to read of a block; false if that is all of it, or too little, or not known.
    pub(super) fn reduce(&self, block: BlockIndex) -> bool {
        let wanted = self.outlook().map(|outlook| outlook.wanted(block));
        match (wanted.filter(|wanted| !wanted.is_empty()), self.peek(block)) {
            (Some(wanted), Some(entry)) => !entry.is_busy() && entry.keep_only(wanted),
            _ => false,
        }
    }

    /// Packs a block that has not been used for `age`; false if it is as it was.
    pub(super) fn pack(&self, block: BlockIndex, age: u64) -> bool {
        let attempt = self.peek(block).map(|entry| entry.pack(age));
        if attempt == Some(Attempt::TooLarge) {
            self.unpackable.insert(block, self.block_count);
        }
        attempt == Some(Attempt::Packed)
    }

    /// Notes that a block went for want of room.
    pub(super) fn note_thrown_out(&self, block: BlockIndex) {
        self.thrown_out.insert(block, self.block_count);
    }

    /// The entry of a block if there is one, which that does not make used.
    pub(super) fn peek(&self, block: BlockIndex) -> Option<Arc<Entry>> {
        lock(self.shard(block)).get(&block.0).map(Arc::clone)
    }

    /// The entry of a block if there is one, which is used now.
    pub(super) fn find(&self, block: BlockIndex) -> Option<Arc<Entry>> {
        let entry = lock(self.shard(block)).get(&block.0).map(Arc::clone)?;
        self.touch(&entry);
        Some(entry)
    }

    /// The entry of a block, made when there is none, and used now.
    pub(super) fn of(&self, block: BlockIndex) -> Arc<Entry> {
        let make = || {
            let has_returned = self.thrown_out.contains(block) && !self.unpackable.contains(block);
            Arc::new(Entry::new(self.memory.clone(), has_returned))
        };
        let entry = Arc::clone(lock(self.shard(block)).entry(block.0).or_insert_with(make));
        self.touch(&entry);
        entry
    }

    fn touch(&self, entry: &Entry) {
        let now = self.memory.tick();
        let before = entry.used.swap(now, Ordering::Relaxed);
        entry
            .used_ms
            .store(self.memory.note_use(), Ordering::Relaxed);
        let gap = now.saturating_sub(before);
        if before > 0 && gap >= COMEBACK_USES {
            entry.comebacks.fetch_add(1, Ordering::Relaxed);
        }
        entry.note_use(gap);
    }

    /// All that is not being decoded.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let idle = shard.iter().filter(|(_, entry)| !entry.is_busy());
            all.extend(idle.map(|(block, entry)| entry.candidate(BlockIndex(*block))));
        }
        // The order of a map must show nowhere.
        all.sort_unstable_by_key(|candidate| candidate.block.0);
        all
    }

    /// Takes an entry out and returns what it counted for.
    pub(super) fn remove(&self, block: BlockIndex) -> Option<u64> {
        let entry = lock(self.shard(block)).remove(&block.0)?;
        Some(entry.close_account())
    }

    fn shard(&self, block: BlockIndex) -> &Mutex<HashMap<u32, Arc<Entry>>> {
        let [first, ..] = &self.shards;
        let at = usize::try_from(block.0).unwrap_or(0) % SHARD_COUNT;
        self.shards.get(at).unwrap_or(first)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        for candidate in self.candidates() {
            let bytes = self.remove(candidate.block).unwrap_or(0);
            self.memory.recount(bytes, 0);
        }
    }
}
