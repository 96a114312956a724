//! Link counts, categories of blocks, totals.

use durin_format::{InodeNum, Result};

use crate::image::Image;
use crate::metadata::Metadata;

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    check_links(metadata)?;
    check_categories(metadata, image.block_count())
}

/// Stored link counts are what the directory entries say.
fn check_links(metadata: &Metadata) -> Result<()> {
    let options = metadata.tables.options.unwrap_or_default();
    if !options.inodes_have_nlink {
        return Ok(());
    }
    let counts = metadata.count_links()?;
    for rank in 0..metadata.partition.regular_count() {
        let inode = InodeNum(metadata.partition.first_regular + rank);
        let stored = metadata.link_count(inode)?;
        // An inode that nothing names is never shown.
        let counted = counts.of(rank).filter(|count| *count > 0).unwrap_or(stored);
        if stored != counted {
            return Err(metadata.corrupt(format!(
                "inode {inode}: expected {counted} links, found {stored}"
            )));
        }
    }
    Ok(())
}

/// Categories are hints; their tables must fit the blocks all the same.
fn check_categories(metadata: &Metadata, block_count: u32) -> Result<()> {
    let tables = &metadata.tables;
    let data = metadata.data();
    let names = tables.category_names.as_ref().map_or(0, Vec::len) as u64;
    if let Some(categories) = &tables.block_categories {
        if categories.len() != u64::from(block_count) {
            return Err(metadata.corrupt(format!(
                "block_categories: expected {block_count} items, found {}",
                categories.len()
            )));
        }
        if let Some(found) = categories.iter(data).find(|found| *found >= names) {
            return Err(metadata.corrupt(format!(
                "block_categories: {found} out of range: {names} categories"
            )));
        }
    }
    let objects = tables.category_metadata_json.as_ref().map_or(0, Vec::len) as u64;
    let pairs = tables.block_category_metadata.unwrap_or_default();
    if pairs.len() > u64::from(block_count) {
        return Err(metadata.corrupt("block_category_metadata: more items than blocks"));
    }
    for (block, object) in pairs.iter(data) {
        if block >= block_count || object >= objects {
            return Err(metadata.corrupt(format!(
                "block_category_metadata: block {block} with object {object} out of range"
            )));
        }
    }
    Ok(())
}
