//! The tables of names and symlink targets: as many strings as are used, without gaps, and targets that can be ones.

use durin_format::Result;
use durin_format::metadata::tables::StringsView;

use crate::image::Image;
use crate::metadata::Metadata;

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    let tables = &metadata.tables;
    check_table(metadata, &tables.names, name_count(metadata)?, "names")?;
    let used = tables.symlink_table.iter(metadata.data()).max();
    check_table(
        metadata,
        &tables.symlinks,
        used.map_or(0, |max| max + 1),
        "symlink targets",
    )?;
    check_targets(metadata)
}

/// One more than the highest index; the root alone needs no name.
fn name_count(metadata: &Metadata) -> Result<u64> {
    if metadata.entry_count <= 1 {
        return Ok(0);
    }
    let mut max = 0;
    for entry in 0..metadata.entry_count {
        max = max.max(metadata.name_index(entry)?);
    }
    Ok(u64::from(max) + 1)
}

fn check_table(metadata: &Metadata, strings: &StringsView, used: u64, what: &str) -> Result<()> {
    if strings.len() != used {
        return Err(metadata.corrupt(format!(
            "{what}: expected {used} strings, found {}",
            strings.len()
        )));
    }
    let data = metadata.data();
    let mut sum = 0_u64;
    for index in 0..strings.len() {
        sum = sum.saturating_add(strings.stored_len(data, index)?);
    }
    let extent = if strings.is_compact() {
        strings.buffer_len()
    } else {
        plain_extent(strings, data)?
    };
    if sum != extent {
        return Err(metadata.corrupt(format!(
            "{what}: strings of {sum} bytes lie in {extent} bytes"
        )));
    }
    Ok(())
}

/// Bytes from the start of the first to the end of the last string of a plain table.
fn plain_extent(strings: &StringsView, data: &[u8]) -> Result<u64> {
    let Some(last) = strings.len().checked_sub(1) else {
        return Ok(0);
    };
    let (mut first_buf, mut last_buf) = (Vec::new(), Vec::new());
    let first = strings.get(data, 0, &mut first_buf)?;
    let last = strings.get(data, last, &mut last_buf)?;
    // Both are slices of the data, which tells how far they are apart.
    let start = first.as_ptr().addr();
    let end = last.as_ptr().addr().saturating_add(last.len());
    Ok(end
        .checked_sub(start)
        .map_or(u64::MAX, |extent| extent as u64))
}

fn check_targets(metadata: &Metadata) -> Result<()> {
    let data = metadata.data();
    let strings = &metadata.tables.symlinks;
    let mut buf = Vec::new();
    for index in 0..strings.len() {
        let target = strings.get(data, index, &mut buf)?;
        if target.is_empty() || target.contains(&0) {
            return Err(metadata.corrupt(format!("symlink target {index} is empty or has a NUL")));
        }
    }
    Ok(())
}
