//! The command line of dwarfsextract.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser};
use durin_reader::ImageOffset;

use crate::common::arguments::{
    HelpArguments, LogArguments, byte_size, image_offset, number, worker_count,
};
use crate::common::progress;

/// Unpack a DwarFS image into a directory or an archive.
#[derive(Parser, Debug)]
#[command(
    override_usage = "dwarfsextract -i IMAGE [-o DIR] [OPTIONS] [PATTERN]...\n       \
                      dwarfsextract -i IMAGE -f FORMAT [-o FILE|-] [OPTIONS] [PATTERN]...",
    after_help = "Patterns match whole paths inside the image, without a leading '/': ? * ** [a-z] {a,b}; 'i:' in \
                  front ignores case.\n\
                  --man has all options. Exit status: 0 complete; 1 error; 2 complete except for unreadable data \
                  (--continue-on-error)."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) basic: Basic,
    #[command(flatten)]
    pub(crate) archives: Archives,
    #[command(flatten)]
    pub(crate) salvage: Salvage,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArguments,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) help: HelpArguments,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Options")]
pub(crate) struct Basic {
    /// Image to unpack
    #[arg(short, long, value_name = "IMAGE")]
    pub(crate) input: PathBuf,

    /// Existing directory to unpack into, or archive to write [default: the current directory, or standard output]
    #[arg(short, long, value_name = "DIR|FILE|-")]
    pub(crate) output: Option<PathBuf>,

    /// Unpack what matches one of the patterns
    #[arg(long = "pattern", value_name = "GLOB", action = ArgAction::Append)]
    pub(crate) pattern: Vec<String>,

    /// Unpack what matches one of the patterns
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,

    /// Leave out character and block devices
    #[arg(long)]
    pub(crate) skip_devices: bool,

    /// Leave out named pipes and sockets
    #[arg(long)]
    pub(crate) skip_specials: bool,

    /// Where the image starts in the file: 'auto' or bytes
    #[arg(short = 'O', long, value_name = "OFFSET", default_value = "auto", value_parser = image_offset)]
    pub(crate) image_offset: ImageOffset,

    /// Skip data that cannot be read, with a warning
    #[arg(long)]
    pub(crate) continue_on_error: bool,

    /// Do not verify the checksums of blocks
    #[arg(long)]
    pub(crate) disable_integrity_check: bool,

    /// Print percentages to standard output
    #[arg(long)]
    pub(crate) stdout_progress: bool,

    /// none, simple, ascii, unicode or json [default: a bar on a terminal]
    #[arg(
        long,
        value_name = "MODE",
        hide_possible_values = true,
        conflicts_with = "stdout_progress"
    )]
    pub(crate) progress: Option<progress::Mode>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Archives")]
pub(crate) struct Archives {
    /// pax, paxr, gnutar, ustar, v7, cpio, newc, zip, mtree, raw; 'auto': by the name of the output
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// Compress with gzip, bzip2, xz, zstd or lz4; comma separated
    #[arg(long, value_name = "FILTERS")]
    pub(crate) format_filters: Option<String>,

    /// [MODULE:]KEY[=VALUE], comma separated: compression-level=9, zstd:threads=2, mtree:sha1
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) format_options: Option<String>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Damaged images")]
pub(crate) struct Salvage {
    /// Get out what survives, without index and even without metadata
    #[arg(long, conflicts_with_all = ["format", "stdout_progress", "disable_integrity_check"])]
    pub(crate) salvage: bool,

    /// Also write files that are not whole: NAME.partial, with zeros for what is lost
    #[arg(long, requires = "salvage")]
    pub(crate) salvage_partial: bool,

    /// Write what is lost to FILE as JSON ('-': standard output)
    #[arg(long, value_name = "FILE", requires = "salvage")]
    pub(crate) salvage_report: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Resources")]
pub(crate) struct Tuning {
    /// Decompression threads
    #[arg(short = 'n', long, value_name = "N", default_value = "4", value_parser = worker_count)]
    pub(crate) num_workers: usize,

    /// Writing threads; 0 chooses
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::<u16>(0..=256))]
    pub(crate) num_disk_writers: u16,

    /// Memory for decompressed blocks
    #[arg(short = 's', long, value_name = "SIZE", default_value = "512m", value_parser = byte_size)]
    pub(crate) cache_size: u64,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct MeasuringArguments {
    /// Measure filesystem_v2, inode_reader_v2, block_cache; print figures in the end
    #[arg(long, value_name = "NAME[,...]", hide_short_help = true)]
    pub(crate) perfmon: Option<String>,

    /// Write what was measured as a Chrome trace
    #[arg(
        long,
        value_name = "FILE",
        requires = "perfmon",
        hide_short_help = true
    )]
    pub(crate) perfmon_trace: Option<PathBuf>,
}
