//! `durin du`: what directories of an image take, before and after packing.

use std::collections::HashSet;
use std::io::Write;

use clap::{ArgMatches, Parser};
use durin_format::InodeNum;
use durin_reader::{FileKind, Image, StoredSizes, WalkEntry};
use serde_json::json;

use super::target::{Found, LastLink, Target, shown};
use crate::common::arguments::{HelpArguments, LogArguments, count};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;
use crate::common::size;

/// Show what directories of an image take: their bytes, and their share of the compressed blocks.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin du [OPTIONS] IMAGE [PATH]...",
    after_help = "The columns are: bytes of the files without holes, each hard link counted once; their share of the image; path.\n\
                  Data that several files share is shared out evenly, so that the second column adds up to all blocks."
)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,

    /// Only a total for each path
    #[arg(help_heading = "What to show", short, long)]
    summarize: bool,

    /// Files, too
    #[arg(
        help_heading = "What to show",
        short,
        long,
        conflicts_with = "summarize"
    )]
    all: bool,

    /// Show directories down to this depth
    #[arg(help_heading = "What to show", short = 'd', long, value_name = "N", value_parser = count::<usize>, default_value_t = usize::MAX, hide_default_value = true)]
    max_depth: usize,

    /// Numbers of bytes instead of sizes with units
    #[arg(help_heading = "What to show", short, long)]
    bytes: bool,

    /// One JSON object a directory and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Du;

impl Program for Du {
    type Options = Options;

    const NAME: &'static str = "durin-du";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let image = options.target.open(0, logger)?;
        let (found, mut errors) = options.target.find(&image, LastLink::Keep, logger)?;
        let stored = image.stored_sizes()?;
        output::to_stdout(|out| {
            let mut sums = Sums {
                image: &image,
                stored,
                options,
                seen: HashSet::new(),
                out,
            };
            for top in found {
                errors += sums.add_up(&top, logger)?;
            }
            Ok(())
        })?;
        Ok(exit::of_errors(errors))
    }
}

/// What a directory or file takes.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    files: u64,
    size: u64,
    stored: f64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.size = self.size.saturating_add(other.size);
        self.stored += other.stored;
    }
}

struct Sums<'a> {
    image: &'a Image,
    stored: StoredSizes,
    options: &'a Options,
    /// Files with several links that have been counted.
    seen: HashSet<InodeNum>,
    out: &'a mut (dyn Write + Send),
}

impl Sums<'_> {
    /// Adds up what is below `top`; returns how many entries could not be read.
    fn add_up(&mut self, top: &Found, logger: &Logger) -> Result<u64, Failure> {
        let mut errors = 0;
        // Directories that the walk is in: lengths of their paths, which all begin the innermost one, with what has been
        // found in them so far.
        let mut open: Vec<(usize, Usage)> = Vec::new();
        let mut innermost = Vec::new();
        for entry in self.image.walk_from(top.entry, top.path.clone()) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    logger.error(error.to_string());
                    errors += 1;
                    continue;
                }
            };
            while let Some((len, _)) = open.last()
                && !is_below(&entry.path, &innermost[..*len])
            {
                self.close(&mut open, &innermost)?;
            }
            if entry.attr.kind == FileKind::Directory {
                open.push((entry.path.len(), Usage::default()));
                innermost = entry.path;
                continue;
            }
            let usage = self.usage(&entry)?;
            if let Some((_, sum)) = open.last_mut() {
                sum.add(usage);
            }
            if open.is_empty() || self.options.all && open.len() <= self.options.max_depth {
                self.line(&entry.path, usage)?;
            }
        }
        while !open.is_empty() {
            self.close(&mut open, &innermost)?;
        }
        Ok(errors)
    }

    fn usage(&mut self, entry: &WalkEntry) -> Result<Usage, Failure> {
        let attr = &entry.attr;
        if attr.kind != FileKind::Regular || attr.nlink > 1 && !self.seen.insert(attr.inode) {
            return Ok(Usage::default());
        }
        Ok(Usage {
            files: 1,
            size: attr.allocated,
            stored: self.stored.of(self.image.content_number(attr.inode)?),
        })
    }

    /// Ends the innermost directory.
    fn close(&mut self, open: &mut Vec<(usize, Usage)>, innermost: &[u8]) -> Result<(), Failure> {
        let Some((len, usage)) = open.pop() else {
            return Ok(());
        };
        if let Some((_, parent)) = open.last_mut() {
            parent.add(usage);
        }
        let depth = open.len();
        let is_shown = depth == 0 || !self.options.summarize && depth <= self.options.max_depth;
        if is_shown {
            self.line(&innermost[..len], usage)
        } else {
            Ok(())
        }
    }

    fn line(&mut self, path: &[u8], usage: Usage) -> Result<(), Failure> {
        let stored = whole(usage.stored);
        let text = if self.options.json {
            let record = json!({
                "path": durin_format::json::string(path),
                "files": usage.files,
                "size": usage.size,
                "stored": stored,
            });
            format!("{record}\n")
        } else if self.options.bytes {
            format!("{}\t{stored}\t{}\n", usage.size, shown(path))
        } else {
            let (size, stored) = (size::display(usage.size), size::display(stored));
            format!("{size:>10}  {stored:>10}  {}\n", shown(path))
        };
        self.out.write_all(text.as_bytes()).map_err(write_failed)
    }
}

/// Whether `path` is in the directory `dir` or further below.
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty()
        || path
            .strip_prefix(dir)
            .is_some_and(|rest| rest.first() == Some(&b'/'))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of shares of sizes, never negative"
)]
fn whole(share: f64) -> u64 {
    share.round() as u64
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn below_is_by_whole_names() {
        assert!(is_below(b"a/b", b"a") && is_below(b"a", b""));
        assert!(!is_below(b"ab", b"a") && !is_below(b"b", b"a"));
    }
}
