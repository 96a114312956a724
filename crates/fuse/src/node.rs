//! The numbers that the kernel knows inodes by.
//!
//! A node number is the image's inode number + 1, because the root is 0 in an image and 1 in FUSE.
//! Up to format 2.2 attributes belong to the directory entry: entries that share an inode may differ in mode, owner and
//! times. As the kernel keeps attributes per node, an entry that differs from the inode's canonical entry gets a node of its
//! own, numbered from `inode_count + 1` by its place in `inodes`.
//!
//! Numbers that come back from the kernel are untrusted: a number never handed out is "no such file".

use durin_format::InodeNum;
use durin_reader::{EntryRef, Image};
use rustix::io::Errno;

use crate::errno;

/// The kernel's number of the root directory.
pub const ROOT: u64 = 1;

/// Returns the number under which the kernel gets to know `entry`.
#[must_use]
pub fn number(image: &Image, entry: EntryRef) -> u64 {
    if image.entry_differs(entry) {
        u64::from(image.inode_count()) + u64::from(entry.entry_index) + 1
    } else {
        u64::from(entry.inode.0) + 1
    }
}

/// Returns what the kernel means by `node`.
///
/// # Errors
/// `ENOENT` for a number that [`number`] gives to nothing.
pub fn entry(image: &Image, node: u64) -> Result<EntryRef, Errno> {
    let index = node.checked_sub(1).ok_or(Errno::NOENT)?;
    let inode_count = u64::from(image.inode_count());
    if let Some(own) = index.checked_sub(inode_count) {
        let entry_index = u32::try_from(own).map_err(|_| Errno::NOENT)?;
        return image
            .entry_at(entry_index)
            .map_err(|error| errno::from_error(&error))?
            .filter(|&entry| image.entry_differs(entry))
            .ok_or(Errno::NOENT);
    }
    let inode = u32::try_from(index).map_err(|_| Errno::NOENT)?;
    image
        .canonical_entry(InodeNum(inode))
        .map_err(|error| errno::from_error(&error))
}
