//! From names and paths to inodes.

use std::cmp::Ordering;

use durin_format::{InodeNum, Result};

use crate::dir::is_valid_name;
use crate::image::{EntryRef, Image};
use crate::metadata::Rank;
use crate::perfmon::{Operation, Perfmon};

impl Image {
    /// Returns the entry called `name` in a directory.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `dir` is no directory, `Corrupt` if a value in the metadata is wrong.
    pub fn lookup(&self, dir: InodeNum, name: &[u8]) -> Result<Option<EntryRef>> {
        let _timer = Perfmon::start(self.perfmon(), Operation::Find);
        let metadata = self.metadata();
        let range = metadata.entry_range(dir)?;
        if !is_valid_name(name) {
            return Ok(None);
        }
        let mut buf = Vec::new();
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle, &mut buf)?.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let inode = metadata.inode_of_entry(middle)?;
                    return Ok(Some(EntryRef {
                        inode,
                        entry_index: middle,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Returns what `path` names, from the root. Slashes at the beginning, at the end and in a row do not count;
    /// symlinks are not followed; `.` and `..` are names that nothing has.
    ///
    /// # Errors
    /// `Corrupt` if a value in the metadata is wrong.
    pub fn resolve(&self, path: &[u8]) -> Result<Option<EntryRef>> {
        let mut entry = self.root();
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            if self.metadata().partition.rank(entry.inode) != Some(Rank::Directory) {
                return Ok(None);
            }
            match self.lookup(entry.inode, name)? {
                Some(found) => entry = found,
                None => return Ok(None),
            }
        }
        Ok(Some(entry))
    }
}
