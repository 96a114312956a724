//! The chunks of all contents.
//!
//! Memory: 12 bytes for each chunk and 12 for each content.

use std::collections::BTreeMap;

use durin_format::{Error, Result};

use crate::category::CategoryIndex;
use crate::dedupe::ContentIndex;
use crate::tree::count_of;

/// The most chunks of an image; their number must fit the 32 bits of the chunk table.
const CHUNKS_MAX: usize = u32::MAX as usize - 1;
/// Stands for the block of a hole until the number of blocks is known.
const HOLE: u32 = u32::MAX;

/// A part of a content: a range of a block, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawChunk {
    block: u32,
    offset: u32,
    size: u32,
}

/// What a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Data { block: u32, offset: u32, size: u32 },
    Hole { len: u64 },
}

impl RawChunk {
    /// Blocks have smaller numbers than this.
    pub(super) const BLOCKS_MAX: u32 = HOLE - 1;

    pub(super) fn data(block: u32, offset: u32, size: u32) -> Self {
        Self {
            block,
            offset,
            size,
        }
    }

    pub(super) fn hole(len: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = len.to_le_bytes();
        Self {
            block: HOLE,
            offset: u32::from_le_bytes([a, b, c, d]),
            size: u32::from_le_bytes([e, f, g, h]),
        }
    }

    pub(crate) fn kind(self) -> ChunkKind {
        if self.block == HOLE {
            let len = u64::from(self.size) << 32 | u64::from(self.offset);
            ChunkKind::Hole { len }
        } else {
            ChunkKind::Data {
                block: self.block,
                offset: self.offset,
                size: self.size,
            }
        }
    }

    /// Makes the chunk longer if the other follows it in the same block.
    fn join(&mut self, next: Self) -> bool {
        let follows = self.block != HOLE
            && self.block == next.block
            && self.offset.checked_add(self.size) == Some(next.offset);
        if follows {
            self.size += next.size;
        }
        follows
    }
}

/// Which fragment of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentKey {
    pub(crate) content: ContentIndex,
    /// Where it begins, in bytes from the start of the content.
    pub(crate) offset: u64,
}

/// The chunks of all contents.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    list: Vec<RawChunk>,
    /// Where the chunks of the first fragment of each content are in the list.
    ranges: Vec<ChunkRange>,
    /// Where those of further fragments are, by content and offset.
    further: BTreeMap<(ContentIndex, u64), ChunkRange>,
    /// The category of each block.
    pub(crate) block_categories: Vec<CategoryIndex>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChunkRange {
    start: u32,
    end: u32,
    is_lost: bool,
}

impl Chunks {
    pub(super) fn for_contents(count: u32) -> Self {
        Self {
            list: Vec::new(),
            ranges: vec![ChunkRange::default(); count as usize],
            further: BTreeMap::new(),
            block_categories: Vec::new(),
        }
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a content could not be read.
    pub(crate) fn is_lost(&self, content: ContentIndex) -> bool {
        self.ranges[content as usize].is_lost
    }

    pub(super) fn lose(&mut self, content: ContentIndex) {
        self.ranges[content as usize].is_lost = true;
    }

    /// Returns the chunks of a content from its start to its end; none if it could not be read.
    pub(crate) fn of(&self, content: ContentIndex) -> impl Iterator<Item = RawChunk> + Clone {
        let first = self.ranges[content as usize];
        let further = self.further.range((content, 1)..=(content, u64::MAX));
        let ranges = std::iter::once(first).chain(further.map(|(_, range)| *range));
        ranges
            .take_while(move |_| !first.is_lost)
            .flat_map(|range| &self.list[range.start as usize..range.end as usize])
            .copied()
    }

    fn range(&mut self, fragment: FragmentKey) -> &mut ChunkRange {
        match fragment.offset {
            0 => &mut self.ranges[fragment.content as usize],
            offset => self.further.entry((fragment.content, offset)).or_default(),
        }
    }

    /// Adds to the fragment that was added to last, or starts the next. A chunk that follows the last one of its fragment
    /// in the same block makes that longer.
    pub(super) fn add(&mut self, fragment: FragmentKey, chunk: RawChunk) -> Result<()> {
        let range = *self.range(fragment);
        let is_last = range.end > range.start && range.end as usize == self.list.len();
        if is_last && self.list.last_mut().is_some_and(|last| last.join(chunk)) {
            return Ok(());
        }
        if self.list.len() >= CHUNKS_MAX {
            return Err(Error::limit(format!(
                "more than {CHUNKS_MAX} chunks do not fit into an image; larger blocks make fewer"
            )));
        }
        let at = count_of(self.list.len());
        let range = self.range(fragment);
        if range.end == range.start {
            range.start = at;
        }
        range.end = at + 1;
        self.list.push(chunk);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(content: ContentIndex, offset: u64) -> FragmentKey {
        FragmentKey { content, offset }
    }

    #[test]
    fn holes_of_any_length() {
        for len in [1, u64::from(u32::MAX), 1 << 32, i64::MAX.cast_unsigned()] {
            assert_eq!(RawChunk::hole(len).kind(), ChunkKind::Hole { len });
        }
    }

    #[test]
    fn neighbours_of_one_fragment_are_one_chunk() {
        let chunk = RawChunk::data;
        let rows = [
            (key(0, 0), chunk(0, 0, 10), "first"),
            (key(0, 0), chunk(0, 10, 5), "follows"),
            (key(0, 0), chunk(1, 15, 5), "another block"),
            (key(0, 0), chunk(1, 25, 5), "a gap"),
            (key(1, 0), chunk(1, 30, 5), "another content"),
            (key(1, 7), chunk(1, 35, 5), "another fragment"),
            (key(1, 7), RawChunk::hole(40), "a hole"),
            (key(1, 7), RawChunk::hole(40), "and a hole"),
        ];
        let mut chunks = Chunks::for_contents(2);
        let lens = rows.map(|(key, chunk, _)| {
            chunks.add(key, chunk).expect("room");
            chunks.len()
        });
        assert_eq!(lens, [1, 1, 2, 3, 4, 5, 6, 7], "{rows:?}");
        assert!(
            chunks
                .of(0)
                .eq([chunk(0, 0, 15), chunk(1, 15, 5), chunk(1, 25, 5)])
        );
    }

    #[test]
    fn fragments_join_in_the_order_of_their_offsets() {
        let mut chunks = Chunks::for_contents(2);
        for (at, offset) in [(0, 7), (10, 0), (20, 5)] {
            let chunk = RawChunk::data(0, at, 1);
            chunks.add(key(0, offset), chunk).expect("room");
        }
        let offsets = chunks.of(0).map(|chunk| chunk.offset);
        assert!(offsets.eq([10, 20, 0]));
        assert_eq!(chunks.of(1).count(), 0);
        chunks.lose(0);
        assert_eq!((chunks.of(0).count(), chunks.is_lost(0)), (0, true));
    }
}
