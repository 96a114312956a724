//! What a finished rewriting says: lines for people, JSON for programs.

use std::time::Duration;

use durin_rewrite::{CategoryReport, Estimate, Report};
use serde_json::{Value, json};

use super::super::dry_run;
use crate::common::logger::Logger;
use crate::common::{duration, ratio, size, system};

/// A finished rewriting.
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
        logger.info(format!(
            "filesystem of {image} rewritten without errors [{took}]"
        ));
    }

    fn lines(&self) -> Vec<String> {
        let report = self.report;
        let mut lines = Vec::new();
        if report.categories.len() > 1 {
            lines.extend(report.categories.iter().map(category_line));
        }
        lines.push(format!(
            "blocks: {} in {}, now {} in {} ({} of {} before compression), {} copied",
            size::display(report.old_compressed_block_bytes),
            report.old_blocks,
            size::display(report.compressed_block_bytes),
            report.blocks,
            ratio::display(report.compressed_block_bytes, report.block_bytes),
            size::display(report.block_bytes),
            report.copied_blocks
        ));
        lines.push(format!(
            "metadata: {}, now {}",
            size::display(report.old_compressed_metadata_bytes),
            size::display(report.compressed_metadata_bytes)
        ));
        if report.unknown_sections > 0 {
            lines.push(format!(
                "{} sections of unknown types were carried along",
                report.unknown_sections
            ));
        }
        lines.push(format!(
            "image: {}, now {} ({})",
            size::display(report.old_image_bytes),
            size::display(report.image_bytes),
            ratio::display(report.image_bytes, report.old_image_bytes)
        ));
        lines.push(format!(
            "memory: peak {}, estimated {}, limit {}",
            size::display(report.peak_memory_bytes),
            size::display(report.memory_estimate),
            size::display(report.memory_limit)
        ));
        lines
    }

    /// The summary. The names are documented (docs/rewriting.md) and stay.
    pub(super) fn to_json(&self) -> Value {
        let report = self.report;
        let cpu = system::cpu_times();
        json!({
            "errors": 0,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "cpu_user_seconds": cpu.map(|(user, _)| user.as_secs_f64()),
            "cpu_system_seconds": cpu.map(|(_, system)| system.as_secs_f64()),
            "peak_memory_bytes": report.peak_memory_bytes,
            "memory_estimate": report.memory_estimate,
            "memory_limit": report.memory_limit,
            "old_image_bytes": report.old_image_bytes,
            "image_bytes": report.image_bytes,
            "header_bytes": report.header_bytes,
            "old_blocks": report.old_blocks,
            "blocks": report.blocks,
            "copied_blocks": report.copied_blocks,
            "block_bytes": report.block_bytes,
            "old_compressed_block_bytes": report.old_compressed_block_bytes,
            "compressed_block_bytes": report.compressed_block_bytes,
            "old_compressed_metadata_bytes": report.old_compressed_metadata_bytes,
            "compressed_metadata_bytes": report.compressed_metadata_bytes,
            "chunks": report.chunks,
            "unknown_sections": report.unknown_sections,
            "categories": report.categories.iter().map(category_json).collect::<Vec<_>>(),
        })
    }
}

/// What a rewriting would come to, for people, one figure a line.
pub(super) fn estimate_text(estimate: &Estimate, elapsed: Duration) -> String {
    let report = &estimate.report;
    let expected = &estimate.expected;
    format!(
        "image size:   {} as it is\n\
         metadata:     {} of {} as they are\n\
         CPU time:     {}\n\
         memory:       {} of at most {}\n\
         from:         {} of {} blocks compressed in {}, {} copied\n",
        dry_run::image_size(expected, report.old_image_bytes),
        size::display(report.compressed_metadata_bytes),
        size::display(report.old_compressed_metadata_bytes),
        duration::display(expected.cpu),
        size::display(report.memory_estimate),
        size::display(report.memory_limit),
        expected.sampled_blocks,
        report.blocks - report.copied_blocks,
        duration::display(elapsed),
        report.copied_blocks,
    )
}

/// The summary of what was done, and the estimate.
pub(super) fn estimate_json(estimate: &Estimate, elapsed: Duration) -> Value {
    let finished = Finished {
        report: &estimate.report,
        elapsed,
    };
    let mut summary = finished.to_json();
    let report = &estimate.report;
    summary["estimate"] =
        dry_run::figures(&estimate.expected, report.memory_estimate, report.blocks);
    summary
}

fn category_line(category: &CategoryReport) -> String {
    format!(
        "category {}: {} in {} blocks, now {} in {} ({} of {})",
        category.name.escape_debug(),
        size::display(category.old_compressed_bytes),
        category.old_blocks,
        size::display(category.compressed_bytes),
        category.blocks,
        ratio::display(category.compressed_bytes, category.block_bytes),
        size::display(category.block_bytes)
    )
}

fn category_json(category: &CategoryReport) -> Value {
    json!({
        "name": category.name,
        "old_blocks": category.old_blocks,
        "old_compressed_block_bytes": category.old_compressed_bytes,
        "blocks": category.blocks,
        "block_bytes": category.block_bytes,
        "compressed_block_bytes": category.compressed_bytes,
    })
}
