//! `durin mounts`: which images are mounted.

use std::os::unix::ffi::OsStrExt as _;

use clap::{ArgMatches, Parser};
use durin_format::json::string;
use serde_json::json;

use super::mount_table;
use crate::common::arguments::{HelpArguments, LogArguments};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::Program;
use crate::common::{escape, output};

/// List mounted images: mount point, image, and the process that serves it.
#[derive(Parser, Debug)]
#[command(override_usage = "durin mounts [OPTIONS]")]
pub(crate) struct Options {
    /// One JSON object a mount and line
    #[arg(short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Mounts;

impl Program for Mounts {
    type Options = Options;

    const NAME: &'static str = "durin-mounts";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, _logger: &Logger) -> Result<u8, Failure> {
        let mut text = String::new();
        for mount in mount_table::read()? {
            let driver = mount.driver();
            if options.json {
                let record = json!({
                    "mountpoint": string(mount.mountpoint.as_os_str().as_bytes()),
                    "image": string(mount.image.as_os_str().as_bytes()),
                    "pid": driver,
                    "options": mount.options,
                });
                text.push_str(&format!("{record}\n"));
            } else {
                let pid = driver.map_or_else(String::new, |pid| format!("  pid {pid}"));
                let (point, image) = (escape::path(&mount.mountpoint), escape::path(&mount.image));
                text.push_str(&format!("{point}  {image}{pid}\n"));
            }
        }
        output::print(&text)?;
        Ok(exit::SUCCESS)
    }
}
