//! dwarfsextract: the tree in an image becomes a directory or an archive.

mod archive;
pub(crate) mod archive_spec;
mod options;
mod salvage;
mod stats;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use durin_extract::{ExtractOptions, PatternSet, Report, Stats};
use durin_format::Error;
use durin_reader::perfmon::Perfmon;
use durin_reader::{Image, ImageOptions};
use serde_json::{Value, json};

use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::measuring::Measuring;
use crate::common::program::{self, Program};
use crate::common::signals::Deadline;
use crate::common::{arguments, duration, image, output, progress, signals, size};

use options::Options;

/// Runs dwarfsextract with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    main_with(&arguments::of_process())
}

/// Runs dwarfsextract; the first of `arguments` is the name it was called by.
pub(crate) fn main_with(arguments: &[OsString]) -> ExitCode {
    program::main::<Dwarfsextract>(arguments)
}

/// The program as [`crate::common::program`] runs it.
pub(crate) struct Dwarfsextract;

impl Program for Dwarfsextract {
    type Options = Options;

    const NAME: &'static str = "dwarfsextract";

    fn logger(options: &Options) -> Logger {
        let logger = options.log.logger();
        match options.basic.progress {
            Some(progress::Mode::Json) => logger.with_events(),
            _ => logger,
        }
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let input = &options.basic.input;
        output::refuse_own_input(input, options.salvage.salvage_report.as_deref())?;
        if options.salvage.salvage {
            return salvage::run(options, logger);
        }
        let started = Instant::now();
        let archive = archive_spec::archive(options)?;
        output::refuse_own_input(input, options.measuring.perfmon_trace.as_deref())?;
        if archive.is_some() {
            let target = options.basic.output.as_deref();
            output::refuse_own_input(input, [target.unwrap_or(Path::new("-"))])?;
        }
        let image_options = image_options(options, archive.is_some())?;
        let perfmon = image_options.cache.perfmon.as_ref();
        let measuring = Measuring::start(perfmon, options.measuring.perfmon_trace.as_deref())?;
        let image = image::open(input, &image_options, logger)?;
        // A directory that is being filled is left in order, however long that takes.
        let deadline = archive.as_ref().map(|_| Deadline::start(logger));
        let deadline = deadline.transpose()?;
        let cancel = match &deadline {
            Some(deadline) => Arc::clone(deadline.cancel()),
            None => signals::cancel_flag()
                .map_err(|error| Error::io("cannot watch for signals", error))?,
        };
        let job = Job {
            image: &image,
            extract: extract_options(options)?,
            stats: Stats::default(),
            logger,
            cancel: &cancel,
        };
        logger.event("start", start_fields(options, &job));
        let report = match archive.as_ref().zip(deadline.as_ref()) {
            Some((archive, deadline)) => archive::write(&job, archive, options, deadline)?,
            None => to_directory(&job, options)?,
        };
        if let Some(measuring) = measuring {
            measuring.report(logger);
        }
        let summary = format!(
            "extracted {} files with {} [{}]",
            report.files,
            size::display(report.bytes),
            duration::display(started.elapsed())
        );
        logger.event("report", report_fields(&report, started.elapsed()));
        if report.errors > 0 {
            logger.error(format!(
                "{summary}, {} could not be extracted completely",
                report.errors
            ));
            return Ok(exit::WITH_ERRORS);
        }
        logger.info(summary);
        Ok(exit::SUCCESS)
    }
}

fn start_fields(options: &Options, job: &Job<'_>) -> Value {
    let shown = |path: &Path| crate::common::escape::path(path).to_string();
    json!({
        "schema": 1,
        "program": Dwarfsextract::NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "input": shown(&options.basic.input),
        "output": options.basic.output.as_deref().map(shown),
        "format": options.archives.format,
        "workers": options.tuning.num_workers,
        "disk_writers": job.extract.workers(),
    })
}

fn report_fields(report: &Report, elapsed: Duration) -> Value {
    json!({
        "report_elapsed_seconds": elapsed.as_secs_f64(),
        "errors": report.errors,
        "files": report.files,
        "hardlinks": report.links,
        "directories": report.directories,
        "symlinks": report.symlinks,
        "others": report.nodes,
        "written_bytes": report.bytes,
    })
}

/// What is needed wherever an image is extracted to.
struct Job<'a> {
    image: &'a Image,
    extract: ExtractOptions,
    stats: Stats,
    logger: &'a Logger,
    cancel: &'a Arc<AtomicBool>,
}

impl Job<'_> {
    /// Does `work` while showing how far it is.
    fn watched(
        &self,
        options: &Options,
        work: impl FnOnce() -> Result<Report, Failure>,
    ) -> Result<Report, Failure> {
        if options.basic.stdout_progress {
            return stats::with_percentages(&self.stats, work);
        }
        let mode = options
            .basic
            .progress
            .unwrap_or_else(progress::Mode::automatic);
        progress::during(self.logger, mode, || stats::snapshot(&self.stats), work)
    }
}

/// What of the memory for blocks an archive takes for content on its way.
const IN_FLIGHT_SHARE: u64 = 8;

fn image_options(options: &Options, is_archive: bool) -> Result<ImageOptions, Failure> {
    let mut image = ImageOptions {
        offset: options.basic.image_offset,
        metadata_copy_max: image::METADATA_COPY_MAX,
        ..ImageOptions::default()
    };
    let memory = options.tuning.cache_size;
    image.cache.bytes_max = if is_archive {
        memory - memory / IN_FLIGHT_SHARE
    } else {
        memory
    };
    // An archive takes each file once. (Formats in which each further name has the contents, too, decode a block again for
    // them now and then.)
    image.cache.lets_go = is_archive;
    image.cache.workers = options.tuning.num_workers;
    image.cache.verify_blocks = !options.basic.disable_integrity_check;
    let measuring = &options.measuring;
    if let Some(list) = &measuring.perfmon {
        let components = Perfmon::components(list, ',')
            .map_err(|error| Failure::Usage(format!("--perfmon: {error}")))?;
        let perfmon = Perfmon::new(&components, measuring.perfmon_trace.is_some());
        image.cache.perfmon = Some(Arc::new(perfmon));
    }
    Ok(image)
}

fn extract_options(options: &Options) -> Result<ExtractOptions, Failure> {
    let basic = &options.basic;
    let patterns: Vec<&String> = basic.pattern.iter().chain(&basic.patterns).collect();
    Ok(ExtractOptions {
        pattern: if patterns.is_empty() {
            None
        } else {
            Some(PatternSet::parse(&patterns)?)
        },
        skip_devices: basic.skip_devices,
        skip_specials: basic.skip_specials,
        continue_on_error: basic.continue_on_error,
        disk_writers: usize::from(options.tuning.num_disk_writers),
        processors: arguments::processor_count(),
        memory: options.tuning.cache_size / IN_FLIGHT_SHARE,
        ..ExtractOptions::default()
    })
}

fn to_directory(job: &Job<'_>, options: &Options) -> Result<Report, Failure> {
    let target = options.basic.output.as_deref().unwrap_or(Path::new("."));
    job.watched(options, || {
        Ok(durin_extract::extract_to_directory(
            job.image,
            target,
            &job.extract,
            &job.stats,
            job.logger,
            job.cancel,
        )?)
    })
}
