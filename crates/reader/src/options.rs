//! What a user can choose about opening an image.

use std::sync::Arc;
use std::time::Duration;

use durin_format::limits;

use crate::block_cache::CacheMemory;
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
    /// At least what is being decoded is held whatever this says.
    pub bytes_max: u64,
    /// Memory shared with other images, in place of `bytes_max`.
    pub memory: Option<CacheMemory>,
    /// Threads that decode blocks ahead of sequential readers; 0: none.
    pub workers: usize,
    /// Blocks read in order before the next ones are decoded ahead; 0: never ahead.
    pub run_min: u32,
    /// Bytes of a file behind each read whose blocks are decoded ahead, whoever reads how.
    pub read_ahead_bytes: u64,
    /// Whether files behind one that is read are decoded ahead when files are read in the order of their directories.
    pub follows_walks: bool,
    /// Whether who reads keeps what it has read, as the kernel does: blocks go when all that files have in them has been
    /// read, and their memory is used for the next.
    pub lets_go: bool,
    /// The share of a block, in thousandths, of which all of it is decoded when so much is wanted.
    pub whole_permille: u32,
    /// How memory is given back.
    pub tidy: Tidy,
    /// Whether the checksum of a block is verified when it is first read.
    pub verify_blocks: bool,
    /// Measures what is done with the image, the cache above all.
    pub perfmon: Option<Arc<Perfmon>>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            memory: None,
            workers: 2,
            run_min: 1,
            read_ahead_bytes: 0,
            follows_walks: false,
            lets_go: false,
            // The reference's value. The decoder and the payload, which take memory as the rest would, can go then.
            whole_permille: 800,
            tidy: Tidy::default(),
            verify_blocks: true,
            perfmon: None,
        }
    }
}

/// How memory is given back when it is not used.
#[derive(Clone, Debug)]
pub struct Tidy {
    /// What is thrown out.
    pub strategy: TidyStrategy,
    /// How often that is looked at.
    pub interval: Duration,
    /// How long a block (or, for [`TidyStrategy::Idle`], the whole cache) must not have been used.
    pub age_max: Duration,
    /// What [`TidyStrategy::Idle`] leaves.
    pub kept_bytes: u64,
    /// Called when something was thrown out, to let the system have what the allocator keeps.
    pub release: Option<fn()>,
}

impl Default for Tidy {
    fn default() -> Self {
        Self {
            strategy: TidyStrategy::None,
            interval: Duration::from_secs(300),
            age_max: Duration::from_secs(600),
            kept_bytes: 32 << 20,
            release: None,
        }
    }
}

/// What is thrown out although there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TidyStrategy {
    /// Nothing.
    #[default]
    None,
    /// When nobody uses the cache: all but the most valuable blocks.
    Idle,
    /// Blocks that were not used for some time.
    Time,
    /// Blocks that the system has moved to swap space.
    Swap,
}
