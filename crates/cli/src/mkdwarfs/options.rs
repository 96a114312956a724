//! The command line of mkdwarfs: one definition for the parser, the help and the manual page.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, ValueEnum};
use durin_codec::Spec;
use durin_writer::level::LEVEL_DEFAULT;

use super::rewrite::Rewriting;
use crate::common::arguments::{HelpArguments, LogArguments, byte_size, number, worker_count};
use crate::common::duration;
use crate::common::owner;
use crate::common::progress;
use crate::common::timepoint;

/// Pack a directory tree into a compressed read-only DwarFS image.
#[derive(Parser, Debug)]
#[command(
    override_usage = "mkdwarfs -i DIR -o IMAGE [OPTIONS]\n       mkdwarfs --input-list FILE [-i DIR] -o IMAGE [OPTIONS]\n       mkdwarfs -i IMAGE -o IMAGE --recompress [OPTIONS]",
    after_help = "Run with --long-help for all options, the levels and the compression algorithms.\n\
                  Exit status: 0 image complete; 1 no image; 2 image written, but some files could not be read."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) basic: Basic,
    #[command(flatten)]
    pub(crate) advanced: Advanced,
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) categorize: Categorize,
    #[command(flatten)]
    pub(crate) segmenter: Segmenter,
    #[command(flatten)]
    pub(crate) compression: Compression,
    #[command(flatten)]
    pub(crate) content: Content,
    #[command(flatten)]
    pub(crate) metadata: Metadata,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) help: HelpArguments,

    /// Show all options, the levels and the compression algorithms
    #[arg(short = 'H', long, action = ArgAction::HelpLong, help_heading = "Help")]
    long_help: Option<bool>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Basic options")]
pub(crate) struct Basic {
    /// Directory to pack, or image to rewrite
    #[arg(
        short,
        long,
        value_name = "DIR",
        required_unless_present = "input_list"
    )]
    pub(crate) input: Option<PathBuf>,

    /// File with the paths to pack, one a line; '-' is standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "filter",
        hide_short_help = true
    )]
    pub(crate) input_list: Option<PathBuf>,

    /// Image to write; '-' is standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present_any = ["debug_filter", "dry_run"]
    )]
    pub(crate) output: Option<PathBuf>,

    /// Estimate size, CPU time and memory, and write nothing
    ///
    /// Scans, deduplicates, orders and segments as a build does, but compresses only a sample of the blocks.
    /// --json says more.
    #[arg(long, conflicts_with = "debug_filter")]
    pub(crate) dry_run: bool,

    /// Replace an existing image
    #[arg(short, long)]
    pub(crate) force: bool,

    /// From fast (0) to small (9)
    #[arg(short = 'l', long, value_name = "LEVEL", default_value_t = LEVEL_DEFAULT, value_parser = number::<u8>(0..=9))]
    pub(crate) compress_level: u8,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Advanced options")]
pub(crate) struct Advanced {
    /// Blocks of 2^N bytes, 10 to 30 [default: by level]
    #[arg(short = 'S', long, value_name = "N", value_parser = number::<u32>(10..=30))]
    pub(crate) block_size_bits: Option<u32>,

    /// Compression threads [default: number of processors]
    #[arg(short = 'N', long, value_name = "N", value_parser = worker_count)]
    pub(crate) num_workers: Option<usize>,

    /// Threads that read and hash files [default: as --num-workers]
    #[arg(long, value_name = "N", value_parser = worker_count, hide_short_help = true)]
    pub(crate) num_scanner_workers: Option<usize>,

    /// Accepted for compatibility: one thread segments all categories, and those that read search for it
    #[arg(long, value_name = "N", value_parser = worker_count, hide_short_help = true)]
    pub(crate) num_segmenter_workers: Option<usize>,

    /// Niceness of the compression threads
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true, hide_short_help = true, value_parser = number::<i32>(-20..=19))]
    pub(crate) compress_niceness: i32,

    /// Most memory for the whole program; 'auto' is some 1 GiB, more for many processors
    ///
    /// The number of compressing threads, the queues and the index of the segmenter follow from it. 'auto' keeps what it needs within 1 GiB (more where one compressing thread takes more than 256 MiB of that), whatever the machine has, and at most 64 MiB of earlier data at hand to compare with; together with the threads it takes half of the machine's memory at most, or three quarters of what a control group or 'ulimit' allows if that is less. What a tree and one compressing thread need is taken in any case, with a warning.
    #[arg(short = 'L', long, value_name = "SIZE", default_value = "auto", value_parser = memory_limit)]
    pub(crate) memory_limit: MemoryLimit,

    /// Order of the files in the image: none, path, revpath, similarity, nilsimsa, explicit:file=FILE [default: by level]
    ///
    /// 'similarity' goes along the paths, but puts files that are much alike next to each other, such as the versions of one file. 'nilsimsa' clusters files by digests as other programs do; 'nilsimsa:max-children=N:max-cluster-size=N' sets its limits (16k each). In 'explicit' orders, files that are not listed follow by path. May be given several times, with CATEGORY[,CATEGORY...]:: in front for these categories only.
    #[arg(long, value_name = "[CAT::]ORDER")]
    pub(crate) order: Vec<String>,

    /// Files larger than this are not compared with others by 'similarity' and 'nilsimsa', but stored first [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = byte_size, hide_short_help = true)]
    pub(crate) max_similarity_size: Option<u64>,

    /// Hash that finds files with equal contents, or 'none'
    ///
    /// The default cannot be made to collide on purpose, so that a hostile tree cannot swap the contents of files.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "blake3",
        hide_short_help = true
    )]
    pub(crate) file_hash: String,
}

/// `--memory-limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLimit {
    /// By the number of threads and the size of a block and of memory.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filter {
    /// '+ PATTERN' includes, '- PATTERN' excludes, '. FILE' reads rules from a file; the first match decides
    #[arg(short = 'F', long, value_name = "RULE", allow_hyphen_values = true)]
    pub(crate) filter: Vec<String>,

    /// Script that filters, changes attributes and orders, in Lua or Python
    ///
    /// FILE ends in .lua or .py, or 'lua:' or 'python:' stands before it. ARGS are NAME=VALUE or NAME, separated by
    /// commas, for the script's function 'configure'. Python needs a program built with it. The script is asked after
    /// the filter rules and has the last word on permissions, owners, times and the order of files. See
    /// mkdwarfs-script(7).
    #[arg(long, value_name = "FILE[:ARGS]")]
    pub(crate) script: Option<OsString>,

    /// Print what the filter includes and excludes, and build nothing
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_short_help = true)]
    pub(crate) debug_filter: Option<DebugFilter>,

    /// Leave out directories without files
    #[arg(long, hide_short_help = true)]
    pub(crate) remove_empty_dirs: bool,
}

/// What `--debug-filter` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebugFilter {
    /// Everything, marked '+' or '-'
    All,
    /// Files, marked '+' or '-'
    Files,
    /// What is included
    Included,
    /// Files that are included
    IncludedFiles,
    /// What is excluded
    Excluded,
    /// Files that are excluded
    ExcludedFiles,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Compression")]
pub(crate) struct Categorize {
    /// Tell kinds of data apart: 'none', or a list of fits, pcmaudio, binary, delta, incompressible, hotness
    ///
    /// The first of the list that knows a file wins. Without a list, and from level 3 up without the option, the list
    /// is fits,pcmaudio,binary,incompressible; from level 7 up without the option, delta comes before incompressible: it
    /// finds pixels, samples and measurements, for which lzma has a filter. Options that take a category in front then apply to what has been found.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true, default_missing_value = "fits,pcmaudio,binary,incompressible")]
    pub(crate) categorize: Option<String>,

    /// Files that make up the category 'hotness', one path a line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) hotness_list: Option<PathBuf>,

    /// Smaller files are not tried: they may repeat what others have
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = byte_size, hide_short_help = true)]
    pub(crate) incompressible_min_input_size: u64,

    /// Bytes that are tried at once for fragments
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = trial_size, hide_short_help = true)]
    pub(crate) incompressible_block_size: u64,

    /// Find incompressible parts of files, too [default: from level 7 up]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_short_help = true)]
    pub(crate) incompressible_fragments: Option<bool>,

    /// What compression leaves more than this share of is incompressible [default: 0.99, from level 7 up 0.998]
    #[arg(long, value_name = "SHARE", value_parser = trial_ratio, hide_short_help = true)]
    pub(crate) incompressible_ratio: Option<f64>,

    /// Level of the trial [default: -1, from level 7 up 3]
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, value_parser = number::<i32>(-131_072..=22), hide_short_help = true)]
    pub(crate) incompressible_zstd_level: Option<i32>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Segmenter")]
pub(crate) struct Segmenter {
    /// Search only the last N blocks for repetitions; 0 is no search [default: the whole image]
    #[arg(short = 'B', long, value_name = "[CAT::]N", hide_short_help = true)]
    pub(crate) max_lookback_blocks: Vec<String>,

    /// Find repetitions of 2^N bytes, samples or pixels, 7 to 24; 0 is no search [default: by level]
    #[arg(short = 'W', long, value_name = "[CAT::]N", hide_short_help = true)]
    pub(crate) window_size: Vec<String>,

    /// Anchors to find them by lie 2^N times closer than they are long, 0 to 8 [default: by level]
    #[arg(short = 'w', long, value_name = "[CAT::]N", hide_short_help = true)]
    pub(crate) window_step: Vec<String>,

    /// Room in the index of anchors, 0 to 10: more is larger and misses less [default: 4]
    #[arg(long, value_name = "[CAT::]N", hide_short_help = true)]
    pub(crate) bloom_filter_size: Vec<String>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Compression")]
pub(crate) struct Compression {
    /// Compression of the data, such as zstd:level=19 [default: by level]
    ///
    /// May be given several times, with CATEGORY[,CATEGORY...]:: in front for these categories only.
    #[arg(short = 'C', long, value_name = "[CAT::]SPEC")]
    pub(crate) compression: Vec<String>,

    /// Compression of the schema [default: by level]
    #[arg(long, value_name = "SPEC", value_parser = spec, hide_short_help = true)]
    pub(crate) schema_compression: Option<Spec>,

    /// Compression of the metadata [default: by level]
    #[arg(long, value_name = "SPEC", value_parser = spec, hide_short_help = true)]
    pub(crate) metadata_compression: Option<Spec>,

    /// Compression of the history [default: by level]
    #[arg(long, value_name = "SPEC", value_parser = spec, hide_short_help = true)]
    pub(crate) history_compression: Option<Spec>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "File system content")]
pub(crate) struct Content {
    /// Include character and block devices
    #[arg(long)]
    pub(crate) with_devices: bool,

    /// Include named pipes and sockets
    #[arg(long, hide_short_help = true)]
    pub(crate) with_specials: bool,

    /// Store holes as zeros (for readers before DwarFS 0.14)
    #[arg(long, hide_short_help = true)]
    pub(crate) no_sparse_files: bool,

    /// Store no contents: every file becomes a hole of its size
    ///
    /// Nothing is read but directories. For trying out metadata, and for telling a tree's structure without its data.
    #[arg(long, conflicts_with = "no_sparse_files", hide_short_help = true)]
    pub(crate) hollow: bool,

    /// Put the bytes of FILE before the image
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) header: Option<PathBuf>,

    /// Omit the index that makes opening large images fast
    #[arg(long, hide_short_help = true)]
    pub(crate) no_section_index: bool,

    /// Record nothing about how the image was made
    #[arg(long, hide_short_help = true)]
    pub(crate) no_history: bool,

    /// Record no time in the history
    #[arg(long, hide_short_help = true)]
    pub(crate) no_history_timestamps: bool,

    /// Record no command line in the history
    #[arg(long, hide_short_help = true)]
    pub(crate) no_history_command_line: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Metadata")]
pub(crate) struct Metadata {
    /// Owner of everything, a name or a number
    #[arg(long, value_name = "USER", value_parser = owner::user, hide_short_help = true)]
    pub(crate) set_owner: Option<u32>,

    /// Group of everything, a name or a number
    #[arg(long, value_name = "GROUP", value_parser = owner::group, hide_short_help = true)]
    pub(crate) set_group: Option<u32>,

    /// Time of everything: 'now', seconds since 1970, or 'YYYY-MM-DD hh:mm:ss' in UTC
    #[arg(long, value_name = "TIME", value_parser = timepoint::parse_recorded, hide_short_help = true)]
    pub(crate) set_time: Option<i64>,

    /// Store times of access and change, not only of modification
    #[arg(long, hide_short_help = true)]
    pub(crate) keep_all_times: bool,

    /// Resolution of times, such as 1s, 100ms, ns
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = duration::parse_ns, hide_short_help = true)]
    pub(crate) time_resolution: u64,

    /// Change modes as chmod(1) does: octal, symbolic, or 'norm'; D and F limit to directories and files
    #[arg(
        long,
        value_name = "SPEC[,SPEC]",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(crate) chmod: Vec<String>,

    /// Do not record when the image was made
    #[arg(long, hide_short_help = true)]
    pub(crate) no_create_timestamp: bool,

    /// Do not store link counts
    #[arg(long, hide_short_help = true)]
    pub(crate) no_hardlink_table: bool,

    /// When metadata are rebuilt, do not record what they were like before
    #[arg(long, hide_short_help = true)]
    pub(crate) no_metadata_version_history: bool,

    /// Do not store the names of the categories of blocks, nor what else is known of these
    #[arg(long, hide_short_help = true)]
    pub(crate) no_category_names: bool,

    /// Do not store the layout of data in blocks of audio and images
    #[arg(long, hide_short_help = true)]
    pub(crate) no_category_metadata: bool,

    /// Metadata tables to pack: auto, none, all, or a list
    ///
    /// The list holds chunk_table, directories, shared_files, names, names_index, symlinks, symlinks_index, force,
    /// plain; 'auto' packs names and symlinks when that makes them smaller.
    #[arg(
        short = 'P',
        long,
        value_name = "LIST",
        default_value = "auto",
        hide_short_help = true
    )]
    pub(crate) pack_metadata: String,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// none, simple, ascii, unicode or json [default: a bar on a terminal]
    ///
    /// 'json' writes events for programs to standard error, one JSON object a line, and nothing else;
    /// docs/progress.md says which.
    #[arg(
        long,
        value_name = "MODE",
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) progress: Option<progress::Mode>,

    /// Show what each worker is doing, too
    #[arg(long, hide_short_help = true)]
    pub(crate) progress_workers: bool,

    /// Show no progress
    #[arg(long, conflicts_with = "progress", hide_short_help = true)]
    pub(crate) no_progress: bool,

    /// Write a summary as JSON to standard output, or to FILE
    ///
    /// Goes to standard error when the image itself goes to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", hide_short_help = true)]
    pub(crate) json: Option<PathBuf>,
}

/// A block of a trial: neither so small that nothing repeats in it nor so large that it says nothing of its parts.
fn trial_size(text: &str) -> Result<u64, String> {
    match byte_size(text)? {
        size @ 0x1000..=0x4000_0000 => Ok(size),
        _ => Err("a block has from 4k to 1g".to_owned()),
    }
}

fn trial_ratio(text: &str) -> Result<f64, String> {
    let ratio = text
        .parse()
        .ok()
        .filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

fn spec(text: &str) -> Result<Spec, String> {
    Spec::parse(text).map_err(|error| error.to_string())
}

fn memory_limit(text: &str) -> Result<MemoryLimit, String> {
    if text == "auto" {
        return Ok(MemoryLimit::Auto);
    }
    byte_size(text).map(MemoryLimit::Bytes)
}
