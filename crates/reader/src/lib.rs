//! Reading DwarFS images.
//!
//! [`Image::open`] finds an image in a [`Source`](durin_source::Source), reads its metadata in place, and answers from
//! then on: what is in a directory, what attributes a file has, what its bytes are. All of that may be asked by several
//! threads at once.
//!
//! Every byte is untrusted. What is wrong is an [`Error`](durin_format::Error) that says where, at open or when it is
//! used; nothing panics, recurses as deep as an image says, or allocates what no bytes stand for.
//!
//! The modules follow the path of a read: locate, sections, metadata, lookup, dir, attr, chunks, block cache.
//! This crate never writes, and starts threads only to read ahead and to check.
//!
//! ```
//! use durin_reader::{Image, ImageOptions};
//! use durin_source::MemorySource;
//!
//! let no_image = std::sync::Arc::new(MemorySource::new(vec![0; 100]));
//! let error = Image::open(no_image, &ImageOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "no image found in this file");
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

mod attr;
mod block_cache;
mod check;
mod chunks;
mod dir;
mod history;
mod image;
mod info;
mod locate;
mod lookup;
mod metadata;
mod options;
mod outlook;
mod payload;
pub mod perfmon;
mod positions;
mod preload;
mod raw;
mod read;
mod readahead;
mod sections;
mod seek;
mod sequence;
mod space;
mod statfs;
mod sync;
mod target;
mod walk;
mod walks;

pub use attr::{Attr, FileKind, Time};
pub use block_cache::{BlockCache, CacheMemory, CacheStats};
pub use check::{CheckLevel, CheckOptions, Report};
pub use chunks::{Extent, Extents, Place};
pub use image::{EntryRef, Image};
pub use info::{CategoryInfo, Info, SectionInfo, option_names};
pub use locate::find_image;
pub use options::{CacheOptions, ImageOffset, ImageOptions, MetadataCheck, Tidy, TidyStrategy};
pub use outlook::ReadingPlan;
pub use preload::{Preload, PreloadBlocks};
pub use raw::RawSection;
pub use sections::Section;
pub use space::StoredSizes;
pub use statfs::StatFs;
pub use target::{BlockBytes, Filling, Loan, ReadTarget};
pub use walk::WalkEntry;
