//! `durin info`: what an image is, on half a screen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{ArgMatches, Parser};
use durin_format::section::{CompressionType, SectionType};
use durin_reader::{FileKind, Image, Info};
use serde_json::json;

use super::record;
use super::target::ImageArguments;
use crate::common::arguments::{HelpArguments, LogArguments};
use crate::common::exit::{self, Failure};
use crate::common::logger::Logger;
use crate::common::program::Program;
use crate::common::{clock, escape, output, ratio, size};

/// Tell what an image is: origin, sizes, files, codecs.
#[derive(Parser, Debug)]
#[command(override_usage = "durin info [OPTIONS] IMAGE...")]
pub(crate) struct Options {
    /// Images to look at
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,

    #[command(flatten)]
    source: ImageArguments,

    /// One JSON object an image and line
    #[arg(help_heading = "What to show", short, long)]
    json: bool,

    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    help: HelpArguments,
}

/// The command as [`crate::common::program`] runs it.
pub(crate) struct InfoCommand;

impl Program for InfoCommand {
    type Options = Options;

    const NAME: &'static str = "durin-info";

    fn logger(options: &Options) -> Logger {
        options.log.logger()
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let mut errors = 0;
        for (index, path) in options.images.iter().enumerate() {
            let facts = options
                .source
                .open(path, 0, logger)
                .and_then(|image| Facts::of(&image));
            match facts {
                Ok(facts) if options.json => output::print(&format!("{}\n", facts.json(path)))?,
                Ok(facts) => {
                    let gap = if index == 0 { "" } else { "\n" };
                    output::print(&format!("{gap}{}", facts.text(path)))?;
                }
                Err(error) => {
                    logger.error(error.to_string());
                    errors += 1;
                }
            }
        }
        Ok(exit::of_errors(errors))
    }
}

struct Facts {
    info: Info,
    image_size: u64,
    /// Number of inodes by type.
    inodes: BTreeMap<FileKind, u64>,
    entries: u32,
    /// By codec: number of blocks, bytes as stored.
    codecs: BTreeMap<String, (u64, u64)>,
}

impl Facts {
    fn of(image: &Image) -> durin_format::Result<Self> {
        let mut inodes = BTreeMap::new();
        for inode in 0..image.inode_count() {
            let entry = image.canonical_entry(durin_format::InodeNum(inode))?;
            *inodes.entry(image.kind(entry)?).or_default() += 1;
        }
        let info = image.info()?;
        let mut codecs: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let blocks = info.sections.iter();
        for block in blocks.filter(|section| section.section_type == SectionType::Block) {
            let name = match block.compression {
                Some(CompressionType::None) => "stored".to_owned(),
                Some(compression) => compression.name().to_ascii_lowercase(),
                None => "unreadable".to_owned(),
            };
            let sum = codecs.entry(name).or_default();
            sum.0 += 1;
            sum.1 += block.compressed_size;
        }
        Ok(Self {
            info,
            image_size: image.len(),
            inodes,
            entries: image.entry_count(),
            codecs,
        })
    }

    fn text(&self, path: &std::path::Path) -> String {
        let info = &self.info;
        let mut text = format!("{}\n", escape::path(path));
        let mut line = |name: &str, value: String| {
            text.push_str(&format!("  {name:<11} {value}\n"));
        };
        let version = info.version;
        let by = info.created_by.as_deref().unwrap_or("an unnamed program");
        let on = info.created_on.map_or_else(String::new, |seconds| {
            // As far as any calendar goes; an image can say any number.
            let seconds = i64::try_from(seconds.min(1 << 48)).unwrap_or_default();
            format!(", {}", clock::local(seconds))
        });
        line(
            "format",
            format!("DwarFS {}.{}", version.major, version.minor),
        );
        line("made by", format!("{}{on}", escape::bytes(by.as_bytes())));
        if info.image_offset > 0 {
            line("starts at", format!("{} bytes", info.image_offset));
        }
        let original = info
            .original_allocated_filesystem_size
            .unwrap_or(info.original_filesystem_size);
        line(
            "size",
            format!(
                "{} of {} ({})",
                size::display(self.image_size),
                size::display(original),
                ratio::display(self.image_size, original)
            ),
        );
        let kinds: Vec<String> = self
            .inodes
            .iter()
            .map(|(kind, count)| format!("{count} {}", plural(*kind, *count)))
            .collect();
        line(
            "contents",
            format!("{} ({} entries)", kinds.join(", "), self.entries),
        );
        let codecs: Vec<String> = self
            .codecs
            .iter()
            .map(|(name, (count, stored))| format!("{count} {name} {}", size::display(*stored)))
            .collect();
        line(
            "blocks",
            format!(
                "{} of at most {}: {}",
                info.block_count,
                size::display(info.block_size.into()),
                codecs.join(", ")
            ),
        );
        for category in &info.categories {
            line(
                "",
                format!(
                    "{}: {} blocks, {}",
                    escape::bytes(category.name.as_bytes()),
                    category.block_count,
                    size::display(category.compressed_size)
                ),
            );
        }
        line(
            "metadata",
            format!(
                "{} of {}{}",
                size::display(info.compressed_metadata_size),
                size::display(info.uncompressed_metadata_size),
                if info.valid_section_index {
                    ""
                } else {
                    ", no section index"
                }
            ),
        );
        if !info.features.is_empty() {
            line(
                "features",
                escape::bytes(info.features.join(", ").as_bytes()),
            );
        }
        text
    }

    fn json(&self, path: &std::path::Path) -> serde_json::Value {
        use std::os::unix::ffi::OsStrExt as _;
        let mut record = self.info.to_json();
        if let Some(fields) = record.as_object_mut() {
            // Long lists, which `dwarfsck --json` shows.
            for name in ["sections", "history", "meta"] {
                fields.remove(name);
            }
            let inodes = self.inodes.iter();
            let inodes: serde_json::Map<String, serde_json::Value> = inodes
                .map(|(kind, count)| (record::type_name(*kind).to_owned(), (*count).into()))
                .collect();
            let codecs = self.codecs.iter();
            let codecs: serde_json::Map<String, serde_json::Value> = codecs
                .map(|(name, (count, stored))| {
                    (
                        name.clone(),
                        json!({ "block_count": count, "compressed_size": stored }),
                    )
                })
                .collect();
            fields.insert(
                "image".to_owned(),
                durin_format::json::string(path.as_os_str().as_bytes()),
            );
            fields.insert("image_size".to_owned(), self.image_size.into());
            fields.insert("entries".to_owned(), self.entries.into());
            fields.insert("inodes".to_owned(), inodes.into());
            fields.insert("codecs".to_owned(), codecs.into());
        }
        record
    }
}

fn plural(kind: FileKind, count: u64) -> &'static str {
    let (one, many) = match kind {
        FileKind::Directory => ("directory", "directories"),
        FileKind::Regular => ("file", "files"),
        FileKind::Symlink => ("link", "links"),
        FileKind::CharDevice => ("character device", "character devices"),
        FileKind::BlockDevice => ("block device", "block devices"),
        FileKind::Fifo => ("fifo", "fifos"),
        FileKind::Socket => ("socket", "sockets"),
    };
    if count == 1 { one } else { many }
}
