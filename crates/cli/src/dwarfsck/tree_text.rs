//! `directory_tree` and `chunk_details`: every entry with its inode, and where its data is.

use std::io::Write;

use durin_format::Result;
use durin_format::json::string;
use durin_reader::{Extent, FileKind, Image, Place, WalkEntry};
use serde_json::{Value, json};

use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::write_failed;
use crate::common::{escape, mode};
use crate::everyday::record;

/// How much is told of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The entry.
    Entries,
    /// Its chunks, too.
    Chunks,
}

/// Levels that are shown by indentation: trees can be deep enough for that alone to take gigabytes.
const INDENT_MAX: usize = 64;

/// Writes the tree, one line an entry; returns how many could not be read.
pub(super) fn write(
    image: &Image,
    depth: Depth,
    logger: &Logger,
    out: &mut dyn Write,
) -> std::result::Result<u64, Failure> {
    writeln!(out, "directory tree:").map_err(write_failed)?;
    let mut errors = 0;
    for entry in image.walk() {
        match entry.and_then(|entry| lines(image, &entry, depth)) {
            Ok(lines) => out.write_all(lines.as_bytes()).map_err(write_failed)?,
            Err(error) => {
                logger.error(error.to_string());
                errors += 1;
            }
        }
    }
    Ok(errors)
}

fn lines(image: &Image, entry: &WalkEntry, depth: Depth) -> Result<String> {
    let mut lines = line(image, entry)?;
    lines.push('\n');
    if depth == Depth::Chunks && entry.attr.kind == FileKind::Regular {
        for extent in image.chunks(entry.attr.inode)? {
            let extent = extent_text(&extent?);
            lines.push_str(&format!("{}{extent}\n", indent(entry, 1)));
        }
    }
    Ok(lines)
}

fn line(image: &Image, entry: &WalkEntry) -> Result<String> {
    let attr = &entry.attr;
    let name = match entry.path.rsplit(|byte| *byte == b'/').next() {
        Some(name) if !name.is_empty() => escape::bytes(name),
        _ => "/".to_owned(),
    };
    let detail = match attr.kind {
        FileKind::Directory => format!("{} entries", attr.size),
        FileKind::Symlink => format!("-> {}", escape::bytes(&image.read_link(attr.inode)?)),
        FileKind::Regular if attr.allocated != attr.size => {
            format!("{} bytes, {} allocated", attr.size, attr.allocated)
        }
        FileKind::Regular => format!("{} bytes", attr.size),
        FileKind::CharDevice | FileKind::BlockDevice => {
            format!(
                "{}, {}",
                rustix::fs::major(attr.rdev),
                rustix::fs::minor(attr.rdev)
            )
        }
        FileKind::Fifo | FileKind::Socket => String::new(),
    };
    let text = format!(
        "{}[{}] {} {name}  {detail}",
        indent(entry, 0),
        attr.inode,
        mode::display(attr.mode)
    );
    Ok(text.trim_end().to_owned())
}

fn indent(entry: &WalkEntry, further: usize) -> String {
    "  ".repeat(1 + level(entry).min(INDENT_MAX) + further)
}

/// Directories above an entry.
fn level(entry: &WalkEntry) -> usize {
    match entry.path.len() {
        0 => 0,
        _ => 1 + entry.path.iter().filter(|byte| **byte == b'/').count(),
    }
}

fn extent_text(extent: &Extent) -> String {
    match extent.place {
        Place::Data { block, offset } => {
            format!("block {block}, offset {offset}, {} bytes", extent.len)
        }
        Place::Hole => format!("hole, {} bytes", extent.len),
    }
}

/// Writes the tree as JSON: objects within each other, one line an entry. They are written as they come, because values as
/// deep as a tree can be would take the stack when they are printed and dropped. Returns how many could not be read.
pub(super) fn write_json(
    image: &Image,
    depth: Depth,
    logger: &Logger,
    out: &mut dyn Write,
) -> std::result::Result<u64, Failure> {
    let mut errors = 0;
    // Directories that are open, and whether the last of them has entries already.
    let mut open = 0;
    let mut has_entries = false;
    for entry in image.walk() {
        let entry = entry.and_then(|entry| Ok((json_entry(image, &entry, depth)?, entry)));
        let (json, entry) = match entry {
            Ok(entry) => entry,
            Err(error) => {
                logger.error(error.to_string());
                errors += 1;
                continue;
            }
        };
        let level = level(&entry);
        // Entries come depth first, so that a shallower one closes the deeper. One whose directory could not be told
        // has no place.
        if level > open || (level == 0 && open > 0) {
            logger.error(format!(
                "{}: no directory for it",
                escape::bytes(&entry.path)
            ));
            errors += 1;
            continue;
        }
        let mut text = String::new();
        while open > level {
            text.push_str("]}");
            open -= 1;
            has_entries = true;
        }
        if has_entries {
            text.push(',');
        }
        if level > 0 {
            text.push_str(&format!("\n{}", indent(&entry, 0)));
        }
        let json = json.to_string();
        if entry.attr.kind == FileKind::Directory {
            let fields = json.strip_suffix('}').unwrap_or(&json);
            text.push_str(&format!("{fields},\"inodes\":["));
            open += 1;
            has_entries = false;
        } else {
            text.push_str(&json);
            has_entries = true;
        }
        out.write_all(text.as_bytes()).map_err(write_failed)?;
    }
    let end = if errors > 0 && open == 0 {
        "null".to_owned()
    } else {
        "]}".repeat(open)
    };
    out.write_all(end.as_bytes()).map_err(write_failed)?;
    Ok(errors)
}

/// An entry without what is in it.
fn json_entry(image: &Image, entry: &WalkEntry, depth: Depth) -> Result<Value> {
    let attr = &entry.attr;
    let name = entry.path.rsplit(|byte| *byte == b'/').next();
    let mut json = json!({
        "mode": attr.mode,
        "modestring": mode::display(attr.mode),
        "inode": attr.inode.0,
        "name": string(name.unwrap_or_default()),
        "type": record::type_name(attr.kind),
    });
    let Some(keys) = json.as_object_mut() else {
        return Ok(json);
    };
    let mut set = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    match attr.kind {
        FileKind::Regular => {
            set("size", attr.size.into());
            if attr.allocated != attr.size {
                set("allocated_size", attr.allocated.into());
            }
            if depth == Depth::Chunks {
                let chunks = image.chunks(attr.inode)?;
                let chunks = chunks.map(|extent| extent.map(|extent| extent_json(&extent)));
                set("chunks", chunks.collect::<Result<Value>>()?);
            }
        }
        FileKind::Symlink => {
            set("target", string(&image.read_link(attr.inode)?));
        }
        FileKind::CharDevice | FileKind::BlockDevice => {
            set("device_id", attr.rdev.into());
        }
        FileKind::Directory | FileKind::Fifo | FileKind::Socket => {}
    }
    Ok(json)
}

fn extent_json(extent: &Extent) -> Value {
    match extent.place {
        Place::Data { block, offset } => {
            json!({ "block": block.0, "offset": offset, "size": extent.len })
        }
        Place::Hole => json!({ "hole": true, "size": extent.len }),
    }
}
