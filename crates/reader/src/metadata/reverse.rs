//! What the tables do not say and one scan over the directory entries finds: link counts, and parents that were not
//! stored. Made on first need and kept.

use durin_format::{InodeNum, Result};

use super::Metadata;
use crate::walks::NO_ENTRY;

/// Marks a directory that no entry names.
const NO_PARENT: u32 = u32::MAX;

/// How many entries name each regular inode.
pub(crate) struct LinkCounts {
    /// By rank among the regular inodes.
    counts: Vec<u32>,
}

impl LinkCounts {
    /// The count for the regular inode with this rank.
    pub(crate) fn of(&self, rank: u32) -> Option<u32> {
        self.counts.get(usize::try_from(rank).ok()?).copied()
    }
}

impl Metadata {
    /// Number of entries that name a regular inode, counted; 1 for every other inode, as the reference has it.
    pub(crate) fn link_count(&self, inode: InodeNum) -> Result<u32> {
        let partition = &self.partition;
        if !(partition.first_regular..partition.first_device).contains(&inode.0) {
            return Ok(1);
        }
        if self
            .tables
            .options
            .is_some_and(|options| options.inodes_have_nlink)
        {
            let stored = self.value32(
                &self.tables.inodes.nlink_minus_one,
                inode.0.into(),
                "inodes",
            )?;
            return Ok(stored.saturating_add(1));
        }
        let counts = match self.link_counts.get() {
            Some(counts) => counts,
            // Two threads may both count; they find the same.
            None => {
                let counts = self.count_links()?;
                self.link_counts.get_or_init(|| counts)
            }
        };
        let counted = counts.of(inode.0 - partition.first_regular).unwrap_or(1);
        Ok(counted.max(1))
    }

    /// Counts the entries of all regular inodes.
    pub(crate) fn count_links(&self) -> Result<LinkCounts> {
        let first = self.partition.first_regular;
        let mut counts = vec![0_u32; usize::try_from(self.partition.regular_count()).unwrap_or(0)];
        for entry in 0..self.entry_count {
            let inode = self.inode_of_entry(entry)?;
            let slot = inode
                .0
                .checked_sub(first)
                .and_then(|rank| counts.get_mut(usize::try_from(rank).ok()?));
            if let Some(count) = slot {
                *count = count.saturating_add(1);
            }
        }
        Ok(LinkCounts { counts })
    }

    /// The first entry that names each regular inode, by rank among these; [`NO_ENTRY`] where none does. Damaged entries
    /// name none: whoever reads them is told.
    pub(crate) fn entries_of_files(&self) -> &[u32] {
        if let Some(entries) = self.entries_of_files.get() {
            return entries;
        }
        let first = self.partition.first_regular;
        let count = usize::try_from(self.partition.regular_count()).unwrap_or(0);
        let mut entries = vec![NO_ENTRY; count];
        for entry in (0..self.entry_count).rev() {
            let inode = self.inode_of_entry(entry).ok();
            let rank = inode.and_then(|inode| inode.0.checked_sub(first));
            if let Some(slot) = rank.and_then(|rank| entries.get_mut(usize::try_from(rank).ok()?)) {
                *slot = entry;
            }
        }
        self.entries_of_files.get_or_init(|| entries)
    }

    /// The directory that holds directory `dir`; the root holds itself.
    pub(crate) fn parent_of(&self, dir: InodeNum) -> Result<InodeNum> {
        if dir.0 >= self.partition.directory_count() {
            return Err(self.not_a(dir, "directory"));
        }
        if dir.0 == 0 {
            return Ok(dir);
        }
        let is_packed = self
            .tables
            .options
            .is_some_and(|options| options.packed_directories);
        let parent = if is_packed {
            let parents = self.found_parents()?;
            InodeNum(
                usize::try_from(dir.0)
                    .ok()
                    .and_then(|dir| parents.get(dir))
                    .copied()
                    .unwrap_or(NO_PARENT),
            )
        } else {
            let stored = self.value32(
                &self.tables.directories.parent_entry,
                dir.0.into(),
                "directories",
            )?;
            if self.is_legacy {
                InodeNum(stored)
            } else {
                self.inode_of_entry(stored)?
            }
        };
        if parent.0 >= self.partition.directory_count() {
            return Err(self.corrupt(format!("directory {dir} has no parent directory")));
        }
        Ok(parent)
    }

    /// The parents of all directories, from the entries.
    fn found_parents(&self) -> Result<&[u32]> {
        if let Some(parents) = self.parents.get() {
            return Ok(parents);
        }
        let count = self.partition.directory_count();
        let mut parents = vec![NO_PARENT; usize::try_from(count).unwrap_or(0)];
        for dir in 0..count {
            // Ranges of a hostile image can overlap only if they do not ascend, which the sums rule out.
            for entry in self.entry_range(InodeNum(dir))? {
                let inode = self.inode_of_entry(entry)?;
                if let Some(parent) = usize::try_from(inode.0)
                    .ok()
                    .and_then(|at| parents.get_mut(at))
                {
                    *parent = dir;
                }
            }
        }
        Ok(self.parents.get_or_init(|| parents))
    }
}
