//! Where the numbers of each kind of inode begin.

use durin_format::metadata::Tables;
use durin_format::{Error, InodeNum, Result};

use super::bounds;
use crate::attr::FileKind;

/// Inodes are numbered by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Directory,
    Symlink,
    Regular,
    Device,
    Other,
}

impl Rank {
    pub(crate) fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Regular => Self::Regular,
            FileKind::CharDevice | FileKind::BlockDevice => Self::Device,
            FileKind::Fifo | FileKind::Socket => Self::Other,
        }
    }
}

/// The first inode number of every rank.
///
/// Checked: the numbers increase, and there is a root directory. That each inode has the mode of its rank is checked
/// when its attributes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) first_symlink: u32,
    pub(crate) first_regular: u32,
    pub(crate) first_device: u32,
    pub(crate) first_other: u32,
    end: u32,
}

impl Partition {
    /// Searches the borders by bisection over the modes.
    pub(super) fn find(tables: &Tables, data: &[u8]) -> Result<Self> {
        let is_legacy = tables.dir_entries.is_none();
        let inodes = if is_legacy {
            tables.entry_table_v2_2.len()
        } else {
            tables.inodes.len()
        };
        let end = bounds::count(inodes, "inodes")?;
        let rank_at = |inode: u32| {
            let element = if is_legacy {
                tables.entry_table_v2_2.get(data, inode.into())
            } else {
                Some(inode.into())
            };
            element
                .and_then(|element| tables.inodes.mode_index.get(data, element))
                .and_then(|index| tables.modes.get(data, index))
                .and_then(|mode| FileKind::from_mode(u32::try_from(mode).ok()?))
                .map(Rank::of)
                .ok_or_else(|| Error::corrupt(format!("inode {inode} has no mode or no file type")))
        };
        let first_at_least = |rank: Rank, from: u32| {
            let (mut low, mut high) = (from, end);
            while low < high {
                let middle = low + (high - low) / 2;
                if rank_at(middle)? < rank {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            Ok::<u32, Error>(low)
        };
        let first_symlink = first_at_least(Rank::Symlink, 0)?;
        let first_regular = first_at_least(Rank::Regular, first_symlink)?;
        let first_device = first_at_least(Rank::Device, first_regular)?;
        let first_other = first_at_least(Rank::Other, first_device)?;
        if first_symlink == 0 {
            return Err(Error::corrupt("no root directory"));
        }
        Ok(Self {
            first_symlink,
            first_regular,
            first_device,
            first_other,
            end,
        })
    }

    /// Compares the number of inodes of each rank with the table that describes them.
    /// `content_count` is the number of distinct file contents.
    pub(super) fn check_counts(&self, tables: &Tables, content_count: u32) -> Result<()> {
        let same = |what: &str, found: u64, expected: u32| {
            if found == u64::from(expected) {
                return Ok(());
            }
            Err(Error::corrupt(format!(
                "{what}: expected {expected} items, found {found}"
            )))
        };
        let directories = tables.directories.len();
        same(
            "directories",
            directories.saturating_sub(1),
            self.directory_count(),
        )?;
        same(
            "symlink_table",
            tables.symlink_table.len(),
            self.symlink_count(),
        )?;
        if tables.shared_files_table.is_none() {
            same("chunk_table", content_count.into(), self.regular_count())?;
        }
        let devices = tables.devices.map_or(0, |devices| devices.len());
        same("devices", devices, self.device_count())
    }

    /// Number of inodes.
    pub(crate) fn inode_count(&self) -> u32 {
        self.end
    }

    pub(crate) fn directory_count(&self) -> u32 {
        self.first_symlink
    }

    pub(crate) fn symlink_count(&self) -> u32 {
        self.first_regular - self.first_symlink
    }

    pub(crate) fn regular_count(&self) -> u32 {
        self.first_device - self.first_regular
    }

    pub(crate) fn device_count(&self) -> u32 {
        self.first_other - self.first_device
    }

    /// The rank that the number of an inode gives it; `None` if there is no such inode.
    #[inline]
    pub(crate) fn rank(&self, inode: InodeNum) -> Option<Rank> {
        let inode = inode.0;
        Some(if inode < self.first_symlink {
            Rank::Directory
        } else if inode < self.first_regular {
            Rank::Symlink
        } else if inode < self.first_device {
            Rank::Regular
        } else if inode < self.first_other {
            Rank::Device
        } else if inode < self.end {
            Rank::Other
        } else {
            return None;
        })
    }
}
