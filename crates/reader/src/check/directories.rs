//! The ranges of directory entries: each entry but the first belongs to exactly one directory.

use durin_format::{InodeNum, Result};

use crate::image::Image;
use crate::metadata::Metadata;

pub(super) fn check(image: &Image, warnings: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    let mut expected = 1;
    for dir in 0..metadata.partition.directory_count() {
        let range = metadata.entry_range(InodeNum(dir))?;
        // Each range begins where the one before ends, so only the first can be wrong.
        if range.start != expected {
            return Err(metadata.corrupt(format!(
                "directory {dir}: expected first_entry {expected}, found {}",
                range.start
            )));
        }
        expected = range.end;
    }
    if expected != metadata.entry_count {
        return Err(metadata.corrupt(format!(
            "directories have {expected} entries, and there are {}",
            metadata.entry_count
        )));
    }
    check_ends(metadata, warnings)
}

/// The root and the element after the last directory have no parent, and in the packed form nobody has.
fn check_ends(metadata: &Metadata, warnings: &mut Vec<String>) -> Result<()> {
    let directories = &metadata.tables.directories;
    let options = metadata.tables.options.unwrap_or_default();
    let last = directories.len().saturating_sub(1);
    let zero = |column, at, what: &str| match metadata.value(column, at, "directories")? {
        0 => Ok(()),
        found => Err(metadata.corrupt(format!("directory {at}: expected {what} 0, found {found}"))),
    };
    if options.packed_directories {
        if metadata.is_legacy {
            return Err(metadata.corrupt("packed directories without dir_entries"));
        }
        for at in 0..directories.len() {
            zero(&directories.parent_entry, at, "parent_entry")?;
            zero(&directories.self_entry, at, "self_entry")?;
        }
        return Ok(());
    }
    zero(&directories.parent_entry, 0, "parent_entry")?;
    zero(&directories.self_entry, 0, "self_entry")?;
    zero(&directories.parent_entry, last, "parent_entry")?;
    // Releases before 0.14 wrote something there by mistake.
    if let Err(error) = zero(&directories.self_entry, last, "self_entry") {
        warnings.push(error.to_string());
    }
    Ok(())
}
