//! The metadata in place: where every table is, found once at open; nothing is unpacked.
//!
//! [`Tables::resolve`] takes time in the number of fields of the schema, not in the size of the metadata. What it
//! copies are the few texts that describe an image (creator, features, categories), up to the ceilings of
//! [`crate::limits`]. All else are [`Column`]s and views, which lie inside the data, whatever bytes it holds.
//! Whether indices fit the tables that they point into is the reader's to check.
//!
//! Values are as stored: packed tables are packed, see [`FsOptions`].
//! Source: docs/format.md, "Metadata structures".

mod columns;
mod map;
mod strings;
mod texts;

use std::collections::BTreeSet;

pub use columns::{ChunkColumns, DirEntryColumns, DirectoryColumns, InodeColumns};
pub use map::{MapView, SizeCacheView};
pub use strings::StringsView;

use super::model::{FsOptions, MetadataHistoryEntry};
use crate::Result;
use crate::frozen::schema::Schema;
use crate::frozen::view::{Column, Object};
use crate::limits::{NAME_BYTES_MAX, TARGET_BYTES_MAX};

/// All tables of one image. The fields have the names and meanings of those of [`Metadata`](super::model::Metadata).
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// All chunks of all regular files, grouped by content.
    pub chunks: ChunkColumns,
    /// One element a directory inode, and one that ends the list.
    pub directories: DirectoryColumns,
    /// From 2.3 on one element an inode; up to 2.2 one element a directory entry.
    pub inodes: InodeColumns,
    /// For each content the index of its first chunk, and one element that ends the list; differences if packed.
    pub chunk_table: Column,
    /// Up to 2.2: for each inode the index of its element in `inodes`. Empty since.
    pub entry_table_v2_2: Column,
    /// For each symbolic link inode the index of its target.
    pub symlink_table: Column,
    /// The distinct user ids, for `owner_index`.
    pub uids: Column,
    /// The distinct group ids, for `group_index`.
    pub gids: Column,
    /// The distinct `st_mode` values, file type included, for `mode_index`.
    pub modes: Column,
    /// The names of directory entries, from `names` or `compact_names`.
    pub names: StringsView,
    /// The targets of symbolic links, from `symlinks` or `compact_symlinks`.
    pub symlinks: StringsView,
    /// What all times count from, in units of the time resolution.
    pub timestamp_base: u64,
    /// The largest uncompressed size of a block in bytes.
    pub block_size: u32,
    /// The sum of the sizes of all regular files and symbolic link targets in bytes.
    pub total_fs_size: u64,
    /// `rdev` of each device inode.
    pub devices: Option<Column>,
    /// How the tables and times are stored.
    pub options: Option<FsOptions>,
    /// All directory entries, grouped by directory; unset up to 2.2.
    pub dir_entries: Option<DirEntryColumns>,
    /// For each shared file inode its content, counted from the first shared content; run lengths if packed.
    pub shared_files_table: Option<Column>,
    /// What further hard links would have added to `total_fs_size`, in bytes.
    pub total_hardlink_size: Option<u64>,
    /// The program that made the image.
    pub dwarfs_version: Option<String>,
    /// When the image was made, in seconds since 1970.
    pub create_timestamp: Option<u64>,
    /// The character that separates path components in symbolic link targets.
    pub preferred_path_separator: Option<u32>,
    /// What a reader must know to understand the image.
    pub features: Option<BTreeSet<String>>,
    /// The names of block categories.
    pub category_names: Option<Vec<String>>,
    /// For each block the index of its category's name.
    pub block_categories: Option<Column>,
    /// The sizes of files of many chunks.
    pub size_cache: Option<SizeCacheView>,
    /// Distinct JSON objects that tell more about blocks.
    pub category_metadata_json: Option<Vec<String>>,
    /// For blocks that have it the index of their JSON object.
    pub block_category_metadata: Option<MapView>,
    /// What earlier versions of this metadata looked like, oldest first.
    pub metadata_version_history: Option<Vec<MetadataHistoryEntry>>,
    /// The block number that marks a chunk as a hole.
    pub hole_block_index: Option<u32>,
    /// The sizes in bytes of holes that do not fit a chunk.
    pub large_hole_size: Option<Column>,
    /// As `total_fs_size` without holes; only set if different.
    pub total_allocated_fs_size: Option<u64>,
}

impl Tables {
    /// Finds all tables in `data`, the payload of the section of type `METADATA_V2` after decompression.
    ///
    /// The same `data` is to be given to every view later.
    ///
    /// # Errors
    /// `Corrupt` if a table lies outside the data or an integer is wider than its type, `Limit` if a text is above
    /// the ceilings of [`crate::limits`]; the message begins with the names of the field and of what is inside it.
    pub fn resolve(schema: &Schema, data: &[u8]) -> Result<Self> {
        Object::root(schema, data)
            .and_then(|root| resolve(root, data))
            .map_err(|error| error.context("metadata"))
    }
}

fn resolve(root: Object<'_>, data: &[u8]) -> Result<Tables> {
    let column = |id, name: &str| root.read(id, name, u32_column);
    let optional_u32 = |id, name: &str| root.read(id, name, |o| o.optional_with(|o| o.u32()));
    let optional_u64 = |id, name: &str| root.read(id, name, |o| o.optional_with(|o| o.u64()));
    let optional_column = |id, name: &str| root.read(id, name, |o| o.optional_with(u32_column));
    let optional_u64_column = |id, name: &str| {
        root.read(id, name, |o| {
            o.optional_with(|o| o.list()?.column(u64::BITS))
        })
    };
    let texts = |id, name: &str| {
        root.read(id, name, |o| {
            o.optional_with(|o| texts::list(o.list()?, data))
        })
    };

    Ok(Tables {
        chunks: root.read(1, "chunks", ChunkColumns::resolve)?,
        directories: root.read(2, "directories", DirectoryColumns::resolve)?,
        inodes: root.read(3, "inodes", InodeColumns::resolve)?,
        chunk_table: column(4, "chunk_table")?,
        entry_table_v2_2: column(5, "entry_table_v2_2")?,
        symlink_table: column(6, "symlink_table")?,
        uids: column(7, "uids")?,
        gids: column(8, "gids")?,
        modes: column(9, "modes")?,
        names: StringsView::resolve(
            data,
            (root.field(10), "names"),
            (root.field(24), "compact_names"),
            NAME_BYTES_MAX,
        )?,
        symlinks: StringsView::resolve(
            data,
            (root.field(11), "symlinks"),
            (root.field(25), "compact_symlinks"),
            TARGET_BYTES_MAX,
        )?,
        timestamp_base: root.read(12, "timestamp_base", |o| o.u64())?,
        block_size: root.read(15, "block_size", |o| o.u32())?,
        total_fs_size: root.read(16, "total_fs_size", |o| o.u64())?,
        devices: optional_u64_column(17, "devices")?,
        options: root.read(18, "options", |o| o.optional_with(fs_options))?,
        dir_entries: root.read(19, "dir_entries", |o| {
            o.optional_with(DirEntryColumns::resolve)
        })?,
        shared_files_table: optional_column(20, "shared_files_table")?,
        total_hardlink_size: optional_u64(21, "total_hardlink_size")?,
        dwarfs_version: root.read(22, "dwarfs_version", |o| {
            o.optional_with(|o| texts::one(o, data))
        })?,
        create_timestamp: optional_u64(23, "create_timestamp")?,
        preferred_path_separator: optional_u32(26, "preferred_path_separator")?,
        features: texts(27, "features")?.map(|texts| texts.into_iter().collect()),
        category_names: texts(28, "category_names")?,
        block_categories: optional_column(29, "block_categories")?,
        size_cache: root.read(30, "reg_file_size_cache", |o| {
            o.optional_with(SizeCacheView::resolve)
        })?,
        category_metadata_json: texts(31, "category_metadata_json")?,
        block_category_metadata: root.read(32, "block_category_metadata", |o| {
            o.optional_with(|o| MapView::resolve(o, u32::BITS))
        })?,
        metadata_version_history: root.read(33, "metadata_version_history", |o| {
            o.optional_with(|o| version_history(o, data))
        })?,
        hole_block_index: optional_u32(34, "hole_block_index")?,
        large_hole_size: optional_u64_column(35, "large_hole_size")?,
        total_allocated_fs_size: optional_u64(36, "total_allocated_fs_size")?,
    })
}

fn u32_column(object: Object<'_>) -> Result<Column> {
    object.list()?.column(u32::BITS)
}

fn fs_options(object: Object<'_>) -> Result<FsOptions> {
    let flag = |id, name: &str| object.read(id, name, |o| o.bool());
    let number = |id, name: &str| object.read(id, name, |o| o.optional_with(|o| o.u32()));
    Ok(FsOptions {
        mtime_only: flag(1, "mtime_only")?,
        time_resolution_sec: number(2, "time_resolution_sec")?,
        packed_chunk_table: flag(3, "packed_chunk_table")?,
        packed_directories: flag(4, "packed_directories")?,
        packed_shared_files_table: flag(5, "packed_shared_files_table")?,
        subsecond_resolution_nsec_multiplier: number(6, "subsecond_resolution_nsec_multiplier")?,
        has_btime: flag(7, "has_btime")?,
        inodes_have_nlink: flag(8, "inodes_have_nlink")?,
    })
}

fn version_history(object: Object<'_>, data: &[u8]) -> Result<Vec<MetadataHistoryEntry>> {
    let list = object.list()?;
    texts::check_count(list.len())?;
    let mut bytes_left = texts::Budget::default();
    list.items()
        .map(|item| {
            Ok(MetadataHistoryEntry {
                major: item.read(1, "major", small)?,
                minor: item.read(2, "minor", small)?,
                dwarfs_version: item.read(3, "dwarfs_version", |o| {
                    o.optional_with(|o| bytes_left.take(o.string()?, data))
                })?,
                block_size: item.read(4, "block_size", |o| o.u32())?,
                options: item.read(5, "options", |o| o.optional_with(fs_options))?,
            })
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "read from at most 8 bits")]
fn small(object: Object<'_>) -> Result<u8> {
    object.uint(u8::BITS).map(|value| value as u8)
}
