//! Attributes of inodes and directory entries.

use durin_format::{InodeNum, Result};

use crate::image::{EntryRef, Image};
use crate::metadata::{Metadata, Rank};
use crate::perfmon::{Operation, Perfmon};

/// The bits of a mode that hold the file type.
const TYPE_MASK: u32 = 0o170_000;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A regular file.
    Regular,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl FileKind {
    /// The kind that the type bits of a Linux `st_mode` name; `None` if they name none.
    #[must_use]
    pub fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & TYPE_MASK {
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o100_000 => Self::Regular,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            _ => return None,
        })
    }

    /// The type bits of a Linux `st_mode` for this kind.
    #[must_use]
    pub fn mode_bits(self) -> u32 {
        match self {
            Self::Directory => 0o040_000,
            Self::Symlink => 0o120_000,
            Self::Regular => 0o100_000,
            Self::CharDevice => 0o020_000,
            Self::BlockDevice => 0o060_000,
            Self::Fifo => 0o010_000,
            Self::Socket => 0o140_000,
        }
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub sec: i64,
    /// Nanoseconds to add, below 10^9.
    pub nsec: u32,
}

/// What `stat` says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Number inside the image.
    pub inode: InodeNum,
    /// Type of the file.
    pub kind: FileKind,
    /// Type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Number of directory entries of a regular file, otherwise 1.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number in the 64-bit `makedev` encoding; 0 for what is no device.
    pub rdev: u64,
    /// Bytes of a regular file or of a stored link target, number of entries of a directory, otherwise 0.
    pub size: u64,
    /// As `size`, without the holes of a regular file.
    pub allocated: u64,
    /// Last access; the modification time when the image stores only that.
    pub atime: Time,
    /// Last modification.
    pub mtime: Time,
    /// Last change of the inode; the modification time when the image stores only that.
    pub ctime: Time,
}

impl Image {
    /// Returns the attributes of a directory entry.
    ///
    /// In formats up to 2.2 they belong to the entry, later to the inode.
    ///
    /// # Errors
    /// `NotFound` if there is no such inode or entry, `Corrupt` if a value in the metadata is wrong.
    pub fn attr(&self, entry: EntryRef) -> Result<Attr> {
        let _timer = Perfmon::start(self.perfmon(), Operation::Getattr);
        let metadata = self.metadata();
        let element = self.element(entry)?;
        let (mode, kind) = mode_of(metadata, entry.inode, element)?;
        let (size, allocated) = self.sizes(entry.inode, kind)?;
        let [atime, mtime, ctime] = times(metadata, element)?;
        Ok(Attr {
            inode: entry.inode,
            kind,
            mode,
            nlink: metadata.link_count(entry.inode)?,
            uid: owner(metadata, element, Owner::User)?,
            gid: owner(metadata, element, Owner::Group)?,
            rdev: device(metadata, entry.inode, kind)?,
            size,
            allocated,
            atime,
            mtime,
            ctime,
        })
    }

    /// Returns the attributes of an inode; in formats up to 2.2 those of its canonical entry.
    ///
    /// # Errors
    /// As [`Self::attr`].
    pub fn inode_attr(&self, inode: InodeNum) -> Result<Attr> {
        self.attr(self.canonical_entry(inode)?)
    }

    /// Returns the type of a file, cheaper than all its attributes.
    ///
    /// # Errors
    /// As [`Self::attr`].
    pub fn kind(&self, entry: EntryRef) -> Result<FileKind> {
        let element = self.element(entry)?;
        mode_of(self.metadata(), entry.inode, element).map(|(_, kind)| kind)
    }

    /// Whether an entry has other attributes than the canonical entry of its inode.
    /// Only entries of formats up to 2.2 can.
    #[must_use]
    pub fn entry_differs(&self, entry: EntryRef) -> bool {
        let metadata = self.metadata();
        if !metadata.is_legacy {
            return false;
        }
        let Ok(canonical) = metadata.element_of(entry.inode) else {
            return true;
        };
        let data = metadata.data();
        let inodes = &metadata.tables.inodes;
        let columns = [
            &inodes.mode_index,
            &inodes.owner_index,
            &inodes.group_index,
            &inodes.atime_offset,
            &inodes.mtime_offset,
            &inodes.ctime_offset,
        ];
        columns.iter().any(|column| {
            column.get(data, entry.entry_index.into()) != column.get(data, canonical.into())
        })
    }

    /// The element of `inodes` with the attributes of an entry.
    fn element(&self, entry: EntryRef) -> Result<u32> {
        let metadata = self.metadata();
        if !metadata.is_legacy {
            return Ok(entry.inode.0);
        }
        if metadata.inode_of_entry(entry.entry_index)? != entry.inode {
            return Err(metadata.corrupt(format!(
                "directory entry {} does not belong to inode {}",
                entry.entry_index, entry.inode
            )));
        }
        Ok(entry.entry_index)
    }

    /// Size and allocated size.
    fn sizes(&self, inode: InodeNum, kind: FileKind) -> Result<(u64, u64)> {
        let metadata = self.metadata();
        let size = match kind {
            FileKind::Regular => return self.content_sizes(self.content_number(inode)?),
            FileKind::Directory => {
                let range = metadata.entry_range(inode)?;
                u64::from(range.end - range.start)
            }
            FileKind::Symlink => self.target_len(inode)?,
            _ => 0,
        };
        Ok((size, size))
    }
}

fn mode_of(metadata: &Metadata, inode: InodeNum, element: u32) -> Result<(u32, FileKind)> {
    let rank = metadata
        .partition
        .rank(inode)
        .ok_or_else(|| metadata.not_a(inode, "file"))?;
    let tables = &metadata.tables;
    let index = metadata.value(&tables.inodes.mode_index, element.into(), "inodes")?;
    let mode = metadata.value32(&tables.modes, index, "modes")?;
    match FileKind::from_mode(mode) {
        Some(kind) if Rank::of(kind) == rank => Ok((mode, kind)),
        _ => Err(metadata.corrupt(format!(
            "inode {inode}: mode {mode:o} is not that of a {rank:?}"
        ))),
    }
}

#[derive(Clone, Copy)]
enum Owner {
    User,
    Group,
}

fn owner(metadata: &Metadata, element: u32, which: Owner) -> Result<u32> {
    let tables = &metadata.tables;
    let (indices, ids, what) = match which {
        Owner::User => (&tables.inodes.owner_index, &tables.uids, "uids"),
        Owner::Group => (&tables.inodes.group_index, &tables.gids, "gids"),
    };
    let index = metadata.value32(indices, element.into(), "inodes")?;
    // Releases up to 0.7 left the table out when one owner was set for all, and stored that in place of the index.
    if ids.is_empty() {
        return Ok(index);
    }
    metadata.value32(ids, index.into(), what)
}

fn device(metadata: &Metadata, inode: InodeNum, kind: FileKind) -> Result<u64> {
    if !matches!(kind, FileKind::CharDevice | FileKind::BlockDevice) {
        return Ok(0);
    }
    let index = inode.0 - metadata.partition.first_device;
    let devices = metadata.tables.devices.unwrap_or_default();
    metadata.value(&devices, index.into(), "devices")
}

/// Access, modification and change time.
fn times(metadata: &Metadata, element: u32) -> Result<[Time; 3]> {
    let tables = &metadata.tables;
    let inodes = &tables.inodes;
    let options = tables.options.unwrap_or_default();
    let resolution = u64::from(options.time_resolution_sec.unwrap_or(1));
    let multiplier = u64::from(options.subsecond_resolution_nsec_multiplier.unwrap_or(0));
    let time = |offset, subsec| -> Result<Time> {
        let offset = metadata.value(offset, element.into(), "inodes")?;
        let subsec = metadata.value(subsec, element.into(), "inodes")?;
        // The format counts in unsigned 64 bits that wrap around, which is where times before 1970 are.
        let sec = resolution
            .wrapping_mul(tables.timestamp_base.wrapping_add(offset))
            .cast_signed();
        let nsec = multiplier
            .checked_mul(subsec)
            .filter(|nsec| *nsec < 1_000_000_000)
            .and_then(|nsec| u32::try_from(nsec).ok())
            .ok_or_else(|| metadata.corrupt(format!("inodes: {subsec} fractions of a second")))?;
        Ok(Time { sec, nsec })
    };
    let mtime = time(&inodes.mtime_offset, &inodes.mtime_subsec)?;
    if options.mtime_only {
        return Ok([mtime; 3]);
    }
    Ok([
        time(&inodes.atime_offset, &inodes.atime_subsec)?,
        mtime,
        time(&inodes.ctime_offset, &inodes.ctime_subsec)?,
    ])
}
