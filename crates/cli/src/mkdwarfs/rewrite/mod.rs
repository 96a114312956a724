//! Making a new image from an old one: `mkdwarfs -i IMAGE` with `--recompress`, `--rebuild-metadata` or `--change-block-size`.

mod options;
mod plan;
mod stats;
mod summary;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::ArgMatches;
use durin_format::Error;
use durin_reader::{CacheOptions, Image, ImageOptions};
use durin_rewrite::{Figures, Header, RewriteOptions};

use super::options::Options;
use super::{EVENT_SCHEMA, Mkdwarfs, check_outputs, no_image, progress_mode, with_target};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::Program;
use crate::common::signals::Deadline;
use crate::common::{escape, image, output, progress};

pub(crate) use options::Rewriting;
use summary::Finished;

/// Rewrites an image, as [`Rewriting::is_asked_for`] says.
pub(super) fn run(options: &Options, matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
    let deadline = Deadline::start(logger)?;
    let cancel = deadline.cancel();
    let rewriting = plan::rewrite_options(options, matches, logger)?;
    let input = options.basic.input.as_deref();
    let input = input.ok_or_else(|| Failure::Usage("rewriting needs an --input".to_owned()))?;
    let target = options.basic.output.as_deref().unwrap_or(Path::new("-"));
    output::refuse_own_input(input, options.output.json.as_deref())?;
    if !options.basic.dry_run {
        output::refuse_own_input(input, [target])?;
        check_outputs(options, target)?;
    }
    let image = open(input, logger)?;
    let rewriting = plan::fit(rewriting, options, &image, logger)?;
    if matches!(rewriting.header, Header::Replace(_)) && image.offset() > 0 {
        logger.warn(format!(
            "the header of {} bytes in front of the image is replaced",
            image.offset()
        ));
    }
    if options.basic.dry_run {
        return estimate(options, &image, &rewriting, logger, cancel);
    }
    let started = Instant::now();
    logger.event("start", start_fields(&rewriting, input, Some(target)));
    logger.info(format!("rewriting '{}'", escape::path(input)));
    let report = with_target(options, target, &deadline, |output, _| {
        with_figures(options, logger, |figures| {
            durin_rewrite::rewrite(&image, &rewriting, output, figures, logger, cancel)
        })
    })?;
    let finished = Finished {
        report: &report,
        elapsed: started.elapsed(),
    };
    finished.log(logger);
    logger.event("report", finished.to_json());
    Ok(match &options.output.json {
        Some(file) => {
            let image_on_stdout = output::is_stdout(target);
            super::summary::write_json(&finished.to_json(), file, image_on_stdout, logger)
        }
        None => exit::SUCCESS,
    })
}

/// `--dry-run`.
fn estimate(
    options: &Options,
    image: &Image,
    rewriting: &RewriteOptions,
    logger: &Logger,
    cancel: &Arc<AtomicBool>,
) -> Result<u8, Failure> {
    let started = Instant::now();
    let input = options.basic.input.as_deref().unwrap_or(Path::new(""));
    logger.event("start", start_fields(rewriting, input, None));
    let estimate = with_figures(options, logger, |figures| {
        durin_rewrite::estimate(image, rewriting, figures, logger, cancel)
    })?;
    let elapsed = started.elapsed();
    let json = summary::estimate_json(&estimate, elapsed);
    match &options.output.json {
        Some(file) => output::write_text(file, &format!("{json:#}\n"))?,
        None if logger.sends_events() => {}
        None => output::print(&summary::estimate_text(&estimate, elapsed))?,
    }
    logger.event("report", json);
    Ok(exit::SUCCESS)
}

/// Does `work` while showing its figures.
fn with_figures<T>(
    options: &Options,
    logger: &Logger,
    work: impl FnOnce(&Figures) -> Result<T, Error>,
) -> Result<T, Failure> {
    let figures = Figures::default();
    let mode = progress_mode(options);
    let work = || work(&figures);
    let result = progress::during(logger, mode, || stats::snapshot(&figures), work);
    result.map_err(no_image)
}

/// Opens the image to be rewritten, which is read from its first byte to its last: nothing of it is cached.
fn open(input: &Path, logger: &Logger) -> Result<Image, Error> {
    let options = ImageOptions {
        cache: CacheOptions {
            bytes_max: 0,
            workers: 0,
            ..CacheOptions::default()
        },
        metadata_copy_max: image::METADATA_COPY_MAX,
        ..ImageOptions::default()
    };
    image::open(input, &options, logger)
}

/// What the first event tells.
fn start_fields(
    rewriting: &RewriteOptions,
    input: &Path,
    target: Option<&Path>,
) -> serde_json::Value {
    serde_json::json!({
        "schema": EVENT_SCHEMA,
        "program": Mkdwarfs::NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "input": escape::path(input),
        "output": target.map(escape::path),
        "workers": rewriting.workers,
        "rewrites": true,
    })
}
