//! The space report: what the bytes of an image go to, before and after compression.
//!
//! [`collect`](collect::collect) walks the tree once, looks at every chunk, and walks again for the paths of what turned
//! out to be worth naming. [`text`] and [`json`] show what was found, and so does [`super::page`].
//! Memory: some 100 bytes a directory, 24 a chunk, and what is shown.

pub(super) mod collect;
pub(super) mod json;
mod kinds;
mod overlap;
mod paths;
pub(super) mod text;
mod top;
pub(super) mod tree;

use durin_format::section::CompressionType;

use super::tables_text;

/// Files and the bytes they take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// Regular files; those with several links count once.
    pub(super) files: u64,
    /// Their bytes without holes.
    pub(super) size: u64,
    /// Their share of the compressed blocks.
    pub(super) stored: f64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.size = self.size.saturating_add(other.size);
        self.stored += other.stored;
    }

    /// The share of the compressed blocks in whole bytes.
    pub(super) fn stored_bytes(&self) -> u64 {
        whole(self.stored)
    }
}

/// From the sizes of all files down to the size of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Directory entries of regular files.
    pub(super) entries: u64,
    /// Bytes of all of them, as `ls` tells them.
    pub(super) size: u64,
    /// Bytes of further links to the same file.
    pub(super) hard_links: u64,
    /// Bytes in holes.
    pub(super) holes: u64,
    /// Bytes of further files with the same content.
    pub(super) duplicates: u64,
    /// Bytes of contents that are stored once and referred to several times.
    pub(super) shared: u64,
    /// Bytes of blocks that no file refers to.
    pub(super) unused: u64,
    /// Bytes of all blocks before compression; where a block does not tell, as much as is referred to.
    pub(super) blocks: u64,
    /// Bytes of all blocks in the image.
    pub(super) blocks_stored: u64,
    /// Bytes of schema and metadata before compression.
    pub(super) metadata: u64,
    /// Bytes of schema and metadata in the image.
    pub(super) metadata_stored: u64,
    /// Bytes of what is left: history, index, section headers, what is before the image.
    pub(super) rest: u64,
    /// Bytes of the image file.
    pub(super) image: u64,
}

/// A name and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    /// Path, extension or other name, as it is stored.
    pub(super) name: Vec<u8>,
    pub(super) usage: Usage,
}

/// A block as it is and as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) category: Option<String>,
    pub(super) compression: Option<CompressionType>,
    /// Bytes before compression; `None` if the block does not tell.
    pub(super) size: Option<u64>,
    pub(super) stored: u64,
}

/// Blocks that have something in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockSum {
    pub(super) name: String,
    pub(super) blocks: u64,
    pub(super) size: u64,
    pub(super) stored: u64,
}

/// Files that share data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// How many there are.
    pub(super) files: u64,
    /// Bytes of all of them, or of equal files those of one.
    pub(super) size: u64,
    /// Bytes that sharing saves before compression.
    pub(super) saved: u64,
    /// The contents whose paths are shown.
    contents: Vec<u32>,
    /// Some of their paths, in the order of the tree.
    pub(super) paths: Vec<Vec<u8>>,
}

/// All of the report.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) totals: Totals,
    pub(super) tree: tree::Tree,
    /// By extension, those that take most first.
    pub(super) kinds: Vec<Named>,
    /// The blocks in the order of the image.
    pub(super) blocks: Vec<Block>,
    pub(super) categories: Vec<BlockSum>,
    pub(super) codecs: Vec<BlockSum>,
    /// Files that take most of the image.
    pub(super) largest: Vec<Named>,
    /// Files that are equal.
    pub(super) duplicates: Vec<Group>,
    /// Files that are alike: a third of the larger is in another.
    pub(super) clusters: Vec<Group>,
    /// Tables of the metadata.
    pub(super) tables: Vec<tables_text::Row>,
    /// Entries that could not be read.
    pub(super) errors: u64,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of shares of sizes, never negative"
)]
fn whole(share: f64) -> u64 {
    share.round() as u64
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
