//! How the structs of the model are stored: the id of each field, in the order in which they are laid out.
//!
//! Source: docs/format.md, "Metadata structures". The two fields of `inode_data` that only formats up to 2.2 use are declared
//! last in later releases and by id in those that use them; where they take room, only the second order occurs.

use std::collections::{BTreeMap, BTreeSet};

use super::inodes::Inodes;
use super::model::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
    MetadataHistoryEntry, StringTable,
};
use crate::error::Result;
use crate::frozen::node::{Node, Position};
use crate::frozen::solve::Solver;
use crate::frozen::thaw::Thaw;
use crate::frozen::types::{Item, list_shape};
use crate::frozen::value::{Value, frozen_struct};
use crate::frozen::write::Output;

frozen_struct!(Metadata {
    1 chunks: Vec<Chunk>,
    2 directories: Vec<Directory>,
    3 inodes: Inodes,
    4 chunk_table: Vec<u32>,
    5 entry_table_v2_2: Vec<u32>,
    6 symlink_table: Vec<u32>,
    7 uids: Vec<u32>,
    8 gids: Vec<u32>,
    9 modes: Vec<u32>,
    10 names: Vec<Vec<u8>>,
    11 symlinks: Vec<Vec<u8>>,
    12 timestamp_base: u64,
    13 chunk_inode_offset: u32,
    14 link_inode_offset: u32,
    15 block_size: u32,
    16 total_fs_size: u64,
    17 devices: Option<Vec<u64>>,
    18 options: Option<FsOptions>,
    19 dir_entries: Option<Vec<DirEntry>>,
    20 shared_files_table: Option<Vec<u32>>,
    21 total_hardlink_size: Option<u64>,
    22 dwarfs_version: Option<Vec<u8>>,
    23 create_timestamp: Option<u64>,
    24 compact_names: Option<StringTable>,
    25 compact_symlinks: Option<StringTable>,
    26 preferred_path_separator: Option<u32>,
    27 features: Option<BTreeSet<Vec<u8>>>,
    28 category_names: Option<Vec<Vec<u8>>>,
    29 block_categories: Option<Vec<u32>>,
    30 reg_file_size_cache: Option<InodeSizeCache>,
    31 category_metadata_json: Option<Vec<Vec<u8>>>,
    32 block_category_metadata: Option<BTreeMap<u32, u32>>,
    33 metadata_version_history: Option<Vec<MetadataHistoryEntry>>,
    34 hole_block_index: Option<u32>,
    35 large_hole_size: Option<Vec<u64>>,
    36 total_allocated_fs_size: Option<u64>,
});

frozen_struct!(Chunk [legacy_align = 4] {
    1 block: u32,
    2 offset: u32,
    3 size: u32,
});

frozen_struct!(Directory [legacy_align = 4] {
    1 parent_entry: u32,
    2 first_entry: u32,
    3 self_entry: u32,
});

frozen_struct!(InodeData [legacy_align = 8] {
    1 name_index_v2_2: u32,
    2 mode_index: u32,
    3 inode_v2_2: u32,
    4 owner_index: u32,
    5 group_index: u32,
    6 atime_offset: u64,
    7 mtime_offset: u64,
    8 ctime_offset: u64,
    9 btime_offset: u64,
    10 atime_subsec: u64,
    11 mtime_subsec: u64,
    12 ctime_subsec: u64,
    13 btime_subsec: u64,
    14 nlink_minus_one: u32,
});

frozen_struct!(DirEntry {
    1 name_index: u32,
    2 inode_num: u32,
});

frozen_struct!(FsOptions {
    1 mtime_only: bool,
    2 time_resolution_sec: Option<u32>,
    3 packed_chunk_table: bool,
    4 packed_directories: bool,
    5 packed_shared_files_table: bool,
    6 subsecond_resolution_nsec_multiplier: Option<u32>,
    7 has_btime: bool,
    8 inodes_have_nlink: bool,
});

frozen_struct!(StringTable {
    1 buffer: Vec<u8>,
    2 symtab: Option<Vec<u8>>,
    3 index: Vec<u32>,
    4 packed_index: bool,
});

frozen_struct!(InodeSizeCache {
    1 size_lookup: BTreeMap<u32, u64>,
    2 min_chunk_count: u64,
    3 allocated_size_lookup: BTreeMap<u32, u64>,
});

frozen_struct!(MetadataHistoryEntry {
    1 major: u8,
    2 minor: u8,
    3 dwarfs_version: Option<Vec<u8>>,
    4 block_size: u32,
    5 options: Option<FsOptions>,
});

/// As a list of [`InodeData`].
impl Value for Inodes {
    const FLAT: bool = false;

    fn shape() -> Node {
        list_shape::<InodeData>()
    }

    fn measure(&self, node: &mut Node, solver: &mut Solver, start: u64) -> u32 {
        let align = solver.list_align::<InodeData>();
        solver.list::<InodeData>(node, self.iter(), align, start)
    }

    fn write(&self, node: &Node, out: &mut Output, at: Position) {
        let align = out.list_align::<InodeData>();
        out.list::<InodeData>(node, at, self.iter(), align);
    }

    fn thaw(node: &Node, thaw: &mut Thaw<'_>, at: Position) -> Result<Self> {
        thaw.collect::<InodeData, Self>(node, at)
    }
}

impl Item for Chunk {}
impl Item for Directory {}
impl Item for DirEntry {}
impl Item for MetadataHistoryEntry {}
