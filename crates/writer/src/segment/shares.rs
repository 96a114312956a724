//! How much of a piece there is in which earlier block, as far as anchors tell.

/// The earlier blocks that a piece has anchors in common with.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The block of each anchor that was found, in order of their numbers.
    blocks: Vec<u64>,
    /// Anchors of the piece that would have been found anywhere.
    anchors: usize,
}

impl Shares {
    /// Takes how many anchors a piece has that the index knows about, and the blocks of those that were found: for each
    /// the number of the anchor, in order, and a block that has it.
    ///
    /// An anchor that several blocks have counts for the one of them that has most anchors. What is in many blocks, as a
    /// common text is, would otherwise make each of them look as if the piece were to be found there, and what little the
    /// others lack of it would be taken from one after the other.
    pub(super) fn new(anchors: usize, found: &[(usize, u64)]) -> Self {
        let mut all: Vec<u64> = found.iter().map(|(_, block)| *block).collect();
        all.sort_unstable();
        let most = |of_one: &[(usize, u64)]| {
            let blocks = of_one.iter().map(|(_, block)| *block);
            blocks.max_by_key(|block| (count(&all, *block), *block))
        };
        let of_each = found.chunk_by(|(one, _), (next, _)| one == next);
        let mut blocks: Vec<u64> = of_each.filter_map(most).collect();
        blocks.sort_unstable();
        Self { blocks, anchors }
    }

    /// Whether a block has at least one in `parts` of the anchors.
    pub(super) fn has_part(&self, block: u64, parts: usize) -> bool {
        count(&self.blocks, block).saturating_mul(parts) >= self.anchors
    }
}

/// How often a block is in a sorted list.
fn count(blocks: &[u64], block: u64) -> usize {
    let from = blocks.partition_point(|one| *one < block);
    blocks[from..].partition_point(|one| *one == block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_for_each_block() {
        let shares = Shares::new(10, &[(0, 7), (1, 3), (2, 7), (4, 7), (9, 9)]);
        assert!(shares.has_part(7, 4) && !shares.has_part(7, 3));
        assert!(shares.has_part(3, 10) && !shares.has_part(3, 9));
        assert!(shares.has_part(9, 10));
        assert!(!shares.has_part(4, 1000) && !shares.has_part(10, 1000));
        assert!(Shares::default().has_part(1, 1), "nothing is known");
    }

    #[test]
    fn an_anchor_counts_for_the_block_that_has_most() {
        let found = [
            (0, 7),
            (0, 3),
            (1, 3),
            (1, 8),
            (2, 3),
            (3, 3),
            (3, 7),
            (4, 7),
            (4, 9),
        ];
        let shares = Shares::new(5, &found);
        assert!(shares.has_part(3, 2) && !shares.has_part(3, 1), "0 to 3");
        assert!(shares.has_part(7, 5) && !shares.has_part(7, 4), "4 only");
        assert!(!shares.has_part(8, 1000) && !shares.has_part(9, 1000));
        let alike = Shares::new(1, &[(0, 7), (0, 8)]);
        assert!(
            alike.has_part(8, 1) && !alike.has_part(7, 1),
            "the later one"
        );
    }
}
