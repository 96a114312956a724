//! From the command line to what the writer is asked to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durin_codec::Spec;
use durin_format::digest::Digest;
use durin_format::{Error, Result};
use durin_reader::{Image, ImageOptions};
use durin_source::MemorySource;
use durin_writer::filter::Filter;
use durin_writer::level::LevelDefaults;
use durin_writer::mode::ChmodRule;
use durin_writer::{
    BuildOptions, CategoryPresets, Input, Order, PackOptions, PerCategory, TimeResolution,
};

use super::options::{MemoryLimit, Options};
use super::{categorize, history, input_list, order};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::{arguments, clock, escape, system};

/// Everything that decides the image; `arguments` is the command line for the history.
pub(super) fn build_options(
    options: &Options,
    arguments: Vec<String>,
    logger: &Logger,
) -> std::result::Result<BuildOptions, Failure> {
    let mut level = LevelDefaults::of(usize::from(options.basic.compress_level))
        .ok_or_else(|| Failure::Usage("there is no such compression level".to_owned()))?;
    // Only for a limit that was asked for: what the machine has must not decide what an image looks like.
    if let MemoryLimit::Bytes(limit) = options.advanced.memory_limit {
        level.fit(limit)?;
    }
    let workers = options
        .advanced
        .num_workers
        .unwrap_or_else(arguments::processor_count);
    let compression = &options.compression;
    let segmenter = &options.segmenter;
    let metadata = &options.metadata;
    let content = &options.content;
    let level_number = usize::from(options.basic.compress_level);
    let categorize = categorize::options(&options.categorize, level_number)?;
    let mut specs = data_compression(&compression.compression, level.compression)?;
    let mut file_order = orders(&options.advanced.order, level.order())?;
    let mut window_size = numbers(
        "--window-size",
        &segmenter.window_size,
        level.window_size,
        24,
    )?;
    let presets = CategoryPresets {
        compression: &mut specs,
        order: &mut file_order,
        window_size: &mut window_size,
    };
    presets.apply(level_number)?;
    let seconds = clock::build_seconds().map_err(Failure::Usage)?;
    let asked_bits = options.advanced.block_size_bits;
    Ok(BuildOptions {
        input: input(options, logger)?,
        filter: filter(options)?,
        script: None,
        remove_empty_dirs: options.filter.remove_empty_dirs,
        exclude_ids: Vec::new(),
        block_size_bits: asked_bits.unwrap_or(level.block_size_bits),
        // Who says how large blocks are gets them.
        small_tree: level.small_tree.filter(|_| asked_bits.is_none()),
        mixed_block_size_bits: asked_bits.map_or_else(|| level.mixed_block_sizes(), Into::into),
        compression: specs,
        schema_compression: preset(&compression.schema_compression, level.schema_compression)?,
        metadata_compression: preset(
            &compression.metadata_compression,
            level.metadata_compression,
        )?,
        history_compression: preset(&compression.history_compression, level.history_compression)?,
        order: file_order,
        max_similarity_size: options.advanced.max_similarity_size,
        window_size,
        window_step: numbers(
            "--window-step",
            &segmenter.window_step,
            level.window_step,
            8,
        )?,
        max_lookback_blocks: numbers(
            "--max-lookback-blocks",
            &segmenter.max_lookback_blocks,
            u32::MAX,
            u32::MAX,
        )?,
        bloom_filter_size: numbers("--bloom-filter-size", &segmenter.bloom_filter_size, 4, 10)?,
        file_hash: file_hash(&options.advanced.file_hash)?,
        with_devices: content.with_devices,
        with_specials: content.with_specials,
        sparse_files: !content.no_sparse_files,
        hollow: content.hollow,
        set_owner: metadata.set_owner,
        set_group: metadata.set_group,
        set_time: metadata.set_time,
        keep_all_times: metadata.keep_all_times,
        time_resolution: TimeResolution::from_ns(metadata.time_resolution)?,
        chmod: chmod(&metadata.chmod)?,
        create_timestamp: (!metadata.no_create_timestamp).then_some(seconds),
        history: history::entry(content, arguments, seconds),
        section_index: !content.no_section_index,
        pack: PackOptions::parse(&metadata.pack_metadata)?,
        hardlink_table: !metadata.no_hardlink_table,
        categorize,
        category_names: !metadata.no_category_names,
        category_metadata: !metadata.no_category_metadata,
        header: match &content.header {
            Some(file) => header(file, logger)?,
            None => Vec::new(),
        },
        workers,
        scanner_workers: options
            .advanced
            .num_scanner_workers
            .unwrap_or(workers)
            .min(system::reading_threads_max()),
        compress_niceness: options.advanced.compress_niceness,
        memory_limit: match options.advanced.memory_limit {
            MemoryLimit::Auto => None,
            MemoryLimit::Bytes(bytes) => Some(bytes),
        },
    })
}

fn input(options: &Options, logger: &Logger) -> Result<Input> {
    let named = options.basic.input.as_deref();
    let root = named.map(canonical_directory).transpose()?;
    match (&options.basic.input_list, root) {
        (Some(list), root) => {
            let mut paths = input_list::read(list, logger)?;
            if let Some(named) = named {
                input_list::strip_input(&mut paths, named)?;
            }
            Ok(Input::List { root, paths })
        }
        (None, Some(root)) => Ok(Input::Directory(root)),
        // The parser requires one of the two.
        (None, None) => Err(Error::invalid_input("no input given")),
    }
}

/// Resolves symbolic links on the way to the input, and the input itself.
fn canonical_directory(path: &Path) -> Result<PathBuf> {
    let shown = escape::path(path);
    let resolved = fs::canonicalize(path)
        .map_err(|error| Error::io(format!("cannot use input '{shown}'"), error))?;
    if !resolved.is_dir() {
        return Err(Error::invalid_input(format!(
            "input '{shown}' is not a directory; an image is rewritten with --recompress, --rebuild-metadata or \
             --change-block-size, a list of paths is --input-list"
        )));
    }
    Ok(resolved)
}

/// The rules of `--filter`.
fn filter(options: &Options) -> Result<Filter> {
    Filter::parse(&options.filter.filter)
}

/// What is given, or what the level has.
pub(super) fn preset(given: &Option<Spec>, preset: &str) -> Result<Spec> {
    given.clone().map_or_else(|| Spec::parse(preset), Ok)
}

/// `--compression` over what the level has.
pub(super) fn data_compression(given: &[String], preset: &str) -> Result<PerCategory<Spec>> {
    let mut specs = PerCategory::new(Spec::parse(preset)?);
    specs.apply(given, Spec::parse)?;
    Ok(specs)
}

/// `--order` over what the level has.
fn orders(given: &[String], preset: Order) -> std::result::Result<PerCategory<Order>, Failure> {
    let mut orders = PerCategory::new(preset);
    orders.apply(given, order::parse)?;
    Ok(orders)
}

/// An option that takes a number up to `max`.
fn numbers(
    option: &str,
    given: &[String],
    preset: u32,
    max: u32,
) -> std::result::Result<PerCategory<u32>, Failure> {
    let mut numbers = PerCategory::new(preset);
    numbers.apply(given, |text| {
        let number = text.parse().ok().filter(|number| *number <= max);
        number.ok_or_else(|| {
            Failure::Usage(format!(
                "{option}: '{text}' is not a number from 0 to {max}"
            ))
        })
    })?;
    Ok(numbers)
}

fn file_hash(name: &str) -> std::result::Result<Option<Digest>, Failure> {
    if name == "none" {
        return Ok(None);
    }
    let digest =
        Digest::parse(name).map_err(|error| Failure::Usage(format!("--file-hash: {error}")))?;
    Ok(Some(digest))
}

pub(super) fn chmod(specs: &[String]) -> Result<Vec<ChmodRule>> {
    let umask = umask();
    let mut rules = Vec::new();
    for list in specs {
        rules.extend(ChmodRule::parse(list, umask)?);
    }
    Ok(rules)
}

/// The umask of this process, which applies to symbolic modes that name nobody.
fn umask() -> u32 {
    // There is no way to ask without setting; no other thread runs yet that could create a file in between.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.bits()
}

pub(super) fn header(path: &Path, logger: &Logger) -> Result<Vec<u8>> {
    let shown = escape::path(path);
    let header = fs::read(path)
        .map_err(|error| Error::io(format!("cannot read header '{shown}'"), error))?;
    let source = Arc::new(MemorySource::new(header.clone()));
    if Image::open(source, &ImageOptions::default()).is_ok() {
        let len = header.len();
        logger.warn(format!(
            "header '{shown}' holds an image, which programs find first: the new one begins at {len} (--image-offset)"
        ));
    }
    Ok(header)
}
