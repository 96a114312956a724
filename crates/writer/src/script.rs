//! What a script may decide about a build, as the engine that runs it sees it.
//!
//! A script is asked in this order, always by one thread at a time: `filter` while the input is scanned, `transform`
//! once all entries are known, `order` before contents are read for storage. Each hook is asked about entries in an
//! order that depends on names only (directory by directory: the entries of one by the bytes of their names, then its
//! subdirectories in turn), so that a script that is deterministic itself gives the same image every time.
//! An error of a hook ends the build.
//!
//! The engines are in a crate of their own; this one only asks.

use std::fmt;

use durin_format::Result;

use crate::mode;
pub use crate::status::Time;

/// A script, loaded and configured.
pub trait Script: Send + Sync + fmt::Debug {
    /// Which of the functions below are worth calling.
    fn hooks(&self) -> Hooks;

    /// Whether an entry is packed; all below a directory that is not is left out too, and not asked about.
    ///
    /// # Errors
    /// Those of the script, with where they happened.
    fn filter(&self, entry: &ScriptEntry<'_>) -> Result<bool>;

    /// Returns the attributes that an entry gets in the image.
    ///
    /// # Errors
    /// Those of the script, with where they happened.
    fn transform(&self, entry: &ScriptEntry<'_>) -> Result<Attributes>;

    /// Returns the numbers of inodes in the order of storage, each at most once; those that are missing follow in the
    /// order in which they are. `None` leaves the order as it is.
    ///
    /// # Errors
    /// Those of the script, with where they happened.
    fn order(&self, inodes: &dyn ScriptInodes) -> Result<Option<Vec<u32>>>;
}

/// What a script has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Whether entries are filtered.
    pub filter: bool,
    /// Whether attributes are changed.
    pub transform: bool,
    /// Whether contents are ordered.
    pub order: bool,
    /// Whether the order looks at sketches, which makes it necessary to read all files for them.
    pub similarity: bool,
}

/// An entry of the input.
#[derive(Clone, Copy, Debug)]
pub struct ScriptEntry<'a> {
    /// The path from the root of the input, without a leading `/`; the root itself has an empty one.
    pub path: &'a [u8],
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a regular file or of the target of a symbolic link; otherwise 0.
    pub size: u64,
    /// How many names a regular file has, or had on disk when it is asked about by the filter; otherwise 1.
    pub nlink: u32,
    /// Where a symbolic link leads; otherwise empty.
    pub target: &'a [u8],
    /// What can be changed.
    pub attributes: Attributes,
}

impl ScriptEntry<'_> {
    /// The last component of the path.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let start = self.path.iter().rposition(|byte| *byte == b'/');
        &self.path[start.map_or(0, |slash| slash + 1)..]
    }
}

/// What a script can change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The lower twelve bits of the mode.
    pub permissions: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// When the content changed.
    pub mtime: Time,
    /// When it was last read; only stored if all times are.
    pub atime: Time,
    /// When the attributes changed; only stored if all times are.
    pub ctime: Time,
}

/// What an entry is, in more detail than the tables of an image need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl EntryKind {
    pub(crate) fn of(mode: u32) -> Self {
        match mode & mode::TYPE {
            0o040_000 => Self::Dir,
            0o120_000 => Self::Symlink,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            // The scan lets no other type through.
            _ => Self::File,
        }
    }

    /// The name that scripts know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dir => "dir",
            Self::Symlink => "symlink",
            Self::CharDevice => "chardev",
            Self::BlockDevice => "blockdev",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
        }
    }
}

/// What is to be ordered: contents, or the parts of them that belong to one category. Numbers count from 0.
pub trait ScriptInodes {
    /// How many there are.
    fn count(&self) -> u32;

    /// The paths of all files with this content, the first in path order first.
    fn paths(&self, number: u32) -> Vec<Vec<u8>>;

    /// The first of the paths.
    fn path(&self, number: u32) -> Vec<u8>;

    /// How many bytes are to be stored.
    fn size(&self, number: u32) -> u64;

    /// When the first of the files was changed.
    fn mtime(&self, number: u32) -> Time;

    /// The category, if it is not the default one.
    fn category(&self, number: u32) -> Option<&str>;

    /// Hashes of some of its bytes, if [`Hooks::similarity`] is set: contents that are alike share many of them.
    fn similarity(&self, number: u32) -> Option<Vec<u32>>;
}

const SECOND_NS: i128 = 1_000_000_000;

impl Time {
    /// Nanoseconds since 1970.
    #[must_use]
    pub fn as_ns(self) -> i128 {
        i128::from(self.sec) * SECOND_NS + i128::from(self.nsec)
    }

    /// The time so many nanoseconds after 1970; `None` if its seconds do not fit into 64 bits.
    #[must_use]
    pub fn from_ns(ns: i128) -> Option<Self> {
        Some(Self {
            sec: i64::try_from(ns.div_euclid(SECOND_NS)).ok()?,
            nsec: u32::try_from(ns.rem_euclid(SECOND_NS)).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_nanoseconds() {
        for (sec, nsec) in [
            (0, 0),
            (-1, 1),
            (5, 999_999_999),
            (i64::MIN, 0),
            (i64::MAX, 7),
        ] {
            let time = Time { sec, nsec };
            assert_eq!(Time::from_ns(time.as_ns()), Some(time));
        }
        assert_eq!(Time { sec: -1, nsec: 1 }.as_ns(), -999_999_999);
        assert_eq!(Time::from_ns(i128::MAX), None);
    }
}
