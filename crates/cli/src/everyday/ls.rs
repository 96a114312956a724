//! `durin ls`: what is in a directory of an image.

use std::cmp::Ordering;
use std::io::{IsTerminal as _, Write};

use clap::{ArgMatches, Parser, ValueEnum};
use durin_format::Result;
use durin_reader::{FileKind, Image, WalkEntry};
use unicode_width::UnicodeWidthStr as _;

use super::record;
use super::target::{Found, LastLink, Target, shown};
use crate::common::arguments::{HelpArguments, LogArguments};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;
use crate::common::{clock, escape, mode, size, terminal};

/// List directories of an image, as ls does.
#[derive(Parser, Debug)]
#[command(override_usage = "durin ls [OPTIONS] IMAGE [PATH]...")]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,

    /// Mode, links, owner, size and time, too
    #[arg(help_heading = "What to show", short, long)]
    long: bool,

    /// Directories below, too
    #[arg(help_heading = "What to show", short = 'R', long)]
    recursive: bool,

    /// The directory itself and not what is in it
    #[arg(
        help_heading = "What to show",
        short,
        long,
        conflicts_with = "recursive"
    )]
    directory: bool,

    /// By what to sort
    #[arg(
        help_heading = "What to show",
        short,
        long,
        value_name = "KEY",
        default_value = "name"
    )]
    sort: Key,

    /// The other way round
    #[arg(help_heading = "What to show", short, long)]
    reverse: bool,

    /// Sizes with units
    #[arg(help_heading = "What to show", long)]
    human: bool,

    /// One JSON object an entry and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Key {
    /// By the bytes of the name
    Name,
    /// Largest first
    Size,
    /// Newest first
    Time,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Ls;

impl Program for Ls {
    type Options = Options;

    const NAME: &'static str = "durin-ls";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(
        options: &Options,
        _matches: &ArgMatches,
        logger: &Logger,
    ) -> std::result::Result<u8, Failure> {
        let image = options.target.open(0, logger)?;
        // As in ls, a link to a directory shows that directory unless the link itself is of interest.
        let last = if options.long || options.directory {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        let (found, mut errors) = options.target.find(&image, last, logger)?;
        output::to_stdout(|out| {
            let mut listing = Listing {
                image: &image,
                options,
                logger,
                out,
                errors: 0,
                is_first: true,
                has_titles: options.recursive || options.target.paths().len() > 1,
            };
            listing.all(found)?;
            errors += listing.errors;
            Ok(())
        })?;
        Ok(exit::of_errors(errors))
    }
}

struct Listing<'a> {
    image: &'a Image,
    options: &'a Options,
    logger: &'a Logger,
    out: &'a mut (dyn Write + Send),
    errors: u64,
    is_first: bool,
    /// Whether each directory is named above its entries.
    has_titles: bool,
}

impl Listing<'_> {
    /// Files first, then directories, as ls does.
    fn all(&mut self, found: Vec<Found>) -> std::result::Result<(), Failure> {
        let (mut files, mut dirs) = (Vec::new(), Vec::new());
        for place in found {
            let is_dir = self.image.kind(place.entry)? == FileKind::Directory;
            if is_dir && !self.options.directory {
                dirs.push(place);
            } else {
                let attr = self.image.attr(place.entry)?;
                files.push(WalkEntry {
                    path: place.path,
                    entry: place.entry,
                    attr,
                });
            }
        }
        if !files.is_empty() {
            self.is_first = false;
            self.entries(files, |entry| shown(&entry.path))?;
        }
        for dir in dirs {
            self.dir(dir)?;
        }
        Ok(())
    }

    fn dir(&mut self, top: Found) -> std::result::Result<(), Failure> {
        // Directories that are still to be listed, the next one last: no recursion as deep as an image says.
        let mut pending = vec![top];
        let mut left = self.image.entry_count();
        while let Some(dir) = pending.pop() {
            self.title(&dir)?;
            let mut entries = Vec::new();
            for entry in self.image.dir(dir.entry.inode)? {
                match entry.and_then(|(name, entry)| self.child(&dir.path, &name, entry)) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => self.report(&error),
                }
            }
            self.sort(&mut entries);
            let below: Vec<Found> = entries
                .iter()
                .filter(|entry| self.options.recursive && entry.attr.kind == FileKind::Directory)
                .map(|entry| Found {
                    entry: entry.entry,
                    path: entry.path.clone(),
                })
                .collect();
            // Directories of a damaged image may contain each other.
            left = left.saturating_sub(u32::try_from(below.len()).unwrap_or(u32::MAX));
            if left > 0 {
                pending.extend(below.into_iter().rev());
            }
            self.entries(entries, |entry| {
                escape::bytes(
                    entry
                        .path
                        .rsplit(|byte| *byte == b'/')
                        .next()
                        .unwrap_or_default(),
                )
            })?;
        }
        Ok(())
    }

    fn child(&self, dir: &[u8], name: &[u8], entry: durin_reader::EntryRef) -> Result<WalkEntry> {
        let path = match dir {
            b"" => name.to_vec(),
            dir => [dir, name].join(&b'/'),
        };
        let attr = self.image.attr(entry)?;
        Ok(WalkEntry { path, entry, attr })
    }

    fn title(&mut self, dir: &Found) -> std::result::Result<(), Failure> {
        if self.has_titles && !self.options.json {
            let line = if self.is_first { "" } else { "\n" };
            writeln!(self.out, "{line}{}:", shown(&dir.path)).map_err(write_failed)?;
        }
        self.is_first = false;
        Ok(())
    }

    fn sort(&self, entries: &mut [WalkEntry]) {
        let by_key = |a: &WalkEntry, b: &WalkEntry| match self.options.sort {
            Key::Name => Ordering::Equal,
            Key::Size => b.attr.size.cmp(&a.attr.size),
            Key::Time => b.attr.mtime.cmp(&a.attr.mtime),
        };
        entries.sort_by(|a, b| by_key(a, b).then_with(|| a.path.cmp(&b.path)));
        if self.options.reverse {
            entries.reverse();
        }
    }

    fn entries(
        &mut self,
        entries: Vec<WalkEntry>,
        name: impl Fn(&WalkEntry) -> String,
    ) -> std::result::Result<(), Failure> {
        if self.options.json {
            for entry in &entries {
                match record::of(self.image, entry) {
                    Ok(record) => writeln!(self.out, "{record}").map_err(write_failed)?,
                    Err(error) => self.report(&error),
                }
            }
        } else if self.options.long {
            self.long(&entries, name)?;
        } else {
            let names: Vec<String> = entries.iter().map(name).collect();
            let width = std::io::stdout().is_terminal().then(terminal::stdout_width);
            self.out
                .write_all(columns(&names, width).as_bytes())
                .map_err(write_failed)?;
        }
        Ok(())
    }

    fn long(
        &mut self,
        entries: &[WalkEntry],
        name: impl Fn(&WalkEntry) -> String,
    ) -> std::result::Result<(), Failure> {
        let widest = |column: &dyn Fn(&WalkEntry) -> String| {
            entries
                .iter()
                .map(|entry| column(entry).len())
                .max()
                .unwrap_or(0)
        };
        let is_human = self.options.human;
        let size = move |entry: &WalkEntry| size_column(entry, is_human);
        let (links, uids) = (
            widest(&|entry| entry.attr.nlink.to_string()),
            widest(&|entry| entry.attr.uid.to_string()),
        );
        let (gids, sizes) = (widest(&|entry| entry.attr.gid.to_string()), widest(&size));
        for entry in entries {
            let attr = &entry.attr;
            let target = match attr.kind {
                FileKind::Symlink => match self.image.read_link(attr.inode) {
                    Ok(target) => format!(" -> {}", escape::bytes(&target)),
                    Err(error) => {
                        self.report(&error);
                        String::new()
                    }
                },
                _ => String::new(),
            };
            writeln!(
                self.out,
                "{} {:>links$} {:>uids$} {:>gids$} {:>sizes$} {} {}{target}",
                mode::display(attr.mode),
                attr.nlink,
                attr.uid,
                attr.gid,
                size(entry),
                clock::local(attr.mtime.sec),
                name(entry),
            )
            .map_err(write_failed)?;
        }
        Ok(())
    }

    fn report(&mut self, error: &durin_format::Error) {
        self.logger.error(error.to_string());
        self.errors += 1;
    }
}

/// The size, or for a device its numbers.
pub(super) fn size_column(entry: &WalkEntry, is_human: bool) -> String {
    let attr = &entry.attr;
    match attr.kind {
        FileKind::CharDevice | FileKind::BlockDevice => format!(
            "{},{}",
            rustix::fs::major(attr.rdev),
            rustix::fs::minor(attr.rdev)
        ),
        _ if is_human => size::display(attr.size),
        _ => attr.size.to_string(),
    }
}

/// One name a line, or, where there is a terminal, as many columns as fit, read downwards.
fn columns(names: &[String], width: Option<usize>) -> String {
    const GAP: usize = 2;
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0) + GAP;
    let fit = width.map_or(1, |width| ((width + GAP) / widest).max(1));
    let rows = names.len().div_ceil(fit);
    let mut text = String::new();
    for row in 0..rows {
        let mut line = String::new();
        for name in names.iter().skip(row).step_by(rows.max(1)) {
            line.push_str(name);
            line.push_str(&" ".repeat(widest.saturating_sub(name.width())));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_columns_where_there_is_a_width() {
        let names: Vec<String> = ["a", "bb", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(columns(&names, None), "a\nbb\nc\nd\ne\n");
        assert_eq!(columns(&names, Some(8)), "a   d\nbb  e\nc\n");
        assert_eq!(columns(&[], Some(80)), "");
    }
}
