//! What the two sides agree on at the start, and how files are opened.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InitFlags(pub(crate) u64);

impl InitFlags {
    /// Reads of several parts of a file may be under way at once.
    pub(crate) const ASYNC_READ: Self = Self(1 << 0);
    /// `.` and `..` can be looked up, as servers of NFS do.
    pub(crate) const EXPORT_SUPPORT: Self = Self(1 << 4);
    /// Directories can be read with attributes.
    pub(crate) const DO_READDIRPLUS: Self = Self(1 << 13);
    /// The kernel chooses where that pays.
    pub(crate) const READDIRPLUS_AUTO: Self = Self(1 << 14);
    /// Direct reads need not wait for each other.
    pub(crate) const ASYNC_DIO: Self = Self(1 << 15);
    /// `ENOSYS` to opening a file means: it need not be opened.
    pub(crate) const NO_OPEN_SUPPORT: Self = Self(1 << 17);
    /// Several processes may look into one directory at once.
    pub(crate) const PARALLEL_DIROPS: Self = Self(1 << 18);
    /// An aborted connection is told from one that was unmounted.
    pub(crate) const ABORT_ERROR: Self = Self(1 << 21);
    /// The size of requests is said in pages.
    pub(crate) const MAX_PAGES: Self = Self(1 << 22);
    /// Link targets are cached.
    pub(crate) const CACHE_SYMLINKS: Self = Self(1 << 23);
    /// As `NO_OPEN_SUPPORT`, for directories.
    pub(crate) const NO_OPENDIR_SUPPORT: Self = Self(1 << 24);
    /// Pages stay until we say otherwise, whatever the attributes are.
    pub(crate) const EXPLICIT_INVAL_DATA: Self = Self(1 << 25);
    /// There is a second word of flags.
    pub(crate) const INIT_EXT: Self = Self(1 << 30);
    /// Files opened without a page cache can be mapped.
    pub(crate) const DIRECT_IO_ALLOW_MMAP: Self = Self(1 << 36);
    /// The mount can be mapped to other owners; only with `default_permissions`.
    pub(crate) const ALLOW_IDMAP: Self = Self(1 << 40);
    /// Requests can come through io_uring.
    pub(crate) const OVER_IO_URING: Self = Self(1 << 41);

    /// All that is in use, with the names of fuse.h.
    const NAMES: [(Self, &'static str); 16] = [
        (Self::ASYNC_READ, "async_read"),
        (Self::EXPORT_SUPPORT, "export_support"),
        (Self::DO_READDIRPLUS, "do_readdirplus"),
        (Self::READDIRPLUS_AUTO, "readdirplus_auto"),
        (Self::ASYNC_DIO, "async_dio"),
        (Self::NO_OPEN_SUPPORT, "no_open_support"),
        (Self::PARALLEL_DIROPS, "parallel_dirops"),
        (Self::ABORT_ERROR, "abort_error"),
        (Self::MAX_PAGES, "max_pages"),
        (Self::CACHE_SYMLINKS, "cache_symlinks"),
        (Self::NO_OPENDIR_SUPPORT, "no_opendir_support"),
        (Self::EXPLICIT_INVAL_DATA, "explicit_inval_data"),
        (Self::INIT_EXT, "init_ext"),
        (Self::DIRECT_IO_ALLOW_MMAP, "direct_io_allow_mmap"),
        (Self::ALLOW_IDMAP, "allow_idmap"),
        (Self::OVER_IO_URING, "over_io_uring"),
    ];

    /// Whether all of `other` are in the set.
    #[must_use]
    pub(crate) fn contains(self, other: Self) -> bool {
        self & other == other
    }

    /// The two words of an answer.
    #[must_use]
    pub(crate) fn words(self) -> [u32; 2] {
        let low = self.0 & u64::from(u32::MAX);
        let high = self.0 >> 32;
        [low, high].map(|word| u32::try_from(word).unwrap_or(0))
    }
}

impl BitOr for InitFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for InitFlags {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for InitFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag));
        let names: Vec<&str> = names.map(|(_, name)| *name).collect();
        f.write_str(&names.join(" "))
    }
}

/// How the kernel shall treat what was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenReply {
    /// Without a page cache.
    Direct,
    /// Pages stay from one opening to the next.
    KeepCache,
    /// The listing of a directory stays.
    CacheDirectory,
}

impl OpenReply {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Direct => 1 << 0,
            Self::KeepCache => 1 << 1,
            Self::CacheDirectory => 1 << 1 | 1 << 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_shown_by_name_and_sent_in_two_words() {
        let flags = InitFlags::ASYNC_READ | InitFlags::OVER_IO_URING;
        assert_eq!(flags.to_string(), "async_read over_io_uring");
        assert_eq!(flags.words(), [1, 1 << 9]);
        assert!(!flags.contains(InitFlags::MAX_PAGES | InitFlags::ASYNC_READ));
    }
}
