//! The command line of dwarfsck.

use std::path::PathBuf;

use clap::{Args, Parser};
use durin_format::digest::Digest;
use durin_reader::ImageOffset;

use super::detail::Detail;
use crate::common::arguments::{
    HelpArguments, LogArguments, byte_size, count, image_offset, worker_count,
};

/// Check a DwarFS image, list its files, or tell what is in it.
#[derive(Parser, Debug)]
#[command(
    override_usage = "dwarfsck [-i] IMAGE [OPTIONS]",
    after_help = super::detail::HELP
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) source: SourceArguments,
    #[command(flatten)]
    pub(crate) actions: Actions,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) help: HelpArguments,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Image")]
pub(crate) struct SourceArguments {
    /// Image to look at
    #[arg(
        short,
        long,
        value_name = "IMAGE",
        required_unless_present = "positional"
    )]
    input: Option<PathBuf>,

    /// The same, without the option
    #[arg(value_name = "IMAGE", hide = true, conflicts_with = "input")]
    positional: Option<PathBuf>,

    /// Where the image starts in the file: 'auto' or bytes
    #[arg(short = 'O', long, value_name = "OFFSET", default_value = "auto", value_parser = image_offset)]
    pub(crate) image_offset: ImageOffset,
}

impl SourceArguments {
    /// The image, given either way; the parser makes sure that there is one.
    pub(crate) fn image(&self) -> PathBuf {
        self.input
            .clone()
            .or_else(|| self.positional.clone())
            .unwrap_or_default()
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What to do")]
pub(crate) struct Actions {
    /// Level 0 to 7, or a list of what to show (see below)
    #[arg(short, long, value_name = "LEVEL", default_value = "2", value_parser = Detail::parse)]
    pub(crate) detail: Detail,

    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// With --list: mode, owner, size and time, too
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print the bytes before the image; exit status 2 when there are none
    #[arg(short = 'H', long, conflicts_with_all = ["json", "export_metadata", "check_integrity", "list", "checksum", "space", "html"])]
    pub(crate) print_header: bool,

    /// List all paths
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) list: bool,

    /// Print a checksum of each regular file, as sha256sum does
    #[arg(long, value_name = "ALGORITHM", value_parser = digest)]
    pub(crate) checksum: Option<Digest>,

    /// Tell what the bytes go to: directories to DEPTH, extensions, sharing
    #[arg(long, value_name = "DEPTH", value_parser = count::<usize>, num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub(crate) space: Option<usize>,

    /// Write a page with that and a map of the tree; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Verify the SHA-512/256 of each section and the consistency of the metadata
    #[arg(long, conflicts_with = "no_check")]
    pub(crate) check_integrity: bool,

    /// Verify nothing
    #[arg(long)]
    pub(crate) no_check: bool,

    /// Print the information as JSON
    #[arg(short, long)]
    pub(crate) json: bool,

    /// Write the whole metadata as JSON to FILE; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_metadata: Option<PathBuf>,
}

impl Actions {
    /// Whether the image as a whole is told about. Any of the others is an answer in itself.
    pub(crate) fn asks_for_information(&self) -> bool {
        !self.list
            && self.checksum.is_none()
            && self.export_metadata.is_none()
            && self.space.is_none()
            && self.html.is_none()
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Resources")]
pub(crate) struct Tuning {
    /// Threads [default: number of processors]
    #[arg(short = 'n', long, value_name = "N", value_parser = worker_count)]
    pub(crate) num_workers: Option<usize>,

    /// Memory for decompressed blocks
    #[arg(short = 's', long, value_name = "SIZE", default_value = "512m", value_parser = byte_size)]
    pub(crate) cache_size: u64,
}

fn digest(name: &str) -> Result<Digest, String> {
    Digest::parse(name).map_err(|error| error.to_string())
}
