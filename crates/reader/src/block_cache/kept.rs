//! The pieces of a block that are still wanted, when the rest of it has gone.

use std::ops::Range;

/// Pieces of a block, copied out of it.
pub(super) struct Kept {
    /// The pieces in the order of their places, none of which touches the next.
    ranges: Vec<Range<u32>>,
    /// For each piece, where its bytes begin in `data`.
    starts: Vec<usize>,
    data: Vec<u8>,
}

impl Kept {
    /// Copies the ranges, which are in order, as far as `append` has them, which says so and appends them to what it is
    /// given. `None` if there is no memory.
    pub(super) fn copy(
        mut ranges: Vec<Range<u32>>,
        append: impl Fn(usize, usize, &mut Vec<u8>) -> bool,
    ) -> Option<Self> {
        let mut data = Vec::new();
        data.try_reserve_exact(ranges.iter().map(ExactSizeIterator::len).sum())
            .ok()?;
        let mut starts = Vec::with_capacity(ranges.len());
        ranges.retain(|range| {
            let start = data.len();
            let is_there = append(range.start as usize, range.len(), &mut data);
            starts.extend(is_there.then_some(start));
            is_there
        });
        data.shrink_to_fit();
        Some(Self {
            ranges,
            starts,
            data,
        })
    }

    /// The bytes of the block from `offset` on, if one piece has all of them.
    pub(super) fn find(&self, offset: usize, len: usize) -> Option<&[u8]> {
        let after = self
            .ranges
            .partition_point(|range| range.start as usize <= offset);
        let piece = after.checked_sub(1)?;
        let (range, start) = (self.ranges.get(piece)?, self.starts.get(piece)?);
        if offset.checked_add(len)? > range.end as usize {
            return None;
        }
        let at = start + (offset - range.start as usize);
        self.data.get(at..)?.get(..len)
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> u64 {
        let piece_bytes = size_of::<Range<u32>>() + size_of::<usize>();
        (self.data.len() + self.ranges.len() * piece_bytes) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy<'a>(ranges: &[Range<u32>], find: impl Fn(usize, usize) -> Option<&'a [u8]>) -> Kept {
        let append = |offset, len, to: &mut Vec<u8>| {
            let found = find(offset, len);
            to.extend_from_slice(found.unwrap_or_default());
            found.is_some()
        };
        Kept::copy(ranges.to_vec(), append).expect("there is memory")
    }

    #[test]
    fn pieces_are_found_where_they_were() {
        let block: Vec<u8> = (0..=255).collect();
        let find = |offset: usize, len: usize| block.get(offset..)?.get(..len);
        let kept = copy(&[3..5, 10..20, 250..256, 300..301], find);
        for (offset, len) in [(3, 2), (4, 1), (10, 10), (15, 3), (250, 6), (12, 0)] {
            assert_eq!(kept.find(offset, len), find(offset, len));
        }
        for (offset, len) in [
            (0, 1),
            (2, 2),
            (3, 3),
            (5, 1),
            (9, 4),
            (19, 2),
            (255, 2),
            (300, 1),
        ] {
            assert_eq!(kept.find(offset, len), None, "{offset} {len}");
        }
        assert_eq!(kept.find(10, usize::MAX), None);
        assert!(!kept.is_empty());
    }

    #[test]
    fn fewer_pieces_come_from_those_there_are() {
        let block: Vec<u8> = (0..=255).collect();
        let kept = copy(&[10..20, 30..40], |offset, len| {
            block.get(offset..)?.get(..len)
        });
        let fewer = copy(&[11..13, 25..31], |offset, len| kept.find(offset, len));
        assert_eq!(fewer.find(11, 2), Some(&[11, 12][..]));
        assert_eq!(fewer.find(30, 1), None);
        assert!(fewer.bytes() < kept.bytes());
    }
}
