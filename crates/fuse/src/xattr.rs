//! Extended attributes that the driver makes up: the format stores none.

use durin_format::Result;
use durin_reader::{Attr, Extent, FileKind, Image, Place};
use serde_json::{Map, Value, json};

use crate::fs::Node;
use crate::node::ROOT;

/// The process id of the driver; on the root only.
pub(crate) const DRIVER_PID: &str = "user.dwarfs.driver.pid";

/// What kernel and driver have agreed on, as JSON; on the root only. It is not listed, for it changes with each request: who
/// copies all that is listed (`rsync -X`) takes that for an error.
pub(crate) const DRIVER_SESSION: &str = "user.dwarfs.driver.session";

/// What the driver has measured; on the root only, and only if it measures.
pub(crate) const PERFMON: &str = "user.dwarfs.driver.perfmon";

/// Where and how an inode is stored, as JSON.
pub(crate) const INODE_INFO: &str = "user.dwarfs.inodeinfo";

/// Files in more pieces than this show their number only; the reference has the same bound.
const CHUNKS_MAX: u32 = 8;

/// Whether any node has an attribute of this name.
#[must_use]
pub(crate) fn is_ours(name: &[u8]) -> bool {
    [DRIVER_PID, DRIVER_SESSION, PERFMON, INODE_INFO]
        .iter()
        .any(|ours| ours.as_bytes() == name)
}

/// Bytes that a value may grow by between a request for its size and one for itself: what counts requests counts these.
#[must_use]
pub(crate) fn room_to_grow(name: &[u8]) -> u32 {
    let grows = [DRIVER_SESSION, PERFMON];
    if grows.iter().any(|grows| grows.as_bytes() == name) {
        1024
    } else {
        0
    }
}

/// Returns the names of a node's attributes, each with a NUL behind it.
///
/// The kernel never asks for those of users but of regular files and directories. Whoever copies a node, as an overlay does,
/// expects to get what is listed.
#[must_use]
pub(crate) fn names(image: &Image, number: u64, kind: FileKind) -> Vec<u8> {
    if !matches!(kind, FileKind::Regular | FileKind::Directory) {
        return Vec::new();
    }
    let mut names = Vec::new();
    let is_measured = image.perfmon().is_some();
    let of_driver = [DRIVER_PID, PERFMON];
    let of_driver = of_driver
        .iter()
        .filter(|name| number == ROOT && (**name != PERFMON || is_measured));
    for name in of_driver.chain([&INODE_INFO]) {
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    names
}

/// Returns the value of one attribute, `None` if the node does not have it.
pub(crate) fn value(image: &Image, node: &Node, name: &[u8]) -> Result<Option<Vec<u8>>> {
    if name == INODE_INFO.as_bytes() {
        return inode_info(image, &node.attr).map(|info| Some(info.to_string().into_bytes()));
    }
    if name == PERFMON.as_bytes() && node.number == ROOT {
        let summary = image
            .perfmon()
            .map(|perfmon| perfmon.summary().into_bytes());
        return Ok(summary);
    }
    let has_pid = name == DRIVER_PID.as_bytes() && node.number == ROOT;
    Ok(has_pid.then(|| std::process::id().to_string().into_bytes()))
}

fn inode_info(image: &Image, attr: &Attr) -> Result<Value> {
    let mut info = Map::new();
    if attr.kind == FileKind::Regular {
        info.insert("chunks".to_owned(), chunks(image, attr)?);
    }
    info.insert("gid".to_owned(), attr.gid.into());
    info.insert("mode".to_owned(), attr.mode.into());
    info.insert("modestring".to_owned(), mode_string(attr).into());
    info.insert("uid".to_owned(), attr.uid.into());
    Ok(Value::Object(info))
}

fn chunks(image: &Image, attr: &Attr) -> Result<Value> {
    let count = image.chunk_count(attr.inode)?;
    if count > CHUNKS_MAX {
        return Ok(format!("too many chunks to show ({count})").into());
    }
    let shown: Result<Vec<Value>> = image
        .chunks(attr.inode)?
        .map(|extent| Ok(chunk(image, &extent?)))
        .collect();
    shown.map(Value::Array)
}

fn chunk(image: &Image, extent: &Extent) -> Value {
    let Place::Data { block, offset } = extent.place else {
        return json!({ "kind": "hole", "size": extent.len });
    };
    let mut chunk = json!({
        "kind": "data",
        "block": block.0,
        "offset": offset,
        "size": extent.len,
    });
    let (tables, data) = image.tables();
    let category = tables
        .block_categories
        .and_then(|categories| categories.get(data, u64::from(block.0)))
        .and_then(|category| usize::try_from(category).ok())
        .and_then(|category| tables.category_names.as_ref()?.get(category));
    if let (Some(category), Some(chunk)) = (category, chunk.as_object_mut()) {
        chunk.insert("category".to_owned(), category.as_str().into());
    }
    chunk
}

/// Returns the ten letters that `ls -l` shows.
fn mode_string(attr: &Attr) -> String {
    let kind = match attr.kind {
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Regular => '-',
        FileKind::CharDevice => 'c',
        FileKind::BlockDevice => 'b',
        FileKind::Fifo => 'p',
        FileKind::Socket => 's',
    };
    let mut text = String::with_capacity(10);
    text.push(kind);
    // For each class: its shift, its special bit, and the letter of that bit.
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = attr.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (attr.mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}
