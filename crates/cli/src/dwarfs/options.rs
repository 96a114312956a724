//! The command line of the FUSE driver; its `-o` list is taken apart in [`super::mount_options`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::common::arguments::HelpArguments;

/// Mount a DwarFS image.
#[derive(Parser, Debug)]
#[command(
    override_usage = "dwarfs IMAGE MOUNTPOINT [OPTIONS]\n       dwarfs IMAGE --auto-mountpoint [OPTIONS]",
    after_help = super::mount_options::HELP
)]
pub(crate) struct Options {
    /// Image to mount
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,

    /// Directory to mount it on
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: Option<PathBuf>,

    /// Mount options, separated by commas
    #[arg(short = 'o', value_name = "OPTION[,...]")]
    pub(crate) mount_options: Vec<OsString>,

    /// Stay in the foreground
    #[arg(short = 'f')]
    pub(crate) foreground: bool,

    /// Stay in the foreground and show messages for debugging
    #[arg(short = 'd')]
    pub(crate) debug: bool,

    /// Serve requests with a single thread
    #[arg(short = 's')]
    pub(crate) single_thread: bool,

    /// Mount on a directory beside the image that has its name without extension
    ///
    /// The directory is created if it does not exist, must be empty otherwise, and is removed after unmounting.
    #[arg(long, conflicts_with = "mountpoint")]
    pub(crate) auto_mountpoint: bool,

    /// What mount(8) passes to helper programs and has no meaning here.
    #[arg(short = 'n', hide = true)]
    no_mtab: bool,
    #[arg(short = 'v', hide = true)]
    verbose: bool,
    #[arg(short = 't', hide = true, value_name = "TYPE")]
    file_system_type: Option<OsString>,
    #[arg(short = 'N', hide = true, value_name = "NAMESPACE")]
    namespace: Option<OsString>,

    #[command(flatten)]
    pub(crate) help: HelpArguments,
}
