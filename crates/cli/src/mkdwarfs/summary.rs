//! What a finished build says: lines for people, JSON for programs.

use std::path::Path;
use std::time::Duration;

use durin_writer::Report;
use serde_json::{Value, json};

use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::{duration, output, ratio, size};

/// Logs the summary.
pub(super) fn log(report: &Report, elapsed: Duration, logger: &Logger) {
    logger.info(format!(
        "{} dirs, {}/{} soft/hard links, {} files, {} other",
        report.dirs,
        report.symlinks,
        report.hardlinks,
        report.files,
        report.devices + report.specials
    ));
    logger.info(format!(
        "original size: {}, hashed: {} ({} files)",
        size::display(report.original_bytes),
        size::display(report.hashed_bytes),
        report.hashed_files
    ));
    logger.info(format!(
        "saved {} / {} ({}) in {}/{} duplicate files",
        size::display(report.duplicate_bytes),
        size::display(report.allocated_bytes),
        ratio::display(report.duplicate_bytes, report.allocated_bytes),
        report.duplicate_files,
        report.files
    ));
    logger.info(format!(
        "compressed {} to {} ({}) in {} blocks",
        size::display(report.block_bytes),
        size::display(report.compressed_block_bytes),
        ratio::display(report.compressed_block_bytes, report.block_bytes),
        report.blocks
    ));
    logger.info(format!(
        "memory: peak {}, estimated {}, limit {}",
        size::display(report.peak_memory_bytes),
        size::display(report.memory_estimate),
        size::display(report.memory_limit)
    ));
    let took = duration::display(elapsed);
    let image = size::display(report.image_bytes);
    match report.errors {
        0 => logger.info(format!(
            "filesystem of {image} created without errors [{took}]"
        )),
        1 => logger.error(format!(
            "filesystem of {image} created with 1 error [{took}]"
        )),
        errors => logger.error(format!(
            "filesystem of {image} created with {errors} errors [{took}]"
        )),
    }
}

/// Writes the summary as JSON to `file`. Standard output belongs to the image when that goes there; the summary then
/// goes to standard error.
pub(super) fn write_json(
    report: &Report,
    elapsed: Duration,
    file: &Path,
    image_on_stdout: bool,
) -> Result<(), Failure> {
    let text = format!("{:#}\n", to_json(report, elapsed));
    if output::is_stdout(file) && image_on_stdout {
        use std::io::Write as _;
        // As with log lines, there is nowhere to tell that standard error is gone.
        drop(std::io::stderr().lock().write_all(text.as_bytes()));
        return Ok(());
    }
    output::write_text(file, &text)
}

fn to_json(report: &Report, elapsed: Duration) -> Value {
    json!({
        "errors": report.errors,
        "elapsed_seconds": elapsed.as_secs_f64(),
        "image_bytes": report.image_bytes,
        "original_bytes": report.original_bytes,
        "allocated_bytes": report.allocated_bytes,
        "hashed_files": report.hashed_files,
        "hashed_bytes": report.hashed_bytes,
        "duplicate_files": report.duplicate_files,
        "duplicate_bytes": report.duplicate_bytes,
        "contents": report.contents,
        "chunks": report.chunks,
        "blocks": report.blocks,
        "block_bytes": report.block_bytes,
        "compressed_block_bytes": report.compressed_block_bytes,
        "metadata_bytes": report.metadata_bytes,
        "compressed_metadata_bytes": report.compressed_metadata_bytes,
        "peak_memory_bytes": report.peak_memory_bytes,
        "memory_limit": report.memory_limit,
        "memory_estimate": report.memory_estimate,
        "entries": {
            "directories": report.dirs,
            "files": report.files,
            "symlinks": report.symlinks,
            "hardlinks": report.hardlinks,
            "devices": report.devices,
            "specials": report.specials,
            "inodes": report.inodes,
        },
    })
}
