//! `durin cat`: contents of files of an image.

use std::io::Write;

use clap::{ArgMatches, Parser};
use durin_reader::{FileKind, Image};

use super::target::{Found, LastLink, Target};
use crate::common::arguments::{self, HelpArguments, LogArguments, byte_size};
use crate::common::escape;
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;

/// Bytes read at a time.
const BUFFER_LEN: usize = 1 << 20;

/// Write files of an image to standard output.
#[derive(Parser, Debug)]
#[command(override_usage = "durin cat [OPTIONS] IMAGE PATH...")]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,

    /// Begin after so many bytes of each file
    #[arg(help_heading = "What to show", long, value_name = "SIZE", default_value = "0", value_parser = byte_size, hide_default_value = true)]
    skip: u64,

    /// Write at most so many bytes of each file
    #[arg(help_heading = "What to show", long, value_name = "SIZE", value_parser = byte_size)]
    bytes: Option<u64>,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Cat;

impl Program for Cat {
    type Options = Options;

    const NAME: &'static str = "durin-cat";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        if options.target.paths().is_empty() {
            return Err(Failure::Usage(
                "which file? durin cat IMAGE PATH...".to_owned(),
            ));
        }
        let image = options
            .target
            .open(arguments::processor_count().saturating_sub(1), logger)?;
        let (found, mut errors) = options.target.find(&image, LastLink::Follow, logger)?;
        output::to_stdout(|out| {
            for file in &found {
                if let Err(failure) = write_file(&image, file, options, out) {
                    match failure {
                        // What has been written so far may be all that was wanted.
                        Failure::BrokenPipe => return Err(failure),
                        failure => {
                            let text = failure.message().unwrap_or_default();
                            // The root has no name.
                            let path = match file.path.as_slice() {
                                [] => b"/",
                                path => path,
                            };
                            logger.error(format!("{}: {text}", escape::bytes(path)));
                            errors += 1;
                        }
                    }
                }
            }
            Ok(())
        })?;
        Ok(exit::of_errors(errors))
    }
}

fn write_file(
    image: &Image,
    file: &Found,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match image.kind(file.entry)? {
        FileKind::Regular => {}
        FileKind::Directory => return Err(Failure::Usage("Is a directory".to_owned())),
        _ => return Err(Failure::Usage("Not a regular file".to_owned())),
    }
    let mut buffer = vec![0; BUFFER_LEN];
    let mut offset = options.skip;
    let mut left = options.bytes.unwrap_or(u64::MAX);
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER_LEN);
        let len = image.read_at(file.entry.inode, offset, &mut buffer[..wanted])?;
        if len == 0 {
            break;
        }
        out.write_all(&buffer[..len]).map_err(write_failed)?;
        offset += len as u64;
        left -= len as u64;
    }
    Ok(())
}
