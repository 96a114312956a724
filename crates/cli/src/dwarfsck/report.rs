//! What is told about an image: as text or as JSON, by the same features.

use std::io::Write;

use durin_reader::{Image, Info, Report};
use serde_json::Value;

use super::chunk_statistics::ChunkStatistics;
use super::detail::{Detail, Feature};
use super::tree_text::{self, Depth};
use super::{metadata_text, section_text, tables_text};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};

/// Keys of the JSON that only some features show; all others are always there.
const KEYS: [(&str, Feature); 21] = [
    ("version", Feature::Version),
    ("image_offset", Feature::Version),
    ("block_size", Feature::MetadataSummary),
    ("block_count", Feature::MetadataSummary),
    ("inode_count", Feature::MetadataSummary),
    ("preferred_path_separator", Feature::MetadataSummary),
    ("original_filesystem_size", Feature::MetadataSummary),
    (
        "original_allocated_filesystem_size",
        Feature::MetadataSummary,
    ),
    ("total_hardlink_size", Feature::MetadataSummary),
    ("previous_metadata_versions", Feature::MetadataSummary),
    ("compressed_block_size", Feature::MetadataSummary),
    ("uncompressed_block_size", Feature::MetadataSummary),
    ("compressed_metadata_size", Feature::MetadataSummary),
    ("uncompressed_metadata_size", Feature::MetadataSummary),
    ("options", Feature::MetadataSummary),
    ("time_resolution", Feature::MetadataSummary),
    ("categories", Feature::MetadataSummary),
    ("history", Feature::History),
    ("meta", Feature::MetadataDetails),
    ("sections", Feature::SectionDetails),
    ("valid_section_index", Feature::SectionDetails),
];

/// Prints what `detail` asks for as JSON, and the report on space if there is one. Returns how many entries could not be
/// read.
pub(super) fn print_json(
    image: &Image,
    detail: &Detail,
    checked: Option<&Report>,
    space: Option<Value>,
    logger: &Logger,
) -> Result<u64, Failure> {
    let mut json = info(image, checked)?.to_json();
    if let Some(keys) = json.as_object_mut() {
        keys.retain(|key, _| {
            KEYS.iter()
                .find(|(name, _)| name == key)
                .is_none_or(|(_, feature)| detail.shows(*feature))
        });
        add_local_times(keys.get_mut("history"));
        let further = further_keys(image, detail)?.into_iter();
        let space = space.map(|space| ("space", space));
        keys.extend(
            further
                .chain(space)
                .map(|(key, value)| (key.to_owned(), value)),
        );
    }
    let text = format!("{json:#}");
    let mut errors = 0;
    output::to_stdout(|out| {
        let Some(depth) = tree_depth(detail) else {
            return writeln!(out, "{text}").map_err(write_failed);
        };
        // Some keys are always there, so that the text ends so.
        let start = text.strip_suffix("\n}").unwrap_or("{");
        let comma = if start == "{" { "" } else { "," };
        write!(out, "{start}{comma}\n  \"root\": ").map_err(write_failed)?;
        errors += tree_text::write_json(image, depth, logger, out)?;
        writeln!(out, "\n}}").map_err(write_failed)
    })?;
    Ok(errors)
}

/// What the library tells, with what was found out about checksums.
fn info(image: &Image, checked: Option<&Report>) -> Result<Info, Failure> {
    let mut info = image.info()?;
    if let Some(report) = checked {
        info.take_checked(report);
    }
    Ok(info)
}

/// What only the program tells.
fn further_keys(image: &Image, detail: &Detail) -> Result<Vec<(&'static str, Value)>, Failure> {
    let mut keys = Vec::new();
    let with_empty = detail.shows(Feature::FrozenDetails);
    if with_empty || detail.shows(Feature::FrozenAnalysis) {
        keys.push(("tables", tables_text::json(image, with_empty)));
    }
    if detail.shows(Feature::MetadataDetails) {
        keys.push(("chunk_statistics", ChunkStatistics::collect(image)?.json()));
    }
    if detail.shows(Feature::FrozenLayout) || detail.shows(Feature::SchemaRawDump) {
        let schema = durin_format::dump::schema(&image.schema()?);
        keys.push(("schema", schema.into()));
    }
    if detail.shows(Feature::MetadataFullDump) {
        let metadata = durin_format::json::metadata_json(&image.thaw_metadata()?);
        keys.push(("full_metadata", metadata));
    }
    Ok(keys)
}

/// How much of the tree is shown, if any.
fn tree_depth(detail: &Detail) -> Option<Depth> {
    if detail.shows(Feature::ChunkDetails) {
        Some(Depth::Chunks)
    } else {
        detail
            .shows(Feature::DirectoryTree)
            .then_some(Depth::Entries)
    }
}

/// The library knows of no time zone; the reference tells both.
fn add_local_times(history: Option<&mut Value>) {
    for entry in history.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(timestamp) = entry.get_mut("timestamp").and_then(Value::as_object_mut)
            && let Some(epoch) = timestamp.get("epoch").and_then(Value::as_u64)
        {
            timestamp.insert("local".to_owned(), metadata_text::local_time(epoch).into());
        }
    }
}

/// Prints what `detail` asks for as text; returns how many entries could not be read.
pub(super) fn print_text(
    image: &Image,
    detail: &Detail,
    checked: Option<&Report>,
    logger: &Logger,
) -> Result<u64, Failure> {
    let info = info(image, checked)?;
    let mut errors = 0;
    output::to_stdout(|out| {
        errors += write_text(image, &info, detail, logger, out)?;
        Ok(())
    })?;
    Ok(errors)
}

fn write_text(
    image: &Image,
    info: &Info,
    detail: &Detail,
    logger: &Logger,
    out: &mut dyn Write,
) -> Result<u64, Failure> {
    let mut put = |text: &str| out.write_all(text.as_bytes()).map_err(write_failed);
    if detail.shows(Feature::Version) {
        put(&metadata_text::version(info))?;
    }
    put(&metadata_text::origin(info))?;
    if detail.shows(Feature::MetadataSummary) {
        put(&metadata_text::summary(info))?;
    }
    if detail.shows(Feature::History) {
        put(&metadata_text::history(&info.history))?;
    }
    if detail.shows(Feature::FrozenAnalysis) {
        put(&tables_text::analysis(image))?;
    }
    if detail.shows(Feature::SectionDetails) {
        put(&section_text::sections(info))?;
    }
    if detail.shows(Feature::FrozenDetails) {
        put(&tables_text::details(image))?;
    }
    if detail.shows(Feature::MetadataDetails) {
        put(&tables_text::lengths(info))?;
        put(&ChunkStatistics::collect(image)?.text())?;
    }
    if detail.shows(Feature::FrozenLayout) || detail.shows(Feature::SchemaRawDump) {
        put("schema:\n")?;
        put(&durin_format::dump::schema(&image.schema()?))?;
    }
    let mut errors = 0;
    if let Some(depth) = tree_depth(detail) {
        errors += tree_text::write(image, depth, logger, out)?;
    }
    if detail.shows(Feature::MetadataFullDump) {
        out.write_all(durin_format::dump::metadata(&image.thaw_metadata()?).as_bytes())
            .map_err(write_failed)?;
    }
    Ok(errors)
}
