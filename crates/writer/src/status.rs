//! What the operating system says of one entry of the input.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp, makedev, statx};

const TYPE: u32 = 0o170_000;
/// The unit of allocation counts, whatever the file system's block size.
const ALLOCATION_UNIT: u64 = 512;

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub sec: i64,
    /// Nanoseconds after `sec`.
    pub nsec: u32,
}

/// The kinds of inodes, in the order of their numbers in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Directory,
    Symlink,
    Regular,
    Device,
    Special,
}

impl Kind {
    /// Returns nothing for a mode without a type that an image can hold.
    pub(crate) fn of(mode: u32) -> Option<Self> {
        match mode & TYPE {
            0o040_000 => Some(Self::Directory),
            0o120_000 => Some(Self::Symlink),
            0o100_000 => Some(Self::Regular),
            0o020_000 | 0o060_000 => Some(Self::Device),
            0o010_000 | 0o140_000 => Some(Self::Special),
            _ => None,
        }
    }
}

/// The attributes that matter to an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) rdev: u64,
    /// Device and inode number.
    pub(crate) id: (u64, u64),
    /// Whether less is allocated than the size needs: there may be holes.
    pub(crate) maybe_sparse: bool,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

impl Status {
    /// Asks for the entry `name` of a directory; a symbolic link is not followed.
    pub(crate) fn of_entry(dir: impl AsFd, name: &CStr) -> io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Ok(Self::from(statx(
            dir,
            name,
            flags,
            StatxFlags::BASIC_STATS,
        )?))
    }

    /// Asks for an open file.
    pub(crate) fn of_file(file: impl AsFd) -> io::Result<Self> {
        let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        Ok(Self::from(found))
    }
}

impl From<Statx> for Status {
    fn from(found: Statx) -> Self {
        Self {
            mode: u32::from(found.stx_mode),
            nlink: found.stx_nlink,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            rdev: makedev(found.stx_rdev_major, found.stx_rdev_minor),
            id: (
                makedev(found.stx_dev_major, found.stx_dev_minor),
                found.stx_ino,
            ),
            maybe_sparse: found.stx_blocks.saturating_mul(ALLOCATION_UNIT) < found.stx_size,
            atime: Time::from(found.stx_atime),
            mtime: Time::from(found.stx_mtime),
            ctime: Time::from(found.stx_ctime),
        }
    }
}

impl From<StatxTimestamp> for Time {
    fn from(stamp: StatxTimestamp) -> Self {
        Self {
            sec: stamp.tv_sec,
            nsec: stamp.tv_nsec,
        }
    }
}
