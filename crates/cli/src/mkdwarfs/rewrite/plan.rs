//! From the command line to what the rewriter is asked to do.

use clap::ArgMatches;
use clap::parser::ValueSource;
use durin_codec::Spec;
use durin_reader::Image;
use durin_rewrite::{CategoryChoice, Header, RebuildOptions, RewriteOptions};
use durin_writer::level::LevelDefaults;
use durin_writer::{CategoryPresets, Order, PackOptions, PerCategory, TimeResolution};

use super::super::options::{MemoryLimit, Options};
use super::super::plan::{chmod, data_compression, header, preset};
use super::super::{Mkdwarfs, history};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::program;
use crate::common::{arguments, clock, size};

/// Options that do something for every rewriting.
const ALWAYS: [&str; 31] = [
    "input",
    "output",
    "dry_run",
    "force",
    "compress_level",
    "num_workers",
    "compress_niceness",
    "memory_limit",
    "recompress",
    "recompress_categories",
    "rebuild_metadata",
    "change_block_size",
    "remove_header",
    "no_check",
    "compression",
    "schema_compression",
    "metadata_compression",
    "history_compression",
    "header",
    "no_section_index",
    "no_history",
    "no_history_timestamps",
    "no_history_command_line",
    "progress",
    "no_progress",
    "json",
    "log_level",
    "log_with_context",
    // What would have no effect does not disturb either.
    "num_scanner_workers",
    "num_segmenter_workers",
    "progress_workers",
];
/// Options that do something if the metadata are described anew.
const REBUILDING: [&str; 12] = [
    "set_owner",
    "set_group",
    "set_time",
    "keep_all_times",
    "time_resolution",
    "chmod",
    "pack_metadata",
    "no_create_timestamp",
    "no_hardlink_table",
    "no_category_names",
    "no_category_metadata",
    "no_metadata_version_history",
];

/// Everything that decides the new image.
pub(super) fn rewrite_options(
    options: &Options,
    matches: &ArgMatches,
    logger: &Logger,
) -> Result<RewriteOptions, Failure> {
    refuse(options, matches)?;
    warn_of_options_without_effect(options, matches, logger);
    let rewriting = &options.rewriting;
    let level_number = usize::from(options.basic.compress_level);
    let level = LevelDefaults::of(level_number)
        .ok_or_else(|| Failure::Usage("there is no such compression level".to_owned()))?;
    let compression = &options.compression;
    let seconds = clock::build_seconds().map_err(Failure::Usage)?;
    let content = &options.content;
    let recompress = rewriting.recompresses();
    let categories = rewriting.recompress_categories.as_deref();
    let categories = categories.map_or(Ok(CategoryChoice::All), CategoryChoice::parse)?;
    let block_size_bits = options.advanced.block_size_bits;
    let block_size_bits = block_size_bits.unwrap_or(level.block_size_bits);
    Ok(RewriteOptions {
        recompress,
        categories,
        rebuild: rewriting
            .rebuilds()
            .then(|| rebuild_options(options, matches, seconds))
            .transpose()?,
        block_size_bits: rewriting.change_block_size.then_some(block_size_bits),
        compression: block_compression(options, level_number)?,
        schema_compression: preset(&compression.schema_compression, level.schema_compression)?,
        metadata_compression: preset(
            &compression.metadata_compression,
            level.metadata_compression,
        )?,
        history_compression: preset(&compression.history_compression, level.history_compression)?,
        history: history::entry(content, history::arguments(matches), seconds),
        section_index: !content.no_section_index,
        header: match &content.header {
            _ if rewriting.remove_header => Header::Remove,
            Some(file) => Header::Replace(header(file, logger)?),
            None => Header::Keep,
        },
        check: !rewriting.no_check,
        workers: options
            .advanced
            .num_workers
            .unwrap_or_else(arguments::processor_count),
        compress_niceness: options.advanced.compress_niceness,
        memory_limit: match options.advanced.memory_limit {
            MemoryLimit::Auto => None,
            MemoryLimit::Bytes(bytes) => Some(bytes),
        },
    })
}

/// How blocks are compressed at a level.
fn block_compression(options: &Options, level: usize) -> Result<PerCategory<Spec>, Failure> {
    let row = LevelDefaults::of(level)
        .ok_or_else(|| Failure::Usage("there is no such compression level".to_owned()))?;
    let mut specs = data_compression(&options.compression.compression, row.compression)?;
    let presets = CategoryPresets {
        compression: &mut specs,
        order: &mut PerCategory::new(Order::Path),
        window_size: &mut PerCategory::new(0),
    };
    presets.apply(level)?;
    Ok(specs)
}

/// Has blocks compressed as at a lower level if the limit on memory that the user gave asks for that.
///
/// A build could make its blocks smaller; here they are what they are.
pub(super) fn fit(
    rewriting: RewriteOptions,
    options: &Options,
    image: &Image,
    logger: &Logger,
) -> Result<RewriteOptions, Failure> {
    /// Below it, levels take no less to speak of.
    const LEVEL_LEAST: usize = 2;
    let Some(limit) = rewriting.memory_limit else {
        return Ok(rewriting);
    };
    let mut fitting = rewriting;
    let mut least = durin_rewrite::least_memory(image, &fitting)?;
    let asked = usize::from(options.basic.compress_level);
    let is_free = fitting.recompress.blocks && options.compression.compression.is_empty();
    let mut level = asked;
    while least > limit && is_free && level > LEVEL_LEAST {
        level -= 1;
        fitting.compression = block_compression(options, level)?;
        least = durin_rewrite::least_memory(image, &fitting)?;
    }
    if least > limit {
        let with = match (fitting.recompress.blocks, is_free) {
            (false, _) => "",
            (true, true) => ", even with blocks compressed as at a low level",
            (true, false) => " with this --compression",
        };
        return Err(Failure::Usage(format!(
            "rewriting this image takes at least {} of memory{with}, more than the {} of --memory-limit",
            size::display(least),
            size::display(limit)
        )));
    }
    if level < asked {
        logger.warn(format!(
            "blocks are compressed as at level {level}: with blocks of {}, level {asked} takes more than the memory limit \
             of {}",
            size::display(image.block_size().into()),
            size::display(limit)
        ));
    }
    Ok(fitting)
}

fn rebuild_options(
    options: &Options,
    matches: &ArgMatches,
    seconds: u64,
) -> Result<RebuildOptions, Failure> {
    let metadata = &options.metadata;
    let resolution = is_given(matches, "time_resolution")
        .then(|| TimeResolution::from_ns(metadata.time_resolution))
        .transpose()?;
    Ok(RebuildOptions {
        set_owner: metadata.set_owner,
        set_group: metadata.set_group,
        set_time: metadata.set_time,
        keep_all_times: metadata.keep_all_times,
        time_resolution: resolution,
        chmod: chmod(&metadata.chmod)?,
        create_timestamp: (!metadata.no_create_timestamp).then_some(seconds),
        pack: PackOptions::parse(&metadata.pack_metadata)?,
        hardlink_table: !metadata.no_hardlink_table,
        category_names: !metadata.no_category_names,
        category_metadata: !metadata.no_category_metadata,
        version_history: !metadata.no_metadata_version_history,
    })
}

/// What has no meaning for an image as input.
fn refuse(options: &Options, matches: &ArgMatches) -> Result<(), Failure> {
    for (id, name) in [
        ("input_list", "--input-list"),
        ("debug_filter", "--debug-filter"),
        ("script", "--script"),
    ] {
        if is_given(matches, id) {
            return Err(Failure::Usage(format!(
                "{name} cannot be used when an image is rewritten"
            )));
        }
    }
    let recompresses = options.rewriting.recompresses();
    if options.rewriting.recompress_categories.is_some() && !recompresses.blocks {
        return Err(Failure::Usage(
            "--recompress-categories needs --recompress=all or --recompress=block".to_owned(),
        ));
    }
    Ok(())
}

fn warn_of_options_without_effect(options: &Options, matches: &ArgMatches, logger: &Logger) {
    let rewriting = &options.rewriting;
    let has_effect = |id: &str| {
        ALWAYS.contains(&id)
            || rewriting.rebuilds() && REBUILDING.contains(&id)
            || rewriting.change_block_size && id == "block_size_bits"
    };
    let command = program::command::<Mkdwarfs>();
    let names: Vec<String> = command
        .get_arguments()
        .filter(|argument| {
            let id = argument.get_id().as_str();
            is_given(matches, id) && !has_effect(id)
        })
        .filter_map(|argument| argument.get_long().map(|name| format!("--{name}")))
        .collect();
    if !names.is_empty() {
        logger.warn(format!(
            "without effect on this rewriting: {}",
            names.join(", ")
        ));
    }
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_options() {
        let command = program::command::<Mkdwarfs>();
        for id in ALWAYS.iter().chain(&REBUILDING) {
            assert!(
                command
                    .get_arguments()
                    .any(|argument| argument.get_id() == id),
                "{id}"
            );
        }
    }
}
