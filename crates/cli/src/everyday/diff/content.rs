//! Whether two files have the same content: by blocks and chunks of two images where that tells, else by reading both.

use std::collections::HashMap;

use durin_format::section::{Checksums, SectionType};
use durin_format::{InodeNum, Result, SectionNum};
use durin_reader::{Extent, Image, Place};

use super::side::{FileRef, Node, Side};
use crate::common::contents;
use crate::common::exit::Failure;

/// Bytes read of each side at a time.
const BUFFER_LEN: usize = 1 << 20;

/// Two files that may differ.
pub(super) struct Pair {
    old: FileRef,
    new: FileRef,
    /// Which difference this decides about.
    pub(super) difference: usize,
}

impl Pair {
    pub(super) fn new(old: &Node, new: &Node, difference: usize) -> Self {
        let file = |node: &Node| FileRef {
            path: node.path.clone(),
            inode: node.inode,
        };
        Self {
            old: file(old),
            new: file(new),
            difference,
        }
    }
}

/// How contents are compared.
pub(super) struct Comparison<'a> {
    pub(super) old: &'a Side,
    pub(super) new: &'a Side,
    pub(super) workers: usize,
    /// Whether blocks that are the same prove nothing.
    pub(super) reads_all: bool,
}

impl Comparison<'_> {
    /// Compares all pairs, in the order of the data of an image; `tell` is told about each.
    pub(super) fn run(
        &self,
        mut pairs: Vec<Pair>,
        mut tell: impl FnMut(&Pair, Result<bool>) + Send,
    ) -> std::result::Result<(), Failure> {
        let blocks = match (self.old, self.new) {
            (Side::Image(old), Side::Image(new)) if !self.reads_all => {
                Some((block_identities(old)?, block_identities(new)?))
            }
            _ => None,
        };
        self.sort(&mut pairs)?;
        let work = |buffers: &mut [Vec<u8>; 2], pair: &Pair| {
            if let (Some(blocks), Side::Image(old), Side::Image(new)) =
                (&blocks, self.old, self.new)
                && let (Some(a), Some(b)) = (pair.old.inode, pair.new.inode)
                && same_chunks((old, a, &blocks.0), (new, b, &blocks.1))?
            {
                return Ok(true);
            }
            self.same_bytes(pair, buffers)
        };
        let buffers = || [vec![0; BUFFER_LEN], vec![0; BUFFER_LEN]];
        contents::each(&pairs, self.workers, buffers, work, |pair, is_same| {
            tell(pair, is_same);
            Ok(())
        })
    }

    /// Orders pairs so that each block of an image is decompressed about once.
    fn sort(&self, pairs: &mut [Pair]) -> Result<()> {
        let (image, is_old) = match (self.old, self.new) {
            (Side::Image(image), _) => (image, true),
            (_, Side::Image(image)) => (image, false),
            _ => return Ok(()),
        };
        let order: HashMap<InodeNum, usize> = image
            .files_in_data_order()?
            .into_iter()
            .enumerate()
            .map(|(place, inode)| (inode, place))
            .collect();
        pairs.sort_by_key(|pair| {
            let file = if is_old { &pair.old } else { &pair.new };
            file.inode.and_then(|inode| order.get(&inode).copied())
        });
        Ok(())
    }

    fn same_bytes(&self, pair: &Pair, buffers: &mut [Vec<u8>; 2]) -> Result<bool> {
        let (old, new) = (self.old.reader(&pair.old)?, self.new.reader(&pair.new)?);
        let [a, b] = buffers;
        let mut offset = 0;
        loop {
            let (len, other) = (old.read(offset, a)?, new.read(offset, b)?);
            if len != other || a.get(..len) != b.get(..other) {
                return Ok(false);
            }
            if len == 0 {
                return Ok(true);
            }
            offset += len as u64;
        }
    }
}

/// By block: what only an equal block has too; nothing where the format has no checksums.
fn block_identities(image: &Image) -> Result<Vec<Option<(Checksums, u64)>>> {
    let blocks = image.sections().iter();
    blocks
        .filter(|section| section.section_type == SectionType::Block)
        .map(|section| {
            let header = image.section_header(SectionNum(section.number))?;
            Ok(header.checksums.map(|sums| (sums, header.payload_len)))
        })
        .collect()
}

type Place2<'a> = (&'a Image, InodeNum, &'a [Option<(Checksums, u64)>]);

/// Whether two files consist of the same parts of equal blocks. "No" only says that reading must decide.
fn same_chunks(a: Place2<'_>, b: Place2<'_>) -> Result<bool> {
    let (mut olds, mut news) = (a.0.chunks(a.1)?, b.0.chunks(b.1)?);
    // What is left of the extents that are being compared.
    let (mut old, mut new) = (olds.next().transpose()?, news.next().transpose()?);
    loop {
        match (&old, &new) {
            (None, None) => return Ok(true),
            (Some(x), Some(y)) => {
                let is_same = match (x.place, y.place) {
                    (Place::Hole, Place::Hole) => true,
                    (
                        Place::Data { block, offset },
                        Place::Data {
                            block: other,
                            offset: other_offset,
                        },
                    ) => {
                        let identity = |blocks: &[Option<(Checksums, u64)>], block: u32| {
                            blocks.get(usize::try_from(block).ok()?).copied().flatten()
                        };
                        let (one, two) = (identity(a.2, block.0), identity(b.2, other.0));
                        offset == other_offset && one.is_some() && one == two
                    }
                    _ => false,
                };
                if !is_same {
                    return Ok(false);
                }
                let len = x.len.min(y.len);
                old = match rest(x, len) {
                    Some(rest) => Some(rest),
                    None => olds.next().transpose()?,
                };
                new = match rest(y, len) {
                    Some(rest) => Some(rest),
                    None => news.next().transpose()?,
                };
            }
            _ => return Ok(false),
        }
    }
}

/// An extent without its first `len` bytes.
fn rest(extent: &Extent, len: u64) -> Option<Extent> {
    let left = extent.len.checked_sub(len).filter(|left| *left > 0)?;
    let place = match extent.place {
        Place::Hole => Place::Hole,
        Place::Data { block, offset } => Place::Data {
            block,
            offset: offset.checked_add(u32::try_from(len).ok()?)?,
        },
    };
    Some(Extent {
        offset: extent.offset + len,
        len: left,
        place,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_format::BlockIndex;

    use super::*;

    #[test]
    fn the_rest_of_an_extent_moves_on_in_its_block() {
        let place = |offset| Place::Data {
            block: BlockIndex(1),
            offset,
        };
        let extent = Extent {
            offset: 10,
            len: 5,
            place: place(100),
        };
        let left = rest(&extent, 2).unwrap();
        assert_eq!((left.offset, left.len, left.place), (12, 3, place(102)));
        assert_eq!(rest(&extent, 5), None);
    }
}
