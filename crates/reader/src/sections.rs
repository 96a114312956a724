//! The list of sections: from the section index when there is a usable one, otherwise by walking the headers.
//!
//! Comes in: a source and the range of the image in it. Goes out: [`SectionList`], where every section lies inside the
//! image. Payloads are not touched, except that of the index.

use durin_format::index::{self, IndexEntry};
use durin_format::section::{
    CompressionType, FILE_HEADER_V1_LEN, SectionHeader, SectionType, V1_HEADER_LEN, V2_HEADER_LEN,
    Version,
};
use durin_format::{Error, Location, Result, limits};
use durin_source::Source;

use crate::payload;

/// One section, which lies inside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The place in the file order of all sections, from 0.
    pub number: u32,
    /// What the section holds.
    pub section_type: SectionType,
    /// How the payload is compressed. `None` when the section comes from the index and its header was not read;
    /// [`crate::Image::section_header`] tells then.
    pub compression: Option<CompressionType>,
    /// Bytes from the start of the file to the header.
    pub offset: u64,
    /// Bytes from the start of the file to the payload.
    pub payload_offset: u64,
    /// Bytes of the payload as stored.
    pub payload_len: u64,
}

impl Section {
    /// Where errors about this section are.
    #[must_use]
    pub fn location(&self) -> Location {
        Location {
            section: Some(self.number),
            section_type: Some(self.section_type),
            offset: Some(self.offset),
        }
    }
}

/// The part of a file that is the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Bytes from the start of the file.
    pub(crate) start: u64,
    /// One past the last byte, from the start of the file.
    pub(crate) end: u64,
}

/// All sections of an image in file order.
#[derive(Debug)]
pub(crate) struct SectionList {
    pub(crate) version: Version,
    pub(crate) sections: Vec<Section>,
    pub(crate) has_index: bool,
}

impl SectionList {
    /// Lists the sections of the image at `span`.
    pub(crate) fn read(source: &dyn Source, span: Span) -> Result<Self> {
        let version = read_version(source, span)?;
        if version.minor >= 4
            && let Some(sections) = from_index(source, span)
        {
            return Ok(Self {
                version,
                sections,
                has_index: true,
            });
        }
        let sections = walk(source, span, version)?;
        Ok(Self {
            version,
            sections,
            has_index: false,
        })
    }

    /// The one section of type `wanted`.
    pub(crate) fn only(&self, wanted: SectionType) -> Result<&Section> {
        let mut all = self.of_type(wanted);
        match (all.next(), all.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Error::corrupt(format!(
                "no section of type {}",
                wanted.name()
            ))),
            (_, Some(second)) => Err(Error::corrupt(format!(
                "more than one section of type {}",
                wanted.name()
            ))
            .at(second.location())),
        }
    }

    /// All sections of type `wanted` in file order.
    pub(crate) fn of_type(&self, wanted: SectionType) -> impl Iterator<Item = &Section> {
        self.sections
            .iter()
            .filter(move |section| section.section_type == wanted)
    }
}

/// Reads the header of a section of version `version` that begins at `offset`, and checks that the whole section lies
/// before `end`. The bytes are those of a v2 header.
pub(crate) fn read_header(
    source: &dyn Source,
    offset: u64,
    end: u64,
    version: Version,
) -> Result<(SectionHeader, [u8; V2_HEADER_LEN])> {
    let mut bytes = [0; V2_HEADER_LEN];
    let len = header_len(version);
    let room = end.saturating_sub(offset);
    if room < len as u64 {
        return Err(Error::corrupt(format!(
            "section header cut off: expected {len} bytes, found {room}"
        )));
    }
    let target = bytes.get_mut(..len).unwrap_or_default();
    payload::read_exact(source, offset, target)?;
    let header = if version.has_v1_sections() {
        let [b0, b1, b2, b3, b4, b5, b6, b7, ..] = bytes;
        SectionHeader::parse_v1(&[b0, b1, b2, b3, b4, b5, b6, b7], version)?
    } else {
        SectionHeader::parse_v2(&bytes)?
    };
    let room = room - len as u64;
    if header.payload_len > room {
        return Err(Error::corrupt(format!(
            "section cut off: expected {} bytes of payload, found {room}",
            header.payload_len
        )));
    }
    Ok((header, bytes))
}

fn header_len(version: Version) -> usize {
    if version.has_v1_sections() {
        V1_HEADER_LEN
    } else {
        V2_HEADER_LEN
    }
}

fn read_version(source: &dyn Source, span: Span) -> Result<Version> {
    let at_start = Location {
        offset: Some(span.start),
        ..Location::default()
    };
    let mut bytes = [0; FILE_HEADER_V1_LEN];
    if span.end.saturating_sub(span.start) < bytes.len() as u64 {
        return Err(Error::corrupt("too short for an image").at(at_start));
    }
    payload::read_exact(source, span.start, &mut bytes)?;
    Version::parse(&bytes).map_err(|error| error.at(at_start))
}

/// Walks from header to header until the end of the image.
fn walk(source: &dyn Source, span: Span, version: Version) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    let mut offset = span.start;
    if version.has_v1_sections() {
        offset += FILE_HEADER_V1_LEN as u64;
    }
    while offset < span.end {
        let number = section_number(sections.len())?;
        let place = |error: Error| {
            error.at(Location {
                section: Some(number),
                section_type: None,
                offset: Some(offset),
            })
        };
        let (header, _) = read_header(source, offset, span.end, version).map_err(place)?;
        if version.has_v1_sections() && header.payload_len == 0 {
            // No release writes one, and without this rule zeros would be endlessly many sections.
            return Err(place(Error::corrupt("empty section")));
        }
        let section = place_section(number, offset, &header);
        offset = section.payload_offset + section.payload_len;
        sections.push(section);
    }
    Ok(sections)
}

fn section_number(index: usize) -> Result<u32> {
    u32::try_from(index)
        .ok()
        .filter(|_| index < limits::SECTION_COUNT_MAX)
        .ok_or_else(|| Error::limit(format!("more than {} sections", limits::SECTION_COUNT_MAX)))
}

fn place_section(number: u32, offset: u64, header: &SectionHeader) -> Section {
    Section {
        number,
        section_type: header.section_type,
        compression: Some(header.compression),
        offset,
        payload_offset: offset + header.header_len(),
        payload_len: header.payload_len,
    }
}

/// The sections as the index at the end of the image lists them; `None` when there is none or it cannot be believed.
/// That is no error: unrelated data can look like the pointer to an index, and the headers tell the same.
fn from_index(source: &dyn Source, span: Span) -> Option<Vec<Section>> {
    let entries = read_index(source, span).ok()?;
    let mut sections = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let end = match entries.get(index + 1) {
            Some(next) => span.start.checked_add(next.offset)?,
            None => span.end,
        };
        let offset = span.start.checked_add(entry.offset)?;
        let payload_offset = offset.checked_add(V2_HEADER_LEN as u64)?;
        sections.push(Section {
            number: section_number(index).ok()?,
            section_type: entry.section_type,
            compression: None,
            offset,
            payload_offset,
            payload_len: end.checked_sub(payload_offset)?,
        });
    }
    for section in &sections {
        if matches!(
            section.section_type,
            SectionType::MetadataV2Schema | SectionType::MetadataV2
        ) {
            let wanted = section.payload_len.min(payload::PIECE_LEN as u64);
            source.advise(section.offset, V2_HEADER_LEN as u64 + wanted);
        }
    }
    // A wrong type in the index would make another section the metadata, so all but the blocks are looked at now.
    // The header of a block is compared when the block is first read.
    for section in &mut sections {
        if section.section_type != SectionType::Block {
            let header = header_of(source, section).ok()?;
            section.compression = Some(header.compression);
        }
    }
    Some(sections)
}

/// Reads the header of a v2 section and compares it with what the index says.
pub(crate) fn header_of(source: &dyn Source, section: &Section) -> Result<SectionHeader> {
    read_v2_header(source, section).map(|(header, _)| header)
}

/// As [`header_of`], with the bytes for the checksums.
pub(crate) fn read_v2_header(
    source: &dyn Source,
    section: &Section,
) -> Result<(SectionHeader, [u8; V2_HEADER_LEN])> {
    let end = section.payload_offset + section.payload_len;
    // Any minor version with v2 headers will do: the header brings its own.
    let found = read_header(source, section.offset, end, Version::CURRENT)
        .map_err(|error| error.at(section.location()))?;
    let (header, _) = &found;
    if header.section_type != section.section_type || header.payload_len != section.payload_len {
        return Err(Error::corrupt(format!(
            "section header mismatch: expected {} with {} bytes, found {} with {} bytes",
            section.section_type.name(),
            section.payload_len,
            header.section_type.name(),
            header.payload_len
        ))
        .at(section.location()));
    }
    Ok(found)
}

fn read_index(source: &dyn Source, span: Span) -> Result<Vec<IndexEntry>> {
    let absent = || Error::not_found("no section index");
    let mut last = [0; index::ENTRY_LEN];
    let last_offset = span
        .end
        .checked_sub(last.len() as u64)
        .filter(|offset| *offset >= span.start)
        .ok_or_else(absent)?;
    payload::read_exact(source, last_offset, &mut last)?;
    let own = IndexEntry::from_bits(u64::from_le_bytes(last));
    if own.section_type != SectionType::SectionIndex {
        return Err(absent());
    }
    let offset = span.start.checked_add(own.offset).ok_or_else(absent)?;
    let payload_offset = offset
        .checked_add(V2_HEADER_LEN as u64)
        .ok_or_else(absent)?;
    let section = Section {
        number: 0,
        section_type: SectionType::SectionIndex,
        compression: None,
        offset,
        payload_offset,
        payload_len: span.end.checked_sub(payload_offset).ok_or_else(absent)?,
    };
    let (header, bytes) = read_v2_header(source, &section)?;
    if header.compression != CompressionType::None {
        return Err(absent());
    }
    let payload = payload::read_verified(source, &section, &bytes, limits::INDEX_BYTES_MAX)?;
    let entries = index::parse(&payload)?;
    if entries.last() != Some(&own) {
        return Err(absent());
    }
    Ok(entries)
}
