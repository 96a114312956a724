//! `--dry-run`: what an image would come to, without writing any; what builds and rewriting say alike of it.

use std::time::Duration;

use durin_writer::Estimate;
use durin_writer::sampler::Expected;
use serde_json::{Value, json};

use super::summary::Finished;
use crate::common::{duration, ratio, size};

/// The estimate for people, one figure a line.
pub(super) fn text(estimate: &Estimate, elapsed: Duration) -> String {
    let report = &estimate.report;
    let expected = &estimate.expected;
    let mut text = format!(
        "image size:   {}\n\
         CPU time:     {}\n\
         memory:       {} of at most {}\n\
         from:         {} of {} blocks compressed in {}\n",
        image_size(expected, report.allocated_bytes),
        duration::display(expected.cpu),
        size::display(report.memory_estimate),
        size::display(report.memory_limit),
        expected.sampled_blocks,
        report.blocks,
        duration::display(elapsed),
    );
    if estimate.input_share < 0.999 {
        text.push_str(&format!(
            "              of {:.1}% of the data; what repeats in the rest makes the image smaller\n",
            estimate.input_share * 100.0
        ));
    }
    if report.errors > 0 {
        text.push_str(&format!("errors:       {}\n", report.errors));
    }
    text
}

/// The summary of what was done, and the estimate.
pub(super) fn to_json(estimate: &Estimate, elapsed: Duration) -> Value {
    let finished = Finished {
        report: &estimate.report,
        elapsed,
    };
    let mut summary = finished.to_json();
    let report = &estimate.report;
    let mut figures = figures(&estimate.expected, report.memory_estimate, report.blocks);
    figures["input_share"] = json!(estimate.input_share);
    summary["estimate"] = figures;
    summary
}

/// How large an image will be, as a part of `whole` bytes.
pub(super) fn image_size(expected: &Expected, whole: u64) -> String {
    format!(
        "{} (from {} to {}), {} of {}",
        size::display(expected.image_bytes),
        size::display(expected.image_bytes_low),
        size::display(expected.image_bytes_high),
        ratio::display(expected.image_bytes, whole),
        size::display(whole),
    )
}

/// The estimate for programs.
pub(super) fn figures(expected: &Expected, memory_bytes: u64, blocks: u64) -> Value {
    json!({
        "image_bytes": expected.image_bytes,
        "image_bytes_low": expected.image_bytes_low,
        "image_bytes_high": expected.image_bytes_high,
        "cpu_seconds": expected.cpu.as_secs_f64(),
        "memory_bytes": memory_bytes,
        "sampled_blocks": expected.sampled_blocks,
        "blocks": blocks,
    })
}
