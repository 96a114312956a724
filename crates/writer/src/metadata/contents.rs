//! Numbering contents and describing their chunks.

use std::collections::BTreeMap;

use durin_format::Result;
use durin_format::metadata::Chunk;

use super::Described;
use crate::dedupe::ContentIndex;
use crate::files::FileIndex;
use crate::segment::{ChunkKind, RawChunk};
use crate::tables::{Holes, SIZE_CACHE_CHUNKS_MIN};
use crate::tree::count_of;

/// A content of the image: one that was stored, or none at all.
type Stored = Option<ContentIndex>;

/// Regular files in the order of their inodes, and their contents in the order of content numbers.
pub(crate) struct ContentTable {
    /// First those with a content of their own, then those that share one, content by content.
    pub(crate) files: Vec<FileIndex>,
    /// By content number: first the contents of single files, in the order of these, then the shared ones.
    contents: Vec<Stored>,
    /// For each shared content, how many files share it.
    share_counts: Vec<u32>,
    /// Bytes of all files.
    pub(crate) total_size: u64,
    /// Bytes of all files without holes.
    pub(crate) total_allocated: u64,
    /// Bytes that further names of files stand for.
    pub(crate) total_hardlink_size: u64,
}

/// Chunks as the format has them.
pub(crate) struct StoredChunks {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) chunk_table: Vec<u32>,
    /// The lengths of large holes, if there is any hole.
    pub(crate) large_holes: Option<Vec<u64>>,
    /// By content number, of contents with many chunks.
    pub(crate) sizes: BTreeMap<u32, u64>,
    pub(crate) allocated_sizes: BTreeMap<u32, u64>,
}

impl ContentTable {
    pub(crate) fn new(described: &Described<'_>) -> Self {
        let groups = group_files(described);
        let (shared, single): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(_, files)| files.len() > 1);
        let mut table = Self {
            files: Vec::new(),
            contents: Vec::new(),
            share_counts: shared
                .iter()
                .map(|(_, files)| count_of(files.len()))
                .collect(),
            total_size: 0,
            total_allocated: 0,
            total_hardlink_size: 0,
        };
        for (content, files) in single.into_iter().chain(shared) {
            let (size, allocated) = sizes(chunks_of(described, content));
            for file in &files {
                let further_names = described.files.file(*file).nlink - 1;
                // Sparse files can be longer together than there are numbers for.
                let linked = u64::from(further_names).saturating_mul(size);
                table.total_size = table.total_size.saturating_add(size);
                table.total_allocated = table.total_allocated.saturating_add(allocated);
                table.total_hardlink_size = table.total_hardlink_size.saturating_add(linked);
            }
            table.contents.push(content);
            table.files.extend(files);
        }
        table
    }

    /// Returns which files share which content, or, packed, how many do beyond the two that it takes.
    pub(crate) fn shared_files(&self, packed: bool) -> Vec<u32> {
        if packed {
            self.share_counts.iter().map(|count| count - 2).collect()
        } else {
            let contents = (0..).zip(&self.share_counts);
            contents
                .flat_map(|(content, count)| std::iter::repeat_n(content, *count as usize))
                .collect()
        }
    }

    /// Describes the chunks of all contents.
    ///
    /// # Errors
    /// `Limit` if there are more large holes than can be numbered.
    pub(crate) fn chunks(&self, described: &Described<'_>) -> Result<StoredChunks> {
        let mut stored = StoredChunks {
            chunks: Vec::new(),
            chunk_table: vec![0],
            large_holes: None,
            sizes: BTreeMap::new(),
            allocated_sizes: BTreeMap::new(),
        };
        let mut holes = self.holes(described);
        for (number, content) in (0..).zip(&self.contents) {
            let chunks = chunks_of(described, *content);
            if chunks.clone().count() as u64 >= SIZE_CACHE_CHUNKS_MIN {
                let (size, allocated) = sizes(chunks.clone());
                stored.sizes.insert(number, size);
                if allocated != size {
                    stored.allocated_sizes.insert(number, allocated);
                }
            }
            for chunk in chunks {
                stored.chunks.push(match chunk.kind() {
                    ChunkKind::Data {
                        block,
                        offset,
                        size,
                    } => Chunk {
                        block,
                        offset,
                        size,
                    },
                    ChunkKind::Hole { len } => holes.chunk(len)?,
                });
            }
            stored.chunk_table.push(count_of(stored.chunks.len()));
        }
        stored.large_holes = holes.finish();
        Ok(stored)
    }

    fn holes(&self, described: &Described<'_>) -> Holes {
        let contents = self.contents.iter();
        let chunks = contents.flat_map(|content| chunks_of(described, *content));
        let sizes = chunks.filter_map(|chunk| match chunk.kind() {
            ChunkKind::Data { size, .. } => Some(size),
            ChunkKind::Hole { .. } => None,
        });
        let bits = described.context.block_size_bits;
        Holes::new(described.block_count, bits, sizes.max().unwrap_or(0))
    }
}

/// Returns the files of each content in their order, the contents in the order of their first files.
///
/// Files that are empty, or could not be read and have become so, share a content without chunks, if contents are
/// shared at all.
fn group_files(described: &Described<'_>) -> Vec<(Stored, Vec<FileIndex>)> {
    let files = described.files;
    let mut is_stored = vec![false; files.list.len()];
    let mut groups: Vec<(Stored, Vec<FileIndex>)> = Vec::new();
    for content in 0..described.contents.len() {
        if described.chunks.is_lost(content) {
            continue;
        }
        let members = described.contents.files(content).iter().copied();
        let members: Vec<_> = members.filter(|file| !files.is_lost(*file)).collect();
        for file in &members {
            is_stored[*file as usize] = true;
        }
        if !members.is_empty() {
            groups.push((Some(content), members));
        }
    }
    let empty = (0..).zip(is_stored).filter(|(_, stored)| !stored);
    let empty: Vec<FileIndex> = empty.map(|(file, _)| file).collect();
    if described.context.options.file_hash.is_some() && !empty.is_empty() {
        groups.push((None, empty));
    } else {
        groups.extend(empty.into_iter().map(|file| (None, vec![file])));
    }
    groups.sort_unstable_by_key(|(_, files)| files.first().copied());
    groups
}

fn chunks_of(described: &Described<'_>, content: Stored) -> impl Iterator<Item = RawChunk> + Clone {
    content
        .into_iter()
        .flat_map(|content| described.chunks.of(content))
}

/// Returns the length of all chunks and that of the data chunks.
fn sizes(chunks: impl Iterator<Item = RawChunk>) -> (u64, u64) {
    chunks.fold((0, 0), |(size, allocated), chunk| match chunk.kind() {
        ChunkKind::Data { size: len, .. } => (size + u64::from(len), allocated + u64::from(len)),
        ChunkKind::Hole { len } => (size + len, allocated),
    })
}
