//! `directory_tree` and `chunk_details`: every entry with its inode, and where its data is.

use std::io::Write;

use durin_format::Result;
use durin_reader::{Extent, FileKind, Image, Place, WalkEntry};
use serde_json::{Value, json};

use crate::common::exit::Failure;
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

/// Writes the tree, one line an entry.
pub(super) fn write(
    image: &Image,
    depth: Depth,
    out: &mut dyn Write,
) -> std::result::Result<(), Failure> {
    writeln!(out, "directory tree:").map_err(write_failed)?;
    for entry in image.walk() {
        let entry = entry?;
        writeln!(out, "{}", line(image, &entry)?).map_err(write_failed)?;
        if depth == Depth::Chunks && entry.attr.kind == FileKind::Regular {
            for extent in image.chunks(entry.attr.inode)? {
                writeln!(out, "{}{}", indent(&entry, 1), extent_text(&extent?))
                    .map_err(write_failed)?;
            }
        }
    }
    Ok(())
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
    let depth = match entry.path.len() {
        0 => 0,
        _ => 1 + entry.path.iter().filter(|byte| **byte == b'/').count(),
    };
    "  ".repeat(1 + depth + further)
}

fn extent_text(extent: &Extent) -> String {
    match extent.place {
        Place::Data { block, offset } => {
            format!("block {block}, offset {offset}, {} bytes", extent.len)
        }
        Place::Hole => format!("hole, {} bytes", extent.len),
    }
}

/// The tree as JSON.
pub(super) fn json(image: &Image) -> Result<Value> {
    // Each open directory with its depth; entries come depth first, so that a shallower one closes the deeper.
    let mut open: Vec<(usize, Value)> = Vec::new();
    for entry in image.walk() {
        let entry = entry?;
        let depth = indent(&entry, 0).len();
        while open.len() > 1
            && open
                .last()
                .is_some_and(|(open_depth, _)| *open_depth >= depth)
        {
            close_last(&mut open);
        }
        open.push((depth, json_entry(image, &entry)?));
    }
    while open.len() > 1 {
        close_last(&mut open);
    }
    Ok(open.pop().map(|(_, root)| root).unwrap_or_default())
}

fn close_last(open: &mut Vec<(usize, Value)>) {
    if let (Some((_, entry)), Some((_, parent))) = (open.pop(), open.last_mut())
        && let Some(children) = parent.get_mut("inodes").and_then(Value::as_array_mut)
    {
        children.push(entry);
    }
}

fn json_entry(image: &Image, entry: &WalkEntry) -> Result<Value> {
    let attr = &entry.attr;
    let name = entry
        .path
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let mut json = json!({
        "mode": attr.mode,
        "modestring": mode::display(attr.mode),
        "inode": attr.inode.0,
        "name": String::from_utf8_lossy(name),
        "type": record::type_name(attr.kind),
    });
    let more = match attr.kind {
        FileKind::Directory => json!({ "inodes": [] }),
        FileKind::Regular if attr.allocated != attr.size => {
            json!({ "size": attr.size, "allocated_size": attr.allocated })
        }
        FileKind::Regular => json!({ "size": attr.size }),
        FileKind::Symlink => {
            json!({ "target": String::from_utf8_lossy(&image.read_link(attr.inode)?) })
        }
        FileKind::CharDevice | FileKind::BlockDevice => json!({ "device_id": attr.rdev }),
        FileKind::Fifo | FileKind::Socket => json!({}),
    };
    if let (Some(json), Value::Object(more)) = (json.as_object_mut(), more) {
        json.extend(more);
    }
    Ok(json)
}
