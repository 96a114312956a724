//! mkdwarfs: a directory tree becomes an image.

mod categorize;
mod debug_filter;
mod dry_run;
mod history;
mod input_list;
mod long_help;
mod memory_log;
mod options;
mod order;
mod plan;
mod rewrite;
mod script;
mod stages;
mod stats;
mod summary;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::ArgMatches;
use durin_format::Error;
use durin_writer::output::{AtomicFile, Overwrite};
use durin_writer::{BuildOptions, Report, Stats};

use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::{self, Program};
use crate::common::signals::Deadline;
use crate::common::{arguments, escape, output, progress, system};

use options::{MemoryLimit, Options};
use summary::Finished;

/// The version of the events that docs/progress.md describes; fields that are added do not change it.
const EVENT_SCHEMA: u32 = 1;

/// Runs mkdwarfs with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    main_with(&arguments::of_process())
}

/// Runs mkdwarfs; the first of `arguments` is the name it was called by.
pub(crate) fn main_with(arguments: &[OsString]) -> ExitCode {
    program::main::<Mkdwarfs>(arguments)
}

/// The program as [`crate::common::program`] runs it.
pub(crate) struct Mkdwarfs;

impl Program for Mkdwarfs {
    type Options = Options;

    const NAME: &'static str = "mkdwarfs";

    const COMPRESSES: bool = true;

    fn logger(options: &Options) -> Logger {
        let logger = options.log.logger();
        match options.output.progress {
            Some(progress::Mode::Json) => logger.with_events(),
            _ => logger,
        }
    }

    fn after_long_help() -> Option<String> {
        Some(long_help::text())
    }

    fn run(options: &Options, matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let input = options.basic.input.as_deref();
        memory_log::during(input, logger, || Self::build(options, matches, logger))?
    }
}

impl Mkdwarfs {
    /// Builds or rewrites an image, or says what would come of it.
    fn build(options: &Options, matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        if options.rewriting.is_asked_for() {
            prepare_memory(options);
            return rewrite::run(options, matches, logger);
        }
        if let Some(name) = options.rewriting.stray() {
            return Err(Failure::Usage(format!(
                "{name} only applies to rewriting an image: --recompress, --rebuild-metadata or --change-block-size"
            )));
        }
        let deadline = Deadline::start(logger)?;
        let scripted = script::load(options, matches, logger, deadline.cancel())?;
        let options = scripted
            .as_ref()
            .map_or(options, |scripted| &scripted.options);
        prepare_memory(options);
        if scripted.is_none() {
            system::raise_descriptor_limit();
        }
        let mut build = plan::build_options(options, history::arguments(matches), logger)?;
        build.script = scripted
            .as_ref()
            .map(|scripted| Arc::clone(&scripted.script));
        if build.hollow {
            logger.warn(
                "a hollow image has no contents: its files have their sizes, and read as zeros",
            );
        }
        if let Some(mode) = options.filter.debug_filter {
            return debug_filter::print(&build, mode, logger, deadline.cancel());
        }
        if options.basic.dry_run {
            return estimate(options, &build, logger, deadline.cancel());
        }
        let target = options.basic.output.as_deref().unwrap_or(Path::new("-"));
        check_outputs(options, target)?;
        let started = Instant::now();
        logger.event("start", start_fields(&build, Some(target)));
        let report = run_build(options, build, target, logger, &deadline)?;
        let finished = Finished {
            report: &report,
            elapsed: started.elapsed(),
        };
        finished.log(logger);
        logger.event("report", finished.to_json());
        let code = exit_code(&report);
        Ok(match &options.output.json {
            Some(file) => {
                let image_on_stdout = output::is_stdout(target);
                summary::write_json(&finished.to_json(), file, image_on_stdout, logger).max(code)
            }
            None => code,
        })
    }
}

/// Refuses outputs that cannot be written, before there is any work to be lost.
fn check_outputs(options: &Options, target: &Path) -> Result<(), Failure> {
    if output::is_stdout(target) {
        output::refuse_terminal("an image")?;
    }
    match &options.output.json {
        Some(json) if !(output::is_stdout(json) && output::is_stdout(target)) => {
            output::check_text_target(json, target)
        }
        _ => Ok(()),
    }
}

fn exit_code(report: &Report) -> u8 {
    exit::of_problems(report.errors)
}

/// `--dry-run`.
fn estimate(
    options: &Options,
    build: &BuildOptions,
    logger: &Logger,
    cancel: &Arc<AtomicBool>,
) -> Result<u8, Failure> {
    let started = Instant::now();
    logger.event("start", start_fields(build, None));
    let estimate = with_progress(options, logger, |figures| {
        durin_writer::estimate(build, figures, logger, cancel)
    })?;
    let elapsed = started.elapsed();
    let json = dry_run::to_json(&estimate, elapsed);
    match &options.output.json {
        Some(file) => output::write_text(file, &format!("{json:#}\n"))?,
        None if logger.sends_events() => {}
        None => output::print(&dry_run::text(&estimate, elapsed))?,
    }
    logger.event("report", json);
    Ok(exit_code(&estimate.report))
}

/// What the first event tells.
fn start_fields(build: &BuildOptions, target: Option<&Path>) -> serde_json::Value {
    serde_json::json!({
        "schema": EVENT_SCHEMA,
        "program": Mkdwarfs::NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "input": build.input.to_string(),
        "output": target.map(escape::path),
        "workers": build.workers,
        "scanner_workers": build.scanner_workers,
    })
}

/// What is free counts only where there is a limit.
fn prepare_memory(options: &Options) {
    if options.advanced.memory_limit == MemoryLimit::Auto {
        system::keep_freed_memory();
    }
}

/// Builds into a file that takes its name only when it is complete, or into standard output.
fn run_build(
    options: &Options,
    mut build: BuildOptions,
    target: &Path,
    logger: &Logger,
    deadline: &Deadline,
) -> Result<Report, Failure> {
    with_target(options, target, deadline, |output, ids| {
        build.exclude_ids = ids;
        with_progress(options, logger, |figures| {
            durin_writer::build(&build, output, figures, logger, deadline.cancel())
        })
    })
}

/// Has `write` write to a file that takes its name only when it is complete, or to standard output. It is told the device
/// and inode numbers of the files that are written or replaced.
fn with_target<T>(
    options: &Options,
    target: &Path,
    deadline: &Deadline,
    write: impl FnOnce(&mut dyn Write, Vec<(u64, u64)>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if output::is_stdout(target) {
        let mut out = output::raw_stdout().map_err(output::write_failed)?;
        let found = out.metadata().map_err(output::write_failed)?;
        let ids = found.is_file().then(|| (found.dev(), found.ino()));
        return write(&mut out, ids.into_iter().collect());
    }
    let overwrite = if options.basic.force {
        Overwrite::Allow
    } else {
        Overwrite::Refuse
    };
    let mut file =
        AtomicFile::create(target, overwrite).map_err(|error| name_force(error, target))?;
    deadline.set_temporary(file.temporary().map(Path::to_owned));
    let ids = file.ids()?;
    let result = write(&mut file, ids)?;
    file.sync()?;
    deadline
        .conclude(|| file.commit())
        .map_err(|error| name_force(error, target))?;
    Ok(result)
}

/// Says how a file that is in the way is replaced.
fn name_force(error: Error, target: &Path) -> Failure {
    match error.io_source() {
        Some(source) if source.kind() == io::ErrorKind::AlreadyExists => Failure::Usage(format!(
            "output '{}' already exists; --force replaces it",
            escape::path(target)
        )),
        _ => Failure::Error(error),
    }
}

/// How progress is shown.
fn progress_mode(options: &Options) -> progress::Mode {
    match options.output.progress {
        _ if options.output.no_progress => progress::Mode::None,
        Some(mode) => mode,
        None => progress::Mode::automatic(),
    }
}

/// Not the quiet end that a reader of a listing gets: an image was wanted, and there is none.
fn no_image(error: Error) -> Failure {
    match error.io_source() {
        Some(source) if source.kind() == io::ErrorKind::BrokenPipe => Failure::Error(error),
        _ => Failure::from(error),
    }
}

/// Does `work` while showing its figures.
fn with_progress<T>(
    options: &Options,
    logger: &Logger,
    work: impl FnOnce(&Stats) -> Result<T, Error>,
) -> Result<T, Failure> {
    let mode = progress_mode(options);
    let figures = Stats::default();
    if options.output.progress_workers {
        figures.show_jobs();
    }
    let work = || work(&figures);
    let result = progress::during(logger, mode, || stats::snapshot(&figures), work);
    result.map_err(no_image)
}
