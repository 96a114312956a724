//! dwarfsck: checks an image, lists its files, tells what is in it.

mod check;
mod checksum;
mod chunk_statistics;
mod detail;
mod listing;
mod metadata_text;
mod options;
mod page;
mod report;
mod section_text;
mod space;
mod tables_text;
mod tree_text;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;
use durin_reader::{Image, ImageOptions, MetadataCheck, Report};

use crate::common::contents;
use crate::common::exit::{self, Failure};
use crate::common::logger::{Level, Logger};
use crate::common::program::{self, Program};
use crate::common::{arguments, image, output};

use options::Options;

/// Runs dwarfsck with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    main_with(&arguments::of_process())
}

/// Runs dwarfsck; the first of `arguments` is the name it was called by.
pub(crate) fn main_with(arguments: &[OsString]) -> ExitCode {
    program::main::<Dwarfsck>(arguments)
}

/// The program as [`crate::common::program`] runs it.
pub(crate) struct Dwarfsck;

impl Program for Dwarfsck {
    type Options = Options;

    const NAME: &'static str = "dwarfsck";

    fn logger(options: &Options) -> Logger {
        if options.actions.quiet {
            Logger::new(Level::Error, None)
        } else {
            options.log.logger()
        }
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let actions = &options.actions;
        let path = options.source.image();
        let targets = [&actions.export_metadata, &actions.html];
        output::refuse_own_input(&path, targets.into_iter().flatten().map(PathBuf::as_path))?;
        let image = image::open(&path, &image_options(options), logger)?;
        if actions.print_header {
            return print_header(&image, logger);
        }
        let checked = (!actions.no_check).then(|| check::run(&image, options, logger));
        match checked.as_ref().filter(|report| !report.is_ok()) {
            Some(report) => {
                // What is told of it can be trusted, and says where the damage is. Anything else would not be complete.
                if report.is_metadata_consistent && actions.asks_for_information() {
                    answer(&image, options, checked.as_ref(), logger)?;
                }
                Ok(exit::FAILURE)
            }
            None => {
                let errors = answer(&image, options, checked.as_ref(), logger)?;
                Ok(exit::of_errors(errors))
            }
        }
    }
}

fn image_options(options: &Options) -> ImageOptions {
    let mut image = ImageOptions {
        offset: options.source.image_offset,
        // The check that follows reports all problems, where opening would stop at the first.
        check: MetadataCheck::Quick,
        ..ImageOptions::default()
    };
    image.cache.bytes_max = options.tuning.cache_size;
    image.cache.workers = contents::threads_ahead(worker_count(options));
    // Each content is read once.
    image.cache.lets_go = true;
    image.cache.verify_blocks = !options.actions.no_check;
    image
}

/// Prints what is asked for; returns the number of entries that could not be read.
fn answer(
    image: &Image,
    options: &Options,
    checked: Option<&Report>,
    logger: &Logger,
) -> Result<u64, Failure> {
    let actions = &options.actions;
    if let Some(file) = &actions.export_metadata {
        export_metadata(image, file)?;
    }
    let mut errors = 0;
    if let Some(digest) = actions.checksum {
        errors += checksum::print(image, digest, worker_count(options), logger)?;
    }
    if actions.list {
        let form = if actions.verbose {
            listing::Form::Long
        } else {
            listing::Form::Paths
        };
        errors += listing::print(image, form, logger)?;
    }
    let mut info = None;
    let mut found = None;
    if actions.space.is_some() || actions.html.is_some() {
        let about = info.insert(image.info()?);
        let space = found.insert(space::collect::collect(image, about, logger)?);
        errors += space.errors;
    }
    if let (Some(file), Some(space), Some(info)) = (&actions.html, &found, &info) {
        let name = options.source.image();
        let name = name.file_name().unwrap_or_default();
        output::write_text(file, &page::html(space, info, name.as_bytes())?)?;
    }
    let space = found.as_ref().zip(actions.space);
    if actions.json {
        let space = space.map(|(space, depth)| space::json::report(space, depth));
        errors += report::print_json(image, &actions.detail, checked, space, logger)?;
    } else if let Some((space, depth)) = space {
        output::print(&space::text::report(space, depth))?;
    } else if actions.asks_for_information() && !actions.quiet {
        errors += report::print_text(image, &actions.detail, checked, logger)?;
    }
    Ok(errors)
}

fn print_header(image: &Image, logger: &Logger) -> Result<u8, Failure> {
    let header = image.header_bytes()?;
    if header.is_empty() {
        logger.warn("the image has no header");
        return Ok(exit::WITH_ERRORS);
    }
    output::to_stdout(|out| out.write_all(&header).map_err(output::write_failed))?;
    Ok(exit::SUCCESS)
}

fn export_metadata(image: &Image, file: &Path) -> Result<(), Failure> {
    let metadata = image.thaw_metadata()?;
    let json = durin_format::json::metadata_json(&metadata);
    output::write_text(file, &format!("{json:#}\n"))
}

fn worker_count(options: &Options) -> usize {
    options
        .tuning
        .num_workers
        .unwrap_or_else(arguments::processor_count)
}
