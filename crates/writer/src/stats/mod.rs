//! Figures that a running build keeps up to date, for a progress display to sample.
//!
//! Counters for what has been done, [`stage`](StageTimes) clocks for who took how long, and on request what each worker
//! [works on](Job). A stage counts by run, block or file, never by byte.

mod stage;
mod workers;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use stage::{Stage, StageTimes, process_cpu};
pub(crate) use stage::{StageThread, thread_cpu};
pub use workers::Job;

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

    /// Its name in reports, which stays the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scanning => "scanning",
            Self::Hashing => "hashing",
            Self::Writing => "writing",
            Self::Metadata => "metadata",
            Self::Finished => "finished",
        }
    }
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Which one.
    pub phase: Phase,
    /// From its beginning to the next one's.
    pub wall: Duration,
    /// Processor time of the process in that time.
    pub cpu: Duration,
}

/// When a phase began: by the clock of the build and by the processor time of the process.
#[derive(Clone, Copy, Debug)]
struct PhaseBegin {
    phase: Phase,
    wall: Duration,
    cpu: Duration,
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

/// What a thread begins work at a stage with. Times are counted from [`enter`](Self::enter), which the thread calls.
pub(crate) struct StageEntry {
    stages: Arc<stage::Stages>,
    stage: Stage,
}

impl StageEntry {
    pub(crate) fn enter(self) -> StageThread {
        StageThread::new(self.stages, self.stage)
    }
}

/// The figures; each is right at the end of its phase and about right before.
#[derive(Debug, Default)]
pub struct Stats {
    phase: AtomicU8,
    phase_begins: Mutex<Vec<PhaseBegin>>,
    stages: Arc<stage::Stages>,
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
    /// Repetitions found by the segmenter.
    pub segment_matches: Counter,
    /// Bytes that need not be stored because the segmenter found them in a block.
    pub segment_saved_bytes: Counter,
    /// Parts of the input read again to compare with.
    pub reread_grains: Counter,
    /// Bytes of the segmenter's index at the end.
    pub index_bytes: Counter,
    /// Chunks made.
    pub chunks: Counter,
    /// Small distinct contents, which are to lie in few blocks.
    pub small_files: Counter,
    /// Blocks that the small distinct contents touch, summed over them.
    pub small_file_blocks: Counter,
    /// Inodes of the image.
    pub inodes: Counter,
    /// Blocks filled.
    pub blocks_made: Counter,
    /// Bytes of blocks filled.
    pub block_bytes: Counter,
    /// Blocks compressed and written.
    pub blocks_written: Counter,
    /// Bytes of blocks written, before compression.
    pub written_block_bytes: Counter,
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

    /// Returns which share of the work on contents is done, if something can be said: that of the stage behind all
    /// others. Bytes of blocks written are set against the bytes that all blocks will have, if what is still to be cut
    /// into blocks repeats as much as what has been.
    #[must_use]
    pub fn work_done(&self) -> Option<f64> {
        match self.phase() {
            Phase::Scanning | Phase::Hashing => None,
            Phase::Writing => {
                let total = self.segment_bytes_total.get();
                let cut = self.segmented_bytes.get();
                let left = share(total.saturating_sub(cut), cut.max(1));
                let expected = to_f64(self.block_bytes.get()) * (1.0 + left);
                let written = to_f64(self.written_block_bytes.get());
                (cut > 0 && expected > 0.0).then(|| (written / expected).min(1.0))
            }
            Phase::Metadata | Phase::Finished => Some(1.0),
        }
    }

    /// Returns the phases begun so far, each with the time from the start of the build.
    #[must_use]
    pub fn phase_begins(&self) -> Vec<(Phase, Duration)> {
        let begins = self
            .phase_begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        begins
            .iter()
            .map(|begin| (begin.phase, begin.wall))
            .collect()
    }

    /// Has each worker note what it works on; to be called before the build.
    pub fn show_jobs(&self) {
        self.stages.board.show();
    }

    /// Returns what each worker works on, if [`show_jobs`](Self::show_jobs) was called.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.stages.board.jobs()
    }

    /// Returns the times of the stages that have run.
    #[must_use]
    pub fn stage_times(&self) -> Vec<StageTimes> {
        self.stages.times()
    }

    /// Returns the times of the phases that are over.
    #[must_use]
    pub fn phase_times(&self) -> Vec<PhaseTimes> {
        let begins = self
            .phase_begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let times = |pair: &[PhaseBegin]| match pair {
            [begin, end] => Some(PhaseTimes {
                phase: begin.phase,
                wall: end.wall.saturating_sub(begin.wall),
                cpu: end.cpu.saturating_sub(begin.cpu),
            }),
            _ => None,
        };
        begins.windows(2).filter_map(times).collect()
    }

    /// Begins work of this thread at a stage.
    pub(crate) fn enter(&self, stage: Stage) -> StageThread {
        self.entry(stage).enter()
    }

    /// Returns what a thread that is yet to be started, and may be left behind, begins work with.
    pub(crate) fn entry(&self, stage: Stage) -> StageEntry {
        StageEntry {
            stages: Arc::clone(&self.stages),
            stage,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        let begin = PhaseBegin {
            phase,
            wall: self.stages.start.elapsed(),
            cpu: process_cpu(),
        };
        self.phase_begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(begin);
    }

    /// Takes the path only if nobody reads or writes it at this moment: it is worth no waiting.
    pub(crate) fn set_current(&self, path: impl FnOnce() -> String) {
        if let Ok(mut current) = self.current.try_lock() {
            *current = path();
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        to_f64(part) / to_f64(whole)
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for display")]
fn to_f64(figure: u64) -> f64 {
    figure as f64
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
        stats.written_block_bytes.add(200);
        assert!((stats.work_done().unwrap_or_default() - 0.25).abs() < 1e-9);
        stats.set_phase(Phase::Finished);
        assert_eq!((stats.phase(), stats.fraction()), (Phase::Finished, 1.0));
        assert_eq!(stats.phase_times().len(), 1, "writing is over");
        assert_eq!(stats.phase_begins().len(), 2);
    }
}
