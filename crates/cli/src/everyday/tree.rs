//! `durin tree`: the directories of an image as a picture.

use std::io::Write;

use clap::{ArgMatches, Parser};
use durin_format::Result;
use durin_reader::{EntryRef, FileKind, Image, WalkEntry};

use super::record;
use super::target::{Found, LastLink, Target, shown};
use crate::common::arguments::{HelpArguments, LogArguments, count};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;
use crate::common::{escape, size, terminal};

/// Show directories of an image as a tree.
#[derive(Parser, Debug)]
#[command(override_usage = "durin tree [OPTIONS] IMAGE [PATH]...")]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,

    /// How deep to go
    #[arg(help_heading = "What to show", short = 'L', long, value_name = "N", value_parser = count::<usize>, default_value_t = usize::MAX, hide_default_value = true)]
    level: usize,

    /// Only directories
    #[arg(help_heading = "What to show", short, long)]
    directories: bool,

    /// Sizes of files, too
    #[arg(help_heading = "What to show", short, long)]
    size: bool,

    /// One JSON object an entry and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Tree;

impl Program for Tree {
    type Options = Options;

    const NAME: &'static str = "durin-tree";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(
        options: &Options,
        _matches: &ArgMatches,
        logger: &Logger,
    ) -> std::result::Result<u8, Failure> {
        let image = options.target.open(0, logger)?;
        let (found, mut errors) = options.target.find(&image, LastLink::Follow, logger)?;
        output::to_stdout(|out| {
            let mut picture = Picture {
                image: &image,
                options,
                out,
                strokes: strokes(),
                counts: [0; 2],
            };
            for top in found {
                errors += picture.draw(top, logger)?;
            }
            picture.summary()
        })?;
        Ok(exit::of_errors(errors))
    }
}

/// What stands before a name: for a line that goes on, for none, for an entry, for the last entry.
type Strokes = [&'static str; 4];

fn strokes() -> Strokes {
    if terminal::locale_is_utf8() {
        [
            "\u{2502}   ",
            "    ",
            "\u{251c}\u{2500}\u{2500} ",
            "\u{2514}\u{2500}\u{2500} ",
        ]
    } else {
        ["|   ", "    ", "|-- ", "`-- "]
    }
}

struct Picture<'a> {
    image: &'a Image,
    options: &'a Options,
    out: &'a mut (dyn Write + Send),
    strokes: Strokes,
    /// Directories and other entries that were shown.
    counts: [u64; 2],
}

/// A directory that is being drawn.
struct Level {
    /// Its entries that are still to be drawn, the next one last.
    left: Vec<WalkEntry>,
}

impl Picture<'_> {
    /// Draws what is below `top`; returns how many entries could not be read.
    fn draw(&mut self, top: Found, logger: &Logger) -> std::result::Result<u64, Failure> {
        let mut errors = 0;
        let entry = WalkEntry {
            attr: self.image.attr(top.entry)?,
            path: top.path,
            entry: top.entry,
        };
        self.line("", &shown(&entry.path), &entry)?;
        let mut levels = Vec::new();
        // Directories of a damaged image may contain each other.
        let mut dirs_left = self.image.entry_count();
        self.open(&entry, &mut levels, logger, &mut errors);
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.left.pop() else {
                levels.pop();
                continue;
            };
            let prefix = self.prefix(&levels);
            let name = entry.path.rsplit(|byte| *byte == b'/').next();
            self.line(&prefix, &escape::bytes(name.unwrap_or_default()), &entry)?;
            self.counts[usize::from(entry.attr.kind != FileKind::Directory)] += 1;
            dirs_left = dirs_left.saturating_sub(1);
            if levels.len() < self.options.level && dirs_left > 0 {
                self.open(&entry, &mut levels, logger, &mut errors);
            }
        }
        Ok(errors)
    }

    /// Goes into `entry` if it is a directory.
    fn open(&self, entry: &WalkEntry, levels: &mut Vec<Level>, logger: &Logger, errors: &mut u64) {
        if entry.attr.kind != FileKind::Directory {
            return;
        }
        let mut left = Vec::new();
        let mut fail = |error: durin_format::Error| {
            logger.error(error.to_string());
            *errors += 1;
        };
        match self.image.dir(entry.entry.inode) {
            Err(error) => fail(error),
            Ok(children) => {
                for child in children {
                    match child.and_then(|(name, child)| self.child(&entry.path, &name, child)) {
                        Ok(child)
                            if self.options.directories
                                && child.attr.kind != FileKind::Directory => {}
                        Ok(child) => left.push(child),
                        Err(error) => fail(error),
                    }
                }
            }
        }
        left.reverse();
        levels.push(Level { left });
    }

    fn child(&self, dir: &[u8], name: &[u8], entry: EntryRef) -> Result<WalkEntry> {
        let path = match dir {
            b"" => name.to_vec(),
            dir => [dir, name].join(&b'/'),
        };
        let attr = self.image.attr(entry)?;
        Ok(WalkEntry { path, entry, attr })
    }

    /// The strokes before an entry of the innermost level.
    fn prefix(&self, levels: &[Level]) -> String {
        let [goes_on, none, entry, last] = self.strokes;
        let mut prefix = String::new();
        let Some((innermost, outer)) = levels.split_last() else {
            return prefix;
        };
        for level in outer {
            prefix.push_str(if level.left.is_empty() { none } else { goes_on });
        }
        prefix.push_str(if innermost.left.is_empty() {
            last
        } else {
            entry
        });
        prefix
    }

    fn line(
        &mut self,
        prefix: &str,
        name: &str,
        entry: &WalkEntry,
    ) -> std::result::Result<(), Failure> {
        if self.options.json {
            let record = record::of(self.image, entry)?;
            return writeln!(self.out, "{record}").map_err(write_failed);
        }
        let mut line = format!("{prefix}{name}");
        match entry.attr.kind {
            FileKind::Symlink => {
                let target = self.image.read_link(entry.attr.inode)?;
                line.push_str(&format!(" -> {}", escape::bytes(&target)));
            }
            FileKind::Regular if self.options.size => {
                line.push_str(&format!("  {}", size::display(entry.attr.size)));
            }
            _ => {}
        }
        writeln!(self.out, "{line}").map_err(write_failed)
    }

    fn summary(&mut self) -> std::result::Result<(), Failure> {
        if self.options.json {
            return Ok(());
        }
        let [dirs, others] = self.counts;
        let plural = |count: u64, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let mut text = plural(dirs, "directory", "directories");
        if !self.options.directories {
            text.push_str(&format!(", {}", plural(others, "file", "files")));
        }
        writeln!(self.out, "\n{text}").map_err(write_failed)
    }
}
