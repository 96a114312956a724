//! `durin grep`: lines of files of an image.

use std::io::Write;

use clap::{ArgMatches, Parser};
use durin_format::Result;
use durin_format::json::string;
use durin_glob::{Case, Glob};
use durin_reader::{Image, WalkEntry};
use regex::bytes::RegexBuilder;
use serde_json::json;

use super::grep_lines::{Found, Line, Search};
use super::target::{LastLink, Target};
use crate::common::arguments::{self, HelpArguments, LogArguments, count, worker_count};
use crate::common::contents::{self, Content};
use crate::common::escape;
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;

/// What grep(1) returns when something went wrong.
const TROUBLE: u8 = 2;

/// Search files of an image for lines that match a pattern.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin grep [OPTIONS] PATTERN IMAGE [PATH]...",
    after_help = "Files come in the order of their data, each content is searched once, and all processors are used.\n\
                  Exit status: 0 if a line matched, 1 if none did, 2 on errors."
)]
pub(crate) struct Options {
    /// Regular expression, in the syntax of the Rust crate regex
    #[arg(value_name = "PATTERN")]
    pattern: String,

    #[command(flatten)]
    target: Target,

    /// The pattern is a plain text
    #[arg(help_heading = "What to show", short = 'F', long)]
    fixed_strings: bool,

    /// Upper and lower case alike
    #[arg(help_heading = "What to show", short, long)]
    ignore_case: bool,

    /// Only whole words
    #[arg(help_heading = "What to show", short, long)]
    word_regexp: bool,

    /// Lines that do not match
    #[arg(help_heading = "What to show", short = 'v', long)]
    invert_match: bool,

    /// Numbers of lines, too
    #[arg(help_heading = "What to show", short = 'n', long)]
    line_number: bool,

    /// Only the paths of files with matches
    #[arg(help_heading = "What to show", short = 'l', long, conflicts_with_all = ["count", "only_matching", "json"])]
    files_with_matches: bool,

    /// Only how many lines of each file match
    #[arg(help_heading = "What to show", short, long, conflicts_with_all = ["only_matching", "json"])]
    count: bool,

    /// Only the parts that match
    #[arg(
        help_heading = "What to show",
        short,
        long,
        conflicts_with = "invert_match"
    )]
    only_matching: bool,

    /// At most so many lines of a file
    #[arg(help_heading = "What to show", short, long, value_name = "N", value_parser = count::<u64>, default_value_t = u64::MAX, hide_default_value = true)]
    max_count: u64,

    /// Lines after a match, too
    #[arg(
        help_heading = "What to show",
        short = 'A',
        long,
        value_name = "N", value_parser = count::<usize>,
        default_value_t = 0,
        hide_default_value = true
    )]
    after_context: usize,

    /// Lines before a match, too
    #[arg(
        help_heading = "What to show",
        short = 'B',
        long,
        value_name = "N", value_parser = count::<usize>,
        default_value_t = 0,
        hide_default_value = true
    )]
    before_context: usize,

    /// Both
    #[arg(
        help_heading = "What to show",
        short = 'C',
        long,
        value_name = "N", value_parser = count::<usize>,
        default_value_t = 0,
        hide_default_value = true
    )]
    context: usize,

    /// No paths before lines
    #[arg(help_heading = "What to show", long)]
    no_filename: bool,

    /// Search binary files like text
    #[arg(help_heading = "What to show", short = 'a', long)]
    text: bool,

    /// Only files whose name matches
    #[arg(help_heading = "What to show", long, value_name = "GLOB", value_parser = glob)]
    include: Vec<Glob>,

    /// No files whose name matches
    #[arg(help_heading = "What to show", long, value_name = "GLOB", value_parser = glob)]
    exclude: Vec<Glob>,

    /// Nothing but the exit status
    #[arg(help_heading = "What to show", short, long)]
    quiet: bool,

    /// One JSON object a line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    /// Threads [default: number of processors]
    #[arg(help_heading = "What to show", long, value_name = "N", value_parser = worker_count)]
    num_workers: Option<usize>,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

fn glob(pattern: &str) -> std::result::Result<Glob, String> {
    Glob::parse(pattern, Case::Sensitive).map_err(|error| error.to_string())
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Grep;

impl Program for Grep {
    type Options = Options;

    const NAME: &'static str = "durin-grep";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(
        options: &Options,
        _matches: &ArgMatches,
        logger: &Logger,
    ) -> std::result::Result<u8, Failure> {
        let search = search(options)?;
        let workers = options
            .num_workers
            .unwrap_or_else(arguments::processor_count);
        let threads_ahead = contents::threads_ahead(workers);
        let image = options.target.open(threads_ahead, logger)?;
        let (tops, missing) = options.target.find(&image, LastLink::Follow, logger)?;
        let entries = tops
            .into_iter()
            .flat_map(|top| image.walk_from(top.entry, top.path))
            .filter(|entry| {
                entry
                    .as_ref()
                    .map_or(true, |entry| is_wanted(entry, options))
            });
        let (contents, mut errors) = contents::in_data_order(&image, entries, logger)?;
        errors += missing;
        let has_match = output_all(
            &image,
            &search,
            &contents,
            workers,
            options,
            logger,
            &mut errors,
        )?;
        Ok(match (errors, has_match) {
            (0, true) => exit::SUCCESS,
            (0, false) => exit::FAILURE,
            _ => TROUBLE,
        })
    }
}

fn search(options: &Options) -> std::result::Result<Search, Failure> {
    let mut pattern = if options.fixed_strings {
        regex::escape(&options.pattern)
    } else {
        options.pattern.clone()
    };
    if options.word_regexp {
        pattern = format!(r"\b(?:{pattern})\b");
    }
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(options.ignore_case)
        .build()
        .map_err(|error| Failure::Code(TROUBLE, format!("bad pattern: {error}")))?;
    let needs_lines = !(options.quiet || options.files_with_matches);
    Ok(Search {
        pattern,
        is_inverted: options.invert_match,
        is_text: options.text,
        stops_at_first: !needs_lines,
        counts: options.count,
        count_max: options.max_count,
        before: options.before_context.max(options.context),
        after: options.after_context.max(options.context),
        only_matching: options.only_matching,
    })
}

fn is_wanted(entry: &WalkEntry, options: &Options) -> bool {
    let name = entry
        .path
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    (options.include.is_empty() || options.include.iter().any(|glob| glob.is_match(name)))
        && !options.exclude.iter().any(|glob| glob.is_match(name))
}

/// Searches all contents and writes what is found; returns whether something was.
fn output_all(
    image: &Image,
    search: &Search,
    contents: &[Content],
    workers: usize,
    options: &Options,
    logger: &Logger,
    errors: &mut u64,
) -> std::result::Result<bool, Failure> {
    let mut has_match = false;
    output::to_stdout(|out| {
        let work = |(): &mut (), content: &Content| search.file(image, content.inode);
        let finish = |content: &Content, found: Result<Found>| {
            for path in &content.paths {
                let path = &path.whole()[..];
                match &found {
                    Ok(found) => {
                        has_match |= found.count > 0;
                        if !options.quiet {
                            write_file(path, found, options, out)?;
                        }
                        if found.is_cut {
                            logger.warn(format!(
                                "{}: more lines than are shown",
                                escape::bytes(path)
                            ));
                        }
                    }
                    Err(error) => {
                        logger.error(format!("{}: {error}", escape::bytes(path)));
                        *errors += 1;
                    }
                }
            }
            Ok(())
        };
        contents::each_content(image, contents, workers, || (), work, finish)
    })?;
    Ok(has_match)
}

fn write_file(
    path: &[u8],
    found: &Found,
    options: &Options,
    out: &mut dyn Write,
) -> std::result::Result<(), Failure> {
    let shown = escape::bytes(path);
    if options.count {
        return writeln!(out, "{shown}:{}", found.count).map_err(write_failed);
    }
    if found.count == 0 {
        return Ok(());
    }
    if options.files_with_matches {
        return writeln!(out, "{shown}").map_err(write_failed);
    }
    if found.is_binary {
        return if options.json {
            writeln!(out, "{}", json!({ "path": string(path), "binary": true }))
        } else {
            writeln!(out, "binary file {shown} matches")
        }
        .map_err(write_failed);
    }
    let mut last = None;
    for line in &found.lines {
        let has_gap = last.is_some_and(|last| line.number > last + 1);
        let has_context = options
            .before_context
            .max(options.after_context)
            .max(options.context)
            > 0;
        if has_gap && has_context && !options.json {
            writeln!(out, "--").map_err(write_failed)?;
        }
        last = Some(line.number);
        out.write_all(&text(path, &shown, line, options))
            .map_err(write_failed)?;
    }
    Ok(())
}

fn text(path: &[u8], shown: &str, line: &Line, options: &Options) -> Vec<u8> {
    if options.json {
        let record = json!({
            "path": string(path),
            "line": line.number,
            "text": string(&line.text),
            "match": line.is_match,
        });
        return format!("{record}\n").into_bytes();
    }
    // As in grep(1): a colon after what precedes a match, a dash for lines around it.
    let mark = if line.is_match { ':' } else { '-' };
    let mut text = String::new();
    if !options.no_filename {
        text.push_str(shown);
        text.push(mark);
    }
    if options.line_number {
        text.push_str(&format!("{}{mark}", line.number));
    }
    let mut text = text.into_bytes();
    text.extend_from_slice(&line.text);
    text.push(b'\n');
    text
}
