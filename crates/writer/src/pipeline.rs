//! Joins the stages.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use durin_format::Result;

use crate::context::Context;
use crate::events::Events;
use crate::filter::Decision;
use crate::options::BuildOptions;
use crate::report::Report;
use crate::scan;
use crate::stats::Stats;

/// Builds an image and writes it to `output`, from its first byte to its last without going back.
///
/// `stats` is kept up to date while it runs. `cancel` ends the build within a tenth of a second or so.
///
/// # Errors
/// `InvalidInput` for options that cannot be used; `Io` if the root of the input cannot be opened or the output refuses;
/// `Limit` for a tree that does not fit into an image; `Cancelled`. What cannot be read below the root is no error of
/// the build: it is reported to `events` and counted in the report.
pub fn build(
    options: &BuildOptions,
    output: &mut dyn Write,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Report> {
    options.validate()?;
    let context = Context::new(options, stats, events, cancel);
    let scanned = scan::scan(context)?;
    output.flush()?;
    drop(scanned);
    Ok(Report::default())
}

/// Scans the input and returns what the filter says of each entry, in the order of paths; nothing is built.
///
/// Entries below excluded directories are not looked at.
///
/// # Errors
/// As the scan of [`build`]; `InvalidInput` if the input is a list, to which no filter applies.
pub fn decide(
    options: &BuildOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Vec<Decision>> {
    scan::decide(Context::new(options, stats, events, cancel))
}
