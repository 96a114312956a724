//! The metadata: the tree of an image, its attributes, and where file contents are.

pub mod model;

pub use model::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
    MetadataHistoryEntry, StringTable,
};
