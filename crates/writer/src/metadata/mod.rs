//! Describing the image: from the tree, the files and their chunks to the metadata of the format.
//!
//! In: everything the earlier stages have found. Out: the format's own structure, ready to be frozen.
//! Inodes are numbered by kind: directories in pre-order, symbolic links, regular files with a content of their own,
//! regular files that share one, devices, fifos and sockets; within each in the order of entries.
//! One thread; memory some 200 bytes for each inode.
//!
//! Source: format specification, chapters 6, 7 and 11.

mod categories;
mod contents;
mod inodes;

use std::collections::BTreeSet;

use durin_format::limits::{NAME_BYTES_MAX, TARGET_BYTES_MAX};
use durin_format::metadata::{DirEntry, Directory, FsOptions, InodeSizeCache, Metadata};
use durin_format::{Error, Result};

use crate::category::Categories;
use crate::context::Context;
use crate::dedupe::Contents;
use crate::files::Files;
use crate::options::BuildOptions;
use crate::segment::Chunks;
use crate::tables::{
    CREATOR, PATH_SEPARATOR, SIZE_CACHE_CHUNKS_MIN, SPARSE_FEATURE, StoredStrings, distinct, pack,
    to_differences,
};
use crate::tree::{Detail, Tree, count_of};
use contents::ContentTable;
use inodes::InodeTable;

/// What the metadata describe.
pub(crate) struct Described<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) tree: &'a Tree,
    pub(crate) files: &'a Files,
    pub(crate) contents: &'a Contents,
    pub(crate) chunks: &'a Chunks,
    pub(crate) categories: &'a Categories,
    pub(crate) block_count: u32,
}

impl Described<'_> {
    /// Builds the metadata.
    ///
    /// # Errors
    /// `Limit` if strings or chunks do not fit; `Cancelled`.
    pub(crate) fn build(&self) -> Result<Metadata> {
        let options = self.context.options;
        let table = ContentTable::new(self);
        self.context.check_cancelled()?;
        let stored = table.chunks(self)?;
        self.context.check_cancelled()?;
        let inodes = InodeTable::new(self, &table);
        self.context.check_cancelled()?;
        let names = self.names()?;
        self.context.check_cancelled()?;
        let targets = self.targets()?;

        let has_holes = stored.large_holes.is_some();
        let mut features = BTreeSet::new();
        if has_holes {
            features.insert(SPARSE_FEATURE.to_vec());
        }
        let targets_len = inodes.target_bytes;
        let total = |files: u64| targets_len + files;
        let mut metadata = Metadata {
            chunks: stored.chunks,
            chunk_table: stored.chunk_table,
            directories: self.directories(),
            dir_entries: Some(self.dir_entries(&inodes, &names.places)),
            symlink_table: targets.places,
            timestamp_base: inodes.timestamp_base,
            inodes: inodes.list,
            uids: inodes.uids,
            gids: inodes.gids,
            modes: inodes.modes,
            devices: Some(inodes.devices),
            block_size: self.context.block_size(),
            total_fs_size: total(table.total_size),
            total_allocated_fs_size: has_holes.then(|| total(table.total_allocated)),
            total_hardlink_size: (table.total_hardlink_size > 0)
                .then_some(table.total_hardlink_size),
            options: Some(fs_options(options)),
            shared_files_table: Some(table.shared_files(options.pack.shared_files)),
            dwarfs_version: Some(CREATOR.as_bytes().to_vec()),
            create_timestamp: options.create_timestamp,
            preferred_path_separator: Some(PATH_SEPARATOR),
            features: Some(features),
            reg_file_size_cache: Some(InodeSizeCache {
                min_chunk_count: SIZE_CACHE_CHUNKS_MIN,
                size_lookup: stored.sizes,
                allocated_size_lookup: stored.allocated_sizes,
            }),
            hole_block_index: has_holes.then_some(self.block_count),
            large_hole_size: stored.large_holes,
            ..Metadata::default()
        };
        names
            .strings
            .store(&mut metadata.names, &mut metadata.compact_names);
        targets
            .strings
            .store(&mut metadata.symlinks, &mut metadata.compact_symlinks);
        if options.category_names {
            categories::describe(self, &mut metadata);
        }
        if options.pack.chunk_table {
            to_differences(metadata.chunk_table.iter_mut());
        }
        Ok(metadata)
    }

    fn directories(&self) -> Vec<Directory> {
        let tree = self.tree;
        let mut directories: Vec<Directory> = (0..count_of(tree.dirs.len()))
            .map(|number| Directory {
                parent_entry: tree.dir(tree.parent(number)).self_entry,
                first_entry: tree.dir(number).first_entry,
                self_entry: tree.dir(number).self_entry,
            })
            .collect();
        directories.push(Directory {
            first_entry: count_of(tree.entries.len()),
            ..Directory::default()
        });
        if self.context.options.pack.directories {
            for directory in &mut directories {
                directory.parent_entry = 0;
                directory.self_entry = 0;
            }
            to_differences(
                directories
                    .iter_mut()
                    .map(|directory| &mut directory.first_entry),
            );
        }
        directories
    }

    fn dir_entries(&self, inodes: &InodeTable, name_places: &[u32]) -> Vec<DirEntry> {
        name_places
            .iter()
            .zip(&inodes.of_entry)
            .map(|(name_index, inode_num)| DirEntry {
                name_index: *name_index,
                inode_num: *inode_num,
            })
            .collect()
    }

    fn names(&self) -> Result<StoredStrings> {
        let options = &self.context.options.pack;
        let names = self.tree.entries.iter().map(|entry| self.tree.name(entry));
        // The root has no name; its place is never looked at.
        let mut names = distinct(names.skip(1));
        names.places.insert(0, 0);
        pack(
            names,
            options,
            NAME_BYTES_MAX,
            options.names,
            options.names_index,
        )
        .map_err(|error: Error| error.context("file names"))
    }

    fn targets(&self) -> Result<StoredStrings> {
        let options = &self.context.options.pack;
        let targets = self
            .tree
            .entries
            .iter()
            .filter_map(|entry| match entry.detail {
                Detail::Symlink { offset, len } => Some(self.tree.target(offset, len)),
                _ => None,
            });
        pack(
            distinct(targets),
            options,
            TARGET_BYTES_MAX,
            options.symlinks,
            options.symlinks_index,
        )
        .map_err(|error: Error| error.context("targets of symbolic links"))
    }
}

fn fs_options(options: &BuildOptions) -> FsOptions {
    let unit = options.time_resolution;
    FsOptions {
        mtime_only: !options.keep_all_times,
        time_resolution_sec: (unit.seconds() > 1).then_some(unit.seconds()),
        packed_chunk_table: options.pack.chunk_table,
        packed_directories: options.pack.directories,
        packed_shared_files_table: options.pack.shared_files,
        subsecond_resolution_nsec_multiplier: unit.subsec_multiplier(),
        has_btime: false,
        inodes_have_nlink: options.hardlink_table,
    }
}
