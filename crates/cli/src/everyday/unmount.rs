//! `durin unmount`: takes images out of the directory tree.

use std::path::PathBuf;

use clap::{ArgMatches, Parser};
use durin_fuse::Unmounted;

use super::mount_table::{self, MountedImage};
use crate::common::arguments::{HelpArguments, LogArguments};
use crate::common::escape;
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::Program;

/// Unmount images, named by mount point or by image file.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin unmount [--lazy] MOUNTPOINT|IMAGE...\n       durin unmount [--lazy] --all"
)]
pub(crate) struct Options {
    /// Mount points, or images, which are unmounted wherever they are mounted
    #[arg(value_name = "TARGET", required_unless_present = "all")]
    targets: Vec<PathBuf>,

    /// All mounted images
    #[arg(short, long, conflicts_with = "targets")]
    all: bool,

    /// Also when somebody uses it: out of sight now, gone when the last user has gone
    #[arg(short, long)]
    lazy: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Unmount;

impl Program for Unmount {
    type Options = Options;

    const NAME: &'static str = "durin-unmount";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let mounts = mount_table::read()?;
        let mut errors = 0;
        let mut chosen: Vec<&MountedImage> = Vec::new();
        for target in &options.targets {
            let before = chosen.len();
            chosen.extend(
                mounts
                    .iter()
                    .filter(|mount| mount_table::is_meant(mount, target)),
            );
            if chosen.len() == before {
                logger.error(format!(
                    "{}: no image is mounted there",
                    escape::path(target)
                ));
                errors += 1;
            }
        }
        if options.all {
            chosen.extend(&mounts);
        }
        // What was mounted last may lie on top of the others.
        for mount in chosen.into_iter().rev() {
            match durin_fuse::unmount(&mount.mountpoint, options.lazy) {
                Ok(Unmounted::Clean) => {}
                Ok(Unmounted::Detached) => logger.info(format!(
                    "{}: still in use, out of sight",
                    escape::path(&mount.mountpoint)
                )),
                Err(error) => {
                    logger.error(error.to_string());
                    errors += 1;
                }
            }
        }
        Ok(exit::of_errors(errors))
    }
}
