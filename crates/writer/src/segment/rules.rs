//! What repetitions are looked for and which of them are worth a chunk.

use durin_format::section::CompressionType;
use durin_kernels::anchors::{Density, WINDOW};

use super::group::BlockLens;
use crate::category::{StreamSettings, WindowOptions};

/// The shortest repetition that can be promised, as a power of two: an anchor takes 64 bytes, and must have a choice.
const SIZE_BITS_MIN: u32 = 7;
/// Anchors are no denser than one in 16 bytes, which is as much index as data.
const SPACING_BITS_MIN: u32 = 4;
/// Repetitions shorter than promised are taken where an anchor happens to lie in them, down to this share, but not below
/// this many bytes: new data before it and behind it are chunks of their own then. Chunks take 4 to 7 bytes each, and what
/// is cut out of data is missed by the compressor, which would have found more that is like it.
/// docs/segmentation.md has what 128, 192 and 256 bytes make of images.
const BETWEEN_SHARE: usize = 2;
const BETWEEN_MIN: usize = 160;
/// The same for what follows another repetition, or begins a piece: it takes one chunk at most, and divides nothing.
const BESIDE_SHARE: usize = 8;
const BESIDE_MIN: usize = 64;
/// A repetition inside the block that is being filled is within reach of the compressor, which finds it by itself for
/// some bytes. Taking it out saves its time and leaves room for other data: worth it from this multiple on of half of what
/// is promised. Of 2, 4, 8 and 16 on versions of programs at levels 5, 7 and 9, 8 and 16 were the smallest.
const SAME_BLOCK_FACTOR: usize = 8;
/// Where data repeat with a short period, each repetition ends where what is stored so far ends. Unless it is a good
/// part of a block, storing more of the data makes the next one longer.
const PERIOD_BLOCK_SHARE: usize = 16;

/// A small content takes nothing from a block that has less than one in so many bytes of it (of a megabyte, if it is
/// larger): its readers would have half of that block decoded for little. docs/segmentation.md has what that makes of
/// images. Only with zstd: where lzma is chosen, size counts more than reading.
const PARTS_MAX: usize = 16;

/// How the data of one stream are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The anchors; none if nothing is to be searched for.
    pub(crate) density: Option<Density>,
    /// The shortest repetition between new data that is taken from another block, in bytes.
    pub(super) least_between: usize,
    /// The shortest one that is taken from there right behind another, or where a piece begins.
    pub(super) least_beside: usize,
    /// The shortest one that is taken from the open block.
    pub(super) least_same_block: usize,
    /// The shortest one that goes on with itself.
    pub(super) least_periodic: usize,
    /// How many blocks may be searched, the open one included.
    pub(super) lookback: u64,
    /// Bytes that belong together.
    pub(super) granularity: usize,
    /// Bytes of a full block.
    pub(super) block_len: usize,
    /// Bytes of a block of several groups of contents that are alike, if it ends early.
    pub(super) mixed_len: usize,
    /// Whether a block may end before it is full, so that contents that are alike share the next one.
    pub(super) ends_early: bool,
    /// Blocks with less than one in so many bytes of a small content are left alone; `usize::MAX` if any may be used.
    pub(super) parts_max: usize,
}

impl Rules {
    /// Before there are data.
    pub(super) const NONE: Self = Self {
        density: None,
        least_between: usize::MAX,
        least_beside: usize::MAX,
        least_same_block: usize::MAX,
        least_periodic: usize::MAX,
        lookback: 0,
        granularity: 1,
        block_len: 1,
        mixed_len: 1,
        ends_early: false,
        parts_max: usize::MAX,
    };

    /// The rules for data that are stored in this way.
    pub(crate) fn of(settings: &StreamSettings, block_size: u32) -> Self {
        let block_len = settings.block_len(block_size) as usize;
        let ends_early = settings.compression.sees_whole_blocks();
        let same_block_factor = if ends_early { SAME_BLOCK_FACTOR } else { 1 };
        let granularity = settings.granularity as usize;
        let rules = Self::new(settings.window, granularity, block_len, same_block_factor);
        let is_read_often = settings.compression.compression_type() == CompressionType::Zstd;
        let mixed_len = block_len.min(settings.mixed_block_size as usize);
        Self {
            ends_early,
            mixed_len: if is_read_often { mixed_len } else { block_len },
            parts_max: if is_read_often { PARTS_MAX } else { usize::MAX },
            ..rules
        }
    }

    /// How long blocks get.
    pub(super) fn block_lens(&self) -> BlockLens {
        BlockLens {
            full: self.block_len,
            mixed: self.mixed_len,
        }
    }

    /// `same_block_factor` says how much longer repetitions in the open block must be, which the compressor finds too.
    pub(super) fn new(
        window: WindowOptions,
        granularity: usize,
        block_len: usize,
        same_block_factor: usize,
    ) -> Self {
        let granularity = granularity.max(1);
        let is_off = window.size_bits == 0 || window.lookback_blocks == 0;
        let size_bits = window.size_bits.clamp(SIZE_BITS_MIN, 24);
        // What a promised repetition loses where it is cut down to whole units.
        let size = (1_usize << size_bits) * granularity;
        let bits = (size.ilog2().saturating_sub(window.step_bits)).max(SPACING_BITS_MIN);
        let half = (size / 2).max(1 << SIZE_BITS_MIN).min(size);
        let least_same_block = half.saturating_mul(same_block_factor);
        Self {
            density: (!is_off).then_some(Density {
                bits,
                reach: size - (WINDOW - 1),
            }),
            least_between: (size / BETWEEN_SHARE).max(BETWEEN_MIN).min(size),
            least_beside: (size / BESIDE_SHARE).max(BESIDE_MIN).min(size),
            least_same_block,
            least_periodic: least_same_block.max(block_len / PERIOD_BLOCK_SHARE),
            lookback: u64::from(window.lookback_blocks),
            granularity,
            block_len,
            mixed_len: block_len,
            ends_early: false,
            parts_max: usize::MAX,
        }
    }
}
