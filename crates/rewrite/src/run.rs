//! One rewriting from the check of the old image to the index of the new one.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::events::Events;
use durin_format::section::SectionType;
use durin_format::{Error, Result};
use durin_reader::{CheckLevel, CheckOptions, Image};
use durin_writer::peak_bytes;
use durin_writer::sampler::Sampler;
use durin_writer::sections::SectionWriter;

use crate::budget::Budget;
use crate::figures::{Figures, Phase};
use crate::history;
use crate::metadata;
use crate::options::{Header, RewriteOptions};
use crate::pipeline::{Moved, Pipeline};
use crate::plan::Plan;
use crate::rebuild;
use crate::report::{CategoryReport, Report};

/// Bytes of a header copied at once.
const PIECE_LEN: u64 = 1 << 20;

/// Makes a new image from `image` and writes it to `output`, from its first byte to its last without going back.
///
/// `figures` are kept up to date while it runs and must be fresh. `cancel` ends it when the blocks that are being
/// compressed then are done.
///
/// # Errors
/// `InvalidInput` for options that cannot be used, alone or with this image; `Corrupt` if it is damaged, whose places
/// are told to `events`; `Unsupported` for blocks that cannot be decoded; `Io` if the image cannot be read or the output
/// refuses; `Limit` for what does not fit into an image; `Cancelled`. What has been written then is no image.
pub fn rewrite(
    image: &Image,
    options: &RewriteOptions,
    output: &mut dyn Write,
    figures: &Figures,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Report> {
    let asked = Run {
        image,
        options,
        figures,
        events,
        cancel,
        sampler: None,
    };
    run(asked, output)
}

/// What is rewritten, and for whom.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) image: &'a Image,
    pub(crate) options: &'a RewriteOptions,
    pub(crate) figures: &'a Figures,
    pub(crate) events: &'a dyn Events,
    pub(crate) cancel: &'a AtomicBool,
    /// Has blocks sampled instead of compressed, where only an estimate is wanted.
    pub(crate) sampler: Option<&'a Sampler>,
}

pub(crate) fn run(asked: Run<'_>, output: &mut dyn Write) -> Result<Report> {
    let Run {
        image,
        options,
        figures,
        events,
        cancel,
        sampler,
    } = asked;
    let plan = Plan::of(image, options)?;
    if let Some(rebuild) = &options.rebuild {
        rebuild::validate(image, rebuild, events)?;
    }
    check(asked)?;
    figures.begin(Phase::Blocks);
    figures.old_blocks_total.add(plan.sections.len() as u64);
    let lens = plan.sections.iter().map(|section| section.payload_len);
    figures.old_block_bytes_total.add(lens.sum());
    let budget = Budget::of(image, &plan, options, events);
    let mut writer = SectionWriter::new(output);
    write_header(image, &options.header, &mut writer)?;
    let header_bytes = writer.written_bytes();
    let pipeline = Pipeline {
        image,
        plan: &plan,
        budget: &budget,
        figures,
        cancel,
        niceness: options.compress_niceness,
        sampler,
    };
    if let Some(sampler) = sampler {
        sampler.plan(plan.block_counts());
    }
    let moved = pipeline.run(&mut writer)?;

    figures.begin(Phase::Metadata);
    let first = writer.next_number();
    let described = metadata::describe(image, &plan, &moved.cut, options, budget.limit, first)?;
    check_cancelled(cancel)?;
    let mut report = Report {
        old_image_bytes: image.len(),
        header_bytes,
        copied_blocks: moved.copied,
        old_compressed_metadata_bytes: metadata::stored_bytes(image),
        chunks: described.chunks,
        categories: categories(&plan, &moved),
        memory_limit: budget.limit,
        memory_estimate: budget.estimate,
        ..Report::default()
    };
    for section in &described.sections {
        writer.section(section)?;
        report.compressed_metadata_bytes += section.payload.len() as u64;
    }
    for section in metadata::unknown(image, writer.next_number()) {
        check_cancelled(cancel)?;
        writer.section(&section?)?;
        report.unknown_sections += 1;
    }
    if let Some(history) = history::appended(image, options.history.as_ref(), events) {
        let number = writer.next_number();
        let spec = &options.history_compression;
        let section = metadata::encode(number, SectionType::History, spec, history)?;
        writer.section(&section)?;
    }
    if options.section_index && !writer.section_index()? {
        events.warn("the image is too large for a section index");
    }
    report.image_bytes = writer.written_bytes() - header_bytes;
    writer.finish()?;
    figures.begin(Phase::Finished);
    report.sum_up();
    report.peak_memory_bytes = peak_bytes();
    Ok(report)
}

impl Report {
    /// Sums over the categories.
    fn sum_up(&mut self) {
        for category in &self.categories {
            self.old_blocks += category.old_blocks;
            self.blocks += category.blocks;
            self.old_compressed_block_bytes += category.old_compressed_bytes;
            self.block_bytes += category.block_bytes;
            self.compressed_block_bytes += category.compressed_bytes;
        }
    }
}

/// Verifies all sections and the metadata, unless the user does without.
fn check(asked: Run<'_>) -> Result<()> {
    let Run {
        image,
        options,
        figures,
        events,
        cancel,
        ..
    } = asked;
    figures.begin(Phase::Checking);
    if !options.check {
        // A tree is described anew from values that are known to be sound, always.
        return match options.rebuild {
            Some(_) => image.check_metadata().map_err(|error| {
                events.error(&error.to_string());
                corrupt_input(1)
            }),
            None => Ok(()),
        };
    }
    let lens = image.sections().iter().map(|section| section.payload_len);
    figures.check_bytes_total.add(lens.sum());
    let level = CheckOptions {
        level: CheckLevel::Quick,
        workers: options.workers,
    };
    let report = image.check(&level, &|done, _| {
        let counted = &figures.checked_bytes;
        counted.add(done.saturating_sub(counted.get()));
    });
    check_cancelled(cancel)?;
    for warning in &report.warnings {
        events.warn(warning);
    }
    for error in &report.errors {
        events.error(&error.to_string());
    }
    match report.errors.len() {
        0 => Ok(()),
        count => Err(corrupt_input(count)),
    }
}

fn corrupt_input(errors: usize) -> Error {
    let plural = if errors == 1 { "" } else { "s" };
    Error::corrupt(format!(
        "input filesystem is corrupt: detected {errors} error{plural}"
    ))
}

fn check_cancelled(cancel: &AtomicBool) -> Result<()> {
    if cancel.load(Ordering::Relaxed) {
        Err(Error::cancelled())
    } else {
        Ok(())
    }
}

/// Writes what stands in front of the image.
fn write_header(image: &Image, header: &Header, writer: &mut SectionWriter<'_>) -> Result<()> {
    match header {
        Header::Remove => Ok(()),
        Header::Replace(bytes) => writer.prefix(bytes),
        Header::Keep => {
            let mut piece = Vec::new();
            let mut offset = 0;
            while offset < image.offset() {
                let len = (image.offset() - offset).min(PIECE_LEN);
                piece.resize(usize::try_from(len).unwrap_or(0), 0);
                let read = image.source().read_exact_at(offset, &mut piece);
                read.map_err(|error| Error::io("cannot read the header of the image", error))?;
                writer.prefix(&piece)?;
                offset += len;
            }
            Ok(())
        }
    }
}

/// Adds up the streams of each category, in the order in which the image has them.
fn categories(plan: &Plan, moved: &Moved) -> Vec<CategoryReport> {
    let mut categories: Vec<CategoryReport> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = Vec::with_capacity(plan.streams.len());
    for stream in &moved.streams {
        let place = *known.entry(&stream.name).or_insert_with(|| {
            categories.push(CategoryReport {
                name: stream.name.clone(),
                ..CategoryReport::default()
            });
            categories.len() - 1
        });
        places.push(place);
        if let Some(category) = categories.get_mut(place) {
            category.blocks += stream.blocks;
            category.block_bytes += stream.block_bytes;
            category.compressed_bytes += stream.compressed_bytes;
        }
    }
    for (stream, section) in plan.stream_of.iter().zip(&plan.sections) {
        let place = places.get(*stream).copied();
        if let Some(category) = place.and_then(|place| categories.get_mut(place)) {
            category.old_blocks += 1;
            category.old_compressed_bytes += section.payload_len;
        }
    }
    categories
}
