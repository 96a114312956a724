//! `--debug-filter`: what the filter rules include and exclude, without building anything.

use std::sync::atomic::AtomicBool;

use durin_writer::filter::{Decision, Verdict};
use durin_writer::{BuildOptions, Stats};

use super::options::DebugFilter;
use crate::common::escape;
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};

/// Prints the paths that `mode` asks for; returns the exit code, which says whether all directories could be read.
pub(super) fn print(
    build: &BuildOptions,
    mode: DebugFilter,
    logger: &Logger,
    cancel: &AtomicBool,
) -> Result<u8, Failure> {
    let stats = Stats::default();
    let decisions = durin_writer::decide(build, &stats, logger, cancel)?;
    output::to_stdout(|out| {
        for line in decisions.iter().filter_map(|decision| line(decision, mode)) {
            writeln!(out, "{line}").map_err(write_failed)?;
        }
        Ok(())
    })?;
    Ok(exit::of_problems(stats.errors.get()))
}

/// The line for an entry, if it is to be shown.
fn line(entry: &Decision, mode: DebugFilter) -> Option<String> {
    use DebugFilter::{All, Excluded, ExcludedFiles, Files, Included, IncludedFiles};
    let included = entry.verdict == Verdict::Include;
    let shown = match mode {
        All => true,
        Files => !entry.is_dir,
        Included => included,
        IncludedFiles => included && !entry.is_dir,
        Excluded => !included,
        ExcludedFiles => !included && !entry.is_dir,
    };
    let sign = match (mode, included) {
        (All | Files, true) => "+ ",
        (All | Files, false) => "- ",
        _ => "",
    };
    let slash = if entry.is_dir { "/" } else { "" };
    shown.then(|| format!("{sign}/{}{slash}", escape::bytes(&entry.path)))
}
