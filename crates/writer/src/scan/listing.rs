//! One directory as it was read, before it has its place in the tree.

use crate::status::{Status, Time};
use crate::tree::{Detail, FurtherTimes, count_of, usize_of};

/// The number of a directory in the order of discovery, which depends on the threads.
pub(crate) type FoundDir = u32;

/// The entries of a directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) found: Vec<Found>,
    /// What only some entries have, or builds that ask for it.
    asides: Vec<Aside>,
    pub(crate) names: Vec<u8>,
    pub(crate) targets: Vec<u8>,
}

/// An entry; offsets count from the start of the listing's own names and targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) name_offset: u32,
    pub(crate) name_len: u16,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    /// A directory's number is that of its discovery.
    pub(crate) detail: Detail,
    /// The place in the listing's asides.
    aside: u32,
}

/// What is kept apart, so that a million plain files do without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside {
    pub(crate) further_times: FurtherTimes,
    /// Device and inode number of a regular file with other names.
    pub(crate) linked: Option<(u64, u64)>,
    /// How many names the file has, within the input or not; 1 for what is no regular file.
    pub(crate) nlink: u32,
    /// The place in the list, if the input is one.
    pub(crate) list_place: u32,
}

/// What entries have that have nothing aside.
const NOTHING_ASIDE: Aside = Aside {
    further_times: FurtherTimes {
        atime: Time { sec: 0, nsec: 0 },
        ctime: Time { sec: 0, nsec: 0 },
    },
    linked: None,
    nlink: 1,
    list_place: u32::MAX,
};

/// Stands for [`NOTHING_ASIDE`].
const NO_ASIDE: u32 = u32::MAX;

impl Listing {
    /// Appends an entry without sorting it in.
    ///
    /// Times of access and of change are kept if `keep_further_times` says so.
    pub(crate) fn push(
        &mut self,
        name: &[u8],
        status: &Status,
        detail: Detail,
        keep_further_times: bool,
    ) -> &mut Found {
        let is_linked = matches!(detail, Detail::Regular { .. }) && status.nlink > 1;
        // A directory of 2^32 bytes of names does not end in our lifetime.
        let name_offset = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let found = Found {
            name_offset,
            name_len: name_len(name),
            mode: status.mode,
            uid: status.uid,
            gid: status.gid,
            mtime: status.mtime,
            detail,
            aside: NO_ASIDE,
        };
        self.names.extend_from_slice(name);
        let index = self.found.len();
        self.found.push(found);
        if is_linked || keep_further_times {
            let aside = Aside {
                further_times: FurtherTimes {
                    atime: status.atime,
                    ctime: status.ctime,
                },
                linked: is_linked.then_some(status.id),
                nlink: if is_linked { status.nlink } else { 1 },
                ..NOTHING_ASIDE
            };
            self.put_aside(index, aside);
        }
        &mut self.found[index]
    }

    /// Gives an entry something aside, or something else than it had.
    fn put_aside(&mut self, index: usize, aside: Aside) {
        // As many as there are names at most, see `push`.
        self.found[index].aside = count_of(self.asides.len());
        self.asides.push(aside);
    }

    /// Returns what an entry has aside.
    pub(crate) fn aside(&self, found: &Found) -> &Aside {
        self.asides
            .get(found.aside as usize)
            .unwrap_or(&NOTHING_ASIDE)
    }

    /// Gives back what was reserved in vain; a listing stays as it is until it becomes part of the tree.
    pub(crate) fn shrink(&mut self) {
        self.found.shrink_to_fit();
        self.asides.shrink_to_fit();
        self.names.shrink_to_fit();
        self.targets.shrink_to_fit();
    }

    pub(crate) fn name(&self, found: &Found) -> &[u8] {
        name_in(&self.names, found)
    }

    pub(crate) fn target(&self, offset: u64, len: u16) -> &[u8] {
        let start = usize_of(offset);
        &self.targets[start..start + usize::from(len)]
    }

    /// Sorts by the bytes of the names, whatever order the file system has; equal names stay in the order found.
    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        self.found.sort_unstable_by(|a, b| {
            let places = || a.name_offset.cmp(&b.name_offset);
            name_in(names, a).cmp(name_in(names, b)).then_with(places)
        });
    }

    /// Drops all but the first of equal names from a sorted listing, and hands what goes to `dropped`.
    ///
    /// A directory that changes while it is read may list a name twice (POSIX leaves that open); an image must not.
    pub(crate) fn drop_repeated(&mut self, dropped: impl Fn(&Found)) {
        let names = &self.names;
        self.found.dedup_by(|later, earlier| {
            let is_repeated = name_in(names, later) == name_in(names, earlier);
            if is_repeated {
                dropped(later);
            }
            is_repeated
        });
    }

    /// Takes over the entry `found` of `from`, under another name and with its place in the list.
    pub(crate) fn take_over(
        &mut self,
        name: &[u8],
        list_place: u32,
        mut found: Found,
        from: &Self,
    ) {
        let aside = Aside {
            list_place,
            ..*from.aside(&found)
        };
        found.name_offset = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        found.name_len = name_len(name);
        self.names.extend_from_slice(name);
        if let Detail::Symlink { offset, len } = &mut found.detail {
            let start = usize_of(*offset);
            *offset = self.targets.len() as u64;
            let target = &from.targets[start..start + usize::from(*len)];
            self.targets.extend_from_slice(target);
        }
        self.found.push(found);
        self.put_aside(self.found.len() - 1, aside);
    }
}

/// The length of a name that [`super::entry`] has let through, or of a path of a list, which is not looked at again.
fn name_len(name: &[u8]) -> u16 {
    u16::try_from(name.len()).unwrap_or(u16::MAX)
}

/// Returns the name of an entry out of those of its listing.
fn name_in<'a>(names: &'a [u8], found: &Found) -> &'a [u8] {
    let start = found.name_offset as usize;
    &names[start..start + usize::from(found.name_len)]
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn repeated_names_are_dropped() {
        let dir = tempfile::tempdir().expect("a directory");
        let opened = std::fs::File::open(dir.path()).expect("opened");
        let status = Status::of_file(opened).expect("a status");
        let file = |size| Detail::Regular {
            size,
            maybe_sparse: false,
        };
        let subdir = Detail::Directory {
            number: FoundDir::MAX,
        };
        let mut listing = Listing::default();
        for (name, detail) in [
            ("b", file(1)),
            ("d", subdir),
            ("a", file(2)),
            ("d", subdir),
            ("b", file(3)),
            ("ab", file(4)),
            ("b", file(5)),
        ] {
            listing.push(name.as_bytes(), &status, detail, false);
        }
        listing.sort();
        let dropped = RefCell::new(Vec::new());
        listing.drop_repeated(|found| dropped.borrow_mut().push(format!("{:?}", found.detail)));

        let kept = listing.found.iter();
        let kept: Vec<_> = kept
            .map(|found| (listing.name(found), format!("{:?}", found.detail)))
            .collect();
        let text = |detail: Detail| format!("{detail:?}");
        assert_eq!(
            kept,
            [
                (&b"a"[..], text(file(2))),
                (b"ab", text(file(4))),
                (b"b", text(file(1))),
                (b"d", text(subdir)),
            ]
        );
        assert_eq!(
            dropped.into_inner(),
            [text(file(3)), text(file(5)), text(subdir)]
        );
    }
}
