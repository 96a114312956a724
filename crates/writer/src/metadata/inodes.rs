//! Numbering inodes and describing them.

use durin_format::metadata::{InodeData, Inodes};

use super::Described;
use super::contents::ContentTable;
use crate::attributes;
use crate::mode;
use crate::tables::{Units, Values};
use crate::tree::{Detail, EntryIndex, count_of};

/// All inodes by their numbers.
pub(crate) struct InodeTable {
    pub(crate) list: Inodes,
    /// The inode that each entry names.
    pub(crate) of_entry: Vec<u32>,
    pub(crate) uids: Vec<u32>,
    pub(crate) gids: Vec<u32>,
    pub(crate) modes: Vec<u32>,
    pub(crate) devices: Vec<u64>,
    /// What times are counted from; before 1970 in two's complement.
    pub(crate) timestamp_base: u64,
    /// Bytes of all targets of symbolic links.
    pub(crate) target_bytes: u64,
}

/// The entries that stand for inodes, by kind.
#[derive(Default)]
struct ByKind {
    symlinks: Vec<EntryIndex>,
    devices: Vec<EntryIndex>,
    specials: Vec<EntryIndex>,
}

impl InodeTable {
    pub(crate) fn new(described: &Described<'_>, table: &ContentTable) -> Self {
        let tree = described.tree;
        let mut kinds = ByKind::default();
        let mut devices = Vec::new();
        let mut target_bytes = 0;
        for (index, entry) in (0..).zip(&tree.entries) {
            match entry.detail {
                Detail::Symlink { len, .. } => {
                    kinds.symlinks.push(index);
                    target_bytes += u64::from(len);
                }
                Detail::Device { rdev } => {
                    kinds.devices.push(index);
                    devices.push(rdev);
                }
                Detail::Special => kinds.specials.push(index),
                Detail::Directory { .. } | Detail::Regular { .. } => {}
            }
        }
        let dirs = tree.dirs.iter().map(|dir| dir.self_entry);
        let files = table.files.iter();
        let files = files.map(|file| described.files.file(*file).entry);
        let entries: Vec<EntryIndex> = dirs
            .chain(kinds.symlinks)
            .chain(files)
            .chain(kinds.devices)
            .chain(kinds.specials)
            .collect();

        let of_entry = number_entries(described, &entries);
        let mut attributes = Attributes::new(described);
        // Values are met in the order of entries, which keeps neighbours in the table close.
        for (index, inode) in (0..).zip(&of_entry) {
            if entries[*inode as usize] == index {
                attributes.meet(index);
            }
        }
        let list = entries.iter().map(|entry| attributes.inode(*entry));
        Self {
            list: list.collect(),
            of_entry,
            uids: attributes.uids.values,
            gids: attributes.gids.values,
            modes: attributes.modes.values,
            devices,
            timestamp_base: attributes.base.unwrap_or(0).cast_unsigned(),
            target_bytes,
        }
    }
}

/// Returns the inode that each entry names; `entries` has one entry for each inode.
fn number_entries(described: &Described<'_>, entries: &[EntryIndex]) -> Vec<u32> {
    let mut of_entry = vec![0; described.tree.entries.len()];
    for (inode, entry) in (0..).zip(entries) {
        of_entry[*entry as usize] = inode;
    }
    // Further names of a file come after its first.
    for index in 0..count_of(of_entry.len()) {
        if let Some(file) = described.files.of_entry(index) {
            let first = described.files.file(file).entry;
            of_entry[index as usize] = of_entry[first as usize];
        }
    }
    of_entry
}

/// The attributes of entries, changed as the options ask for, and the tables of their values.
struct Attributes<'a> {
    described: &'a Described<'a>,
    uids: Values,
    gids: Values,
    modes: Values,
    /// The earliest stored time.
    base: Option<i64>,
}

impl<'a> Attributes<'a> {
    fn new(described: &'a Described<'a>) -> Self {
        Self {
            described,
            uids: Values::default(),
            gids: Values::default(),
            modes: Values::default(),
            base: None,
        }
    }

    fn meet(&mut self, index: EntryIndex) {
        let changed = self.changed(index);
        self.uids.place(changed.uid);
        self.gids.place(changed.gid);
        self.modes.place(changed.mode);
        let earliest = changed.times.map(|time| time.whole);
        self.base = earliest.into_iter().chain(self.base).min();
    }

    fn inode(&mut self, index: EntryIndex) -> InodeData {
        let changed = self.changed(index);
        let [mtime, atime, ctime] = changed.times;
        let base = self.base.unwrap_or(0);
        let nlink = match self.described.files.of_entry(index) {
            Some(file) if self.described.context.options.hardlink_table => {
                self.described.files.file(file).nlink
            }
            _ => 1,
        };
        let mut inode = InodeData {
            mode_index: self.modes.place(changed.mode),
            owner_index: self.uids.place(changed.uid),
            group_index: self.gids.place(changed.gid),
            mtime_offset: mtime.since(base),
            mtime_subsec: mtime.subsec,
            nlink_minus_one: nlink - 1,
            ..InodeData::default()
        };
        if self.described.context.options.keep_all_times {
            inode.atime_offset = atime.since(base);
            inode.atime_subsec = atime.subsec;
            inode.ctime_offset = ctime.since(base);
            inode.ctime_subsec = ctime.subsec;
        }
        inode
    }

    /// Returns the attributes that the image gets, with times in units.
    fn changed(&self, index: EntryIndex) -> Changed {
        let options = self.described.context.options;
        let tree = self.described.tree;
        let of_image = attributes::of(options, tree, index);
        let times = [of_image.mtime, of_image.atime, of_image.ctime];
        Changed {
            mode: tree.entry(index).mode & mode::TYPE | of_image.permissions,
            uid: of_image.uid,
            gid: of_image.gid,
            times: times.map(|time| Units::of(time, options.time_resolution)),
        }
    }
}

/// What is stored of an entry's attributes.
struct Changed {
    mode: u32,
    uid: u32,
    gid: u32,
    /// Of modification, of access and of change; the first for all if only that is kept.
    times: [Units; 3],
}
