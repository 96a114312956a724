//! The presets behind the compression levels.
//!
//! Source: CLI reference, "Level presets". The windows are ours: our search finds short repetitions, and at any
//! distance. So is the order by similarity: from level 2 on it costs some percent of the time.

use durin_codec::Spec;
use durin_format::Result;

use crate::categorize::Categorizer;
use crate::memory;
use crate::options::{Order, SmallTree};
use crate::per_category::PerCategory;

/// The highest level.
pub const LEVEL_MAX: usize = 9;
/// The level used when none is asked for.
pub const LEVEL_DEFAULT: u8 = 6;

/// The orders that levels have; [`Order`] has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelOrder {
    /// [`Order::None`].
    None,
    /// [`Order::Path`].
    Path,
    /// [`Order::Similarity`].
    Similarity,
}

/// What a level stands for; compressions are texts for `durin_codec::Spec::parse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelDefaults {
    /// The size of a block, as a power of two.
    pub block_size_bits: u32,
    /// What holds instead for trees that have little data.
    pub small_tree: Option<SmallTree>,
    /// The size at which blocks of contents that are unlike each other end, as a power of two.
    pub mixed_block_size_bits: u32,
    /// The same for blocks of executables and libraries.
    pub mixed_binary_block_size_bits: u32,
    /// How long repetitions are that are surely found, as a power of two; 0 searches for none.
    pub window_size: u32,
    /// By which power of two anchors lie closer than that.
    pub window_step: u32,
    /// In which order contents are stored.
    pub order: LevelOrder,
    /// How blocks are compressed.
    pub compression: &'static str,
    /// How the schema of the metadata is compressed.
    pub schema_compression: &'static str,
    /// How the metadata is compressed.
    pub metadata_compression: &'static str,
    /// How the history is compressed.
    pub history_compression: &'static str,
}

const fn row(
    bits: u32,
    window: (u32, u32),
    data: &'static str,
    small: &'static str,
    metadata: &'static str,
) -> LevelDefaults {
    LevelDefaults {
        block_size_bits: bits,
        small_tree: None,
        mixed_block_size_bits: bits,
        mixed_binary_block_size_bits: bits,
        window_size: window.0,
        window_step: window.1,
        order: LevelOrder::Similarity,
        compression: data,
        schema_compression: small,
        metadata_compression: metadata,
        history_compression: small,
    }
}

/// No search for repetitions.
const OFF: (u32, u32) = (0, 0);

/// Finds what level 11 finds, and stores what does not shrink.
const ZSTD_4: &str = "zstd:level=11:tune";
/// Level 19 that takes a match of 32 bytes without looking for a better one, searches less, and plans ahead once instead
/// of twice: some percent larger, much faster. docs/levels.md has the steps.
const ZSTD_5: &str = "zstd:level=19:strat=7:slog=3:tlen=32:tune";
/// The same with a window as long as the block, a deeper search, more exact prices of literals, and matches of 64 bytes.
const ZSTD_6: &str = "zstd:level=20:strat=8:slog=4:tlen=64:tune";
/// 4 to 6% smaller than zstd at level 22 in the same time, 15% for machine code; read seven times more slowly.
/// Searches that go on for longer matches (`nice`) would save another thousandth at most, for a twentieth more time. The
/// levels differ in their blocks alone, so that none is larger than the one before it where both have the same.
const LZMA: &str = "lzma:level=9:tune";
/// Whoever mounts an image waits for all of its metadata. zstd takes several times as long to decode them, for a quarter
/// less; stored they would be two fifths larger, and only be copied. docs/levels.md has the figures.
const LZ4_METADATA: &str = "lz4hc:level=9";
/// Columns of numbers of 1, 2 and 4 bytes say more by their position than by the byte before: 1% smaller than the default.
const LZMA_METADATA: &str = "lzma:level=9:lc=0:lp=2:pb=2";

/// `xz -9` looks back over 64 MiB from everywhere: in a tree of two or three blocks, much of one of them begins with nothing
/// to look back at.
const SMALL_TREE_LEN_MAX: u64 = 128 << 20;
/// The smaller blocks of level 7 lose to it as long as there are few of them: only in larger trees do likes lie so far apart
/// that blocks in the order of similarity have more in common than what those 64 MiB hold.
const SMALL_TREE_7_LEN_MAX: u64 = 512 << 20;

// Measured in docs/levels.md.
const LEVELS: [LevelDefaults; LEVEL_MAX + 1] = [
    LevelDefaults {
        order: LevelOrder::None,
        ..row(20, OFF, "null", "null", "null")
    },
    // Sketches would take a sixth more time than all of this, and save a hundredth.
    LevelDefaults {
        order: LevelOrder::Path,
        ..row(20, (13, 2), "lz4", "zstd:level=16", "null")
    },
    // lz4hc at 9 takes half as much time again, or more, and saves a hundredth: what repeats is found already.
    row(20, (10, 2), "lz4hc:level=5", "zstd:level=16", "null"),
    row(21, (10, 2), "lz4hc:level=9", "zstd:level=16", "null"),
    row(22, (9, 2), ZSTD_4, "zstd:level=16", LZ4_METADATA),
    row(23, (8, 2), ZSTD_5, "zstd:level=16", LZ4_METADATA),
    // Less is decoded to start a program where what is unlike does not share blocks, other programs above all, which have
    // least in common; docs/levels.md has the figures.
    LevelDefaults {
        mixed_block_size_bits: 22,
        mixed_binary_block_size_bits: 20,
        ..row(24, (8, 2), ZSTD_6, "zstd:level=16", LZ4_METADATA)
    },
    row(25, (8, 2), LZMA, "zstd:level=16", LZMA_METADATA).and_small_trees(SMALL_TREE_7_LEN_MAX, 26),
    row(26, (8, 2), LZMA, "zstd:level=16", LZMA_METADATA),
    row(26, (8, 2), LZMA, "zstd:level=16", LZMA_METADATA).and_small_trees(SMALL_TREE_LEN_MAX, 27),
];

impl LevelDefaults {
    /// Up to `data_len_max` bytes of data go into blocks of `2^bits` bytes.
    const fn and_small_trees(mut self, data_len_max: u64, bits: u32) -> Self {
        self.small_tree = Some(SmallTree {
            data_len_max,
            block_size_bits: bits,
        });
        // All of them are of full size.
        self.mixed_block_size_bits = bits;
        self.mixed_binary_block_size_bits = bits;
        self
    }

    /// Returns the presets of `level`, or nothing above [`LEVEL_MAX`].
    #[must_use]
    pub fn of(level: usize) -> Option<Self> {
        LEVELS.get(level).copied()
    }

    /// Returns the sizes at which blocks of contents that are unlike each other end, as powers of two.
    #[must_use]
    pub fn mixed_block_sizes(&self) -> PerCategory<u32> {
        let mut bits = PerCategory::new(self.mixed_block_size_bits);
        for category in Categorizer::Binary.categories() {
            bits.preset(*category, self.mixed_binary_block_size_bits);
        }
        bits
    }

    /// Makes blocks smaller that are larger than usual, until one of them can be compressed within `limit` bytes.
    ///
    /// Source: docs/levels.md, "Large blocks".
    ///
    /// # Errors
    /// [`durin_format::ErrorKind::InvalidInput`] if the compression is none, which no level has.
    pub fn fit(&mut self, limit: u64) -> Result<()> {
        /// Levels up to the default have these at most, which take less than most limits.
        const USUAL_BITS: u32 = 24;
        let spec = Spec::parse(self.compression)?;
        let of_small_trees = self.small_tree.iter_mut();
        let of_small_trees = of_small_trees.map(|small| &mut small.block_size_bits);
        for bits in of_small_trees.chain([&mut self.block_size_bits]) {
            while *bits > USUAL_BITS && memory::least(&spec, *bits) > limit {
                *bits -= 1;
            }
        }
        Ok(())
    }

    /// Returns the order in which contents are stored.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.order {
            LevelOrder::None => Order::None,
            LevelOrder::Path => Order::Path,
            LevelOrder::Similarity => Order::Similarity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_can_be_used() {
        for level in 0..=LEVEL_MAX {
            let row = LevelDefaults::of(level).expect("a level up to the highest");
            for text in [
                row.compression,
                row.schema_compression,
                row.metadata_compression,
                row.history_compression,
            ] {
                assert!(Spec::parse(text).is_ok(), "level {level}: {text}");
            }
        }
        assert_eq!(LevelDefaults::of(LEVEL_MAX + 1), None);
    }

    #[test]
    fn all_but_the_fastest_search_and_sort() {
        for level in 0..=LEVEL_MAX {
            let row = LevelDefaults::of(level).expect("a level up to the highest");
            assert_eq!(row.window_size > 0, level >= 1, "level {level}");
            let order = match level {
                0 => Order::None,
                1 => Order::Path,
                _ => Order::Similarity,
            };
            assert_eq!(row.order(), order, "level {level}");
        }
    }

    /// An image of the default level is for mounting; those above it are for keeping.
    #[test]
    fn programs_share_the_smallest_blocks() {
        for level in 0..=LEVEL_MAX {
            let row = LevelDefaults::of(level).expect("a level up to the highest");
            let bits = row.mixed_block_sizes();
            let largest = row
                .small_tree
                .map_or(row.block_size_bits, |small| small.block_size_bits);
            let is_default = level == usize::from(LEVEL_DEFAULT);
            for (category, expected) in [("<default>", 22), ("binary/elf", 20)] {
                let expected = if is_default { expected } else { largest };
                assert_eq!(*bits.of(category), expected, "level {level}: {category}");
            }
        }
    }

    /// Trees whose blocks are the same at two levels have images of the same size at both.
    #[test]
    fn levels_of_lzma_differ_in_blocks_alone() {
        let without_blocks = |level| LevelDefaults {
            block_size_bits: 0,
            small_tree: None,
            mixed_block_size_bits: 0,
            mixed_binary_block_size_bits: 0,
            ..LevelDefaults::of(level).expect("a level up to the highest")
        };
        for level in 8..=LEVEL_MAX {
            assert_eq!(without_blocks(level), without_blocks(7), "level {level}");
        }
    }

    #[test]
    fn only_large_blocks_become_smaller() {
        let bits = |level, limit| {
            let mut row = LevelDefaults::of(level).expect("a level");
            row.fit(limit).expect("compressions that can be used");
            row.block_size_bits
        };
        assert_eq!(bits(9, u64::MAX), 26);
        assert_eq!((bits(9, 768 << 20), bits(9, 1 << 20)), (25, 24));
        assert_eq!((bits(7, u64::MAX), bits(7, 256 << 20)), (25, 24));
        assert_eq!((bits(8, u64::MAX), bits(8, 768 << 20)), (26, 25));
        let of_small_trees = |limit| {
            let mut row = LevelDefaults::of(7).expect("a level");
            row.fit(limit).expect("compressions that can be used");
            row.small_tree.map(|small| small.block_size_bits)
        };
        assert_eq!(
            [u64::MAX, 768 << 20, 1 << 20].map(of_small_trees),
            [Some(26), Some(25), Some(24)]
        );
        for level in 0..=usize::from(LEVEL_DEFAULT) {
            assert_eq!(
                Some(bits(level, 0)),
                LevelDefaults::of(level).map(|row| row.block_size_bits)
            );
        }
    }
}
