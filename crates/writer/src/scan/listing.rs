//! One directory as it was read, before it has its place in the tree.

use crate::status::{Status, Time};
use crate::tree::{Detail, FurtherTimes, usize_of};

/// The number of a directory in the order of discovery, which depends on the threads.
pub(crate) type FoundDir = u32;

/// The entries of a directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) found: Vec<Found>,
    pub(crate) names: Vec<u8>,
    pub(crate) targets: Vec<u8>,
    /// How many names each regular file with several has, by the offset of the name.
    nlinks: Vec<(u32, u32)>,
}

/// An entry; offsets count from the start of the listing's own names and targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) name_offset: u32,
    pub(crate) name_len: u8,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) further_times: FurtherTimes,
    /// Device and inode number of a regular file with other names.
    pub(crate) linked: Option<(u64, u64)>,
    /// A directory's number is that of its discovery.
    pub(crate) detail: Detail,
    /// The place in the list, if the input is one.
    pub(crate) list_place: u32,
}

impl Listing {
    /// Appends an entry without sorting it in.
    pub(crate) fn push(&mut self, name: &[u8], status: &Status, detail: Detail) -> &mut Found {
        let is_linked = matches!(detail, Detail::Regular { .. }) && status.nlink > 1;
        // The kernel limits a name to 255 bytes; a directory of 2^32 bytes of names does not end in our lifetime.
        let name_offset = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        if is_linked {
            self.nlinks.push((name_offset, status.nlink));
        }
        let found = Found {
            name_offset,
            name_len: u8::try_from(name.len()).unwrap_or(u8::MAX),
            mode: status.mode,
            uid: status.uid,
            gid: status.gid,
            mtime: status.mtime,
            further_times: FurtherTimes {
                atime: status.atime,
                ctime: status.ctime,
            },
            linked: is_linked.then_some(status.id),
            detail,
            list_place: u32::MAX,
        };
        self.names.extend_from_slice(name);
        let index = self.found.len();
        self.found.push(found);
        &mut self.found[index]
    }

    pub(crate) fn name(&self, found: &Found) -> &[u8] {
        let start = found.name_offset as usize;
        &self.names[start..start + usize::from(found.name_len)]
    }

    /// Returns how many names a regular file has, and 1 for anything else.
    pub(crate) fn nlink(&self, found: &Found) -> u32 {
        // Names are only appended, so that their offsets ascend.
        let place = self
            .nlinks
            .binary_search_by_key(&found.name_offset, |(offset, _)| *offset);
        place.map_or(1, |place| self.nlinks[place].1)
    }

    pub(crate) fn target(&self, offset: u64, len: u16) -> &[u8] {
        let start = usize_of(offset);
        &self.targets[start..start + usize::from(len)]
    }

    /// Sorts by the bytes of the names, whatever order the file system has.
    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        let name = |found: &Found| {
            let start = found.name_offset as usize;
            &names[start..start + usize::from(found.name_len)]
        };
        self.found.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    }
}

impl Found {
    /// Moves the entry, the only one of `from`, over to `listing` under another name.
    pub(crate) fn rebase(&mut self, listing: &mut Listing, name: &[u8], from: &Listing) {
        self.name_offset = u32::try_from(listing.names.len()).unwrap_or(u32::MAX);
        self.name_len = u8::try_from(name.len()).unwrap_or(u8::MAX);
        listing.names.extend_from_slice(name);
        if let [(_, nlink)] = from.nlinks[..] {
            listing.nlinks.push((self.name_offset, nlink));
        }
        if let Detail::Symlink { offset, .. } = &mut self.detail {
            *offset = listing.targets.len() as u64;
            listing.targets.extend_from_slice(&from.targets);
        }
    }
}
