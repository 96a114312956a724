//! Figures that a running build keeps up to date, for a progress display to sample.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a build is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Reading directories.
    #[default]
    Scanning,
    /// Looking for equal files.
    Hashing,
    /// Reading, compressing and writing file contents.
    Writing,
    /// Making and writing the metadata.
    Metadata,
    /// Nothing more to do.
    Finished,
}

impl Phase {
    const ALL: [Self; 5] = [
        Self::Scanning,
        Self::Hashing,
        Self::Writing,
        Self::Metadata,
        Self::Finished,
    ];
}

/// A figure that several threads count up.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes `amount` away again.
    pub fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Returns the figure as it is now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The figures; each is right at the end of its phase and about right before.
#[derive(Debug, Default)]
pub struct Stats {
    phase: AtomicU8,
    current: Mutex<String>,
    /// Directories found.
    pub dirs: Counter,
    /// Directory entries of regular files found, hard links included.
    pub files: Counter,
    /// Symbolic links found.
    pub symlinks: Counter,
    /// Entries that are a further name of a file already counted.
    pub hardlinks: Counter,
    /// Device nodes found.
    pub devices: Counter,
    /// Fifos and sockets found.
    pub specials: Counter,
    /// What is missing from the image or is not what it should be.
    pub errors: Counter,
    /// Bytes of all regular files by their size, hard links once.
    pub original_bytes: Counter,
    /// Bytes of all regular files without their holes, hard links once.
    pub allocated_bytes: Counter,
    /// Files that are to be hashed.
    pub hash_files_total: Counter,
    /// Files hashed.
    pub hashed_files: Counter,
    /// Bytes hashed.
    pub hashed_bytes: Counter,
    /// Files that are equal to another.
    pub duplicate_files: Counter,
    /// Bytes that need not be stored because another file has them.
    pub duplicate_bytes: Counter,
    /// Bytes that are to be cut into blocks.
    pub segment_bytes_total: Counter,
    /// Bytes read and cut into blocks.
    pub segmented_bytes: Counter,
    /// Files whose contents have been read.
    pub segmented_files: Counter,
    /// Chunks made.
    pub chunks: Counter,
    /// Inodes of the image.
    pub inodes: Counter,
    /// Blocks filled.
    pub blocks_made: Counter,
    /// Bytes of blocks filled.
    pub block_bytes: Counter,
    /// Blocks compressed and written.
    pub blocks_written: Counter,
    /// Bytes of blocks as written, without section headers.
    pub compressed_block_bytes: Counter,
    /// Bytes written, header and section headers included.
    pub written_bytes: Counter,
    /// Bytes of blocks in memory.
    pub memory_bytes: Counter,
}

impl Stats {
    /// Returns what the build is busy with.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let code = usize::from(self.phase.load(Ordering::Relaxed));
        Phase::ALL.get(code).copied().unwrap_or(Phase::Finished)
    }

    /// Returns the path last worked on, made printable.
    #[must_use]
    pub fn current(&self) -> String {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns how far the build is, between 0 and 1: the mean of what is cut into blocks and of what is written.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        match self.phase() {
            Phase::Scanning | Phase::Hashing => 0.0,
            Phase::Writing => {
                let total = self.segment_bytes_total.get();
                let cut = share(self.segmented_bytes.get(), total);
                // Blocks yet to be made count by their bytes, or else the share would begin near 1.
                let made = self.block_bytes.get().max(1);
                let written = share(self.blocks_written.get(), self.blocks_made.get());
                let written_bytes = written * share(made.min(total), total);
                f64::midpoint(cut, written_bytes)
            }
            Phase::Metadata | Phase::Finished => 1.0,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Takes the path only if nobody reads or writes it at this moment: it is worth no waiting.
    pub(crate) fn set_current(&self, path: impl FnOnce() -> String) {
        if let Ok(mut current) = self.current.try_lock() {
            *current = path();
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for display")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fraction_grows_with_the_work() {
        let stats = Stats::default();
        assert_eq!((stats.phase(), stats.fraction()), (Phase::Scanning, 0.0));
        stats.set_phase(Phase::Writing);
        stats.segment_bytes_total.add(1000);
        stats.segmented_bytes.add(500);
        stats.blocks_made.add(2);
        stats.block_bytes.add(400);
        stats.blocks_written.add(1);
        assert!((stats.fraction() - 0.35).abs() < 1e-9);
        stats.set_phase(Phase::Finished);
        assert_eq!((stats.phase(), stats.fraction()), (Phase::Finished, 1.0));
    }
}
