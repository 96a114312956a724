//! Every structure as text that stays the same: for people, and for tests that compare.
//!
//! Strings stand in double quotes, with bytes outside printable ASCII escaped as in Rust.

use std::fmt::Write as _;

use crate::digest::hex;
use crate::frozen::schema::{Layout, Schema};
use crate::history::{DwarfsVersion, History, HistoryEntry};
use crate::metadata::Metadata;
use crate::metadata::describe::{Describe as _, Shape};
use crate::section::SectionHeader;

/// One line a section: what its header says, and the offset of the header from wherever the caller counts, in bytes.
#[must_use]
pub fn sections<'a>(sections: impl IntoIterator<Item = (u64, &'a SectionHeader)>) -> String {
    let mut out = String::new();
    for (place, (offset, header)) in sections.into_iter().enumerate() {
        line(&mut out, 0, &section(place, offset, header));
    }
    out
}

/// One line a layout, each with the fields it has: `3: L2 @ bit 7`.
#[must_use]
pub fn schema(schema: &Schema) -> String {
    let mut out = String::new();
    line(&mut out, 0, &format!("root: L{}", schema.root));
    for (number, layout) in schema.layouts.iter().enumerate() {
        line(&mut out, 0, &format!("L{number}: {}", self::layout(layout)));
    }
    out
}

/// One line a value; tables have a line an item. Values are as stored.
#[must_use]
pub fn metadata(metadata: &Metadata) -> String {
    let mut out = String::new();
    if let Shape::Fields(fields) = metadata.describe() {
        fields
            .into_iter()
            .for_each(|(name, shape)| entry(&mut out, 0, name, shape));
    }
    out
}

/// A few lines an entry, oldest first.
#[must_use]
pub fn history(history: &History) -> String {
    let mut out = String::new();
    for (number, entry) in history.entries.iter().enumerate() {
        history_entry(&mut out, number, entry);
    }
    out
}

fn section(place: usize, offset: u64, header: &SectionHeader) -> String {
    let number = header
        .number
        .map_or("-".to_owned(), |number| number.to_string());
    let mut text = format!(
        "{place}: {} {} version {} number {number} offset {offset} length {}",
        code_name(header.section_type.name(), header.section_type.into()),
        code_name(header.compression.name(), header.compression.into()),
        header.version,
        header.payload_len,
    );
    if let Some(checksums) = &header.checksums {
        text += &format!(
            " xxh3 {:016x} sha2 {}",
            checksums.xxh3_64,
            hex(&checksums.sha2_512_256)
        );
    }
    text
}

fn code_name(name: &str, code: u16) -> String {
    match name {
        "UNKNOWN" => format!("UNKNOWN({code})"),
        name => name.to_owned(),
    }
}

fn layout(layout: &Layout) -> String {
    let mut text = match layout.size {
        0 => format!("{} bits", layout.bits),
        size => format!("{size} bytes, {} bits", layout.bits),
    };
    let fields: Vec<String> = layout
        .fields
        .iter()
        .map(|field| {
            let place = match field.offset {
                0.. => format!("byte {}", field.offset),
                ..0 => format!("bit {}", field.offset.unsigned_abs()),
            };
            format!("{}: L{} @ {place}", field.id, field.layout)
        })
        .collect();
    if !fields.is_empty() {
        text += &format!(" {{{}}}", fields.join(", "));
    }
    text
}

/// The depth of the recursion is that of the types of the metadata: four.
fn entry(out: &mut String, depth: usize, name: &str, shape: Shape<'_>) {
    let scalar = match shape {
        Shape::Unset => return,
        Shape::List(items) => {
            line(out, depth, &format!("{name}:"));
            for (index, item) in items.enumerate() {
                entry(out, depth + 1, &index.to_string(), item);
            }
            return;
        }
        Shape::Pairs(pairs) => {
            line(out, depth, &format!("{name}:"));
            pairs.for_each(|(key, value)| line(out, depth + 1, &format!("{key} -> {value}")));
            return;
        }
        Shape::Fields(fields) => {
            let plain: Option<Vec<String>> = fields
                .iter()
                .filter(|(_, shape)| !matches!(shape, Shape::Unset))
                .map(|(name, shape)| Some(format!("{name} {}", scalar(shape)?)))
                .collect();
            let Some(plain) = plain else {
                line(out, depth, &format!("{name}:"));
                for (name, shape) in fields {
                    entry(out, depth + 1, name, shape);
                }
                return;
            };
            plain.join(", ")
        }
        other => scalar(&other).unwrap_or_default(),
    };
    line(out, depth, &format!("{name}: {scalar}"));
}

fn scalar(shape: &Shape<'_>) -> Option<String> {
    match shape {
        Shape::Flag(flag) => Some(flag.to_string()),
        Shape::Number(number) => Some(number.to_string()),
        Shape::Bytes(bytes) => Some(quoted(bytes)),
        _ => None,
    }
}

fn history_entry(out: &mut String, number: usize, entry: &HistoryEntry) {
    let HistoryEntry {
        version,
        system_id,
        compiler_id,
        arguments,
        timestamp,
        library_versions,
    } = entry;
    line(out, 0, &format!("{number}: {}", release(version)));
    let mut text =
        |name: &str, text: &str| line(out, 1, &format!("{name}: {}", quoted(text.as_bytes())));
    text("system_id", system_id);
    text("compiler_id", compiler_id);
    for argument in arguments.iter().flatten() {
        text("argument", argument);
    }
    for library in library_versions.iter().flatten() {
        text("library", library);
    }
    if let Some(timestamp) = timestamp {
        line(out, 1, &format!("timestamp: {timestamp}"));
    }
}

fn release(version: &DwarfsVersion) -> String {
    let DwarfsVersion {
        major,
        minor,
        patch,
        is_release,
        git_rev,
        git_branch,
        git_desc,
    } = version;
    let mut text = format!("version {major}.{minor}.{patch}");
    if !is_release {
        text += ", not a release";
    }
    for (name, value) in [("rev", git_rev), ("branch", git_branch), ("desc", git_desc)] {
        if let Some(value) = value {
            text += &format!(", {name} {}", quoted(value.as_bytes()));
        }
    }
    text
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a String cannot fail.
    writeln!(out, "{:1$}{text}", "", 2 * depth).unwrap_or_default();
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::frozen::schema::Field;
    use crate::metadata::{Chunk, FsOptions, InodeSizeCache};
    use crate::section::{CompressionType, SectionType, Version, encode_header};

    #[test]
    fn section_lines() {
        let bytes = encode_header(3, SectionType::Unknown(99), CompressionType::Zstd, b"x");
        let v2 = SectionHeader::parse_v2(&bytes).unwrap();
        let version = Version { major: 2, minor: 0 };
        let v1 = SectionHeader::parse_v1(&[8, 0, 1, 0, 9, 0, 0, 0], version).unwrap();
        let text = sections([(0, &v1), (17, &v2)]);
        let lines: Vec<&str> = text.lines().collect();
        let [first, second] = lines.as_slice() else {
            panic!("{text}");
        };
        assert_eq!(
            *first,
            "0: METADATA_V2 LZMA version 2.0 number - offset 0 length 9"
        );
        assert!(
            second.starts_with("1: UNKNOWN(99) ZSTD version 2.5 number 3 offset 17 length 1 xxh3 ")
        );
    }

    #[test]
    fn schema_lines() {
        let field = |id, layout, offset| Field { id, layout, offset };
        let text = schema(&Schema {
            layouts: vec![
                Layout {
                    bits: 5,
                    ..Layout::default()
                },
                Layout {
                    size: 27,
                    bits: 211,
                    fields: vec![field(1, 0, 0), field(2, 0, -6)],
                },
            ],
            root: 1,
        });
        assert_eq!(
            text,
            "root: L1\nL0: 5 bits\nL1: 27 bytes, 211 bits {1: L0 @ byte 0, 2: L0 @ bit 6}\n"
        );
    }

    #[test]
    fn metadata_lines() {
        let text = metadata(&Metadata {
            chunks: vec![
                Chunk::default(),
                Chunk {
                    size: 5,
                    ..Chunk::default()
                },
            ],
            names: vec![b"a\n\xff".to_vec()],
            options: Some(FsOptions {
                time_resolution_sec: Some(2),
                ..FsOptions::default()
            }),
            reg_file_size_cache: Some(InodeSizeCache {
                size_lookup: BTreeMap::from([(3, 4)]),
                ..InodeSizeCache::default()
            }),
            ..Metadata::default()
        });
        for expect in [
            "chunks:\n  0: block 0, offset 0, size 0\n  1: block 0, offset 0, size 5\n",
            "names:\n  0: \"a\\n\\xff\"\n",
            "\noptions: mtime_only false, time_resolution_sec 2, packed_chunk_table false,",
            "\nreg_file_size_cache:\n  size_lookup:\n    3 -> 4\n  min_chunk_count: 0\n",
        ] {
            assert!(text.contains(expect), "{expect:?} in\n{text}");
        }
        assert!(
            !text.contains("dir_entries"),
            "unset optionals are left out"
        );
    }

    #[test]
    fn history_lines() {
        let text = history(&History {
            entries: vec![HistoryEntry {
                version: DwarfsVersion {
                    minor: 13,
                    is_release: true,
                    git_desc: Some("v0.13.0".into()),
                    ..DwarfsVersion::default()
                },
                system_id: "Linux".into(),
                arguments: Some(vec!["-i".into(), "\u{e9}".into()]),
                timestamp: Some(7),
                library_versions: Some(BTreeSet::from(["xz".into()])),
                ..HistoryEntry::default()
            }],
        });
        assert_eq!(
            text,
            "0: version 0.13.0, desc \"v0.13.0\"\n  system_id: \"Linux\"\n  compiler_id: \"\"\n  \
             argument: \"-i\"\n  argument: \"\\xc3\\xa9\"\n  library: \"xz\"\n  timestamp: 7\n"
        );
    }
}
