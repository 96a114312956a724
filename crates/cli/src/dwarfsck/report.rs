//! What is told about an image: as text or as JSON, by the same features.

use std::io::Write;

use durin_reader::{Image, Info};
use serde_json::Value;

use super::detail::{Detail, Feature};
use super::tree_text::{self, Depth};
use super::{metadata_text, section_text, tables_text};
use crate::common::exit::Failure;
use crate::common::output::{self, write_failed};

/// Keys of the JSON that only some features show; all others are always there.
const KEYS: [(&str, Feature); 19] = [
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

/// Prints what `detail` asks for as JSON, and the report on space if there is one.
pub(super) fn print_json(
    image: &Image,
    detail: &Detail,
    space: Option<Value>,
) -> Result<(), Failure> {
    let mut json = image.info()?.to_json();
    if let Some(keys) = json.as_object_mut() {
        keys.retain(|key, _| {
            KEYS.iter()
                .find(|(name, _)| name == key)
                .is_none_or(|(_, feature)| detail.shows(*feature))
        });
        add_local_times(keys.get_mut("history"));
        if let Some(space) = space {
            keys.insert("space".to_owned(), space);
        }
        if detail.shows(Feature::MetadataFullDump) {
            let metadata = durin_format::json::metadata_json(&image.thaw_metadata()?);
            keys.insert("full_metadata".to_owned(), metadata);
        }
        if detail.shows(Feature::DirectoryTree) {
            keys.insert("root".to_owned(), tree_text::json(image)?);
        }
    }
    output::print(&format!("{json:#}\n"))
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

/// Prints what `detail` asks for as text.
pub(super) fn print_text(image: &Image, detail: &Detail) -> Result<(), Failure> {
    let info = image.info()?;
    output::to_stdout(|out| write_text(image, &info, detail, out))
}

fn write_text(
    image: &Image,
    info: &Info,
    detail: &Detail,
    out: &mut dyn Write,
) -> Result<(), Failure> {
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
    if detail.shows(Feature::MetadataDetails) || detail.shows(Feature::FrozenDetails) {
        put(&tables_text::lengths(info))?;
    }
    if detail.shows(Feature::FrozenLayout) || detail.shows(Feature::SchemaRawDump) {
        put("schema:\n")?;
        put(&durin_format::dump::schema(&image.schema()?))?;
    }
    if detail.shows(Feature::DirectoryTree) || detail.shows(Feature::ChunkDetails) {
        let depth = if detail.shows(Feature::ChunkDetails) {
            Depth::Chunks
        } else {
            Depth::Entries
        };
        tree_text::write(image, depth, out)?;
    }
    if detail.shows(Feature::MetadataFullDump) {
        out.write_all(durin_format::dump::metadata(&image.thaw_metadata()?).as_bytes())
            .map_err(write_failed)?;
    }
    Ok(())
}
