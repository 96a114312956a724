//! `durin verify`: whether an image is whole, and a new section index for one that has lost it.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgMatches, Parser};
use durin_extract::salvage::{self, LostFile, LostRange, RepairedIndex, repair_index};
use durin_format::Error;
use durin_format::json::string;
use durin_reader::{CheckLevel, CheckOptions, Image, ImageOffset, ImageOptions, Report};
use durin_source::Source;
use durin_writer::output::{AtomicFile, Overwrite};
use serde_json::{Value, json};

use crate::common::arguments::{self, HelpArguments, LogArguments, image_offset};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::Program;
use crate::common::{escape, image, output, size};

/// Verify all checksums and the metadata of an image, or make its section index anew.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin verify [OPTIONS] IMAGE\n       durin verify --repair-index IMAGE -o FILE",
    after_help = "A section index makes opening an image fast; nothing is lost without it.\n\
                  Exit status: 0 the image is whole, or has been repaired; 1 it is not."
)]
pub(crate) struct Options {
    /// Image to verify
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Where the image starts in the file: 'auto' or bytes
    #[arg(help_heading = "Options", short = 'O', long, value_name = "OFFSET", default_value = "auto", value_parser = image_offset)]
    image_offset: ImageOffset,

    /// Write a copy with a new section index and nothing else changed
    #[arg(help_heading = "Repair", long)]
    repair_index: bool,

    /// File for the copy, which must not exist
    #[arg(
        help_heading = "Repair",
        short,
        long,
        value_name = "FILE",
        requires = "repair_index",
        conflicts_with = "in_place"
    )]
    output: Option<PathBuf>,

    /// Change the image itself
    #[arg(help_heading = "Repair", long, requires = "repair_index")]
    in_place: bool,

    /// Print what was found as JSON
    #[arg(help_heading = "Options", long, conflicts_with = "repair_index")]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Verify;

impl Program for Verify {
    type Options = Options;

    const NAME: &'static str = "durin-verify";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let source = image::open_source(&options.image, logger)?;
        if options.repair_index {
            return repair(options, &source, logger);
        }
        let image_options = ImageOptions {
            offset: options.image_offset,
            ..ImageOptions::default()
        };
        let image = Image::open(source, &image_options)
            .map_err(|error| error.context(options.image.display()))?;
        let check = CheckOptions {
            level: CheckLevel::Full,
            workers: arguments::processor_count(),
        };
        let report = image.check(&check, &|_, _| {});
        for warning in &report.warnings {
            logger.warn(warning);
        }
        for error in &report.errors {
            logger.error(error.to_string());
        }
        let lost = lost_files(&image, &report, logger);
        let has_index = image.has_section_index();
        if image.version().minor >= 4 && !has_index {
            logger.warn("there is no usable section index; --repair-index makes one");
        }
        let errors = u64::try_from(report.errors.len()).unwrap_or(u64::MAX);
        logger.info(format!(
            "{} sections with {} verified, {errors} error{}",
            report.sections_checked,
            size::display(report.bytes),
            if errors == 1 { "" } else { "s" }
        ));
        if options.json {
            let json = to_json(&image, &report, lost.as_deref());
            output::print(&format!("{json}\n"))?;
        }
        Ok(exit::of_errors(errors))
    }
}

/// Reports the files that cannot be read, if there may be any and the metadata can tell.
fn lost_files(image: &Image, report: &Report, logger: &Logger) -> Option<Vec<LostFile>> {
    if report.is_ok() {
        return Some(Vec::new());
    }
    match salvage::lost_files(image) {
        Ok(lost) => {
            for file in &lost {
                logger.error(file.describe());
            }
            Some(lost)
        }
        Err(error) => {
            logger.error(format!("it cannot be told which files are lost: {error}"));
            None
        }
    }
}

/// What was found, as docs/everyday.md describes it.
fn to_json(image: &Image, report: &Report, lost: Option<&[LostFile]>) -> Value {
    let errors = report.errors.iter().map(ToString::to_string);
    let path = |path: &Vec<u8>| string(path);
    let lost_file = |file: &LostFile| {
        let ranges = file.ranges.iter();
        let range = |range: &LostRange| json!({ "offset": range.offset, "len": range.len, "block": range.block });
        json!({
            "paths": file.paths.iter().map(path).collect::<Vec<_>>(),
            "size": file.size,
            "lost_ranges": ranges.map(range).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": 1,
        "image_offset": image.offset(),
        "sections": report.sections_checked,
        "bytes": report.bytes,
        "has_section_index": image.has_section_index(),
        "errors": errors.collect::<Vec<_>>(),
        "warnings": report.warnings,
        "lost_files": lost.map(|lost| lost.iter().map(lost_file).collect::<Vec<_>>()),
    })
}

fn repair(options: &Options, source: &Arc<dyn Source>, logger: &Logger) -> Result<u8, Failure> {
    if options.output.is_none() && !options.in_place {
        return Err(Failure::Usage(
            "--repair-index needs --output for the repaired copy, or --in-place".to_owned(),
        ));
    }
    let repaired = repair_index(source, options.image_offset)
        .map_err(|error| error.context(options.image.display()))?;
    for number in &repaired.damaged {
        logger.warn(format!(
            "section {number} is damaged, which an index does not change"
        ));
    }
    if repaired.is_right {
        logger.info("the section index is right already");
    }
    match &options.output {
        Some(target) => {
            let mut file = AtomicFile::create(target, Overwrite::Refuse)?;
            repaired.write(&mut file)?;
            file.commit()?;
        }
        None if !repaired.is_right => in_place(options, &repaired)?,
        None => {}
    }
    Ok(exit::of_errors(repaired.damaged.len() as u64))
}

/// Writes the index behind the last section. What is before is not touched, so that being interrupted costs nothing.
fn in_place(options: &Options, repaired: &RepairedIndex) -> Result<(), Failure> {
    use std::os::unix::fs::FileExt as _;
    let failed = |error| {
        let path = escape::path(&options.image);
        Error::io(format!("cannot write '{path}'"), error)
    };
    let file = OpenOptions::new()
        .write(true)
        .open(&options.image)
        .map_err(failed)?;
    file.write_all_at(&repaired.section, repaired.kept)
        .map_err(failed)?;
    file.set_len(repaired.kept + repaired.section.len() as u64)
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(())
}
