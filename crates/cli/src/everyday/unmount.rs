//! `durin unmount`: takes images out of the directory tree.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{ArgMatches, Parser};
use durin_format::Error;
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
    /// Mount points, where the image on top is unmounted, or images, which are unmounted wherever they are
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
        let mut chosen: BTreeSet<u64> = BTreeSet::new();
        for target in &options.targets {
            let meant = mount_table::meant(&mounts, target);
            if meant.is_empty() {
                logger.error(format!(
                    "{}: no image is mounted there",
                    escape::path(target)
                ));
                errors += 1;
            }
            chosen.extend(meant.iter().map(|mount| mount.id));
        }
        if options.all {
            chosen.extend(mounts.iter().map(|mount| mount.id));
        }
        // What was mounted last may lie on top of the others.
        for mount in mounts
            .iter()
            .rev()
            .filter(|mount| chosen.contains(&mount.id))
        {
            if let Err(error) = unmount(mount, options.lazy, logger) {
                logger.error(error.to_string());
                errors += 1;
            }
        }
        Ok(exit::of_errors(errors))
    }
}

/// Takes one image away, unless something else has been mounted over it.
fn unmount(mount: &MountedImage, is_lazy: bool, logger: &Logger) -> durin_format::Result<()> {
    let mounts = mount_table::read()?;
    let Some(now) = mounts.iter().find(|other| other.id == mount.id) else {
        // Where mounts are shared, it goes with another.
        return Ok(());
    };
    let point = escape::path(&mount.mountpoint);
    if now.is_covered {
        let what = format!("{point}: something else is mounted over the image");
        return Err(Error::invalid_input(what));
    }
    if durin_fuse::unmount(&mount.mountpoint, is_lazy)? == Unmounted::Detached {
        logger.info(format!("{point}: still in use, out of sight"));
    }
    Ok(())
}
