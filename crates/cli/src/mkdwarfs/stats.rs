//! The figures of a running build, as the progress display shows them.

use durin_writer::Stats;
use durin_writer::stats::Phase;

use crate::common::progress::Snapshot;
use crate::common::size;

/// What `stats` says now.
pub(super) fn snapshot(stats: &Stats) -> Snapshot {
    let blocks = stats.blocks_written.get();
    let written = size::display(stats.compressed_block_bytes.get());
    Snapshot {
        phase: phase(stats),
        details: details(stats),
        fraction: Some(stats.fraction()),
        bytes: stats
            .hashed_bytes
            .get()
            .saturating_add(stats.segmented_bytes.get()),
        simple: format!("{blocks} blocks/{written} written"),
    }
}

fn phase(stats: &Stats) -> String {
    let current = stats.current();
    match stats.phase() {
        Phase::Scanning => format!("scanning: {current}"),
        Phase::Hashing => format!("hashing: {current}"),
        Phase::Writing if stats.segmented_bytes.get() >= stats.segment_bytes_total.get() => {
            "waiting for block compression to finish".to_owned()
        }
        Phase::Writing => format!("writing: {current}"),
        Phase::Metadata => "building metadata".to_owned(),
        Phase::Finished => "finishing".to_owned(),
    }
}

fn details(stats: &Stats) -> Vec<String> {
    vec![
        format!(
            "{} dirs, {}/{} soft/hard links, {}/{} files, {} other",
            stats.dirs.get(),
            stats.symlinks.get(),
            stats.hardlinks.get(),
            stats.segmented_files.get(),
            stats.files.get(),
            stats.devices.get() + stats.specials.get()
        ),
        format!(
            "original size: {}, hashed: {} ({} files), saved by deduplication: {} ({} files)",
            size::display(stats.original_bytes.get()),
            size::display(stats.hashed_bytes.get()),
            stats.hashed_files.get(),
            size::display(stats.duplicate_bytes.get()),
            stats.duplicate_files.get()
        ),
        format!(
            "file system: {} in {} blocks, compressed: {} in {} blocks, using {} of memory",
            size::display(stats.block_bytes.get()),
            stats.blocks_made.get(),
            size::display(stats.compressed_block_bytes.get()),
            stats.blocks_written.get(),
            size::display(stats.memory_bytes.get())
        ),
    ]
}
