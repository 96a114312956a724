//! From listings in the order of discovery to the tree, whose order depends on nothing but the names.

use durin_format::{Error, Result};

use super::listing::{FoundDir, Listing};
use crate::status::Status;
use crate::tree::{
    Detail, Dir, DirIndex, Entry, EntryIndex, FurtherTimes, LinkedEntry, Tree, count_of,
};

/// The most entries of an image.
///
/// The format stores their places in 32 bits and the reference compares some of them as signed numbers.
const ENTRIES_MAX: usize = i32::MAX as usize;

/// What the tree is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembly {
    pub(crate) keep_further_times: bool,
    pub(crate) is_list: bool,
}

/// Removes directories without entries, again and again until none is left, and returns how many; the root stays.
pub(crate) fn remove_empty_dirs(listings: &mut [Listing]) -> u64 {
    let mut removed = 0;
    let mut empty = vec![false; listings.len()];
    // A directory is discovered after the one it lies in, so that going backwards meets children first.
    for (number, listing) in listings.iter_mut().enumerate().rev() {
        let count = listing.found.len();
        listing.found.retain(|found| match found.detail {
            Detail::Directory { number } => !empty[number as usize],
            _ => true,
        });
        removed += (count - listing.found.len()) as u64;
        empty[number] = listing.found.is_empty();
    }
    removed
}

impl Assembly {
    /// Joins the listings, of which the first is the root's; each is freed as soon as it is part of the tree.
    pub(crate) fn run(self, root: &Status, mut listings: Vec<Listing>) -> Result<Tree> {
        let mut tree = Tree::default();
        self.reserve(&mut tree, &listings);
        self.push_root(&mut tree, root);
        let mut pending: Vec<(EntryIndex, FoundDir)> = vec![(0, 0)];
        while let Some((self_entry, found_dir)) = pending.pop() {
            let number = count_of(tree.dirs.len());
            tree.entries[self_entry as usize].detail = Detail::Directory { number };
            tree.dirs.push(Dir {
                self_entry,
                first_entry: count_of(tree.entries.len()),
            });
            let listing = std::mem::take(&mut listings[found_dir as usize]);
            if tree.entries.len() + listing.found.len() > ENTRIES_MAX {
                return Err(Error::limit(format!(
                    "more than {ENTRIES_MAX} entries do not fit into an image"
                )));
            }
            let first_child = pending.len();
            self.push_listing(&mut tree, number, &listing, &mut pending);
            pending[first_child..].reverse();
        }
        Ok(tree)
    }

    /// Makes room for all there is: a table that grows takes twice its memory, and has more than it needs in the end.
    fn reserve(self, tree: &mut Tree, listings: &[Listing]) {
        let sum = |len: &dyn Fn(&Listing) -> usize| listings.iter().map(len).sum::<usize>();
        let entries = 1 + sum(&|listing| listing.found.len());
        tree.entries.reserve_exact(entries);
        tree.dirs.reserve_exact(listings.len());
        tree.names
            .reserve_exact(sum(&|listing| listing.names.len()));
        tree.targets
            .reserve_exact(sum(&|listing| listing.targets.len()));
        if self.keep_further_times {
            tree.further_times.reserve_exact(entries);
        }
        if self.is_list {
            tree.list_places.reserve_exact(entries);
        }
    }

    fn push_root(self, tree: &mut Tree, root: &Status) {
        tree.entries.push(Entry {
            name_offset: 0,
            name_len: 0,
            mode: root.mode,
            uid: root.uid,
            gid: root.gid,
            dir: 0,
            mtime: root.mtime,
            detail: Detail::Directory { number: 0 },
        });
        if self.keep_further_times {
            tree.further_times.push(FurtherTimes {
                atime: root.atime,
                ctime: root.ctime,
            });
        }
        if self.is_list {
            tree.list_places.push(u32::MAX);
        }
    }

    fn push_listing(
        self,
        tree: &mut Tree,
        dir: DirIndex,
        listing: &Listing,
        pending: &mut Vec<(EntryIndex, FoundDir)>,
    ) {
        let names_start = tree.names.len() as u64;
        let targets_start = tree.targets.len() as u64;
        for found in &listing.found {
            let index = count_of(tree.entries.len());
            let detail = match found.detail {
                Detail::Directory { number } => {
                    pending.push((index, number));
                    found.detail
                }
                Detail::Symlink { offset, len } => Detail::Symlink {
                    offset: targets_start + offset,
                    len,
                },
                other => other,
            };
            tree.entries.push(Entry {
                name_offset: names_start + u64::from(found.name_offset),
                name_len: found.name_len,
                mode: found.mode,
                uid: found.uid,
                gid: found.gid,
                dir,
                mtime: found.mtime,
                detail,
            });
            let aside = listing.aside(found);
            if self.keep_further_times {
                tree.further_times.push(aside.further_times);
            }
            if self.is_list {
                tree.list_places.push(aside.list_place);
            }
            if let Some(id) = aside.linked {
                tree.linked.push(LinkedEntry { entry: index, id });
            }
        }
        tree.names.extend_from_slice(&listing.names);
        tree.targets.extend_from_slice(&listing.targets);
    }
}
