//! The metadata as owned, plain structs.
//!
//! Fields are named as the format names them and stand in the order in which it lays them out.
//! A writer fills a [`Metadata`] and freezes it; export, dumps, tests and the upgrade of old images thaw one.
//! Reading files from an image does not: that looks into the frozen bytes in place.
//!
//! Values are as stored: packed tables are packed, offsets are offsets. Nothing here checks that indices fit.
//!
//! Source: docs/format.md, "Metadata structures".

use std::collections::{BTreeMap, BTreeSet};

use super::inodes::Inodes;

/// All that an image knows about its tree, apart from file contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// All chunks of all regular files, grouped by content.
    pub chunks: Vec<Chunk>,
    /// One element a directory inode, and one that ends the list.
    pub directories: Vec<Directory>,
    /// From 2.3 on one element an inode; up to 2.2 one element a directory entry.
    pub inodes: Inodes,
    /// For each content the index of its first chunk, and one element that ends the list; differences if packed.
    pub chunk_table: Vec<u32>,
    /// Up to 2.2: for each inode the index of its element in `inodes`. Empty since.
    pub entry_table_v2_2: Vec<u32>,
    /// For each symbolic link inode the index of its target.
    pub symlink_table: Vec<u32>,
    /// The distinct user ids, for `owner_index`.
    pub uids: Vec<u32>,
    /// The distinct group ids, for `group_index`.
    pub gids: Vec<u32>,
    /// The distinct `st_mode` values, file type included, for `mode_index`.
    pub modes: Vec<u32>,
    /// The names of directory entries, unless they are in `compact_names`.
    pub names: Vec<Vec<u8>>,
    /// The targets of symbolic links, unless they are in `compact_symlinks`.
    pub symlinks: Vec<Vec<u8>>,
    /// What all times count from, in units of the time resolution.
    pub timestamp_base: u64,
    /// Only in images of release 0.2: the number of the first regular file. Readers ignore it.
    pub chunk_inode_offset: u32,
    /// Only in images of release 0.2: the number of the first symbolic link. Readers ignore it.
    pub link_inode_offset: u32,
    /// The largest uncompressed size of a block in bytes, a power of two.
    pub block_size: u32,
    /// The sum of the sizes of all regular files and symbolic link targets in bytes.
    pub total_fs_size: u64,
    /// `rdev` of each device inode.
    pub devices: Option<Vec<u64>>,
    /// How the tables and times are stored.
    pub options: Option<FsOptions>,
    /// All directory entries, grouped by directory; element 0 is the root's own. Its presence tells 2.3 from 2.2.
    pub dir_entries: Option<Vec<DirEntry>>,
    /// For each shared file inode its content, counted from the first shared content; run lengths if packed.
    pub shared_files_table: Option<Vec<u32>>,
    /// What further hard links would have added to `total_fs_size`, in bytes.
    pub total_hardlink_size: Option<u64>,
    /// The program that made the image, such as `libdwarfs v0.9.10`.
    pub dwarfs_version: Option<Vec<u8>>,
    /// When the image was made, in seconds since 1970.
    pub create_timestamp: Option<u64>,
    /// The names of directory entries; if set, `names` is empty.
    pub compact_names: Option<StringTable>,
    /// The targets of symbolic links; if set, `symlinks` is empty.
    pub compact_symlinks: Option<StringTable>,
    /// The character that separates path components in symbolic link targets.
    pub preferred_path_separator: Option<u32>,
    /// What a reader must know to understand the image.
    pub features: Option<BTreeSet<Vec<u8>>>,
    /// The names of block categories.
    pub category_names: Option<Vec<Vec<u8>>>,
    /// For each block the index of its category's name.
    pub block_categories: Option<Vec<u32>>,
    /// The sizes of files of many chunks.
    pub reg_file_size_cache: Option<InodeSizeCache>,
    /// Distinct JSON objects that tell more about blocks.
    pub category_metadata_json: Option<Vec<Vec<u8>>>,
    /// For blocks that have it the index of their JSON object.
    pub block_category_metadata: Option<BTreeMap<u32, u32>>,
    /// What earlier versions of this metadata looked like, oldest first.
    pub metadata_version_history: Option<Vec<MetadataHistoryEntry>>,
    /// The block number that marks a chunk as a hole.
    pub hole_block_index: Option<u32>,
    /// The sizes in bytes of holes that do not fit a chunk.
    pub large_hole_size: Option<Vec<u64>>,
    /// As `total_fs_size` without holes; only set if different.
    pub total_allocated_fs_size: Option<u64>,
}

/// A range of a block, or a hole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The number of the block, or `hole_block_index`.
    pub block: u32,
    /// Bytes from the start of the uncompressed block.
    pub offset: u32,
    /// The length in bytes.
    pub size: u32,
}

/// Where a directory's entries are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The entry that names the parent directory; up to 2.2 the parent's inode number.
    pub parent_entry: u32,
    /// The first entry of this directory; its last is before the next directory's first.
    pub first_entry: u32,
    /// The entry that names this directory.
    pub self_entry: u32,
}

/// The attributes of an inode, and up to 2.2 of a directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeData {
    /// The index in `modes`.
    pub mode_index: u32,
    /// The index in `uids`.
    pub owner_index: u32,
    /// The index in `gids`.
    pub group_index: u32,
    /// Access time: units of the time resolution from `timestamp_base`.
    pub atime_offset: u64,
    /// Modification time: units of the time resolution from `timestamp_base`.
    pub mtime_offset: u64,
    /// Change time: units of the time resolution from `timestamp_base`.
    pub ctime_offset: u64,
    /// Birth time: reserved, never written so far.
    pub btime_offset: u64,
    /// The part of the access time below a second, in units of the sub-second resolution.
    pub atime_subsec: u64,
    /// The part of the modification time below a second, in units of the sub-second resolution.
    pub mtime_subsec: u64,
    /// The part of the change time below a second, in units of the sub-second resolution.
    pub ctime_subsec: u64,
    /// The part of the birth time below a second: reserved, never written so far.
    pub btime_subsec: u64,
    /// How many more names than one a regular file has, if the options say that it is stored.
    pub nlink_minus_one: u32,
    /// Up to 2.2: the index of the entry's name.
    pub name_index_v2_2: u32,
    /// Up to 2.2: the inode that the entry names.
    pub inode_v2_2: u32,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirEntry {
    /// The index of the name; the root's own entry has none.
    pub name_index: u32,
    /// The inode it names.
    pub inode_num: u32,
}

/// How the tables and times of an image are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsOptions {
    /// Only modification times are stored.
    pub mtime_only: bool,
    /// Seconds a time unit; 1 if unset.
    pub time_resolution_sec: Option<u32>,
    /// `chunk_table` holds differences.
    pub packed_chunk_table: bool,
    /// `first_entry` of `directories` holds differences, the other two fields nothing.
    pub packed_directories: bool,
    /// `shared_files_table` holds run lengths less two.
    pub packed_shared_files_table: bool,
    /// Nanoseconds a sub-second unit.
    pub subsecond_resolution_nsec_multiplier: Option<u32>,
    /// Birth times are stored: reserved, never set so far.
    pub has_btime: bool,
    /// `nlink_minus_one` is stored.
    pub inodes_have_nlink: bool,
}

/// Strings in one buffer, possibly compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringTable {
    /// All strings, one after the other.
    pub buffer: Vec<u8>,
    /// The serialized FSST symbol table; unset if the strings are as they are.
    pub symtab: Option<Vec<u8>>,
    /// Where each string starts and the last one ends, or, if packed, the length of each.
    pub index: Vec<u32>,
    /// `index` holds lengths.
    pub packed_index: bool,
}

/// Sizes of files that consist of so many chunks that adding them up each time would take long.
///
/// The keys are content numbers, the indices of `chunk_table`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InodeSizeCache {
    /// Sizes in bytes.
    pub size_lookup: BTreeMap<u32, u64>,
    /// Files of fewer chunks are not in the cache.
    pub min_chunk_count: u64,
    /// Sizes without holes in bytes, where they differ.
    pub allocated_size_lookup: BTreeMap<u32, u64>,
}

/// What an earlier version of the metadata of a rewritten image looked like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataHistoryEntry {
    /// The format's major version.
    pub major: u8,
    /// The format's minor version.
    pub minor: u8,
    /// The program that made it.
    pub dwarfs_version: Option<Vec<u8>>,
    /// Its block size in bytes.
    pub block_size: u32,
    /// Its options.
    pub options: Option<FsOptions>,
}
