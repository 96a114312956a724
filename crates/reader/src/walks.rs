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
/// Files of a walk that count for how many it leaves out. Older ones fade.
const REMEMBERED: u32 = 16;

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
    /// Which of the entries behind the last one are files, as far as they have been looked at; the next is the lowest bit.
    files: u64,
    /// Files that were read of those that had been looked at.
    taken: u32,
    /// Files that were not.
    left_out: u32,
    /// When it was read, as the number of files begun.
    used: u64,
}

/// What came of looking at an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It is a file, whose beginning is or will be decoded where that was wanted.
    File,
    /// There is nothing to decode.
    Other,
    /// There is no such entry, or all worker threads have enough to do.
    Refused,
}

/// Whether what is looked at is to be decoded, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decode {
    Yes,
    /// The program leaves out most files.
    No,
}

impl Walk {
    /// Goes on to an entry, which is behind the last one and no farther than [`GAP_MAX`].
    fn go_to(&mut self, entry: u32, now: u64) {
        let passed = entry.wrapping_sub(self.last).wrapping_sub(1) % GAP_MAX;
        let of_passed = (1 << passed) - 1;
        self.left_out += (self.files & of_passed).count_ones();
        self.taken += u32::from(self.files >> passed & 1 == 1);
        self.files >>= passed + 1;
        if self.taken + self.left_out > REMEMBERED {
            self.taken /= 2;
            self.left_out /= 2;
        }
        self.last = entry;
        self.run = self.run.saturating_add(1);
        self.used = now;
    }

    /// Whether what comes next is worth decoding: not for who leaves out more files than it reads.
    fn decode(&self) -> Decode {
        if self.left_out > self.taken {
            Decode::No
        } else {
            Decode::Yes
        }
    }

    /// Looks at entries behind the last one that have not been looked at. What they begin with is decoded once enough
    /// files were read in order; of the entries behind the file before that, they show whether the program leaves out any.
    fn look_ahead(&mut self, mut look: impl FnMut(u32, Decode) -> Look) {
        let next = self.last.saturating_add(1);
        let (count, decode) = match self.run {
            RUN_MIN.. => (LOOK_AHEAD_COUNT, self.decode()),
            run if run + 1 == RUN_MIN => (GAP_MAX, Decode::No),
            // A reader of files here and there has nothing looked at.
            _ => return,
        };
        // What was only looked at so far is to be decoded, too.
        self.ahead = if self.run == RUN_MIN {
            next
        } else {
            self.ahead.max(next)
        };
        while self.ahead < next.saturating_add(count) {
            match look(self.ahead, decode) {
                Look::File => self.files |= 1 << (self.ahead - next),
                Look::Other => {}
                Look::Refused => break,
            }
            self.ahead += 1;
        }
    }
}

impl Walks {
    /// Notes that the file of `entry` is begun, and calls `look` with entries behind it that have not been looked at, in
    /// order, until one is refused.
    fn come_to(&self, entry: u32, now: u64, look: impl FnMut(u32, Decode) -> Look) {
        let mut walks = match self.walks.try_lock() {
            Ok(walks) => walks,
            Err(TryLockError::Poisoned(walks)) => PoisonError::into_inner(walks),
            // Somebody else is at it, who has the worker threads busy.
            Err(TryLockError::WouldBlock) => return,
        };
        let goes_on = |walk: &&mut Walk| walk.run > 0 && entry.wrapping_sub(walk.last) <= GAP_MAX;
        let walk = match walks.iter_mut().find(goes_on) {
            // Read again.
            Some(walk) if walk.last == entry => return,
            Some(walk) => {
                walk.go_to(entry, now);
                walk
            }
            None => {
                let Some(oldest) = walks.iter_mut().min_by_key(|walk| walk.used) else {
                    return;
                };
                *oldest = Walk {
                    last: entry,
                    run: 1,
                    used: now,
                    ..Walk::default()
                };
                oldest
            }
        };
        walk.look_ahead(look);
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
            let look = |entry, decode| self.look_at(entry, decode).unwrap_or(Look::Other);
            self.walks().come_to(*entry, now, look);
        }
    }

    /// Has the beginning of the file of an entry decoded, if it is one and that is wanted.
    fn look_at(&self, entry: u32, decode: Decode) -> Result<Look> {
        let metadata = self.metadata();
        if entry >= metadata.entry_count {
            return Ok(Look::Refused);
        }
        let Ok(content) = self.content_number(metadata.inode_of_entry(entry)?) else {
            return Ok(Look::Other);
        };
        let extents = self.extents_from(content, 0)?.take(EXTENTS_MAX);
        let extents = extents.map_while(Result::ok);
        let mut found = Look::Other;
        for extent in extents.take_while(|extent| extent.offset < AHEAD_LEN) {
            if let Place::Data { block, offset } = extent.place {
                found = Look::File;
                if decode == Decode::No {
                    break;
                }
                let len = extent.len.min(AHEAD_LEN - extent.offset);
                if !self.cache().prefetch_to(block, u64::from(offset) + len) {
                    return Ok(Look::Refused);
                }
            }
        }
        Ok(found)
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
        walks.come_to(entry, *now, |entry, decode| {
            if decode == Decode::Yes {
                all.push(entry);
            }
            Look::File
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
    fn who_leaves_out_most_files_has_none_decoded() {
        let (walks, mut now) = (Walks::default(), 0);
        for entry in (100..200).step_by(3) {
            assert_eq!(looked_at(&walks, &mut now, entry), NONE);
        }
        // Every other file is worth it, as is who has changed his mind.
        for entry in (300..340).step_by(2) {
            let all = looked_at(&walks, &mut now, entry);
            assert_eq!(all.is_empty(), entry < 304, "{entry}: {all:?}");
        }
        let found = (199..240).map(|entry| looked_at(&walks, &mut now, entry));
        assert!(found.skip(30).all(|all| all.len() == 1));
    }

    #[test]
    fn what_is_no_file_is_not_left_out() {
        let walks = Walks::default();
        let mut all = Vec::new();
        for entry in (100..200).step_by(4) {
            walks.come_to(entry, entry.into(), |entry, decode| match entry % 4 {
                0 => {
                    all.push((entry, decode));
                    Look::File
                }
                _ => Look::Other,
            });
        }
        let decoded = all.iter().filter(|(_, decode)| *decode == Decode::Yes);
        // From the third file on, some entries farther than the last one.
        assert_eq!(decoded.count(), 22 + 8);
    }

    #[test]
    fn what_was_refused_is_looked_at_again() {
        let (walks, mut now) = (Walks::default(), 0);
        for entry in [7, 8] {
            looked_at(&walks, &mut now, entry);
        }
        let mut refused = Vec::new();
        walks.come_to(9, 9, |entry, _| {
            refused.push(entry);
            if entry < 12 {
                Look::File
            } else {
                Look::Refused
            }
        });
        assert_eq!(refused, [10, 11, 12]);
        assert_eq!(looked_at(&walks, &mut now, 10).first(), Some(&12));
    }

    #[test]
    fn neither_random_reads_nor_the_last_entries_are_walks() {
        let (walks, mut now) = (Walks::default(), 0);
        for entry in (0..1000_u32).map(|n| n.wrapping_mul(0x9e37_79b9) >> 8) {
            now += 1;
            walks.come_to(entry, now, |_, _| panic!("nothing is looked at"));
        }
        for entry in [u32::MAX - 4, u32::MAX - 3, u32::MAX - 2] {
            looked_at(&walks, &mut now, entry);
        }
    }
}
