//! What a user can choose about opening an image.

use std::sync::Arc;

use durin_format::limits;

use crate::perfmon::Perfmon;

/// How to open an image.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    /// Where the image begins in the file.
    pub offset: ImageOffset,
    /// Bytes of the image, when other data follows it; `None`: the image extends to the end of the file.
    pub image_size: Option<u64>,
    /// How much of the metadata is checked at open.
    pub check: MetadataCheck,
    /// The cache of decompressed blocks.
    pub cache: CacheOptions,
    /// Most bytes of decompressed metadata.
    pub metadata_bytes_max: u64,
    /// Uncompressed metadata of up to so many bytes is read into memory although it could be used where it is mapped.
    ///
    /// Who uses an image for long chooses this: touching a mapping whose file has been cut short ends the process.
    pub metadata_copy_max: u64,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            offset: ImageOffset::Auto,
            image_size: None,
            check: MetadataCheck::Quick,
            cache: CacheOptions::default(),
            metadata_bytes_max: limits::METADATA_BYTES_MAX,
            metadata_copy_max: 0,
        }
    }
}

/// Where the image begins in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageOffset {
    /// The first place that looks like an image.
    #[default]
    Auto,
    /// This many bytes from the start of the file.
    At(u64),
}

/// How much of the metadata is checked at open.
///
/// Whatever is not checked there is checked where it is used: a wrong value is an error then, never a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetadataCheck {
    /// Counts, features and options. Images of formats 2.0 and 2.1 get the full check all the same,
    /// because they have no checksums.
    #[default]
    Quick,
    /// Every value.
    Full,
}

/// The cache of decompressed blocks.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Most bytes held: decoded data, payloads that are still being decoded, and decoders.
    /// At least one block is held whatever this says.
    pub bytes_max: u64,
    /// Threads that decode blocks ahead of sequential readers; 0: none.
    pub workers: usize,
    /// Whether the checksum of a block is verified when it is first read.
    pub verify_blocks: bool,
    /// Measures what is done with the image, the cache above all.
    pub perfmon: Option<Arc<Perfmon>>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            workers: 2,
            verify_blocks: true,
            perfmon: None,
        }
    }
}
