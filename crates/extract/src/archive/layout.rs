//! Which bytes of a file are stored: all of them, or for a format that keeps holes what lies between the holes.

use durin_format::{Error, Result};
use durin_reader::{Extent, Place};

/// Formats count sparse files in blocks of this size, and readers disagree about what follows a region that does not end
/// at one; so no region but the last does.
const ALIGNMENT: u64 = 512;

/// More regions than this are not kept apart: a list of them must fit into memory, and readers have limits of their own.
const REGIONS_MAX: usize = 1 << 20;

/// A range of a file that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// What of a file is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of the file.
    pub(super) size: u64,
    /// What is stored, in order; without holes one region or, for an empty file, none.
    pub(super) regions: Vec<Region>,
    /// Whether something lies between the regions.
    pub(super) is_sparse: bool,
}

impl Layout {
    /// Everything is stored.
    pub(super) fn dense(size: u64) -> Self {
        let whole = Region {
            offset: 0,
            len: size,
        };
        Self {
            size,
            regions: (size > 0).then_some(whole).into_iter().collect(),
            is_sparse: false,
        }
    }

    /// Everything but holes is stored, in multiples of 512 bytes.
    pub(super) fn sparse(size: u64, extents: impl Iterator<Item = Result<Extent>>) -> Result<Self> {
        let mut regions: Vec<Region> = Vec::new();
        for extent in extents {
            let extent = extent?;
            if extent.place == Place::Hole {
                continue;
            }
            let start = extent.offset / ALIGNMENT * ALIGNMENT;
            let end = extent.offset.saturating_add(extent.len);
            let end = end.next_multiple_of(ALIGNMENT).min(size);
            match regions.last_mut() {
                Some(last) if start <= last.offset + last.len => {
                    last.len = end.max(last.offset + last.len) - last.offset;
                }
                _ => regions.push(Region {
                    offset: start,
                    len: end.saturating_sub(start),
                }),
            }
            if regions.len() > REGIONS_MAX {
                return Err(Error::limit(format!("more than {REGIONS_MAX} holes")));
            }
        }
        let dense = Self::dense(size);
        let is_sparse = regions != dense.regions;
        Ok(Self {
            size,
            regions,
            is_sparse,
        })
    }

    /// Bytes of all regions.
    pub(super) fn stored_len(&self) -> u64 {
        self.regions.iter().map(|region| region.len).sum()
    }

    /// The regions as tar lists them: a file that ends with a hole has an empty one at its end.
    pub(super) fn sparse_map(&self) -> Vec<Region> {
        let mut map = self.regions.clone();
        let end = map.last().map_or(0, |last| last.offset + last.len);
        if end < self.size || map.is_empty() {
            map.push(Region {
                offset: self.size,
                len: 0,
            });
        }
        map
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_format::BlockIndex;

    use super::*;

    fn layout(size: u64, data: &[(u64, u64)]) -> Layout {
        let place = Place::Data {
            block: BlockIndex(0),
            offset: 0,
        };
        let extents = data
            .iter()
            .map(|&(offset, len)| Ok(Extent { offset, len, place }));
        Layout::sparse(size, extents).unwrap()
    }

    fn regions(layout: &Layout) -> Vec<(u64, u64)> {
        layout.regions.iter().map(|r| (r.offset, r.len)).collect()
    }

    #[test]
    fn regions_are_aligned_and_joined() {
        let found = layout(10_000, &[(700, 100), (1100, 50), (5000, 5000)]);
        assert_eq!(regions(&found), [(512, 1024), (4608, 5392)]);
        assert!(found.is_sparse);
        assert_eq!(found.stored_len(), 1024 + 5392);
        assert_eq!(found.sparse_map().len(), 2, "data to the end");
    }

    #[test]
    fn holes_smaller_than_a_block_are_none() {
        let found = layout(1000, &[(0, 600), (700, 300)]);
        assert_eq!(found, Layout::dense(1000));
    }

    #[test]
    fn all_hole() {
        let found = layout(1000, &[]);
        assert!(found.is_sparse && found.regions.is_empty());
        let map = found.sparse_map();
        assert_eq!((map[0].offset, map[0].len), (1000, 0));
        assert!(!layout(0, &[]).is_sparse);
    }
}
