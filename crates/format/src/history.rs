//! The history of an image: who built it, when, with what and how.
//!
//! Purely informational; several sections of type `HISTORY` are read one after the other.
//! Source: docs/format.md, "History section".

use std::collections::BTreeSet;

use crate::limits::{HISTORY_BYTES_MAX, HISTORY_ENTRY_COUNT_MAX, HISTORY_TEXT_COUNT_MAX};
use crate::thrift::{Reader, Type, Writer};
use crate::{Error, Result};

/// All entries of one section, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// One for the build and one for each rewrite.
    pub entries: Vec<HistoryEntry>,
}

/// One build or rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The release that did it.
    pub version: DwarfsVersion,
    /// Operating system and processor.
    pub system_id: String,
    /// The compiler of that release.
    pub compiler_id: String,
    /// The command line.
    pub arguments: Option<Vec<String>>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    /// Libraries and their versions.
    pub library_versions: Option<BTreeSet<String>>,
}

/// The version of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DwarfsVersion {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
    /// Whether it is a release and not a state between two.
    pub is_release: bool,
    /// The revision it was built from.
    pub git_rev: Option<String>,
    /// The branch it was built from.
    pub git_branch: Option<String>,
    /// The nearest release, and how far from it.
    pub git_desc: Option<String>,
}

impl History {
    /// Parses the payload of a section of type `HISTORY`, after decompression.
    ///
    /// Texts that are not UTF-8 have the offending bytes replaced: they are for people to read.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a Compact struct, `Limit` above [`HISTORY_BYTES_MAX`],
    /// [`HISTORY_ENTRY_COUNT_MAX`] or [`HISTORY_TEXT_COUNT_MAX`].
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut history = Self::default();
        history.append(payload, &mut Room::default())?;
        Ok(history)
    }

    /// Parses the decompressed payload of a further HISTORY section and takes what it needs from `room`.
    ///
    /// # Errors
    /// As [`Self::parse`]. What was parsed before the error stays.
    pub fn append(&mut self, payload: &[u8], room: &mut Room) -> Result<()> {
        let left = room.bytes.checked_sub(payload.len() as u64);
        room.bytes = left.ok_or_else(|| {
            Error::limit(format!(
                "history of {} bytes is longer than what is left of HISTORY_BYTES_MAX = {HISTORY_BYTES_MAX}",
                payload.len()
            ))
        })?;
        let mut reader = Reader::new(payload);
        read_history(&mut reader, &mut self.entries, room).map_err(|error| error.context("history"))
    }

    /// Builds the payload, before compression. Timestamps are stored modulo 2^64.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut last_id = 0;
        writer.list_field(&mut last_id, 1, Type::Struct, self.entries.len());
        for entry in &self.entries {
            write_entry(&mut writer, entry);
        }
        writer.stop();
        writer.into_bytes()
    }
}

/// What the history sections of an image may still take, all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    bytes: u64,
    entries: usize,
    texts: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: HISTORY_BYTES_MAX,
            entries: HISTORY_ENTRY_COUNT_MAX,
            texts: HISTORY_TEXT_COUNT_MAX,
        }
    }
}

impl Room {
    /// Bytes that a payload may have after decompression.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Takes one from what is left of `count`.
fn take_one(count: &mut usize, what: &str) -> Result<()> {
    *count = count
        .checked_sub(1)
        .ok_or_else(|| Error::limit(format!("too many {what}")))?;
    Ok(())
}

fn read_history(
    reader: &mut Reader<'_>,
    entries: &mut Vec<HistoryEntry>,
    room: &mut Room,
) -> Result<()> {
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::List) => {
                let (element, count) = reader.list_header()?;
                for _ in 0..count {
                    if element == Type::Struct {
                        take_one(&mut room.entries, "entries")?;
                        entries.push(read_entry(reader, room)?);
                    } else {
                        reader.skip_element(element)?;
                    }
                }
            }
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(())
}

fn read_entry(reader: &mut Reader<'_>, room: &mut Room) -> Result<HistoryEntry> {
    let mut entry = HistoryEntry::default();
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::Struct) => entry.version = read_version(reader)?,
            (2, Type::Binary) => entry.system_id = read_text(reader)?,
            (3, Type::Binary) => entry.compiler_id = read_text(reader)?,
            (4, Type::List) => entry.arguments = Some(read_texts(reader, room)?),
            (5, Type::I64) => entry.timestamp = Some(reader.read_i64()?.cast_unsigned()),
            (6, Type::Set) => {
                entry.library_versions = Some(read_texts(reader, room)?.into_iter().collect());
            }
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(entry)
}

fn read_version(reader: &mut Reader<'_>) -> Result<DwarfsVersion> {
    let mut version = DwarfsVersion::default();
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::I16) => version.major = reader.read_i16()?.cast_unsigned(),
            (2, Type::I16) => version.minor = reader.read_i16()?.cast_unsigned(),
            (3, Type::I16) => version.patch = reader.read_i16()?.cast_unsigned(),
            (4, Type::True) => version.is_release = true,
            (5, Type::Binary) => version.git_rev = Some(read_text(reader)?),
            (6, Type::Binary) => version.git_branch = Some(read_text(reader)?),
            (7, Type::Binary) => version.git_desc = Some(read_text(reader)?),
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(version)
}

fn read_texts(reader: &mut Reader<'_>, room: &mut Room) -> Result<Vec<String>> {
    let (element, count) = reader.list_header()?;
    let mut texts = Vec::new();
    for _ in 0..count {
        if element == Type::Binary {
            take_one(&mut room.texts, "arguments and libraries")?;
            texts.push(read_text(reader)?);
        } else {
            reader.skip_element(element)?;
        }
    }
    Ok(texts)
}

fn read_text(reader: &mut Reader<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(reader.read_binary()?).into_owned())
}

fn write_entry(writer: &mut Writer, entry: &HistoryEntry) {
    let mut last_id = 0;
    writer.field(&mut last_id, 1, Type::Struct);
    write_version(writer, &entry.version);
    writer.binary_field(&mut last_id, 2, entry.system_id.as_bytes());
    writer.binary_field(&mut last_id, 3, entry.compiler_id.as_bytes());
    if let Some(arguments) = &entry.arguments {
        writer.list_field(&mut last_id, 4, Type::Binary, arguments.len());
        arguments
            .iter()
            .for_each(|text| writer.binary(text.as_bytes()));
    }
    if let Some(timestamp) = entry.timestamp {
        writer.i64_field(&mut last_id, 5, timestamp.cast_signed());
    }
    if let Some(versions) = &entry.library_versions {
        writer.set_field(&mut last_id, 6, Type::Binary, versions.len());
        versions
            .iter()
            .for_each(|text| writer.binary(text.as_bytes()));
    }
    writer.stop();
}

fn write_version(writer: &mut Writer, version: &DwarfsVersion) {
    let mut last_id = 0;
    writer.i16_field(&mut last_id, 1, version.major.cast_signed());
    writer.i16_field(&mut last_id, 2, version.minor.cast_signed());
    writer.i16_field(&mut last_id, 3, version.patch.cast_signed());
    writer.bool_field(&mut last_id, 4, version.is_release);
    let texts = [
        (5, &version.git_rev),
        (6, &version.git_branch),
        (7, &version.git_desc),
    ];
    for (id, text) in texts {
        if let Some(text) = text {
            writer.binary_field(&mut last_id, id, text.as_bytes());
        }
    }
    writer.stop();
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn sample() -> History {
        let entry = HistoryEntry {
            version: DwarfsVersion {
                minor: 13,
                is_release: true,
                git_desc: Some("v0.13.0".into()),
                ..DwarfsVersion::default()
            },
            system_id: "Linux, x86_64".into(),
            compiler_id: "some compiler".into(),
            arguments: Some(vec!["mkdwarfs".into(), "-i".into(), String::new()]),
            timestamp: Some(1_761_073_290),
            library_versions: Some(BTreeSet::from(["zstd-1.5.7".into(), "xz-5.8.1".into()])),
        };
        History {
            entries: vec![HistoryEntry::default(), entry],
        }
    }

    #[test]
    fn comes_back() {
        let history = sample();
        let bytes = history.encode();
        assert_eq!(History::parse(&bytes).unwrap(), history);
        // How the section of a real image begins. Source: docs/format.md, "Worked example".
        assert_eq!(bytes[..9], [0x19, 0x2c, 0x1c, 0x14, 0, 0x14, 0, 0x14, 0]);
    }

    #[test]
    fn a_cut_history_is_corrupt() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            let error = History::parse(&bytes[..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(
                error
                    .to_string()
                    .starts_with("history: compact data at byte")
            );
        }
    }

    #[test]
    fn too_long_a_history_is_not_looked_at() {
        let bytes = vec![0; usize::try_from(HISTORY_BYTES_MAX).unwrap() + 1];
        assert_eq!(History::parse(&bytes).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn fields_of_other_types_are_left_out() {
        let mut writer = Writer::new();
        let mut last_id = 0;
        writer.list_field(&mut last_id, 1, Type::Struct, 1);
        let mut inner_id = 0;
        writer.i32_field(&mut inner_id, 2, 5);
        writer.binary_field(&mut inner_id, 3, b"\xffcc");
        writer.list_field(&mut inner_id, 4, Type::I32, 1);
        writer.i32(1);
        writer.binary_field(&mut inner_id, 99, b"from a later release");
        writer.stop();
        writer.stop();
        let history = History::parse(&writer.into_bytes()).unwrap();
        let expect = HistoryEntry {
            compiler_id: "\u{fffd}cc".into(),
            arguments: Some(Vec::new()),
            ..HistoryEntry::default()
        };
        assert_eq!(history.entries, [expect]);
    }

    /// A list field of the struct in which it is the first field: `count` elements of `element`, each a zero byte.
    fn zeros(id: u8, element: u8, count: usize) -> Vec<u8> {
        let mut bytes = vec![id << 4 | 9, 0xf0 | element];
        let mut rest = count;
        while rest > 0x7f {
            bytes.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
            rest >>= 7;
        }
        bytes.push(u8::try_from(rest).unwrap());
        bytes.resize(bytes.len() + count, 0);
        bytes
    }

    #[test]
    fn many_empty_things_are_refused_before_they_take_memory() {
        let history = |count| History::parse(&[zeros(1, 12, count), vec![0]].concat());
        assert_eq!(history(1000).unwrap().entries.len(), 1000);
        let error = history(1_000_000).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Limit);

        let arguments = |count| {
            let entry = [zeros(4, 8, count), vec![0]].concat();
            [vec![0x19, 0x1c], entry, vec![0]].concat()
        };
        let few = History::parse(&arguments(200_000)).unwrap();
        assert_eq!(few.entries[0].arguments.as_ref().unwrap().len(), 200_000);
        assert!(History::parse(&arguments(1_000_000)).is_err());

        let mut all = History::default();
        let mut room = Room::default();
        all.append(&arguments(200_000), &mut room).unwrap();
        assert!(
            all.append(&arguments(200_000), &mut room).is_err(),
            "together too many"
        );
    }
}
