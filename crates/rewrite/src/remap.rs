//! From places in old blocks to places in new ones.
//!
//! The data of a stream were strung together block by block and cut anew. A chunk is a range of that string: it may have
//! to be split where a new block begins, and what lay on both sides of an old border may become one chunk.

use durin_format::metadata::Chunk;
use durin_format::{BlockIndex, Error, Result};

use crate::cut::Cut;
use crate::plan::{Plan, StreamIndex};

/// Where the data of old blocks are now.
#[derive(Debug)]
pub(crate) struct Remap {
    /// By old block.
    blocks: Vec<OldBlock>,
    /// By stream.
    streams: Vec<NewBlocks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OldBlock {
    stream: StreamIndex,
    /// Bytes from the start of the stream.
    offset: u64,
    len: u32,
}

/// The new blocks of a stream, which follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct NewBlocks {
    first: u32,
    /// Bytes of all but the last.
    len: u32,
}

/// A range of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    stream: StreamIndex,
    offset: u64,
    len: u64,
}

impl Remap {
    pub(crate) fn new(plan: &Plan, cut: &Cut) -> Self {
        let mut streams: Vec<NewBlocks> = plan
            .streams
            .iter()
            .map(|stream| NewBlocks {
                first: u32::MAX,
                len: stream.block_len.max(1),
            })
            .collect();
        for (number, stream) in (0..).zip(&cut.streams) {
            if let Some(stream) = streams.get_mut(*stream) {
                stream.first = stream.first.min(number);
            }
        }
        let mut ends = vec![0; streams.len()];
        let mut blocks = vec![OldBlock::default(); plan.order.len()];
        for block in &plan.order {
            let (stream, _) = plan.stream(*block);
            let len = cut.old_lens.get(*block as usize).copied().unwrap_or(0);
            if let (Some(end), Some(block)) =
                (ends.get_mut(stream), blocks.get_mut(*block as usize))
            {
                *block = OldBlock {
                    stream,
                    offset: *end,
                    len,
                };
                *end += u64::from(len);
            }
        }
        Self { blocks, streams }
    }

    /// Returns the range of a stream that part of an old block has become.
    ///
    /// # Errors
    /// `Corrupt` if the block does not have that part.
    pub(crate) fn range(&self, block: BlockIndex, offset: u32, len: u64) -> Result<Range> {
        let old = self.blocks.get(block.0 as usize);
        let end = u64::from(offset).saturating_add(len);
        match old {
            Some(old) if end <= u64::from(old.len) => Ok(Range {
                stream: old.stream,
                offset: old.offset + u64::from(offset),
                len,
            }),
            _ => Err(Error::corrupt(format!(
                "metadata: chunk of bytes {offset} to {end} of block {block}, which has {}",
                old.map_or(0, |old| old.len)
            ))),
        }
    }

    /// Returns the chunks that a range of a stream is.
    pub(crate) fn chunks(&self, range: Range) -> impl Iterator<Item = Chunk> {
        let NewBlocks { first, len } = self.streams.get(range.stream).copied().unwrap_or_default();
        let block_len = u64::from(len.max(1));
        let mut offset = range.offset;
        let end = range.offset + range.len;
        std::iter::from_fn(move || {
            if offset >= end {
                return None;
            }
            let within = offset % block_len;
            let size = (block_len - within).min(end - offset);
            let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            let chunk = Chunk {
                block: first.saturating_add(narrow(offset / block_len)),
                offset: narrow(within),
                size: narrow(size),
            };
            offset += size;
            Some(chunk)
        })
    }

    /// Returns how many chunks a range of a stream is.
    pub(crate) fn chunk_count(&self, range: Range) -> u64 {
        let len = self.streams.get(range.stream).map_or(1, |new| new.len);
        let block_len = u64::from(len.max(1));
        if range.len == 0 {
            return 0;
        }
        (range.offset + range.len - 1) / block_len - range.offset / block_len + 1
    }
}

impl Range {
    /// Bytes of it.
    pub(crate) fn len(self) -> u64 {
        self.len
    }

    /// Makes this range longer by `next` if that follows it.
    pub(crate) fn join(&mut self, next: Self) -> bool {
        let follows = self.stream == next.stream && self.offset + self.len == next.offset;
        if follows {
            self.len += next.len;
        }
        follows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two streams: blocks 0 and 2 of 10 and 5 bytes, block 1 of 7; new blocks have 4 bytes.
    fn example() -> Remap {
        let old = |stream, offset, len| OldBlock {
            stream,
            offset,
            len,
        };
        Remap {
            blocks: vec![old(0, 0, 10), old(1, 0, 7), old(0, 10, 5)],
            streams: vec![
                NewBlocks { first: 0, len: 4 },
                NewBlocks { first: 4, len: 4 },
            ],
        }
    }

    fn check(block: u32, offset: u32, len: u64, expect: &[(u32, u32, u32)]) {
        let remap = example();
        let range = remap
            .range(BlockIndex(block), offset, len)
            .expect("in range");
        let chunks = remap.chunks(range);
        let chunks: Vec<_> = chunks
            .map(|chunk| (chunk.block, chunk.offset, chunk.size))
            .collect();
        assert_eq!(chunks, expect);
        assert_eq!(remap.chunk_count(range), expect.len() as u64);
    }

    #[test]
    fn chunks_are_split_where_new_blocks_begin() {
        check(0, 0, 4, &[(0, 0, 4)]);
        check(0, 3, 6, &[(0, 3, 1), (1, 0, 4), (2, 0, 1)]);
        check(2, 1, 4, &[(2, 3, 1), (3, 0, 3)]);
        check(1, 5, 2, &[(5, 1, 2)]);
        check(1, 0, 0, &[]);
    }

    #[test]
    fn neighbours_become_one() {
        let remap = example();
        let mut range = remap.range(BlockIndex(0), 8, 2).expect("in range");
        let next = remap.range(BlockIndex(2), 0, 3).expect("in range");
        assert!(range.join(next));
        let chunks: Vec<Chunk> = remap.chunks(range).collect();
        assert_eq!(chunks.len(), 2, "{chunks:?}");
        assert!(!range.join(next), "it is behind");
    }

    #[test]
    fn what_no_block_has_is_corrupt() {
        let remap = example();
        for (block, offset, len) in [(0, 5, 6), (1, 8, 0), (3, 0, 1), (0, u32::MAX, u64::MAX)] {
            assert!(remap.range(BlockIndex(block), offset, len).is_err());
        }
    }
}
