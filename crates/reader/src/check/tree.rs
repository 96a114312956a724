//! The tree: every directory has one name and hangs below the root, and names can be looked up.

use durin_format::{InodeNum, Result};

use crate::dir::is_valid_name;
use crate::image::Image;
use crate::metadata::Metadata;

/// Marks a directory that no entry has named yet.
const UNNAMED: u32 = u32::MAX;

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    let count = index(metadata.partition.directory_count());
    let mut tree = Tree {
        metadata,
        parents: vec![UNNAMED; count],
        self_entries: vec![0; count],
    };
    let mut names = Names::default();
    for dir in 0..metadata.partition.directory_count() {
        names.begin();
        for entry in metadata.entry_range(InodeNum(dir))? {
            names.check(image, entry)?;
            tree.add(dir, entry)?;
        }
    }
    tree.check_all_named()?;
    tree.check_all_below_root()?;
    tree.check_stored()
}

/// Compares each name with the one before.
#[derive(Default)]
struct Names {
    before: Vec<u8>,
    buf: Vec<u8>,
}

impl Names {
    /// Begins a directory.
    fn begin(&mut self) {
        self.before.clear();
    }

    fn check(&mut self, image: &Image, entry: u32) -> Result<()> {
        let name = image.name(entry, &mut self.buf)?;
        let wrong = |what: &str| {
            let name = name.escape_ascii();
            Err(image
                .metadata()
                .corrupt(format!("directory entry {entry}: name \"{name}\" {what}")))
        };
        if !is_valid_name(name) {
            return wrong("is not allowed");
        }
        // No name is empty, so the empty one before the first is smaller than any.
        if name <= self.before.as_slice() {
            return wrong("is not in order or occurs twice");
        }
        self.before.clear();
        self.before.extend_from_slice(name);
        Ok(())
    }
}

/// What the entries say about directories.
struct Tree<'a> {
    metadata: &'a Metadata,
    /// The directory that holds each directory.
    parents: Vec<u32>,
    /// The entry that names each directory.
    self_entries: Vec<u32>,
}

impl Tree<'_> {
    /// Notes that directory `dir` has entry `entry`.
    fn add(&mut self, dir: u32, entry: u32) -> Result<()> {
        let inode = self.metadata.inode_of_entry(entry)?;
        let at = index(inode.0);
        let Some(parent) = self.parents.get_mut(at) else {
            return Ok(());
        };
        if inode.0 == 0 || *parent != UNNAMED {
            return Err(self.metadata.corrupt(format!(
                "directory entry {entry}: directory {inode} has a name already"
            )));
        }
        *parent = dir;
        if let Some(self_entry) = self.self_entries.get_mut(at) {
            *self_entry = entry;
        }
        Ok(())
    }

    fn check_all_named(&self) -> Result<()> {
        match self
            .parents
            .iter()
            .skip(1)
            .position(|parent| *parent == UNNAMED)
        {
            Some(at) => Err(self
                .metadata
                .corrupt(format!("directory {} has no name", at + 1))),
            None => Ok(()),
        }
    }

    /// Follows the parents of each directory up to one that is known to be below the root. Every directory is passed
    /// twice at most, and a path longer than there are directories is a circle.
    fn check_all_below_root(&self) -> Result<()> {
        let count = self.parents.len();
        let mut below = vec![false; count];
        if let Some(root) = below.first_mut() {
            *root = true;
        }
        let is_below = |below: &[bool], dir: usize| below.get(dir).copied().unwrap_or(false);
        let parent = |dir: usize| self.parents.get(dir).map_or(0, |parent| index(*parent));
        for start in 0..count {
            let mut dir = start;
            let mut steps = 0;
            while !is_below(&below, dir) {
                dir = parent(dir);
                steps += 1;
                if steps > count {
                    return Err(self
                        .metadata
                        .corrupt(format!("directory {start} contains itself")));
                }
            }
            let mut dir = start;
            while !is_below(&below, dir) {
                if let Some(mark) = below.get_mut(dir) {
                    *mark = true;
                }
                dir = parent(dir);
            }
        }
        Ok(())
    }

    /// Compares the stored parents and self entries with the entries.
    fn check_stored(&self) -> Result<()> {
        let metadata = self.metadata;
        let options = metadata.tables.options.unwrap_or_default();
        if options.packed_directories {
            return Ok(());
        }
        let directories = &metadata.tables.directories;
        // Before release 0.11 there were no self entries, which shows in the schema only.
        let has_self_entries = directories.self_entry.bits() > 0;
        for (dir, parent) in (0_u32..).zip(&self.parents).skip(1) {
            let expected = if metadata.is_legacy {
                *parent
            } else {
                self.self_entries.get(index(*parent)).copied().unwrap_or(0)
            };
            self.same(&directories.parent_entry, dir, expected, "parent_entry")?;
            if has_self_entries {
                let expected = self.self_entries.get(index(dir)).copied().unwrap_or(0);
                self.same(&directories.self_entry, dir, expected, "self_entry")?;
            }
        }
        Ok(())
    }

    fn same(
        &self,
        column: &durin_format::frozen::view::Column,
        dir: u32,
        expected: u32,
        what: &str,
    ) -> Result<()> {
        let found = self.metadata.value32(column, dir.into(), "directories")?;
        if found == expected {
            return Ok(());
        }
        Err(self.metadata.corrupt(format!(
            "directory {dir}: expected {what} {expected}, found {found}"
        )))
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
