//! The image as a whole: version, origin, sizes, history.

use durin_format::history::History;
use durin_format::metadata::MetadataHistoryEntry;
use durin_reader::{CategoryInfo, Info, option_names};

use crate::common::{clock, duration, escape, ratio, size};

/// `version`: the format, and where the image is.
pub(super) fn version(info: &Info) -> String {
    let version = info.version;
    let container = if version.has_v1_sections() { 1 } else { 2 };
    let offset = info.image_offset;
    format!(
        "DwarFS version {}.{} [{container}] at offset {offset}\n",
        version.major, version.minor
    )
}

/// Who made the image, when, and what a reader needs to know.
pub(super) fn origin(info: &Info) -> String {
    let mut text = String::new();
    if let Some(program) = &info.created_by {
        line(&mut text, "created by", &escape::bytes(program.as_bytes()));
    }
    if let Some(seconds) = info.created_on {
        line(&mut text, "created on", &local_time(seconds));
    }
    if !info.features.is_empty() {
        line(
            &mut text,
            "features",
            &escape::bytes(info.features.join(", ").as_bytes()),
        );
    }
    text
}

/// `metadata_summary`: counts, sizes and options.
pub(super) fn summary(info: &Info) -> String {
    let mut text = String::new();
    line(
        &mut text,
        "block size",
        &size::display(info.block_size.into()),
    );
    line(&mut text, "block count", &info.block_count.to_string());
    line(&mut text, "inode count", &info.inode_count.to_string());
    if let Some(separator) = info.preferred_path_separator.and_then(char::from_u32) {
        line(
            &mut text,
            "preferred path separator",
            &escape::bytes(separator.to_string().as_bytes()),
        );
    }
    line(&mut text, "original filesystem size", &original_size(info));
    let block_sizes = (info.compressed_block_size, info.uncompressed_block_size);
    let metadata_sizes = (
        info.compressed_metadata_size,
        Some(info.uncompressed_metadata_size),
    );
    for (what, (stored, whole)) in [("block", block_sizes), ("metadata", metadata_sizes)] {
        line(
            &mut text,
            &format!("compressed {what} size"),
            &compressed(stored, whole),
        );
        line(
            &mut text,
            &format!("uncompressed {what} size"),
            &whole.map_or_else(unknown, size::display),
        );
    }
    let options = info.option_names();
    if !options.is_empty() {
        line(&mut text, "options", &options.join(", "));
    }
    line(&mut text, "time resolution", &time_resolution(info));
    for category in &info.categories {
        let name = format!("category '{}'", escape::bytes(category.name.as_bytes()));
        line(&mut text, &name, &category_text(category));
    }
    for previous in &info.previous_versions {
        line(&mut text, "previous metadata", &previous_text(previous));
    }
    text
}

fn previous_text(previous: &MetadataHistoryEntry) -> String {
    let mut text = format!("version {}.{}", previous.major, previous.minor);
    if let Some(program) = &previous.dwarfs_version {
        text.push_str(&format!(" by {}", escape::bytes(program)));
    }
    let block_size = size::display(previous.block_size.into());
    text.push_str(&format!(", block size {block_size}"));
    let options = option_names(&previous.options.unwrap_or_default());
    if !options.is_empty() {
        text.push_str(&format!(", {}", options.join(", ")));
    }
    text
}

fn original_size(info: &Info) -> String {
    let original = info.original_filesystem_size;
    match info.original_allocated_filesystem_size {
        Some(allocated) if allocated != original => {
            format!(
                "{} ({} allocated)",
                size::display(original),
                size::display(allocated)
            )
        }
        _ => size::display(original),
    }
}

fn compressed(stored: u64, whole: Option<u64>) -> String {
    let share = whole.map_or_else(unknown, |whole| ratio::display(stored, whole));
    format!("{} ({share})", size::display(stored))
}

fn category_text(category: &CategoryInfo) -> String {
    let whole = category.uncompressed_size;
    format!(
        "{} blocks, {} to {}",
        category.block_count,
        whole.map_or_else(unknown, size::display),
        compressed(category.compressed_size, whole)
    )
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn time_resolution(info: &Info) -> String {
    let span = std::time::Duration::try_from_secs_f64(info.time_resolution());
    span.map_or_else(|_| unknown(), duration::display)
}

/// `history`: how the image was made and changed.
pub(super) fn history(history: &History) -> String {
    let mut text = String::new();
    if !history.entries.is_empty() {
        text.push_str("history:\n");
    }
    for (index, entry) in history.entries.iter().enumerate() {
        let version = &entry.version;
        let release = match &version.git_desc {
            Some(description) => description.clone(),
            None => format!("v{}.{}.{}", version.major, version.minor, version.patch),
        };
        let time = entry
            .timestamp
            .map(|seconds| format!("[{}] ", local_time(seconds)))
            .unwrap_or_default();
        let origin = format!("{release} on {}, {}", entry.system_id, entry.compiler_id);
        text.push_str(&format!(
            "  {}: {time}{}\n",
            index + 1,
            escape::bytes(origin.as_bytes())
        ));
        if let Some(arguments) = &entry.arguments {
            let arguments = escape::bytes(arguments.join(" ").as_bytes());
            text.push_str(&format!("     args: {arguments}\n"));
        }
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    text.push_str(&format!("{name}: {value}\n"));
}

/// Seconds since 1970 as a local time; from an image, so that any number is possible.
pub(super) fn local_time(seconds: u64) -> String {
    /// Far beyond any calendar, and far from any overflow.
    const SECONDS_MAX: u64 = 1 << 48;
    let seconds = i64::try_from(seconds.min(SECONDS_MAX)).unwrap_or_default();
    clock::local(seconds).to_string()
}
