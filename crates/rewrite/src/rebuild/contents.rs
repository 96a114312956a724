//! The contents of files: which share one, and the chunks of each.

use std::collections::BTreeMap;

use durin_format::metadata::Chunk;
use durin_format::{Error, InodeNum, Result};
use durin_reader::{Extent, FileKind, Image, Place};
use durin_writer::tables::{Holes, SIZE_CACHE_CHUNKS_MIN};

use super::Target;
use super::nodes::{Node, Nodes};
use crate::remap::{Range, Remap};

/// How many files share each of the shared contents.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles(Vec<u32>);

impl SharedFiles {
    /// Returns which files share which content, or, packed, how many do beyond the two that it takes.
    pub(crate) fn table(&self, packed: bool) -> Vec<u32> {
        if packed {
            return self.0.iter().map(|count| count - 2).collect();
        }
        let contents = (0..).zip(&self.0);
        contents
            .flat_map(|(content, count)| std::iter::repeat_n(content, *count as usize))
            .collect()
    }
}

/// All contents of the new image.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) chunk_table: Vec<u32>,
    pub(crate) shared_files: SharedFiles,
    /// The lengths of large holes, if there is any hole.
    pub(crate) large_holes: Option<Vec<u64>>,
    /// By content number, of contents with many chunks.
    pub(crate) sizes: BTreeMap<u32, u64>,
    pub(crate) allocated_sizes: BTreeMap<u32, u64>,
    pub(crate) total_size: u64,
    pub(crate) total_allocated: u64,
    pub(crate) total_hardlink_size: u64,
}

/// The files of one content, the first of which stands for it.
type Group<'a> = &'a [Node];

impl Contents {
    /// Describes the contents of all regular files.
    ///
    /// # Errors
    /// `Corrupt` if a value of the metadata cannot be; `Limit` if there are too many chunks.
    pub(crate) fn of(image: &Image, nodes: &Nodes, target: &Target) -> Result<Self> {
        let regular = |node: &Node| node.kind == FileKind::Regular;
        let first = nodes.list.iter().position(regular).unwrap_or(0);
        let files = nodes.list.get(first..).unwrap_or_default();
        let files = files
            .split(|node| !regular(node))
            .next()
            .unwrap_or_default();
        let groups = || files.chunk_by(|a, b| a.content == b.content);
        let chunk_len_max = measure(image, groups(), target)?;
        let mut holes = Holes::new(target.block_count, target.block_size_bits, chunk_len_max);
        let mut contents = Self {
            chunk_table: vec![0],
            ..Self::default()
        };
        for (number, group) in (0..).zip(groups()) {
            contents.add(image, number, group, target, &mut holes)?;
        }
        contents.large_holes = holes.finish();
        Ok(contents)
    }

    fn add(
        &mut self,
        image: &Image,
        number: u32,
        group: Group<'_>,
        target: &Target,
        holes: &mut Holes,
    ) -> Result<()> {
        let before = self.chunks.len();
        let chunks = &mut self.chunks;
        let (mut size, mut allocated) = (0_u64, 0_u64);
        for_each_piece(image, group, target, |piece| {
            size = size.saturating_add(piece.len());
            match piece {
                Piece::Hole(len) => chunks.push(holes.chunk(len)?),
                Piece::Old(chunk) => {
                    allocated = allocated.saturating_add(chunk.size.into());
                    chunks.push(chunk);
                }
                Piece::New(remap, range) => {
                    allocated = allocated.saturating_add(range.len());
                    chunks.extend(remap.chunks(range));
                }
            }
            Ok(())
        })?;
        let count = self.chunks.len();
        self.chunk_table.push(narrow(count as u64)?);
        if (count - before) as u64 >= SIZE_CACHE_CHUNKS_MIN {
            self.sizes.insert(number, size);
            if allocated != size {
                self.allocated_sizes.insert(number, allocated);
            }
        }
        if group.len() > 1 {
            self.shared_files.0.push(narrow(group.len() as u64)?);
        }
        for node in group {
            let further_names = u64::from(node.links.saturating_sub(1));
            let further = further_names.saturating_mul(size);
            self.total_size = self.total_size.saturating_add(size);
            self.total_allocated = self.total_allocated.saturating_add(allocated);
            self.total_hardlink_size = self.total_hardlink_size.saturating_add(further);
        }
        Ok(())
    }
}

/// Part of a content.
enum Piece<'a> {
    Hole(u64),
    /// Where it was.
    Old(Chunk),
    /// Where data cut anew are.
    New(&'a Remap, Range),
}

impl Piece<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Hole(len) => *len,
            Self::Old(chunk) => chunk.size.into(),
            Self::New(_, range) => range.len(),
        }
    }
}

/// Calls `take` with the pieces of a content in order. What follows each other in data cut anew is one piece.
fn for_each_piece<'a>(
    image: &Image,
    group: Group<'_>,
    target: &'a Target,
    mut take: impl FnMut(Piece<'a>) -> Result<()>,
) -> Result<()> {
    let Some(inode) = group.first().map(|node| node.entry.inode) else {
        return Ok(());
    };
    let mut open: Option<(&'a Remap, Range)> = None;
    for extent in image.chunks(inode)? {
        let Extent { len, place, .. } = extent?;
        let Place::Data { block, offset } = place else {
            if let Some((remap, range)) = open.take() {
                take(Piece::New(remap, range))?;
            }
            take(Piece::Hole(len))?;
            continue;
        };
        let Some(remap) = &target.remap else {
            take(Piece::Old(Chunk {
                block: block.0,
                offset,
                size: narrow(len)?,
            }))?;
            continue;
        };
        let range = remap.range(block, offset, len);
        let range = range.map_err(|error| of_inode(error, inode))?;
        if open.as_mut().is_some_and(|(_, open)| open.join(range)) {
            continue;
        }
        if let Some((remap, range)) = open.replace((remap, range)) {
            take(Piece::New(remap, range))?;
        }
    }
    match open {
        Some((remap, range)) => take(Piece::New(remap, range)),
        None => Ok(()),
    }
}

/// Returns the bytes of the largest chunk there will be, once it is known that all chunks have room.
fn measure<'a>(
    image: &Image,
    groups: impl Iterator<Item = Group<'a>>,
    target: &Target,
) -> Result<u32> {
    let mut chunk_len_max = 0;
    let mut count = 0_u64;
    for group in groups {
        for_each_piece(image, group, target, |piece| {
            match piece {
                Piece::Hole(_) => count += 1,
                Piece::Old(chunk) => {
                    count += 1;
                    chunk_len_max = chunk_len_max.max(chunk.size);
                }
                Piece::New(remap, range) => {
                    count = count.saturating_add(remap.chunk_count(range));
                    let sizes = remap.chunks(range).map(|chunk| chunk.size);
                    // The first three have the longest among them.
                    let longest = sizes.take(3).max().unwrap_or(0);
                    chunk_len_max = chunk_len_max.max(longest);
                }
            }
            Ok(())
        })?;
    }
    let bytes = count.saturating_mul(size_of::<Chunk>() as u64);
    if count >= u64::from(u32::MAX) || (target.remap.is_some() && bytes > target.chunk_bytes_max) {
        return Err(Error::limit(format!(
            "blocks of 2^{} bytes would make {count} chunks of all files, more than there is room for",
            target.block_size_bits
        )));
    }
    Ok(chunk_len_max)
}

fn of_inode(error: Error, inode: InodeNum) -> Error {
    error.context(format!("inode {inode}"))
}

fn narrow(count: u64) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::limit("more than 2^32 - 1 chunks or files"))
}
