//! The metadata: the tree of an image, its attributes, and where file contents are.

pub(crate) mod describe;
mod fields;
mod frozen;
mod inodes;
pub mod model;
pub mod tables;

pub use frozen::{FreezeStyle, Frozen};
pub use inodes::Inodes;
pub use model::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
    MetadataHistoryEntry, StringTable,
};
pub use tables::Tables;
