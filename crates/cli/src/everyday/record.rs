//! An entry for scripts: one JSON object a line.

use durin_format::Result;
use durin_format::json::string;
use durin_reader::{FileKind, Image, WalkEntry};
use serde_json::{Value, json};

use crate::common::mode;

/// The name of a type in JSON, the same as in the tree that `dwarfsck --json` writes.
pub(crate) const fn type_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Directory => "directory",
        FileKind::Regular => "file",
        FileKind::Symlink => "link",
        FileKind::BlockDevice => "blockdev",
        FileKind::CharDevice => "chardev",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
    }
}

/// All attributes of an entry.
pub(crate) fn of(image: &Image, entry: &WalkEntry) -> Result<Value> {
    let attr = &entry.attr;
    let mut record = json!({
        "path": string(&entry.path),
        "type": type_name(attr.kind),
        "inode": attr.inode.0,
        "mode": attr.mode,
        "modestring": mode::display(attr.mode),
        "nlink": attr.nlink,
        "uid": attr.uid,
        "gid": attr.gid,
        "size": attr.size,
        "mtime": attr.mtime.sec,
        "mtime_nsec": attr.mtime.nsec,
    });
    let Some(fields) = record.as_object_mut() else {
        return Ok(record);
    };
    if attr.allocated != attr.size {
        fields.insert("allocated_size".to_owned(), attr.allocated.into());
    }
    match attr.kind {
        FileKind::Symlink => {
            fields.insert("target".to_owned(), string(&image.read_link(attr.inode)?));
        }
        FileKind::CharDevice | FileKind::BlockDevice => {
            fields.insert("device_id".to_owned(), attr.rdev.into());
        }
        _ => {}
    }
    Ok(record)
}
