//! `--dry-run`: what an image would come to, without writing any.

use std::time::Duration;

use durin_writer::Estimate;
use serde_json::{Value, json};

use super::summary::Finished;
use crate::common::{duration, ratio, size};

/// The estimate for people, one figure a line.
pub(super) fn text(estimate: &Estimate, elapsed: Duration) -> String {
    let report = &estimate.report;
    let mut text = format!(
        "image size:   {} (from {} to {}), {} of {}\n\
         CPU time:     {}\n\
         memory:       {} of at most {}\n\
         from:         {} of {} blocks compressed in {}\n",
        size::display(estimate.image_bytes),
        size::display(estimate.image_bytes_low),
        size::display(estimate.image_bytes_high),
        ratio::display(estimate.image_bytes, report.allocated_bytes),
        size::display(report.allocated_bytes),
        duration::display(estimate.cpu),
        size::display(report.memory_estimate),
        size::display(report.memory_limit),
        estimate.sampled_blocks,
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
    summary["estimate"] = json!({
        "image_bytes": estimate.image_bytes,
        "image_bytes_low": estimate.image_bytes_low,
        "image_bytes_high": estimate.image_bytes_high,
        "cpu_seconds": estimate.cpu.as_secs_f64(),
        "memory_bytes": estimate.report.memory_estimate,
        "sampled_blocks": estimate.sampled_blocks,
        "blocks": estimate.report.blocks,
        "input_share": estimate.input_share,
    });
    summary
}
