//! Sizes of files, and the cache of them.

use durin_format::Result;
use durin_format::metadata::tables::MapView;

use crate::chunks::{ChunkRange, Place};
use crate::image::Image;
use crate::metadata::Metadata;

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    for content in 0..metadata.chunk_table.count() {
        // Adds up with a check for overflow.
        sizes(metadata, metadata.chunk_range(content)?)?;
    }
    let Some(cache) = &metadata.tables.size_cache else {
        return Ok(());
    };
    check_map(metadata, &cache.size, cache.min_chunk_count, |size, _| size)?;
    let holes_only = |size, allocated| {
        if allocated == size {
            None
        } else {
            Some(allocated)
        }
    };
    check_map(
        metadata,
        &cache.allocated,
        cache.min_chunk_count,
        |size, allocated| holes_only(size, allocated).unwrap_or(u64::MAX),
    )
}

/// Size and allocated size of a content, added up.
fn sizes(metadata: &Metadata, range: ChunkRange) -> Result<(u64, u64)> {
    let (mut size, mut allocated) = (0, 0);
    for index in range.start..range.end {
        let chunk = metadata.chunk(index)?;
        size = metadata.advance(size, chunk.len)?;
        if chunk.place != Place::Hole {
            allocated += chunk.len;
        }
    }
    Ok((size, allocated))
}

/// Compares every entry with what `expected` makes of size and allocated size.
fn check_map(
    metadata: &Metadata,
    map: &MapView,
    min_chunk_count: u64,
    expected: impl Fn(u64, u64) -> u64,
) -> Result<()> {
    let mut before = None;
    for (content, found) in map.iter(metadata.data()) {
        let wrong = |what: &str| {
            Err(metadata.corrupt(format!("reg_file_size_cache: content {content} {what}")))
        };
        // Keys that ascend are also different, so that no content is added up twice.
        if before.is_some_and(|before| before >= content) {
            return wrong("is not in order");
        }
        before = Some(content);
        if content >= metadata.chunk_table.count() {
            return wrong("does not exist");
        }
        let range = metadata.chunk_range(content)?;
        if u64::from(range.len()) < min_chunk_count {
            return wrong("has too few chunks to be there");
        }
        let (size, allocated) = sizes(metadata, range)?;
        let expected = expected(size, allocated);
        if found != expected {
            return wrong(&format!("has {expected} bytes, found {found}"));
        }
    }
    Ok(())
}
