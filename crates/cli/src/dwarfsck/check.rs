//! Checking: the checksums of all sections and the consistency of the metadata.

use std::time::Instant;

use durin_reader::{CheckLevel, CheckOptions, Image, Report};

use super::options::Options;
use super::worker_count;
use crate::common::duration;
use crate::common::logger::Logger;
use crate::common::size;

/// Checks the image and tells what is found.
pub(super) fn run(image: &Image, options: &Options, logger: &Logger) -> Report {
    let started = Instant::now();
    let level = if options.actions.check_integrity {
        CheckLevel::Full
    } else {
        CheckLevel::Quick
    };
    let report = image.check(
        &CheckOptions {
            level,
            workers: worker_count(options),
        },
        &|_, _| {},
    );
    for warning in &report.warnings {
        logger.warn(warning);
    }
    for error in &report.errors {
        logger.error(error.to_string());
    }
    let checked = format!(
        "{} sections, {} [{}]",
        report.sections_checked,
        size::display(report.bytes),
        duration::display(started.elapsed())
    );
    match report.errors.len() {
        0 => logger.verbose(format!("no errors found in {checked}")),
        1 => logger.error(format!("1 error found in {checked}")),
        count => logger.error(format!("{count} errors found in {checked}")),
    }
    report
}
