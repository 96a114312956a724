//! The least of a reader: finds sections in a file that is wholly in memory, and decompresses what is not a block.

use std::fs;
use std::path::Path;

use durin_format::section::{
    FILE_HEADER_V1_LEN, SectionHeader, SectionType, Sha2Verifier, V1_HEADER_LEN, V2_HEADER_LEN,
    Version, Xxh3Verifier,
};
use durin_format::{Error, Result, locate};

/// A section and its payload as stored.
pub(crate) struct Section {
    /// Bytes from the first section of the image.
    pub(crate) offset: u64,
    pub(crate) header: SectionHeader,
    pub(crate) payload: Vec<u8>,
}

/// The sections of one file.
pub(crate) struct Image {
    pub(crate) name: String,
    /// Bytes before the image.
    pub(crate) offset: usize,
    pub(crate) version: Version,
    pub(crate) sections: Vec<Section>,
}

/// The metadata as an image stores it, decompressed.
pub(crate) struct Stored {
    pub(crate) schema: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// Reads both metadata sections of an image; `None` if that fails.
pub(crate) fn metadata_sections(path: &Path) -> Option<Stored> {
    let image = Image::open(path).ok()?;
    Some(Stored {
        schema: image.payloads(SectionType::MetadataV2Schema).pop()?,
        data: image.payloads(SectionType::MetadataV2).pop()?,
    })
}

impl Image {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let offset = locate_in(&bytes).ok_or_else(|| Error::not_found("no image"))?;
        let image = &bytes[offset..];
        let version = Version::parse(image.first_chunk().unwrap())?;
        let sections = if version.has_v1_sections() {
            walk_v1(image, version)?
        } else {
            walk_v2(image)?
        };
        Ok(Self {
            name,
            offset,
            version,
            sections,
        })
    }

    /// Returns the payloads of all sections of one type, decompressed, without those that are damaged.
    pub(crate) fn payloads(&self, section_type: SectionType) -> Vec<Vec<u8>> {
        self.sections
            .iter()
            .filter(|section| section.header.section_type == section_type)
            .filter_map(|section| {
                let compression = section.header.compression;
                durin_codec::decompress(compression, &section.payload, 1 << 28).ok()
            })
            .collect()
    }

    /// Returns the one payload of its type, decompressed.
    pub(crate) fn payload(&self, section_type: SectionType) -> Vec<u8> {
        let mut payloads = self.payloads(section_type);
        assert_eq!(payloads.len(), 1, "{}: {section_type:?}", self.name);
        payloads.pop().unwrap()
    }
}

fn locate_in(bytes: &[u8]) -> Option<usize> {
    let needle = locate::NEEDLE;
    (0..bytes.len()).find(|at| {
        let rest = &bytes[*at..];
        rest.starts_with(&needle)
            && locate::candidate(rest).is_some_and(|candidate| {
                let second = usize::try_from(candidate.second_offset()).unwrap();
                rest.get(second..)
                    .is_some_and(|second| candidate.confirmed_by(second))
            })
    })
}

fn walk_v1(image: &[u8], version: Version) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    let mut at = FILE_HEADER_V1_LEN;
    while at < image.len() {
        let header = image[at..]
            .first_chunk::<V1_HEADER_LEN>()
            .ok_or_else(|| Error::corrupt("cut header"))?;
        let header = SectionHeader::parse_v1(header, version)?;
        at = push(&mut sections, image, at, header)?;
    }
    Ok(sections)
}

fn walk_v2(image: &[u8]) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    let mut at = 0;
    while at < image.len() {
        let bytes = image[at..]
            .first_chunk::<V2_HEADER_LEN>()
            .ok_or_else(|| Error::corrupt("cut header"))?;
        let header = SectionHeader::parse_v2(bytes)?;
        at = push(&mut sections, image, at, header)?;
        let payload = &sections.last().unwrap().payload;
        let (mut xxh3, mut sha2) = (Xxh3Verifier::new(bytes), Sha2Verifier::new(bytes));
        xxh3.update(payload);
        Sha2Verifier::update_all([&mut sha2].into_iter(), &[&payload[..]]);
        xxh3.finish()?;
        sha2.finish()?;
    }
    Ok(sections)
}

fn push(
    sections: &mut Vec<Section>,
    image: &[u8],
    at: usize,
    header: SectionHeader,
) -> Result<usize> {
    let start = at + usize::try_from(header.header_len()).unwrap();
    let end = usize::try_from(header.payload_len)
        .ok()
        .and_then(|len| start.checked_add(len));
    let payload = end.and_then(|end| image.get(start..end));
    let payload = payload
        .ok_or_else(|| Error::corrupt("cut payload"))?
        .to_vec();
    sections.push(Section {
        offset: at as u64,
        header,
        payload,
    });
    Ok(end.unwrap())
}
