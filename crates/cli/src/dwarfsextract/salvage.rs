//! `--salvage`: what survives of a damaged image, and what is lost in words and as JSON.

use std::path::Path;

use durin_extract::salvage::{
    LostFile, SalvageOptions, Salvaged, SectionFound, SectionState, salvage,
};
use durin_extract::{ExtractOptions, Stats};
use durin_format::section::SectionType;
use durin_format::{Error, ErrorKind};
use serde_json::{Value, json};

use super::options::Options;
use super::{extract_options, image_options, stats};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::{escape, image, output, progress, signals, size};

/// Extracts what survives; the result is the exit code.
pub(super) fn run(options: &Options, logger: &Logger) -> Result<u8, Failure> {
    let source = image::open_source(&options.basic.input, logger)?;
    let target = options.basic.output.as_deref().unwrap_or(Path::new("."));
    let cancel =
        signals::cancel_flag().map_err(|error| Error::io("cannot watch for signals", error))?;
    let salvage_options = SalvageOptions {
        image: image_options(options, false)?,
        extract: ExtractOptions {
            continue_on_error: true,
            ..extract_options(options)?
        },
        with_partial: options.salvage.salvage_partial,
    };
    let figures = Stats::default();
    let mode = options
        .basic
        .progress
        .unwrap_or_else(progress::Mode::automatic);
    let salvaged = progress::during(
        logger,
        mode,
        || stats::snapshot(&figures),
        || {
            salvage(&source, target, &salvage_options, &figures, logger, &cancel).map_err(|error| {
                match error.kind() {
                    ErrorKind::NotFound => error.context(options.basic.input.display()),
                    _ => error,
                }
            })
        },
    )?;
    let report = to_json(&salvaged);
    logger.event("report", report.clone());
    if let Some(file) = &options.salvage.salvage_report {
        output::write_text(file, &format!("{report:#}\n"))?;
    }
    Ok(summarize(&salvaged, logger))
}

fn summarize(salvaged: &Salvaged, logger: &Logger) -> u8 {
    let report = &salvaged.report;
    let what = if salvaged.metadata_error.is_some() {
        "blocks"
    } else {
        "files"
    };
    let summary = format!(
        "salvaged {} {what} with {}",
        report.files,
        size::display(report.bytes)
    );
    let lost: usize = salvaged.lost.iter().map(|file| file.paths.len()).sum();
    if salvaged.metadata_error.is_some() {
        logger.error(format!("{summary}; names and attributes are lost"));
    } else if lost > 0 || report.errors > 0 {
        let others = match report.errors {
            0 => String::new(),
            errors => format!(", {errors} other errors"),
        };
        logger.error(format!("{summary}; {lost} files are not whole{others}"));
    } else {
        logger.info(format!("{summary}; nothing is lost"));
        return exit::SUCCESS;
    }
    exit::WITH_ERRORS
}

/// The report as docs/salvage.md describes it.
fn to_json(salvaged: &Salvaged) -> Value {
    json!({
        "schema": 1,
        "image_offset": salvaged.image_offset,
        "metadata_error": salvaged.metadata_error,
        "files": salvaged.report.files,
        "bytes": salvaged.report.bytes,
        "errors": salvaged.report.errors,
        "sections": salvaged.sections.iter().map(section).collect::<Vec<_>>(),
        "lost_files": salvaged.lost.iter().map(lost_file).collect::<Vec<_>>(),
        "raw_blocks": salvaged.raw_blocks,
    })
}

fn section(section: &SectionFound) -> Value {
    let state = match section.state {
        Some(SectionState::Good) => "good",
        Some(SectionState::Damaged) => "damaged",
        Some(SectionState::CutOff) => "cut off",
        None => "missing",
    };
    json!({
        "number": section.number,
        "type": section.section_type.map(SectionType::name),
        "offset": section.offset,
        "len": section.len,
        "state": state,
    })
}

fn lost_file(file: &LostFile) -> Value {
    let text = |path: &Vec<u8>| escape::bytes(path).to_string();
    let ranges = file
        .ranges
        .iter()
        .map(|range| json!({ "offset": range.offset, "len": range.len, "block": range.block }));
    json!({
        "paths": file.paths.iter().map(text).collect::<Vec<_>>(),
        "size": file.size,
        "lost_ranges": ranges.collect::<Vec<_>>(),
        "written_as": file.partial.as_ref().map(text),
    })
}
