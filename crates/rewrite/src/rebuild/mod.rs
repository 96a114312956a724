//! Describing the tree of an image anew, in the layout of today.
//!
//! What a reader says of the old image is described as a build would: so every old layout, packed or not, becomes the
//! same new one. Inodes keep their numbers from format 2.3 on. Before, names of equal files shared an inode; each gets
//! one of its own, and they share the content (format specification, chapter 9).
//! One thread; memory some 160 bytes for each entry and 24 for each chunk.

mod attributes;
mod contents;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};

use durin_format::events::Events;
use durin_format::limits::{NAME_BYTES_MAX, TARGET_BYTES_MAX};
use durin_format::metadata::{
    Directory, FsOptions, InodeSizeCache, Metadata, MetadataHistoryEntry,
};
use durin_format::{Error, Result};
use durin_reader::Image;
use durin_writer::TimeResolution;
use durin_writer::tables::{
    CREATOR, PATH_SEPARATOR, SIZE_CACHE_CHUNKS_MIN, SPARSE_FEATURE, StoredStrings, distinct, pack,
    to_differences,
};

use crate::cut::Cut;
use crate::options::RebuildOptions;
use crate::plan::Plan;
use crate::remap::Remap;
use attributes::Attributes;
use contents::Contents;
use nodes::{Nodes, Strings};

/// Earlier versions of the metadata that are remembered.
const VERSIONS_MAX: usize = 1000;

/// What the new image is like.
pub(crate) struct Target {
    pub(crate) block_count: u32,
    pub(crate) block_size_bits: u32,
    /// Where data are, if they were cut anew.
    pub(crate) remap: Option<Remap>,
    /// The most bytes that chunks may take.
    pub(crate) chunk_bytes_max: u64,
}

/// Checks that the options go with the image, and warns of what they lose.
///
/// # Errors
/// `InvalidInput` for a unit of times that is no multiple of the image's.
pub(crate) fn validate(image: &Image, options: &RebuildOptions, events: &dyn Events) -> Result<()> {
    resolution(image, options)?;
    let (tables, _) = image.tables();
    let mtime_only = tables.options.is_some_and(|options| options.mtime_only);
    if !mtime_only && !options.keep_all_times && options.set_time.is_none() {
        events.warn("times of access and change are left out; they are kept when asked for");
    }
    if mtime_only && options.keep_all_times && options.set_time.is_none() {
        events.info("the image has times of modification only");
    }
    Ok(())
}

/// Describes the image that `plan` and `cut` have made of the old one.
///
/// # Errors
/// `Corrupt` if a value of the old image cannot be; `Limit` if something does not fit.
pub(crate) fn metadata(
    image: &Image,
    plan: &Plan,
    cut: &Cut,
    options: &RebuildOptions,
    target: &Target,
) -> Result<Metadata> {
    let nodes = Nodes::of(image)?;
    let contents = Contents::of(image, &nodes, target)?;
    let attributes = Attributes::of(image, &nodes, options, resolution(image, options)?)?;
    let names = strings(&nodes.names, options, Which::Names)?;
    let targets = strings(&nodes.targets, options, Which::Targets)?;
    let (tables, _) = image.tables();
    let has_holes = contents.large_holes.is_some();
    let target_bytes = nodes.targets.len_bytes();
    let total = |files: u64| target_bytes.saturating_add(files);
    let mut metadata = Metadata {
        chunks: contents.chunks,
        chunk_table: contents.chunk_table,
        directories: directories(&nodes, options),
        symlink_table: targets.places,
        inodes: attributes.inodes,
        uids: attributes.uids,
        gids: attributes.gids,
        modes: attributes.modes,
        devices: Some(attributes.devices),
        timestamp_base: attributes.timestamp_base,
        block_size: 1 << target.block_size_bits,
        total_fs_size: total(contents.total_size),
        total_allocated_fs_size: has_holes.then(|| total(contents.total_allocated)),
        total_hardlink_size: (contents.total_hardlink_size > 0)
            .then_some(contents.total_hardlink_size),
        options: Some(attributes.options),
        shared_files_table: Some(contents.shared_files.table(options.pack.shared_files)),
        dwarfs_version: Some(CREATOR.as_bytes().to_vec()),
        create_timestamp: options.create_timestamp,
        preferred_path_separator: tables.preferred_path_separator.or(Some(PATH_SEPARATOR)),
        features: Some(features(has_holes)),
        reg_file_size_cache: Some(InodeSizeCache {
            min_chunk_count: SIZE_CACHE_CHUNKS_MIN,
            size_lookup: contents.sizes,
            allocated_size_lookup: contents.allocated_sizes,
        }),
        hole_block_index: has_holes.then_some(target.block_count),
        large_hole_size: contents.large_holes,
        metadata_version_history: options.version_history.then(|| version_history(image)),
        ..Metadata::default()
    };
    let mut name_places = names.places;
    // The root has no name; its place is never looked at.
    name_places.insert(0, 0);
    metadata.dir_entries = Some(nodes.dir_entries(&name_places));
    let (plain, compact) = (&mut metadata.names, &mut metadata.compact_names);
    names.strings.store(plain, compact);
    let (plain, compact) = (&mut metadata.symlinks, &mut metadata.compact_symlinks);
    targets.strings.store(plain, compact);
    if options.category_names {
        describe_categories(image, plan, cut, options, &mut metadata);
    }
    if options.pack.chunk_table {
        to_differences(metadata.chunk_table.iter_mut());
    }
    Ok(metadata)
}

fn features(has_holes: bool) -> BTreeSet<Vec<u8>> {
    let sparse = has_holes.then(|| SPARSE_FEATURE.to_vec());
    sparse.into_iter().collect()
}

/// The unit of times of the new image.
fn resolution(image: &Image, options: &RebuildOptions) -> Result<TimeResolution> {
    let (tables, _) = image.tables();
    let old = tables.options.unwrap_or_default();
    let multiplier = old.subsecond_resolution_nsec_multiplier.unwrap_or(0);
    let old_ns = if multiplier > 0 {
        u64::from(multiplier)
    } else {
        u64::from(old.time_resolution_sec.unwrap_or(1)) * 1_000_000_000
    };
    match options.time_resolution {
        None => TimeResolution::from_ns(old_ns),
        Some(new) if new.ns().is_multiple_of(old_ns) || options.set_time.is_some() => Ok(new),
        Some(new) => Err(Error::invalid_input(format!(
            "time resolution of {} ns: it must be a multiple of the {old_ns} ns of the image",
            new.ns()
        ))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Names,
    Targets,
}

fn strings(strings: &Strings, options: &RebuildOptions, which: Which) -> Result<StoredStrings> {
    let how = &options.pack;
    let (len_max, compress, packed_index, what) = match which {
        Which::Names => (NAME_BYTES_MAX, how.names, how.names_index, "file names"),
        Which::Targets => (
            TARGET_BYTES_MAX,
            how.symlinks,
            how.symlinks_index,
            "targets of symbolic links",
        ),
    };
    let strings = distinct(strings.iter());
    pack(strings, how, len_max, compress, packed_index).map_err(|error: Error| error.context(what))
}

fn directories(nodes: &Nodes, options: &RebuildOptions) -> Vec<Directory> {
    let mut directories = nodes.directories();
    if options.pack.directories {
        for directory in &mut directories {
            directory.parent_entry = 0;
            directory.self_entry = 0;
        }
        let first_entries = directories.iter_mut();
        to_differences(first_entries.map(|directory| &mut directory.first_entry));
    }
    directories
}

/// What the metadata were like, and before that.
fn version_history(image: &Image) -> Vec<MetadataHistoryEntry> {
    let (tables, _) = image.tables();
    let mut history = tables.metadata_version_history.clone().unwrap_or_default();
    let creator = tables.dwarfs_version.as_ref();
    history.push(MetadataHistoryEntry {
        major: image.version().major,
        minor: image.version().minor,
        dwarfs_version: creator.map(|creator| creator.as_bytes().to_vec()),
        block_size: image.block_size(),
        options: tables.options,
    });
    // Readers bound how much they take; what is oldest goes first.
    history.drain(..history.len().saturating_sub(VERSIONS_MAX));
    history
}

/// Says of each new block what the old image said of the data in it.
fn describe_categories(
    image: &Image,
    plan: &Plan,
    cut: &Cut,
    options: &RebuildOptions,
    metadata: &mut Metadata,
) {
    let (tables, _) = image.tables();
    let bytes = |texts: &Vec<String>| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    metadata.category_names = tables.category_names.as_ref().map(bytes);
    let blocks = || cut.streams.iter().map(|stream| plan.streams.get(*stream));
    if tables.block_categories.is_some() {
        let categories = blocks().map(|stream| stream.and_then(|stream| stream.category));
        metadata.block_categories = Some(categories.map(Option::unwrap_or_default).collect());
    }
    if !options.category_metadata {
        return;
    }
    metadata.category_metadata_json = tables.category_metadata_json.as_ref().map(bytes);
    if tables.block_category_metadata.is_some() {
        let objects = blocks().map(|stream| stream.and_then(|stream| stream.metadata));
        let pairs = (0..).zip(objects);
        let pairs = pairs.filter_map(|(block, object)| Some((block, object?)));
        metadata.block_category_metadata = Some(pairs.collect::<BTreeMap<u32, u32>>());
    }
}

/// How the new tables are stored, apart from times.
fn fs_options(options: &RebuildOptions, resolution: TimeResolution, mtime_only: bool) -> FsOptions {
    FsOptions {
        mtime_only,
        time_resolution_sec: (resolution.seconds() > 1).then_some(resolution.seconds()),
        packed_chunk_table: options.pack.chunk_table,
        packed_directories: options.pack.directories,
        packed_shared_files_table: options.pack.shared_files,
        subsecond_resolution_nsec_multiplier: resolution.subsec_multiplier(),
        has_btime: false,
        inodes_have_nlink: options.hardlink_table,
    }
}
