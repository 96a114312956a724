//! The figures of a running build, as the progress display shows them.

use durin_writer::Stats;
use durin_writer::stats::{Job, Phase, Stage};
use serde_json::{Map, Value, json};

use crate::common::progress::{Snapshot, WorkerLine};
use crate::common::{size, system};

/// What `stats` says now.
pub(super) fn snapshot(stats: &Stats) -> Snapshot {
    let blocks = stats.blocks_written.get();
    let written = size::display(stats.compressed_block_bytes.get());
    let phase = stats.phase();
    let begins = stats.phase_begins().into_iter();
    Snapshot {
        status: status(stats, phase).to_owned(),
        current: if has_current(stats, phase) {
            stats.current()
        } else {
            String::new()
        },
        details: details(stats),
        workers: workers(stats),
        fraction: Some(stats.fraction()),
        work: stats.work_done(),
        bytes: bytes(stats, phase),
        simple: format!("{blocks} blocks/{written} written"),
        phases: begins.map(|(phase, begin)| (phase.name(), begin)).collect(),
        fields: fields(stats),
    }
}

fn waits_for_compression(stats: &Stats) -> bool {
    stats.segmented_bytes.get() >= stats.segment_bytes_total.get()
}

fn has_current(stats: &Stats, phase: Phase) -> bool {
    match phase {
        Phase::Scanning | Phase::Hashing => true,
        Phase::Writing => !waits_for_compression(stats),
        Phase::Metadata | Phase::Finished => false,
    }
}

fn status(stats: &Stats, phase: Phase) -> &'static str {
    match phase {
        Phase::Scanning => "scanning",
        Phase::Hashing => "hashing",
        Phase::Writing if waits_for_compression(stats) => "waiting for block compression to finish",
        Phase::Writing => "writing",
        Phase::Metadata => "building metadata",
        Phase::Finished => "finishing",
    }
}

/// Bytes of input that are done in this phase.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of bytes for display"
)]
fn bytes(stats: &Stats, phase: Phase) -> u64 {
    match phase {
        Phase::Scanning => 0,
        Phase::Hashing => stats.hashed_bytes.get(),
        Phase::Writing | Phase::Metadata | Phase::Finished => {
            let done = stats.work_done().unwrap_or_default();
            (done * stats.segment_bytes_total.get() as f64) as u64
        }
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
            "original size: {} ({}), hashed: {} ({} of {} files)",
            size::display(stats.original_bytes.get()),
            size::display(stats.allocated_bytes.get()),
            size::display(stats.hashed_bytes.get()),
            stats.hashed_files.get(),
            stats.hash_files_total.get()
        ),
        format!(
            "saved by deduplication: {} ({} files), saved by segmenting: {} ({} matches)",
            size::display(stats.duplicate_bytes.get()),
            stats.duplicate_files.get(),
            size::display(stats.segment_saved_bytes.get()),
            stats.segment_matches.get()
        ),
        format!(
            "filesystem: {} in {} blocks ({}/{} segmented)",
            size::display(stats.block_bytes.get()),
            stats.blocks_made.get(),
            size::display(stats.segmented_bytes.get()),
            size::display(stats.segment_bytes_total.get()),
        ),
        format!(
            "compressed filesystem: {} blocks/{} written, using {} of memory",
            stats.blocks_written.get(),
            size::display(stats.compressed_block_bytes.get()),
            size::display(system::resident_bytes().unwrap_or_else(|| stats.memory_bytes.get()))
        ),
    ]
}

fn workers(stats: &Stats) -> Vec<WorkerLine> {
    let jobs = stats.jobs();
    if jobs.is_empty() {
        return Vec::new();
    }
    let rate = seconds_per_compressed_byte(stats);
    jobs.into_iter().map(|job| worker(job, rate)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a share for display")]
fn worker(job: Job, seconds_per_compressed_byte: Option<f64>) -> WorkerLine {
    let bytes = job.bytes.max(1) as f64;
    let elapsed = job.elapsed.as_secs_f64();
    let estimated = seconds_per_compressed_byte
        .filter(|_| job.stage == Stage::Compress)
        .map(|seconds| (elapsed / (seconds * bytes)).min(0.99));
    WorkerLine {
        doing: job.stage.doing(),
        what: job.what,
        fraction: estimated,
        is_estimate: true,
        elapsed: job.elapsed,
    }
}

/// What compressing a byte took so far, by the clock, in the mean.
#[expect(clippy::cast_precision_loss, reason = "a rate for display")]
fn seconds_per_compressed_byte(stats: &Stats) -> Option<f64> {
    let times = stats.stage_times();
    let compress = times.iter().find(|times| times.stage == Stage::Compress)?;
    let seconds = (compress.thread_time.saturating_sub(compress.input_wait)).as_secs_f64();
    (compress.bytes > 0 && seconds > 0.0).then(|| seconds / compress.bytes as f64)
}

/// The figures of a progress event. The names are documented and stay.
fn fields(stats: &Stats) -> Map<String, Value> {
    let fields = json!({
        "errors": stats.errors.get(),
        "directories": stats.dirs.get(),
        "files": stats.files.get(),
        "symlinks": stats.symlinks.get(),
        "hardlinks": stats.hardlinks.get(),
        "others": stats.devices.get() + stats.specials.get(),
        "original_bytes": stats.original_bytes.get(),
        "hash_files_total": stats.hash_files_total.get(),
        "hashed_files": stats.hashed_files.get(),
        "hashed_bytes": stats.hashed_bytes.get(),
        "duplicate_files": stats.duplicate_files.get(),
        "duplicate_bytes": stats.duplicate_bytes.get(),
        "segment_bytes_total": stats.segment_bytes_total.get(),
        "segmented_bytes": stats.segmented_bytes.get(),
        "segmented_files": stats.segmented_files.get(),
        "segment_matches": stats.segment_matches.get(),
        "segment_saved_bytes": stats.segment_saved_bytes.get(),
        "blocks_made": stats.blocks_made.get(),
        "block_bytes": stats.block_bytes.get(),
        "blocks_written": stats.blocks_written.get(),
        "written_block_bytes": stats.written_block_bytes.get(),
        "compressed_block_bytes": stats.compressed_block_bytes.get(),
        "written_bytes": stats.written_bytes.get(),
        "memory_bytes": system::resident_bytes(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
