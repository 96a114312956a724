//! What a finished rewriting tells.

/// Figures of the old image and the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes of the old image without its header.
    pub old_image_bytes: u64,
    /// Bytes of the new image without its header.
    pub image_bytes: u64,
    /// Bytes in front of the new image.
    pub header_bytes: u64,
    /// Blocks of the old image.
    pub old_blocks: u64,
    /// Blocks of the new image.
    pub blocks: u64,
    /// Blocks that were copied as they are.
    pub copied_blocks: u64,
    /// Bytes of blocks as stored in the old image.
    pub old_compressed_block_bytes: u64,
    /// Bytes of blocks of the new image before compression.
    pub block_bytes: u64,
    /// Bytes of blocks as stored in the new image.
    pub compressed_block_bytes: u64,
    /// Bytes of schema and metadata as stored in the old image.
    pub old_compressed_metadata_bytes: u64,
    /// Bytes of schema and metadata as stored in the new image.
    pub compressed_metadata_bytes: u64,
    /// Sections of unknown types that went along.
    pub unknown_sections: u64,
    /// The categories of blocks.
    pub categories: Vec<CategoryReport>,
    /// Chunks of the new image, if the metadata were rebuilt.
    pub chunks: Option<u64>,
    /// The most memory that the process held, in bytes.
    pub peak_memory_bytes: u64,
    /// The most memory that it may have, in bytes.
    pub memory_limit: u64,
    /// What it was expected to take, in bytes.
    pub memory_estimate: u64,
}

/// The blocks of one category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryReport {
    /// Its name.
    pub name: String,
    /// Blocks of the old image.
    pub old_blocks: u64,
    /// Bytes of them as stored.
    pub old_compressed_bytes: u64,
    /// Blocks of the new image.
    pub blocks: u64,
    /// Bytes of them before compression.
    pub block_bytes: u64,
    /// Bytes of them as stored.
    pub compressed_bytes: u64,
}
