//! `durin stat`: everything that is known about a file of an image, its place in the blocks included.

use std::collections::BTreeSet;

use clap::{ArgMatches, Parser};
use durin_format::Result;
use durin_reader::{FileKind, Image, Place, Time, WalkEntry};
use serde_json::{Value, json};

use super::record;
use super::target::{LastLink, Target, shown};
use crate::common::arguments::{HelpArguments, LogArguments};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::program::Program;
use crate::common::{clock, escape, mode};

/// Chunks that are shown one by one; a file can have millions.
const CHUNKS_SHOWN: usize = 16;

/// Show all attributes of files of an image, and where their data is.
#[derive(Parser, Debug)]
#[command(override_usage = "durin stat [OPTIONS] IMAGE [PATH]...")]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,

    /// What a link points to and not the link
    #[arg(help_heading = "What to show", short = 'L', long)]
    dereference: bool,

    /// All chunks and not the first few
    #[arg(help_heading = "What to show", long)]
    chunks: bool,

    /// One JSON object a file and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct Stat;

impl Program for Stat {
    type Options = Options;

    const NAME: &'static str = "durin-stat";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(
        options: &Options,
        _matches: &ArgMatches,
        logger: &Logger,
    ) -> std::result::Result<u8, Failure> {
        let image = options.target.open(0, logger)?;
        let last = if options.dereference {
            LastLink::Follow
        } else {
            LastLink::Keep
        };
        let (found, errors) = options.target.find(&image, last, logger)?;
        output::to_stdout(|out| {
            for place in found {
                let entry = WalkEntry {
                    attr: image.attr(place.entry)?,
                    path: place.path,
                    entry: place.entry,
                };
                let text = if options.json {
                    format!("{}\n", record_of(&image, &entry)?)
                } else {
                    text(&image, &entry, options)?
                };
                out.write_all(text.as_bytes()).map_err(write_failed)?;
            }
            Ok(())
        })?;
        Ok(exit::of_errors(errors))
    }
}

fn text(image: &Image, entry: &WalkEntry, options: &Options) -> Result<String> {
    let attr = &entry.attr;
    let mut text = format!("  File: {}", shown(&entry.path));
    if attr.kind == FileKind::Symlink {
        let target = image.read_link(attr.inode)?;
        text.push_str(&format!(" -> {}", escape::bytes(&target)));
    }
    let allocated = match attr.allocated {
        allocated if allocated != attr.size => format!(" ({allocated} without holes)"),
        _ => String::new(),
    };
    text.push_str(&format!(
        "\n  Size: {}{allocated}  {}\n Inode: {}  Links: {}\nAccess: {:04o}/{}  Uid: {}  Gid: {}\n",
        attr.size,
        record::type_name(attr.kind),
        attr.inode,
        attr.nlink,
        attr.mode & 0o7777,
        mode::display(attr.mode),
        attr.uid,
        attr.gid,
    ));
    if matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice) {
        let (major, minor) = (rustix::fs::major(attr.rdev), rustix::fs::minor(attr.rdev));
        text.push_str(&format!("Device: {major},{minor}\n"));
    }
    for (name, time) in [
        ("Access", attr.atime),
        ("Modify", attr.mtime),
        ("Change", attr.ctime),
    ] {
        text.push_str(&format!("{name}: {}\n", time_text(time)));
    }
    if attr.kind == FileKind::Regular {
        text.push_str(&data_text(image, entry, options)?);
    }
    Ok(text)
}

fn time_text(time: Time) -> String {
    let local = clock::local(time.sec);
    if time.nsec == 0 {
        local.to_string()
    } else {
        format!("{local}.{:09}", time.nsec)
    }
}

fn data_text(image: &Image, entry: &WalkEntry, options: &Options) -> Result<String> {
    let inode = entry.attr.inode;
    let content = image.content_number(inode)?;
    let mut blocks = BTreeSet::new();
    let (mut lines, mut count) = (String::new(), 0_usize);
    for extent in image.chunks(inode)? {
        let extent = extent?;
        count += 1;
        let is_shown = options.chunks || count <= CHUNKS_SHOWN;
        let place = match extent.place {
            Place::Hole => "hole".to_owned(),
            Place::Data { block, offset } => {
                blocks.insert(block.0);
                format!("block {block} at {offset}")
            }
        };
        if is_shown {
            lines.push_str(&format!("  {}+{}: {place}\n", extent.offset, extent.len));
        }
    }
    let mut text = format!(
        "  Data: content {content}, {count} chunks in {} blocks\n{lines}",
        blocks.len()
    );
    if !options.chunks && count > CHUNKS_SHOWN {
        text.push_str(&format!(
            "  ... and {} more (--chunks)\n",
            count - CHUNKS_SHOWN
        ));
    }
    Ok(text)
}

fn record_of(image: &Image, entry: &WalkEntry) -> Result<Value> {
    let mut record = record::of(image, entry)?;
    let Some(fields) = record.as_object_mut() else {
        return Ok(record);
    };
    let attr = &entry.attr;
    for (name, time) in [("atime", attr.atime), ("ctime", attr.ctime)] {
        fields.insert(name.to_owned(), time.sec.into());
        fields.insert(format!("{name}_nsec"), time.nsec.into());
    }
    if attr.kind == FileKind::Regular {
        let mut chunks = Vec::new();
        for extent in image.chunks(attr.inode)? {
            let extent = extent?;
            chunks.push(match extent.place {
                Place::Hole => json!({ "kind": "hole", "size": extent.len }),
                Place::Data { block, offset } => json!({
                    "kind": "data", "block": block.0, "offset": offset, "size": extent.len,
                }),
            });
        }
        fields.insert(
            "content".to_owned(),
            image.content_number(attr.inode)?.into(),
        );
        fields.insert("chunks".to_owned(), chunks.into());
    }
    Ok(record)
}
