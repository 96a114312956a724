//! What a finished build says: lines for people, JSON for programs.

use std::path::Path;
use std::time::Duration;

use durin_writer::stats::Stage;
use durin_writer::{CategoryReport, Report};
use serde_json::{Value, json};

use super::stages;
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::{duration, output, program, ratio, size, system};

/// A finished build.
pub(super) struct Finished<'a> {
    pub(super) report: &'a Report,
    pub(super) elapsed: Duration,
}

impl Finished<'_> {
    /// Logs the summary.
    pub(super) fn log(&self, logger: &Logger) {
        for line in self.lines() {
            logger.info(line);
        }
        let took = duration::display(self.elapsed);
        let took = match system::cpu_times() {
            Some((user, system)) => format!("{took}, cpu {}", duration::display(user + system)),
            None => took,
        };
        let image = size::display(self.report.image_bytes);
        match self.report.errors {
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

    fn lines(&self) -> Vec<String> {
        let report = self.report;
        let mut lines = vec![
            format!(
                "{} dirs, {}/{} soft/hard links, {} files, {} other",
                report.dirs,
                report.symlinks,
                report.hardlinks,
                report.files,
                report.devices + report.specials
            ),
            format!(
                "original size: {}, hashed: {} ({} files)",
                size::display(report.original_bytes),
                size::display(report.hashed_bytes),
                report.hashed_files
            ),
            format!(
                "saved {} / {} ({}) in {}/{} duplicate files",
                size::display(report.duplicate_bytes),
                size::display(report.allocated_bytes),
                ratio::display(report.duplicate_bytes, report.allocated_bytes),
                report.duplicate_files,
                report.files
            ),
        ];
        if report.segment_matches > 0 {
            let distinct = report
                .block_bytes
                .saturating_add(report.segment_saved_bytes);
            lines.push(format!(
                "saved {} / {} ({}) by segmenting, in {} matches",
                size::display(report.segment_saved_bytes),
                size::display(distinct),
                ratio::display(report.segment_saved_bytes, distinct),
                report.segment_matches
            ));
        }
        // One category is all there is to say about data without any.
        if report.categories.len() > 1 {
            lines.extend(report.categories.iter().map(category_line));
        }
        lines.push(format!(
            "compressed {} to {} ({}) in {} blocks",
            size::display(report.block_bytes),
            size::display(report.compressed_block_bytes),
            ratio::display(report.compressed_block_bytes, report.block_bytes),
            report.blocks
        ));
        if report.small_files > 0 {
            lines.push(format!(
                "{} blocks per small file in the mean ({} files smaller than a block)",
                size::four_digits(report.small_file_blocks, report.small_files),
                report.small_files
            ));
        }
        lines.push(self.cpu_line());
        lines.push(format!(
            "memory: peak {}, estimated {}, limit {}",
            size::display(report.peak_memory_bytes),
            size::display(report.memory_estimate),
            size::display(report.memory_limit)
        ));
        lines
    }

    /// What the processors did.
    fn cpu_line(&self) -> String {
        let parts: [(&str, &[Stage]); 6] = [
            ("scanning", &[Stage::Scan, Stage::Assemble, Stage::Sparse]),
            (
                "analyzing",
                &[
                    Stage::Analyze,
                    Stage::Hash,
                    Stage::Categorize,
                    Stage::Sketch,
                ],
            ),
            ("ordering", &[Stage::Order]),
            ("segmenting", &[Stage::Read, Stage::Anchor, Stage::Segment]),
            ("compression", &[Stage::Compress]),
            ("metadata", &[Stage::Metadata]),
        ];
        let part = |(name, stages): (&str, &[Stage])| {
            let cpu: Duration = stages.iter().map(|stage| self.report.cpu_of(*stage)).sum();
            format!("{name} {}", duration::display(cpu))
        };
        format!("CPU time: {}", parts.map(part).join(", "))
    }

    /// The summary. The names are documented (docs/progress.md) and stay.
    pub(super) fn to_json(&self) -> Value {
        let report = self.report;
        let cpu = system::cpu_times();
        let [user, system] =
            [cpu.map(|(user, _)| user), cpu.map(|(_, system)| system)].map(seconds);
        json!({
            "errors": report.errors,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "cpu_user_seconds": user,
            "cpu_system_seconds": system,
            "peak_memory_bytes": report.peak_memory_bytes,
            "memory_estimate": report.memory_estimate,
            "memory_limit": report.memory_limit,
            "image_bytes": report.image_bytes,
            "original_bytes": report.original_bytes,
            "allocated_bytes": report.allocated_bytes,
            "hashed_files": report.hashed_files,
            "hashed_bytes": report.hashed_bytes,
            "duplicate_files": report.duplicate_files,
            "duplicate_bytes": report.duplicate_bytes,
            "segment_matches": report.segment_matches,
            "segment_saved_bytes": report.segment_saved_bytes,
            "contents": report.contents,
            "chunks": report.chunks,
            "small_files": report.small_files,
            "small_file_blocks": report.small_file_blocks,
            "blocks_per_small_file": blocks_per_small_file(report),
            "blocks": report.blocks,
            "block_bytes": report.block_bytes,
            "compressed_block_bytes": report.compressed_block_bytes,
            "metadata_bytes": report.metadata_bytes,
            "compressed_metadata_bytes": report.compressed_metadata_bytes,
            "entries": {
                "directories": report.dirs,
                "files": report.files,
                "symlinks": report.symlinks,
                "hardlinks": report.hardlinks,
                "devices": report.devices,
                "specials": report.specials,
                "inodes": report.inodes,
            },
            "categories": report.categories.iter().map(category_json).collect::<Vec<_>>(),
            "times": stages::to_json(report),
        })
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn blocks_per_small_file(report: &Report) -> Option<f64> {
    (report.small_files > 0).then(|| report.small_file_blocks as f64 / report.small_files as f64)
}

fn category_line(category: &CategoryReport) -> String {
    format!(
        "category {}: {} in {} fragments, compressed {} to {} ({}) in {} blocks",
        category.name,
        size::display(category.data_bytes),
        category.fragments,
        size::display(category.block_bytes),
        size::display(category.compressed_bytes),
        ratio::display(category.compressed_bytes, category.block_bytes),
        category.blocks
    )
}

fn category_json(category: &CategoryReport) -> Value {
    json!({
        "name": category.name,
        "fragments": category.fragments,
        "data_bytes": category.data_bytes,
        "blocks": category.blocks,
        "block_bytes": category.block_bytes,
        "compressed_block_bytes": category.compressed_bytes,
    })
}

/// Writes a summary as JSON to `file`. Standard output belongs to the image when that goes there; the summary then goes
/// to standard error, where a sender of events has sent it already.
///
/// The image is complete by now, so that a summary which cannot be written only changes the exit code, which this is.
pub(super) fn write_json(
    summary: &Value,
    file: &Path,
    image_on_stdout: bool,
    logger: &Logger,
) -> u8 {
    let text = format!("{summary:#}\n");
    if output::is_stdout(file) && image_on_stdout {
        if !logger.sends_events() {
            logger.write_above_progress(&text);
        }
        return exit::SUCCESS;
    }
    match output::write_text(file, &text) {
        // A reader that is gone has seen enough.
        Ok(()) | Err(Failure::BrokenPipe) => exit::SUCCESS,
        Err(failure) => {
            program::report(logger, &failure);
            exit::WITH_ERRORS
        }
    }
}
