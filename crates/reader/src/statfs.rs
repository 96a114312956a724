//! What `statvfs` says about an image.

use crate::image::Image;

/// Figures about the whole image. The totals are as stored; nothing but a display depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatFs {
    /// Bytes of all files and link targets.
    pub total_size: u64,
    /// As `total_size`, without holes.
    pub allocated_size: u64,
    /// Number of inodes.
    pub inode_count: u32,
    /// Longest name in bytes that the format's limits allow after decompression.
    pub name_len_max: u32,
}

/// What Linux file systems say; no program asks for a longer name.
const NAME_LEN_MAX: u32 = 255;

impl Image {
    /// Returns the figures of `statvfs`.
    #[must_use]
    pub fn statfs(&self) -> StatFs {
        let tables = &self.metadata().tables;
        StatFs {
            total_size: tables.total_fs_size,
            allocated_size: tables
                .total_allocated_fs_size
                .unwrap_or(tables.total_fs_size),
            inode_count: self.inode_count(),
            name_len_max: NAME_LEN_MAX,
        }
    }
}
