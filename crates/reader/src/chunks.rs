//! From a regular file to the pieces of its content: ranges of blocks and holes.

use durin_format::{BlockIndex, Error, InodeNum, Result};

use crate::image::Image;
use crate::metadata::{Metadata, Rank};

/// The offset of a chunk that says that the size of the hole is in `large_hole_size`.
const LARGE_HOLE: u64 = 0xffff_ffff;

/// Chunks that are looked at for what files have in each block, which takes a tenth of a second then.
const CHUNKS_MAX: u64 = 1 << 24;

/// Sizes are below this.
const FILE_SIZE_MAX: u64 = i64::MAX as u64;

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes; never 0.
    pub len: u64,
    /// Where the bytes are.
    pub place: Place,
}

/// Where the bytes of an extent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a block. Whether the block exists and is long enough is checked when it is read.
    Data {
        /// The block.
        block: BlockIndex,
        /// Bytes from the start of the block.
        offset: u32,
    },
    /// Nowhere: they are zero.
    Hole,
}

/// The chunks of one content, as a range of indices into `chunks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl ChunkRange {
    pub(crate) fn len(self) -> u32 {
        self.end - self.start
    }
}

/// One chunk, without its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) len: u64,
    pub(crate) place: Place,
}

impl Metadata {
    /// The chunks of content number `content`.
    pub(crate) fn chunk_range(&self, content: u32) -> Result<ChunkRange> {
        match self.chunk_table.pair(self.data(), content) {
            Some((start, end)) if start <= end && u64::from(end) <= self.tables.chunks.len() => {
                Ok(ChunkRange { start, end })
            }
            found => {
                Err(self.corrupt(format!("chunk_table: range {found:?} of content {content}")))
            }
        }
    }

    /// Checks once that no two contents share chunks by overlapping in the chunk table: in a damaged image all of them
    /// could have all chunks, and looking at each file would take the square of their number.
    pub(crate) fn check_chunk_order(&self) -> Result<()> {
        let is_ordered = self.is_chunk_table_ordered.get_or_init(|| {
            let contents = 0..self.chunk_table.count();
            contents
                .into_iter()
                .all(|content| self.chunk_range(content).is_ok())
        });
        if *is_ordered {
            return Ok(());
        }
        Err(self.corrupt("chunk_table: items are not in order"))
    }

    /// Chunk `index`. A hole has its length worked out; blocks are not looked at.
    #[inline]
    pub(crate) fn chunk(&self, index: u32) -> Result<Chunk> {
        let chunks = &self.tables.chunks;
        let index = u64::from(index);
        let block = self.value32(&chunks.block, index, "chunks")?;
        let offset = self.value32(&chunks.offset, index, "chunks")?;
        let size = self.value(&chunks.size, index, "chunks")?;
        if self.tables.hole_block_index == Some(block) {
            return Ok(Chunk {
                len: self.hole_len(offset.into(), size)?,
                place: Place::Hole,
            });
        }
        Ok(Chunk {
            len: size,
            place: Place::Data {
                block: BlockIndex(block),
                offset,
            },
        })
    }

    fn hole_len(&self, offset: u64, size: u64) -> Result<u64> {
        let len = if offset == LARGE_HOLE {
            let sizes = self.tables.large_hole_size.unwrap_or_default();
            self.value(&sizes, size, "large_hole_size")?
        } else {
            let whole = size.saturating_mul(self.tables.block_size.into());
            whole.saturating_add(offset)
        };
        if len > FILE_SIZE_MAX {
            return Err(self.corrupt(format!("hole of {len} bytes")));
        }
        Ok(len)
    }

    /// Adds the length of a chunk to an offset in a file.
    #[inline]
    pub(crate) fn advance(&self, offset: u64, len: u64) -> Result<u64> {
        offset
            .checked_add(len)
            .filter(|end| *end <= FILE_SIZE_MAX)
            .ok_or_else(|| self.corrupt("file of 2^63 bytes or more"))
    }
}

impl Image {
    /// Returns the number of the content of a regular file. Files with equal content can have the same.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `inode` is no regular file, `Corrupt` if a value in the metadata is wrong.
    pub fn content_number(&self, inode: InodeNum) -> Result<u32> {
        let metadata = self.metadata();
        if metadata.partition.rank(inode) != Some(Rank::Regular) {
            return Err(metadata.not_a(inode, "regular file"));
        }
        let content = metadata
            .shared
            .content(metadata.data(), inode.0 - metadata.partition.first_regular)
            .ok_or_else(|| {
                metadata.corrupt(format!("shared_files_table: nothing for inode {inode}"))
            })?;
        // Callers have lists by content.
        let count = metadata.chunk_table.count();
        if content >= count {
            let text = format!("content {content} of inode {inode}, and there are {count}");
            return Err(metadata.corrupt(text));
        }
        Ok(content)
    }

    /// Returns the number of chunks of a regular file.
    ///
    /// # Errors
    /// As [`Self::content_number`].
    pub fn chunk_count(&self, inode: InodeNum) -> Result<u32> {
        Ok(self
            .metadata()
            .chunk_range(self.content_number(inode)?)?
            .len())
    }

    /// Returns the pieces of a regular file in order. Chunks of no bytes are left out.
    /// The iterator ends after an error.
    ///
    /// # Errors
    /// As [`Self::content_number`].
    pub fn chunks(&self, inode: InodeNum) -> Result<Extents<'_>> {
        let range = self.metadata().chunk_range(self.content_number(inode)?)?;
        Ok(Extents {
            metadata: self.metadata(),
            range,
            offset: 0,
        })
    }
}

impl Image {
    /// For each block, the bytes that all files together have in it, each file on its own; more than anybody can read
    /// if the metadata is damaged or very large.
    pub(crate) fn references(&self) -> Vec<u64> {
        let mut sums = vec![0_u64; self.block_count() as usize];
        if self.add_references(&mut sums).is_err() {
            sums.fill(u64::MAX);
        }
        sums
    }

    fn add_references(&self, sums: &mut [u64]) -> Result<()> {
        let metadata = self.metadata();
        let partition = &metadata.partition;
        if metadata.tables.chunks.len() > CHUNKS_MAX {
            return Err(Error::limit("too many chunks"));
        }
        let mut files = vec![0_u64; metadata.chunk_table.count() as usize];
        for inode in partition.first_regular..partition.first_device {
            let content = self.content_number(InodeNum(inode))?;
            if let Some(files) = files.get_mut(content as usize) {
                *files += 1;
            }
        }
        metadata.check_chunk_order()?;
        for (content, files) in (0..).zip(files) {
            let range = metadata.chunk_range(content)?;
            for index in range.start..range.end {
                let chunk = metadata.chunk(index)?;
                if let Place::Data { block, .. } = chunk.place
                    && let Some(sum) = sums.get_mut(block.0 as usize)
                {
                    *sum = sum.saturating_add(chunk.len.saturating_mul(files));
                }
            }
        }
        Ok(())
    }
}

/// The extents of a range of chunks, the first of which is at `offset` in the file.
pub struct Extents<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) range: ChunkRange,
    pub(crate) offset: u64,
}

impl std::fmt::Debug for Extents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extents")
            .field("range", &self.range)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Extents<'_> {
    fn step(&mut self, index: u32) -> Result<Extent> {
        let Chunk { len, place } = self.metadata.chunk(index)?;
        let offset = self.offset;
        self.offset = self.metadata.advance(offset, len)?;
        Ok(Extent { offset, len, place })
    }
}

impl Iterator for Extents<'_> {
    type Item = Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.range.start < self.range.end {
            let index = self.range.start;
            self.range.start += 1;
            match self.step(index) {
                // No writer makes them, and they hold nothing.
                Ok(Extent { len: 0, .. }) => {}
                Ok(extent) => return Some(Ok(extent)),
                Err(error) => {
                    self.range.start = self.range.end;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
