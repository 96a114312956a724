//! The scanned input: flat tables instead of a node per file, so that a million entries take some hundred megabytes.
//!
//! Entries are grouped by directory, directories are numbered in pre-order, and the entries of a directory are sorted
//! by the bytes of their names. This is the layout of an image's own tables, and it depends on nothing but the tree.

use std::cmp::Ordering;
use std::ops::Range;

use crate::status::{Kind, Time};

/// The place of an entry in [`Tree::entries`].
pub(crate) type EntryIndex = u32;
/// The number of a directory, which will be its inode number.
pub(crate) type DirIndex = u32;

/// The entry that stands for the root, which has no name.
pub(crate) const ROOT: EntryIndex = 0;

/// A named entry of a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Bytes from the start of the names.
    pub(crate) name_offset: u64,
    pub(crate) name_len: u16,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The directory in which the entry is.
    pub(crate) dir: DirIndex,
    pub(crate) mtime: Time,
    pub(crate) detail: Detail,
}

/// What is particular to a kind of entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    Directory {
        number: DirIndex,
    },
    /// Where the target is in the targets.
    Symlink {
        offset: u64,
        len: u16,
    },
    Regular {
        size: u64,
        maybe_sparse: bool,
    },
    Device {
        rdev: u64,
    },
    Special,
}

impl Detail {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Directory { .. } => Kind::Directory,
            Self::Symlink { .. } => Kind::Symlink,
            Self::Regular { .. } => Kind::Regular,
            Self::Device { .. } => Kind::Device,
            Self::Special => Kind::Special,
        }
    }
}

/// A directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dir {
    /// The directory's own entry.
    pub(crate) self_entry: EntryIndex,
    /// The first of its entries; they end where those of the next directory begin.
    pub(crate) first_entry: EntryIndex,
}

/// A regular file that has, or had, other names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkedEntry {
    pub(crate) entry: EntryIndex,
    /// Device and inode number.
    pub(crate) id: (u64, u64),
}

/// The times of an entry that are not always wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FurtherTimes {
    pub(crate) atime: Time,
    pub(crate) ctime: Time,
}

/// The whole input.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<Entry>,
    pub(crate) dirs: Vec<Dir>,
    pub(crate) names: Vec<u8>,
    pub(crate) targets: Vec<u8>,
    /// One for each entry, or none at all.
    pub(crate) further_times: Vec<FurtherTimes>,
    /// Whether attributes are final, so that options no longer apply to them.
    pub(crate) is_transformed: bool,
    /// Times of modification that are not those of the input, in the order of entries. The input's own stay with the
    /// entries, because they tell whether a file has changed since the scan.
    pub(crate) changed_mtimes: Vec<(EntryIndex, Time)>,
    /// In the order of entries.
    pub(crate) linked: Vec<LinkedEntry>,
    /// For an input that is a list: the place of each entry in it, or the length of the list.
    pub(crate) list_places: Vec<u32>,
}

impl Tree {
    pub(crate) fn entry(&self, index: EntryIndex) -> &Entry {
        &self.entries[index as usize]
    }

    pub(crate) fn dir(&self, number: DirIndex) -> &Dir {
        &self.dirs[number as usize]
    }

    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        let start = usize_of(entry.name_offset);
        &self.names[start..start + usize::from(entry.name_len)]
    }

    pub(crate) fn target(&self, offset: u64, len: u16) -> &[u8] {
        let start = usize_of(offset);
        &self.targets[start..start + usize::from(len)]
    }

    /// Returns the memory that the tables take.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.entries)
            + bytes_of(&self.dirs)
            + bytes_of(&self.names)
            + bytes_of(&self.targets)
            + bytes_of(&self.further_times)
            + bytes_of(&self.linked)
            + bytes_of(&self.list_places)
    }

    /// Returns the entries of a directory.
    pub(crate) fn children(&self, number: DirIndex) -> Range<EntryIndex> {
        let start = self.dir(number).first_entry;
        let end = match self.dirs.get(number as usize + 1) {
            Some(next) => next.first_entry,
            None => count_of(self.entries.len()),
        };
        start..end
    }

    /// Returns the directory in which the directory lies; the root lies in itself.
    pub(crate) fn parent(&self, number: DirIndex) -> DirIndex {
        self.entry(self.dir(number).self_entry).dir
    }

    /// Returns the path from the root of the input, without a leading `/`.
    pub(crate) fn path(&self, index: EntryIndex) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = index;
        while at != ROOT {
            let entry = self.entry(at);
            names.push(self.name(entry));
            at = self.dir(entry.dir).self_entry;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the path for a message.
    pub(crate) fn display(&self, index: EntryIndex) -> String {
        printable(&self.path(index))
    }

    /// Returns device and inode number of an entry that has, or had, other names.
    pub(crate) fn linked_id(&self, index: EntryIndex) -> Option<(u64, u64)> {
        let place = self.linked.binary_search_by_key(&index, |link| link.entry);
        place.ok().map(|place| self.linked[place].id)
    }

    /// Finds an entry by its path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<EntryIndex> {
        let mut at = ROOT;
        for component in path.split(|byte| *byte == b'/') {
            if component.is_empty() || component == b"." {
                continue;
            }
            let Detail::Directory { number } = self.entry(at).detail else {
                return None;
            };
            at = self.find_child(number, component)?;
        }
        Some(at)
    }

    fn find_child(&self, number: DirIndex, name: &[u8]) -> Option<EntryIndex> {
        let range = self.children(number);
        let entries = &self.entries[range.start as usize..range.end as usize];
        let place = entries
            .binary_search_by(|entry| self.name(entry).cmp(name))
            .ok()?;
        Some(range.start + count_of(place))
    }

    /// Returns for each entry its place among all paths, compared component by component.
    pub(crate) fn path_places(&self) -> Vec<u32> {
        let mut places = vec![0; self.entries.len()];
        let mut next_place = 1;
        let mut open = vec![self.children(0)];
        while let Some(range) = open.last_mut() {
            let Some(index) = range.next() else {
                open.pop();
                continue;
            };
            places[index as usize] = next_place;
            next_place += 1;
            if let Detail::Directory { number } = self.entry(index).detail {
                open.push(self.children(number));
            }
        }
        places
    }

    /// Compares base names, then the names of the parents upwards; the shorter path comes first.
    pub(crate) fn compare_upwards(&self, left: EntryIndex, right: EntryIndex) -> Ordering {
        let (mut left, mut right) = (left, right);
        loop {
            match (left == ROOT, right == ROOT) {
                (true, true) => return Ordering::Equal,
                (true, false) => return Ordering::Less,
                (false, true) => return Ordering::Greater,
                (false, false) => {}
            }
            let (a, b) = (self.entry(left), self.entry(right));
            let order = self.name(a).cmp(self.name(b));
            if order != Ordering::Equal || a.dir == b.dir {
                return order;
            }
            left = self.dir(a.dir).self_entry;
            right = self.dir(b.dir).self_entry;
        }
    }
}

/// Makes a path fit for a message: what is not UTF-8 or would move the cursor is escaped.
pub(crate) fn printable(path: &[u8]) -> String {
    String::from_utf8_lossy(path)
        .chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = escaped.is_none().then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// Returns the memory that a table takes. What it has reserved beyond is left out: that may differ from run to run.
pub(crate) fn bytes_of<T>(table: &[T]) -> u64 {
    size_of_val(table) as u64
}

/// The tables' lengths are limited when they are filled.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
pub(crate) fn count_of(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok(), "{len} entries");
    len as u32
}

/// Only used for offsets into tables that are in memory.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
pub(crate) fn usize_of(offset: u64) -> usize {
    offset as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_on_their_line() {
        assert_eq!(printable("a b/\u{e9}".as_bytes()), "a b/\u{e9}");
        assert_eq!(printable(b"x\n\x1b[2J\x7f"), "x\\n\\u{1b}[2J\\u{7f}");
        assert_eq!(printable(b"\xff"), "\u{fffd}");
    }
}
