//! What a user chooses, what can be watched meanwhile, and what came of it.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicU64;
use std::thread;

use crate::pattern::PatternSet;

/// What to extract and how.
#[derive(Clone, Debug)]
pub struct ExtractOptions {
    /// Only paths that match, and the directories above them; `None` takes all.
    pub pattern: Option<PatternSet>,
    /// Leaves out character and block devices.
    pub skip_devices: bool,
    /// Leaves out fifos and sockets.
    pub skip_specials: bool,
    /// Reports what cannot be read from the image, or what the format of an archive cannot hold, and goes on; otherwise the
    /// first such thing ends the extraction. A target that cannot be written to, such as a full disk or a directory in the
    /// place of a file, always ends it; but devices that the user has no right to make are as what cannot be read.
    pub continue_on_error: bool,
    /// Threads that read and write files; 0 chooses.
    pub disk_writers: usize,
    /// Processors to count on where a number of threads is to be chosen; 0 asks the system.
    pub processors: usize,
    /// Whether to restore owners.
    pub owner: OwnerRestore,
    /// Bytes of content on their way to an archive, at most or nearly so; extraction to a directory needs none.
    pub memory: u64,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        Self {
            pattern: None,
            skip_devices: false,
            skip_specials: false,
            continue_on_error: false,
            disk_writers: 0,
            processors: 0,
            owner: OwnerRestore::default(),
            memory: 64 << 20,
        }
    }
}

/// Fewer workers leave the disk idle while they decode, more only wait for each other.
const WORKERS: RangeInclusive<usize> = 2..=8;

impl ExtractOptions {
    /// Returns how many threads read and write files: as many as is said, or as there are processors, within limits.
    #[must_use]
    pub fn workers(&self) -> usize {
        match self.disk_writers {
            0 => self.processors().clamp(*WORKERS.start(), *WORKERS.end()),
            wanted => wanted,
        }
    }

    pub(crate) fn processors(&self) -> usize {
        match self.processors {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            told => told,
        }
    }
}

/// Whether to restore owners and groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerRestore {
    /// When root extracts.
    #[default]
    Auto,
    /// Always; failing is reported.
    Always,
    /// Never; everything belongs to who extracts.
    Never,
}

/// Counters to draw progress from, while it runs.
#[derive(Debug, Default)]
pub struct Stats {
    /// Files to extract, links not counted.
    pub files_total: AtomicU64,
    /// Files extracted or given up so far.
    pub files_done: AtomicU64,
    /// Bytes to write, holes not counted.
    pub bytes_total: AtomicU64,
    /// Bytes written so far.
    pub bytes_done: AtomicU64,
}

/// What was extracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Regular files, links not counted.
    pub files: u64,
    /// Further hard links to them.
    pub links: u64,
    /// Directories, the target itself not counted.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, fifos and sockets.
    pub nodes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Things reported to [`Events`] that are not as in the image.
    pub errors: u64,
}
