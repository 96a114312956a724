//! Where in a very fragmented file each of its chunks is.
//!
//! The format stores the lengths of chunks and not their offsets. For a file of few chunks they are added up each time;
//! for one of many that would make reading it from front to back quadratic. Such a file gets a list of the offsets of
//! every [`STRIDE`]th chunk, made in one pass on first need and kept while there is room.

use std::sync::Arc;

use durin_format::Result;

use crate::chunks::{ChunkRange, Extents, Place};
use crate::image::Image;
use crate::metadata::Metadata;
use crate::sync::{Mutex, lock};

/// Chunks from one noted offset to the next. A read walks half as many in the mean, which costs a microsecond or two,
/// and the list takes 1/32 byte for each chunk.
const STRIDE: u32 = 256;

/// Bytes of all lists together. When they do not fit, the list least recently used goes.
const BYTES_MAX: usize = 16 << 20;

/// The most lists, which are looked at one after the other: few files are so fragmented and read at the same time.
const LISTS_MAX: usize = 64;

/// The offsets of one content.
#[derive(Debug)]
pub(crate) struct ContentPositions {
    /// Item `i` is the offset in the file of chunk `i * STRIDE`.
    offsets: Vec<u64>,
    size: u64,
    allocated: u64,
}

/// The lists of the contents used last.
#[derive(Default)]
pub(crate) struct Positions {
    /// Least recently used first.
    recent: Mutex<Vec<(u32, Arc<ContentPositions>)>>,
}

impl Positions {
    fn of(
        &self,
        metadata: &Metadata,
        content: u32,
        range: ChunkRange,
    ) -> Result<Arc<ContentPositions>> {
        {
            let mut recent = lock(&self.recent);
            if let Some(at) = recent.iter().position(|(other, _)| *other == content) {
                let found = recent.remove(at);
                let positions = Arc::clone(&found.1);
                recent.push(found);
                return Ok(positions);
            }
        }
        let made = Arc::new(ContentPositions::make(metadata, range)?);
        let mut recent = lock(&self.recent);
        recent.push((content, Arc::clone(&made)));
        let mut bytes: usize = recent.iter().map(|(_, positions)| positions.bytes()).sum();
        while (bytes > BYTES_MAX || recent.len() > LISTS_MAX) && recent.len() > 1 {
            bytes -= recent.remove(0).1.bytes();
        }
        Ok(made)
    }
}

impl ContentPositions {
    fn make(metadata: &Metadata, range: ChunkRange) -> Result<Self> {
        let (mut offset, mut allocated) = (0, 0);
        let mut offsets = Vec::new();
        for index in range.start..range.end {
            if (index - range.start).is_multiple_of(STRIDE) {
                offsets.push(offset);
            }
            let chunk = metadata.chunk(index)?;
            offset = metadata.advance(offset, chunk.len)?;
            if chunk.place != Place::Hole {
                allocated += chunk.len;
            }
        }
        Ok(Self {
            offsets,
            size: offset,
            allocated,
        })
    }

    fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.offsets.capacity() * 8
    }
}

impl Image {
    /// Size and allocated size of content number `content`.
    pub(crate) fn content_sizes(&self, content: u32) -> Result<(u64, u64)> {
        let metadata = self.metadata();
        let range = metadata.chunk_range(content)?;
        if let Some(cache) = &metadata.tables.size_cache
            && u64::from(range.len()) >= cache.min_chunk_count
            && let Some(size) = cache.size.get(metadata.data(), content)
        {
            let allocated = cache.allocated.get(metadata.data(), content);
            return Ok((size, allocated.unwrap_or(size)));
        }
        if range.len() > STRIDE {
            let positions = self.positions().of(metadata, content, range)?;
            return Ok((positions.size, positions.allocated));
        }
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

    /// The extents of a content from the one that has `offset` or one before it.
    pub(crate) fn extents_from(&self, content: u32, offset: u64) -> Result<Extents<'_>> {
        let metadata = self.metadata();
        let mut range = metadata.chunk_range(content)?;
        let mut start_offset = 0;
        if range.len() > STRIDE && offset > 0 {
            let positions = self.positions().of(metadata, content, range)?;
            let after = positions.offsets.partition_point(|start| *start <= offset);
            let at = after.saturating_sub(1);
            start_offset = positions.offsets.get(at).copied().unwrap_or(0);
            let skipped = u32::try_from(at).unwrap_or(0).saturating_mul(STRIDE);
            range.start = range.start.saturating_add(skipped).min(range.end);
        }
        Ok(Extents {
            metadata,
            range,
            offset: start_offset,
        })
    }
}
