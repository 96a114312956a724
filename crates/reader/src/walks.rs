//! Programs that read one file after the other as they stand in the directories: `tar`, `cp -r`, `grep -r`, checksums.
//!
//! Similar files share blocks, so such a program hops from block to block, and each block would be decoded a bit further
//! while it waits. So the files behind the one it has come to are looked at, and what they begin with is decoded by the
//! worker threads: nothing that would not be decoded a moment later, but meanwhile.
//!
//! Files are told apart by their places among the directory entries, which are in the order of the directories and, within
//! each, of the names. **Memory**: 4 bytes for each regular file, from the first such program on.

use durin_format::{InodeNum, Result};

use crate::chunks::Place;
use crate::image::Image;
use crate::sync::{AtomicU64, Mutex, Ordering, PoisonError, TryLockError};

/// Readers that are told apart, and directories that one reader has left for those below them.
const WALK_COUNT: usize = 16;
/// Entries that may lie between two files of a walk: directories, links, and files that are empty or not wanted.
const GAP_MAX: u32 = 8;
/// Files in order that make a walk. Two or three may be by chance.
const RUN_MIN: u32 = 3;
/// Entries looked at behind the file that is read. They cost it a microsecond or two.
const LOOK_AHEAD_COUNT: u32 = 32;
/// How much of a file is decoded ahead: what the kernel asks for first. More follows as it reads on.
const AHEAD_LEN: u64 = 512 << 10;
/// Pieces of a file that are looked at.
const EXTENTS_MAX: usize = 32;
/// Files begun before anybody looks where they stand: who reads a few only is never a walk.
const BEGUN_MIN: u64 = 16;

/// Marks a file that no entry names.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// What has been read in order so far.
#[derive(Default)]
pub(crate) struct Walks {
    begun: AtomicU64,
    walks: Mutex<[Walk; WALK_COUNT]>,
}

/// One reader in one directory.
#[derive(Clone, Copy, Default)]
struct Walk {
    /// The entry of the file read last.
    last: u32,
    /// The first entry that has not been looked at.
    ahead: u32,
    /// Files in order so far.
    run: u32,
    /// When it was read, as the number of files begun.
    used: u64,
}

impl Walks {
    /// Notes that the file of `entry` is begun. If that makes or continues a walk, calls `look` with entries behind it
    /// that have not been looked at, in order, until that returns false.
    fn come_to(&self, entry: u32, now: u64, mut look: impl FnMut(u32) -> bool) {
        let mut walks = match self.walks.try_lock() {
            Ok(walks) => walks,
            Err(TryLockError::Poisoned(walks)) => PoisonError::into_inner(walks),
            // Somebody else is at it, who has the worker threads busy.
            Err(TryLockError::WouldBlock) => return,
        };
        let goes_on = |walk: &&mut Walk| walk.run > 0 && entry.wrapping_sub(walk.last) <= GAP_MAX;
        let Some(walk) = walks.iter_mut().find(goes_on) else {
            if let Some(oldest) = walks.iter_mut().min_by_key(|walk| walk.used) {
                *oldest = Walk {
                    last: entry,
                    ahead: entry.saturating_add(1),
                    run: 1,
                    used: now,
                };
            }
            return;
        };
        if walk.last == entry {
            // Read again.
            return;
        }
        walk.last = entry;
        walk.run = walk.run.saturating_add(1);
        walk.used = now;
        if walk.run < RUN_MIN {
            return;
        }
        walk.ahead = walk.ahead.max(entry.saturating_add(1));
        let end = entry.saturating_add(1 + LOOK_AHEAD_COUNT);
        while walk.ahead < end && look(walk.ahead) {
            walk.ahead += 1;
        }
    }
}

impl Image {
    /// Notes that a file is being read from its beginning, and has those decoded that come next, if that shows which.
    pub(crate) fn begin_file(&self, inode: InodeNum) {
        if !self.cache().follows_walks() {
            return;
        }
        let now = self.walks().begun.fetch_add(1, Ordering::Relaxed);
        if now < BEGUN_MIN {
            return;
        }
        let entries = self.metadata().entries_of_files();
        let rank = inode.0.checked_sub(self.metadata().partition.first_regular);
        let entry = rank.and_then(|rank| entries.get(usize::try_from(rank).ok()?));
        if let Some(entry) = entry.filter(|entry| **entry != NO_ENTRY) {
            // What is wrong with a file is found by whoever reads it.
            let look = |entry| self.decode_beginning(entry).unwrap_or(true);
            self.walks().come_to(*entry, now, look);
        }
    }

    /// Has the beginning of the file of an entry decoded, if it is one; false if there is no such entry, or all worker
    /// threads have enough to do.
    fn decode_beginning(&self, entry: u32) -> Result<bool> {
        let metadata = self.metadata();
        if entry >= metadata.entry_count {
            return Ok(false);
        }
        let Ok(content) = self.content_number(metadata.inode_of_entry(entry)?) else {
            return Ok(true);
        };
        let extents = self.extents_from(content, 0)?.take(EXTENTS_MAX);
        let extents = extents.map_while(Result::ok);
        for extent in extents.take_while(|extent| extent.offset < AHEAD_LEN) {
            if let Place::Data { block, offset } = extent.place {
                let len = extent.len.min(AHEAD_LEN - extent.offset);
                if !self.cache().prefetch_to(block, u64::from(offset) + len) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u32; 0] = [];

    /// The entries that are looked at when a file is begun.
    fn looked_at(walks: &Walks, now: &mut u64, entry: u32) -> Vec<u32> {
        let mut all = Vec::new();
        *now += 1;
        walks.come_to(entry, *now, |entry| {
            all.push(entry);
            true
        });
        all
    }

    #[test]
    fn files_in_order_make_a_walk() {
        let (walks, mut now) = (Walks::default(), 0);
        assert_eq!(looked_at(&walks, &mut now, 100), NONE);
        assert_eq!(looked_at(&walks, &mut now, 101), NONE);
        let all: Vec<u32> = (104..=103 + LOOK_AHEAD_COUNT).collect();
        assert_eq!(looked_at(&walks, &mut now, 103), all);
        // Each entry is looked at once.
        assert_eq!(looked_at(&walks, &mut now, 104), [104 + LOOK_AHEAD_COUNT]);
        assert_eq!(looked_at(&walks, &mut now, 104), NONE);
        // A directory in between is another walk, after which the first one goes on.
        assert_eq!(looked_at(&walks, &mut now, 5000), NONE);
        assert_eq!(looked_at(&walks, &mut now, 106).len(), 2);
        assert_eq!(looked_at(&walks, &mut now, 107 + GAP_MAX), NONE);
    }

    #[test]
    fn what_was_refused_is_looked_at_again() {
        let (walks, mut now) = (Walks::default(), 0);
        for entry in [7, 8] {
            looked_at(&walks, &mut now, entry);
        }
        let mut refused = Vec::new();
        walks.come_to(9, 9, |entry| {
            refused.push(entry);
            entry < 12
        });
        assert_eq!(refused, [10, 11, 12]);
        assert_eq!(looked_at(&walks, &mut now, 10).first(), Some(&12));
    }

    #[test]
    fn neither_random_reads_nor_the_last_entries_are_walks() {
        let (walks, mut now) = (Walks::default(), 0);
        for entry in (0..1000_u32).map(|n| n.wrapping_mul(0x9e37_79b9) >> 8) {
            assert_eq!(looked_at(&walks, &mut now, entry), NONE);
        }
        for entry in [u32::MAX - 4, u32::MAX - 3, u32::MAX - 2] {
            looked_at(&walks, &mut now, entry);
        }
    }
}
