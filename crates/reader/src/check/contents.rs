//! Chunks, the chunk table, and which inodes share a content.

use durin_format::Result;

use crate::chunks::{Chunk, Place};
use crate::image::Image;
use crate::metadata::{Metadata, SharedFiles};

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    check_hole_block(metadata, image.block_count())?;
    check_chunk_table(metadata)?;
    check_chunks(metadata, image.block_count())?;
    check_shared(metadata)
}

/// The number that marks holes must not be that of a block, or its chunks would mean two things.
fn check_hole_block(metadata: &Metadata, block_count: u32) -> Result<()> {
    match metadata.tables.hole_block_index {
        Some(block) if block < block_count => {
            Err(metadata.corrupt(format!("hole_block_index {block} is the number of a block")))
        }
        _ => Ok(()),
    }
}

fn check_chunk_table(metadata: &Metadata) -> Result<()> {
    let first = metadata.chunk_table.get(metadata.data(), 0);
    if first != Some(0) {
        return Err(metadata.corrupt(format!(
            "chunk_table: expected 0 as the first item, found {first:?}"
        )));
    }
    // Ranges that follow each other without going back cover each chunk once: the last item was checked at open.
    for content in 0..metadata.chunk_table.count() {
        metadata.chunk_range(content)?;
    }
    Ok(())
}

fn check_chunks(metadata: &Metadata, block_count: u32) -> Result<()> {
    let block_size = u64::from(metadata.tables.block_size);
    let chunk_count = u32::try_from(metadata.tables.chunks.len()).unwrap_or(u32::MAX);
    for index in 0..chunk_count {
        let Chunk { len, place } = metadata.chunk(index)?;
        let wrong = match place {
            _ if len == 0 => Some("is empty".to_owned()),
            Place::Hole => wrong_hole(metadata, index)?,
            Place::Data { block, .. } if block.0 >= block_count => {
                Some(format!("is in block {block}, and there are {block_count}"))
            }
            Place::Data { offset, .. } if u64::from(offset).saturating_add(len) > block_size => {
                Some(format!(
                    "of {len} bytes at offset {offset} ends behind the block size {block_size}"
                ))
            }
            Place::Data { .. } => None,
        };
        if let Some(wrong) = wrong {
            return Err(metadata.corrupt(format!("chunk {index} {wrong}")));
        }
    }
    Ok(())
}

/// The offset of a hole whose size is in its chunk is what is left beyond whole blocks.
fn wrong_hole(metadata: &Metadata, index: u32) -> Result<Option<String>> {
    let tables = &metadata.tables;
    let offset = metadata.value32(&tables.chunks.offset, index.into(), "chunks")?;
    let is_wrong = offset != u32::MAX && offset >= tables.block_size;
    Ok(is_wrong.then(|| format!("is a hole with offset {offset}")))
}

/// The stored table ascends from 0 without gaps, and each of its values occurs at least twice.
fn check_shared(metadata: &Metadata) -> Result<()> {
    let SharedFiles::Stored { table, .. } = &metadata.shared else {
        // The packed form cannot say anything else.
        return Ok(());
    };
    let mut runs = (0_u64, 0_u64);
    for found in table.iter(metadata.data()) {
        let (content, inodes) = runs;
        runs = if found == content {
            (content, inodes + 1)
        } else if found == content + 1 && inodes >= 2 {
            (found, 1)
        } else {
            return Err(metadata.corrupt(format!(
                "shared_files_table: content {found} follows {inodes} inodes with content {content}"
            )));
        };
    }
    if !table.is_empty() && runs.1 < 2 {
        return Err(metadata.corrupt("shared_files_table: the last content has one inode only"));
    }
    Ok(())
}
