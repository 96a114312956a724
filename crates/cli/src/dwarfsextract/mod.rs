//! dwarfsextract: the tree in an image becomes a directory.

mod options;
mod stats;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::ArgMatches;
use durin_extract::{ExtractOptions, OwnerRestore, PatternSet, Report, Stats};
use durin_format::Error;
use durin_reader::{Image, ImageOptions};

use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::{self, Program};
use crate::common::{arguments, duration, image, progress, signals, size};

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
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        refuse_archives(options)?;
        let started = Instant::now();
        let image = image::open(&options.basic.input, &image_options(options), logger)?;
        let target = options
            .basic
            .output
            .clone()
            .unwrap_or_else(|| PathBuf::from("."));
        let report = extract(&image, &target, options, logger)?;
        let summary = format!(
            "extracted {} files with {} [{}]",
            report.files,
            size::display(report.bytes),
            duration::display(started.elapsed())
        );
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

fn refuse_archives(options: &Options) -> Result<(), Failure> {
    let later = &options.later;
    let refused = [
        ("--format", later.format.is_some()),
        ("--format-filters", later.format_filters.is_some()),
        ("--format-options", later.format_options.is_some()),
        ("--perfmon", later.perfmon.is_some()),
        ("--perfmon-trace", later.perfmon_trace.is_some()),
    ];
    match refused.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Failure::Usage(format!(
            "{name} is not supported by this release yet"
        ))),
        None => Ok(()),
    }
}

fn image_options(options: &Options) -> ImageOptions {
    let mut image = ImageOptions {
        offset: options.basic.image_offset,
        metadata_copy_max: image::METADATA_COPY_MAX,
        ..ImageOptions::default()
    };
    image.cache.bytes_max = options.tuning.cache_size;
    image.cache.workers = options.tuning.num_workers;
    image.cache.verify_blocks = !options.basic.disable_integrity_check;
    image
}

fn patterns(options: &Options) -> Vec<String> {
    options
        .basic
        .pattern
        .iter()
        .chain(&options.basic.patterns)
        .cloned()
        .collect()
}

fn extract(
    image: &Image,
    target: &Path,
    options: &Options,
    logger: &Logger,
) -> Result<Report, Failure> {
    let patterns = patterns(options);
    let basic = &options.basic;
    let extract_options = ExtractOptions {
        pattern: if patterns.is_empty() {
            None
        } else {
            Some(PatternSet::parse(&patterns)?)
        },
        skip_devices: basic.skip_devices,
        skip_specials: basic.skip_specials,
        continue_on_error: basic.continue_on_error,
        disk_writers: usize::from(options.tuning.num_disk_writers),
        owner: OwnerRestore::default(),
    };
    let cancel =
        signals::cancel_flag().map_err(|error| Error::io("cannot watch for signals", error))?;
    let figures = Stats::default();
    let work = || {
        durin_extract::extract_to_directory(
            image,
            target,
            &extract_options,
            &figures,
            logger,
            &cancel,
        )
    };
    let result = if basic.stdout_progress {
        stats::with_percentages(&figures, work)
    } else {
        let mode = basic.progress.unwrap_or_else(progress::Mode::automatic);
        progress::during(logger, mode, || stats::snapshot(&figures), work)
    };
    Ok(result?)
}
