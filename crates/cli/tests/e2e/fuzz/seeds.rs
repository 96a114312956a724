//! Images that are damaged: each as its bytes, as its sections, and as the values of its metadata.

use std::sync::Arc;

use durin_format::SectionNum;
use durin_format::metadata::Metadata;
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::{Image, ImageOptions};
use durin_source::MemorySource;
use durin_testkit::vectors::Vectors;

/// A section as it would be stored.
#[derive(Clone)]
pub(super) struct Section {
    pub(super) kind: SectionType,
    pub(super) compression: CompressionType,
    pub(super) payload: Vec<u8>,
}

/// A good image.
pub(super) struct Seed {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// Without the index, which would tell of every change; schema and metadata are not compressed.
    pub(super) sections: Vec<Section>,
    pub(super) metadata: Metadata,
}

/// Loads all images of up to `len_max` bytes that come with a manifest.
pub(super) fn load(vectors: &Vectors, len_max: usize) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for path in vectors.with_manifest() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() <= len_max {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            seeds.extend(Seed::of(name, bytes));
        }
    }
    assert!(!seeds.is_empty(), "no image is small enough");
    seeds
}

impl Seed {
    /// Takes an image apart; nothing if it cannot be used as a whole.
    fn of(name: String, bytes: Vec<u8>) -> Option<Self> {
        let source = Arc::new(MemorySource::new(bytes.clone()));
        let image = Image::open(source, &ImageOptions::default()).ok()?;
        let schema = image.schema_bytes().ok()?;
        let metadata = Metadata::thaw(&schema, image.tables().1).ok()?;
        let mut sections = Vec::new();
        for section in image.sections() {
            let number = SectionNum(section.number);
            let mut compression = image.section_header(number).ok()?.compression;
            let mut payload = vec![0; usize::try_from(section.payload_len).ok()?];
            let source = image.source();
            source
                .read_exact_at(section.payload_offset, &mut payload)
                .ok()?;
            match section.section_type {
                SectionType::SectionIndex => continue,
                SectionType::MetadataV2Schema => payload.clone_from(&schema),
                SectionType::MetadataV2 => payload = image.tables().1.to_vec(),
                _ => {}
            }
            if matches!(
                section.section_type,
                SectionType::MetadataV2 | SectionType::MetadataV2Schema
            ) {
                compression = CompressionType::None;
            }
            sections.push(Section {
                kind: section.section_type,
                compression,
                payload,
            });
        }
        Some(Self {
            name,
            bytes,
            sections,
            metadata,
        })
    }
}

/// Makes an image of sections, with the checksums that belong to them.
pub(super) fn build(sections: &[Section]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, section) in (0..).zip(sections) {
        let Section {
            kind,
            compression,
            payload,
        } = section;
        bytes.extend(encode_header(number, *kind, *compression, payload));
        bytes.extend_from_slice(payload);
    }
    bytes
}
