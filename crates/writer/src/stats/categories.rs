//! Figures of each category of data.

use super::Counter;

/// The figures of one category.
#[derive(Debug, Default)]
pub struct CategoryStats {
    /// Its name.
    pub name: String,
    /// Ranges of files that belong to it.
    pub fragments: Counter,
    /// Bytes of those ranges, without holes.
    pub data_bytes: Counter,
    /// Blocks written.
    pub blocks: Counter,
    /// Bytes of those blocks.
    pub block_bytes: Counter,
    /// Bytes of those blocks as written.
    pub compressed_bytes: Counter,
}

/// The figures of one category of a finished build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryReport {
    /// Its name.
    pub name: String,
    /// Ranges of files that belong to it.
    pub fragments: u64,
    /// Bytes of those ranges, without holes.
    pub data_bytes: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub block_bytes: u64,
    /// Bytes of those blocks as written.
    pub compressed_bytes: u64,
}

impl CategoryStats {
    pub(super) fn report(&self) -> CategoryReport {
        CategoryReport {
            name: self.name.clone(),
            fragments: self.fragments.get(),
            data_bytes: self.data_bytes.get(),
            blocks: self.blocks.get(),
            block_bytes: self.block_bytes.get(),
            compressed_bytes: self.compressed_bytes.get(),
        }
    }
}
