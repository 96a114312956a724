//! `durin diff`: what differs between two images, or an image and a directory.

mod content;
mod side;

use std::cmp::Ordering;
use std::path::PathBuf;

use clap::{ArgMatches, Parser};
use durin_format::json::string;
use serde_json::json;

use self::content::{Comparison, Pair};
use self::side::{Node, Side};
use super::record::type_name;
use super::target::ImageArguments;
use crate::common::arguments::{self, HelpArguments, LogArguments, worker_count};
use crate::common::escape;
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;

/// Exit codes of diff(1).
const SAME: u8 = 0;
const DIFFERENT: u8 = 1;
const TROUBLE: u8 = 2;

/// Show what differs between two images, or an image and a directory, or two directories.
#[derive(Parser, Debug)]
#[command(
    override_usage = "durin diff [OPTIONS] OLD NEW",
    after_help = "Lines are: 'A path' only in NEW, 'D path' only in OLD, 'M path (what)' in both and different.\n\
                  Contents of two images are compared by blocks and chunks where these are the same, and read otherwise.\n\
                  Times are compared as finely as both sides store them. Exit status: 0 same, 1 different, 2 errors."
)]
pub(crate) struct Options {
    /// Image or directory
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// Image or directory to compare with it
    #[arg(value_name = "NEW")]
    new: PathBuf,

    #[command(flatten)]
    source: ImageArguments,

    /// Types, contents and link targets only
    #[arg(help_heading = "What to show", short, long)]
    content_only: bool,

    /// Leave out modification times
    #[arg(help_heading = "What to show", long)]
    no_times: bool,

    /// Leave out owners and groups
    #[arg(help_heading = "What to show", long)]
    no_owners: bool,

    /// Read all contents, also where blocks say that they are the same
    #[arg(help_heading = "What to show", long)]
    read_all: bool,

    /// Nothing but the exit status
    #[arg(help_heading = "What to show", short, long)]
    quiet: bool,

    /// One JSON object a difference and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    /// Threads [default: number of processors]
    #[arg(help_heading = "What to show", short = 'n', long, value_name = "N", value_parser = worker_count)]
    num_workers: Option<usize>,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Diff;

impl Program for Diff {
    type Options = Options;

    const NAME: &'static str = "durin-diff";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        compare(options, logger).map_err(|failure| match failure {
            Failure::BrokenPipe => failure,
            failure => Failure::Code(TROUBLE, failure.message().unwrap_or_default()),
        })
    }
}

/// An entry that is not the same on both sides.
struct Difference {
    path: Vec<u8>,
    change: Change,
}

enum Change {
    Added(Node),
    Removed(Node),
    /// What differs, as in `mode 0644 -> 0755`.
    Changed(Vec<String>),
}

fn compare(options: &Options, logger: &Logger) -> Result<u8, Failure> {
    let open = |path: &PathBuf| Side::open(path, &options.source, logger);
    let (old, new) = (open(&options.old)?, open(&options.new)?);
    let (old_nodes, new_nodes) = (old.nodes(logger)?, new.nodes(logger)?);
    let mut errors = old_nodes.errors + new_nodes.errors;
    let resolution = old.time_resolution()?.max(new.time_resolution()?);
    let (mut differences, mut pairs) = (Vec::new(), Vec::new());
    let (mut olds, mut news) = (
        old_nodes.nodes.into_iter().peekable(),
        new_nodes.nodes.into_iter().peekable(),
    );
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.path.cmp(&new.path),
        };
        if order == Ordering::Equal
            && let (Some(old), Some(new)) = (olds.next(), news.next())
        {
            let changes = changes(&old, &new, options, resolution);
            let is_open = old.may_have_other_content(&new);
            if is_open {
                pairs.push(Pair::new(&old, &new, differences.len()));
            }
            if is_open || !changes.is_empty() {
                differences.push(Difference {
                    path: old.path,
                    change: Change::Changed(changes),
                });
            }
        } else if order == Ordering::Less {
            differences.extend(olds.next().map(|node| Difference {
                path: node.path.clone(),
                change: Change::Removed(node),
            }));
        } else {
            differences.extend(news.next().map(|node| Difference {
                path: node.path.clone(),
                change: Change::Added(node),
            }));
        }
    }
    let comparison = Comparison {
        old: &old,
        new: &new,
        workers: options
            .num_workers
            .unwrap_or_else(arguments::processor_count),
        reads_all: options.read_all,
    };
    comparison.run(pairs, |pair, is_same| {
        let Some(difference) = differences.get_mut(pair.difference) else {
            return;
        };
        match (is_same, &mut difference.change) {
            (Ok(false), Change::Changed(what)) => what.insert(0, "content".to_owned()),
            (Ok(_), _) => {}
            (Err(error), _) => {
                logger.error(format!("{}: {error}", escape::bytes(&difference.path)));
                errors += 1;
            }
        }
    })?;
    differences.retain(
        |difference| !matches!(&difference.change, Change::Changed(what) if what.is_empty()),
    );
    if !options.quiet {
        write_all(&differences, options)?;
    }
    Ok(match (errors, differences.is_empty()) {
        (0, true) => SAME,
        (0, false) => DIFFERENT,
        _ => TROUBLE,
    })
}

/// What differs between two entries of a path, but for the contents of files.
fn changes(old: &Node, new: &Node, options: &Options, resolution_ns: u64) -> Vec<String> {
    let mut changes = Vec::new();
    if old.kind != new.kind {
        changes.push(format!(
            "type {} -> {}",
            type_name(old.kind),
            type_name(new.kind)
        ));
        return changes;
    }
    if let (Some(old), Some(new)) = (&old.target, &new.target)
        && old != new
    {
        changes.push(format!(
            "target {} -> {}",
            escape::bytes(old),
            escape::bytes(new)
        ));
    }
    if old.rdev != new.rdev {
        changes.push("device".to_owned());
    }
    if let (Some(old), Some(new)) = (old.size, new.size)
        && old != new
    {
        changes.push(format!("content, size {old} -> {new}"));
    }
    if options.content_only {
        return changes;
    }
    if old.mode != new.mode {
        changes.push(format!("mode {:04o} -> {:04o}", old.mode, new.mode));
    }
    if !options.no_owners && (old.uid, old.gid) != (new.uid, new.gid) {
        changes.push(format!(
            "owner {}:{} -> {}:{}",
            old.uid, old.gid, new.uid, new.gid
        ));
    }
    if !options.no_times && old.mtime_in(resolution_ns) != new.mtime_in(resolution_ns) {
        changes.push("mtime".to_owned());
    }
    changes
}

fn write_all(differences: &[Difference], options: &Options) -> Result<(), Failure> {
    output::to_stdout(|out| {
        for difference in differences {
            let line = if options.json {
                json_line(difference)
            } else {
                text_line(difference)
            };
            writeln!(out, "{line}").map_err(write_failed)?;
        }
        Ok(())
    })
}

fn text_line(difference: &Difference) -> String {
    let path = super::target::shown(&difference.path);
    match &difference.change {
        Change::Added(_) => format!("A {path}"),
        Change::Removed(_) => format!("D {path}"),
        Change::Changed(what) => format!("M {path} ({})", what.join("; ")),
    }
}

fn json_line(difference: &Difference) -> String {
    let path = string(&difference.path);
    let with_node = |change: &str, node: &Node| json!({ "path": path, "change": change, "type": type_name(node.kind), "size": node.size });
    match &difference.change {
        Change::Added(node) => with_node("added", node),
        Change::Removed(node) => with_node("removed", node),
        Change::Changed(what) => json!({ "path": path, "change": "changed", "what": what }),
    }
    .to_string()
}
