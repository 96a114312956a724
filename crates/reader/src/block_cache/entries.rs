//! The compressed blocks in the cache, and which of them goes when there is no room.

use std::collections::HashMap;
use std::sync::Arc;

use durin_format::BlockIndex;

use super::entry::Entry;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Parts of the map with a lock each. A power of two well above the number of threads that read at the same time.
const SHARD_COUNT: usize = 16;

/// When there is no room, this share (in eighths) of what may be held is kept. Looking for the oldest entries takes a
/// pass over all of them, which throwing out several at a time pays for.
const KEPT_EIGHTHS: u64 = 7;

/// All entries.
pub(super) struct Entries {
    shards: [Mutex<HashMap<u32, Arc<Entry>>>; SHARD_COUNT],
    bytes_max: u64,
    held: AtomicU64,
    /// Counts uses; what was used last has the highest number.
    clock: AtomicU64,
    evictions: AtomicU64,
    /// Held by the one thread that throws out.
    trimming: Mutex<()>,
}

impl Entries {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            bytes_max,
            held: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            trimming: Mutex::new(()),
        }
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(super) fn has(&self, block: BlockIndex) -> bool {
        lock(self.shard(block)).contains_key(&block.0)
    }

    /// The entry of a block if there is one, which is used now.
    pub(super) fn find(&self, block: BlockIndex) -> Option<Arc<Entry>> {
        let entry = lock(self.shard(block)).get(&block.0).map(Arc::clone)?;
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        entry.used.store(now, Ordering::Relaxed);
        Some(entry)
    }

    /// The entry of a block, made when there is none, and used now.
    pub(super) fn of(&self, block: BlockIndex) -> Arc<Entry> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shard = lock(self.shard(block));
        let entry = shard
            .entry(block.0)
            .or_insert_with(|| Arc::new(Entry::new(now)));
        entry.used.store(now, Ordering::Relaxed);
        Arc::clone(entry)
    }

    /// Counts the entry of `block` anew and throws out the ones not used for longest until there is room.
    /// That entry itself stays, so that a cache smaller than a block still decodes each block once.
    pub(super) fn trim(&self, block: BlockIndex) {
        let entry = lock(self.shard(block)).get(&block.0).map(Arc::clone);
        if let Some(entry) = entry {
            entry.count(&self.held);
        }
        if self.held_bytes() <= self.bytes_max {
            return;
        }
        let _one_at_a_time = lock(&self.trimming);
        let kept = self.bytes_max / 8 * KEPT_EIGHTHS;
        if self.held_bytes() <= self.bytes_max {
            return;
        }
        for (_, oldest) in self.by_age() {
            if self.held_bytes() <= kept {
                break;
            }
            if oldest != block {
                self.throw_out(oldest);
            }
        }
    }

    /// All blocks with the time of their last use, oldest first.
    fn by_age(&self) -> Vec<(u64, BlockIndex)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let used = shard
                .iter()
                .map(|(block, entry)| (entry.used.load(Ordering::Relaxed), BlockIndex(*block)));
            all.extend(used);
        }
        all.sort_unstable();
        all
    }

    fn throw_out(&self, block: BlockIndex) {
        let entry = lock(self.shard(block)).remove(&block.0);
        if let Some(entry) = entry {
            self.held
                .fetch_sub(entry.close_account(), Ordering::Relaxed);
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn shard(&self, block: BlockIndex) -> &Mutex<HashMap<u32, Arc<Entry>>> {
        let [first, ..] = &self.shards;
        let at = usize::try_from(block.0).unwrap_or(0) % SHARD_COUNT;
        self.shards.get(at).unwrap_or(first)
    }
}
