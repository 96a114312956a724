//! How much of a piece there is in which earlier block, as far as anchors tell.

/// The earlier blocks that a piece has anchors in common with.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// A block for each anchor that it has, in order of their numbers.
    blocks: Vec<u64>,
    /// Anchors of the piece that would have been found anywhere.
    anchors: usize,
}

impl Shares {
    /// Takes how many anchors a piece has that the index knows about, and the blocks of those that were found: each block
    /// once for each anchor.
    pub(super) fn new(anchors: usize, mut blocks: Vec<u64>) -> Self {
        blocks.sort_unstable();
        Self { blocks, anchors }
    }

    /// Whether a block has at least one in `parts` of the anchors.
    pub(super) fn has_part(&self, block: u64, parts: usize) -> bool {
        let from = self.blocks.partition_point(|one| *one < block);
        let count = self.blocks[from..].partition_point(|one| *one == block);
        count.saturating_mul(parts) >= self.anchors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_for_each_block() {
        let shares = Shares::new(10, vec![7, 3, 7, 7, 9]);
        assert!(shares.has_part(7, 4) && !shares.has_part(7, 3));
        assert!(shares.has_part(3, 10) && !shares.has_part(3, 9));
        assert!(shares.has_part(9, 10));
        assert!(!shares.has_part(4, 1000) && !shares.has_part(10, 1000));
        assert!(Shares::default().has_part(1, 1), "nothing is known");
    }
}
