//! The metadata sections of an image file, taken out in the plainest way.

use std::path::Path;

use durin_format::section::{
    FILE_HEADER_V1_LEN, SectionHeader, SectionType, V1_HEADER_LEN, V2_HEADER_LEN, Version,
};

/// The metadata as an image stores it, decompressed.
pub(crate) struct Stored {
    pub(crate) schema: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// Reads both metadata sections of an image that begins with its first section; `None` if that fails.
pub(crate) fn metadata_sections(image: &Path) -> Option<Stored> {
    let bytes = std::fs::read(image).unwrap();
    let version = Version::parse(bytes.first_chunk()?).ok()?;
    let mut rest = match version.has_v1_sections() {
        true => bytes.get(FILE_HEADER_V1_LEN..)?,
        false => &bytes,
    };
    let mut stored = Stored {
        schema: Vec::new(),
        data: Vec::new(),
    };
    while !rest.is_empty() {
        let (header, after) = split_header(rest, version)?;
        let (payload, after) = after.split_at_checked(usize::try_from(header.payload_len).ok()?)?;
        let into = match header.section_type {
            SectionType::MetadataV2Schema => Some(&mut stored.schema),
            SectionType::MetadataV2 => Some(&mut stored.data),
            _ => None,
        };
        if let Some(into) = into {
            *into = durin_codec::decompress(header.compression, payload, 1 << 30).ok()?;
        }
        rest = after;
    }
    Some(stored)
}

fn split_header(bytes: &[u8], version: Version) -> Option<(SectionHeader, &[u8])> {
    if version.has_v1_sections() {
        let (header, after) = bytes.split_first_chunk::<V1_HEADER_LEN>()?;
        Some((SectionHeader::parse_v1(header, version).ok()?, after))
    } else {
        let (header, after) = bytes.split_first_chunk::<V2_HEADER_LEN>()?;
        Some((SectionHeader::parse_v2(header).ok()?, after))
    }
}
