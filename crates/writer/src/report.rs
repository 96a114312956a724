//! What a finished build comes to.

use std::time::Duration;

use crate::stats::{Phase, PhaseTimes, Stage, StageTimes, Stats};

/// The figures of a finished build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is missing from the image or is not what it should be; the image is usable all the same.
    pub errors: u64,
    /// Bytes written, the header in front of the image included.
    pub image_bytes: u64,
    /// Directories of the image, the root included.
    pub dirs: u64,
    /// Regular files of the image, hard links counted once.
    pub files: u64,
    /// Symbolic links of the image.
    pub symlinks: u64,
    /// Further names of files.
    pub hardlinks: u64,
    /// Device nodes of the image.
    pub devices: u64,
    /// Fifos and sockets of the image.
    pub specials: u64,
    /// Inodes of the image.
    pub inodes: u64,
    /// Bytes of all regular files by their size, hard links once.
    pub original_bytes: u64,
    /// Bytes of all regular files without their holes, hard links once.
    pub allocated_bytes: u64,
    /// Files hashed to find equal ones.
    pub hashed_files: u64,
    /// Bytes hashed to find equal files.
    pub hashed_bytes: u64,
    /// Files that are equal to another.
    pub duplicate_files: u64,
    /// Bytes not stored because another file has them.
    pub duplicate_bytes: u64,
    /// Distinct contents that are not empty.
    pub contents: u64,
    /// Repetitions found by the segmenter.
    pub segment_matches: u64,
    /// Bytes not stored because the segmenter found them in a block.
    pub segment_saved_bytes: u64,
    /// Small distinct contents.
    pub small_files: u64,
    /// Blocks that the small distinct contents touch, summed over them.
    pub small_file_blocks: u64,
    /// Chunks of all contents, holes included.
    pub chunks: u64,
    /// Blocks of the image.
    pub blocks: u64,
    /// Bytes of all blocks before compression.
    pub block_bytes: u64,
    /// Bytes of all blocks as written.
    pub compressed_block_bytes: u64,
    /// Bytes of the metadata before compression.
    pub metadata_bytes: u64,
    /// Bytes of the metadata as written.
    pub compressed_metadata_bytes: u64,
    /// The most resident memory that the process has held; 0 where the system does not tell.
    pub peak_memory_bytes: u64,
    /// The limit on memory that was given, or that followed from the machine.
    pub memory_limit: u64,
    /// The memory that the build was expected to take at most.
    pub memory_estimate: u64,
    /// The categories that have data.
    pub categories: Vec<CategoryReport>,
    /// What each phase took.
    pub phases: Vec<PhaseTimes>,
    /// What each stage took.
    pub stages: Vec<StageTimes>,
}

/// The figures of one category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryReport {
    /// Its name.
    pub name: String,
    /// Ranges of files that belong to it.
    pub fragments: u64,
    /// Bytes of those ranges, without holes.
    pub data_bytes: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub block_bytes: u64,
    /// Bytes of those blocks as written.
    pub compressed_bytes: u64,
}

/// The stage that a phase waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Critical {
    /// The phase.
    pub phase: PhaseTimes,
    /// The stage whose threads waited least for others.
    pub stage: Stage,
    /// How long each of its threads was occupied, in the mean.
    pub occupied: Duration,
}

impl Report {
    /// Takes the figures that are counted while a build runs.
    pub(crate) fn of(stats: &Stats) -> Self {
        Self {
            errors: stats.errors.get(),
            image_bytes: stats.written_bytes.get(),
            dirs: stats.dirs.get(),
            files: stats.files.get() - stats.hardlinks.get(),
            symlinks: stats.symlinks.get(),
            hardlinks: stats.hardlinks.get(),
            devices: stats.devices.get(),
            specials: stats.specials.get(),
            inodes: stats.inodes.get(),
            original_bytes: stats.original_bytes.get(),
            allocated_bytes: stats.allocated_bytes.get(),
            hashed_files: stats.hashed_files.get(),
            hashed_bytes: stats.hashed_bytes.get(),
            duplicate_files: stats.duplicate_files.get(),
            duplicate_bytes: stats.duplicate_bytes.get(),
            chunks: stats.chunks.get(),
            blocks: stats.blocks_written.get(),
            segment_matches: stats.segment_matches.get(),
            segment_saved_bytes: stats.segment_saved_bytes.get(),
            small_files: stats.small_files.get(),
            small_file_blocks: stats.small_file_blocks.get(),
            phases: stats.phase_times(),
            stages: stats.stage_times(),
            block_bytes: stats.block_bytes.get(),
            compressed_block_bytes: stats.compressed_block_bytes.get(),
            ..Self::default()
        }
    }

    /// Returns for each phase, in turn, which stage held it up: the one whose threads waited least for other stages.
    ///
    /// Phases follow each other, so that their times add up to the time of the build. A phase whose stage has a single
    /// thread that is occupied all the time cannot become faster with more processors.
    #[must_use]
    pub fn critical_path(&self) -> Vec<Critical> {
        let slowest = |phase: Phase| {
            let stages = self.stages.iter();
            stages
                .filter(move |times| times.stage.phase() == phase)
                .max_by_key(|times| times.occupied())
        };
        let phases = self.phases.iter();
        phases
            .filter_map(|phase| {
                slowest(phase.phase).map(|times| Critical {
                    phase: *phase,
                    stage: times.stage,
                    occupied: times.occupied(),
                })
            })
            .collect()
    }

    /// Returns the time that all threads of a stage computed.
    #[must_use]
    pub fn cpu_of(&self, stage: Stage) -> Duration {
        let of_stage = self.stages.iter().filter(|times| times.stage == stage);
        of_stage.map(|times| times.busy).sum()
    }
}
