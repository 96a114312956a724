//! `durin find`: entries of an image by conditions.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, Parser};
use durin_reader::{FileKind, Image, WalkEntry};

use super::find_arguments::{Conditions, from_find};
use super::ls::size_column;
use super::record;
use super::target::{LastLink, Target, shown};
use crate::common::arguments::{HelpArguments, LogArguments, count};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::{self, Program};
use crate::common::{clock, escape, mode};

/// Find entries of an image.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin find [CONDITIONS] IMAGE [PATH]...",
    after_help = "Options of find(1) with one dash are taken, too: -name, -type f, -maxdepth 2, -print0, -ls ..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    conditions: Conditions,

    /// Go at most so deep; 0 is the path itself
    #[arg(help_heading = "What to show", long, value_name = "N", value_parser = count::<usize>, default_value_t = usize::MAX, hide_default_value = true)]
    max_depth: usize,

    /// Show nothing above that depth
    #[arg(
        help_heading = "What to show",
        long,
        value_name = "N", value_parser = count::<usize>,
        default_value_t = 0,
        hide_default_value = true
    )]
    min_depth: usize,

    /// End paths with a NUL, and escape nothing in them
    #[arg(help_heading = "What to show", short = '0', long, conflicts_with_all = ["long", "json"])]
    print0: bool,

    /// Mode, owner, size and time, too
    #[arg(help_heading = "What to show", short, long, conflicts_with = "json")]
    long: bool,

    /// One JSON object an entry and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    /// Only how many there are
    #[arg(help_heading = "What to show", short, long, conflicts_with_all = ["long", "json", "print0"])]
    count: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Find;

/// Runs it; the first of `arguments` is the name it was called by.
pub(crate) fn main_with(arguments: &[OsString]) -> ExitCode {
    program::main::<Find>(&from_find(arguments))
}

impl Program for Find {
    type Options = Options;

    const NAME: &'static str = "durin-find";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let image = options.target.open(0, logger)?;
        let (found, mut errors) = options.target.find(&image, LastLink::Keep, logger)?;
        let mut count = 0_u64;
        output::to_stdout(|out| {
            for top in found {
                let base = depth(&top.path);
                for entry in image.walk_from(top.entry, top.path) {
                    let entry = match entry {
                        Ok(entry) => entry,
                        Err(error) => {
                            logger.error(error.to_string());
                            errors += 1;
                            continue;
                        }
                    };
                    let depth = depth(&entry.path) - base;
                    let is_in_depth = (options.min_depth..=options.max_depth).contains(&depth);
                    if is_in_depth && options.conditions.hold(&entry) {
                        count += 1;
                        if !options.count {
                            out.write_all(&line(&image, &entry, options)?)
                                .map_err(write_failed)?;
                        }
                    }
                }
            }
            if options.count {
                writeln!(out, "{count}").map_err(write_failed)?;
            }
            Ok(())
        })?;
        Ok(exit::of_errors(errors))
    }
}

/// Names in a path.
fn depth(path: &[u8]) -> usize {
    match path {
        b"" => 0,
        path => 1 + path.iter().filter(|byte| **byte == b'/').count(),
    }
}

fn line(image: &Image, entry: &WalkEntry, options: &Options) -> Result<Vec<u8>, Failure> {
    if options.print0 {
        let path: &[u8] = match entry.path.as_slice() {
            b"" => b".",
            path => path,
        };
        return Ok([path, &[0]].concat());
    }
    if options.json {
        return Ok(format!("{}\n", record::of(image, entry)?).into_bytes());
    }
    let path = shown(&entry.path);
    if !options.long {
        return Ok(format!("{path}\n").into_bytes());
    }
    let attr = &entry.attr;
    let target = match attr.kind {
        FileKind::Symlink => format!(" -> {}", escape::bytes(&image.read_link(attr.inode)?)),
        _ => String::new(),
    };
    let line = format!(
        "{} {:>3} {:>5} {:>5} {:>12} {} {path}{target}\n",
        mode::display(attr.mode),
        attr.nlink,
        attr.uid,
        attr.gid,
        size_column(entry, false),
        clock::local(attr.mtime.sec),
    );
    Ok(line.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn depth_is_the_number_of_names() {
        assert_eq!([depth(b""), depth(b"a"), depth(b"a/b/c")], [0, 1, 3]);
    }
}
