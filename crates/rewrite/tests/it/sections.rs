//! What goes along: payloads bit for bit, sections of unknown types, headers, the history.

use durin_codec::Spec;
use durin_format::history::HistoryEntry;
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::Image;
use durin_rewrite::{Header, Recompress, RewriteOptions};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{open, open_file, rewritten, show};

/// Types, compression and payloads of all sections of some types.
fn payloads(image: &Image, wanted: &[SectionType]) -> Vec<(u16, Vec<u8>)> {
    let sections = image.sections().iter();
    let sections = sections.filter(|section| wanted.contains(&section.section_type));
    let read = |section| {
        let raw = image.read_section(section, u64::MAX).unwrap();
        (u16::from(raw.header.compression), raw.payload)
    };
    sections.map(read).collect()
}

#[test]
fn copies_are_bit_for_bit() {
    let vectors = require!(Vectors::find());
    for path in vectors.with_manifest() {
        let image = open_file(&path).unwrap();
        let new = open(&rewritten(&image, &RewriteOptions::new(Recompress::NONE))).unwrap();
        for kind in [
            SectionType::Block,
            SectionType::MetadataV2Schema,
            SectionType::MetadataV2,
        ] {
            let name = path.display();
            assert!(
                payloads(&image, &[kind]) == payloads(&new, &[kind]),
                "{name}"
            );
        }
        assert!(new.has_section_index());
    }
}

#[test]
fn blocks_stay_when_only_metadata_change_and_the_other_way_round() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("generated") {
        let image = open_file(&path).unwrap();
        let mut options = RewriteOptions::new(Recompress::METADATA);
        options.metadata_compression = "lzma:level=1".parse().unwrap();
        options.schema_compression = "brotli:quality=3".parse().unwrap();
        let new = open(&rewritten(&image, &options)).unwrap();
        let block = [SectionType::Block];
        assert!(payloads(&image, &block) == payloads(&new, &block));
        assert_eq!(image.tables().1, new.tables().1);
        assert_eq!(image.schema_bytes().unwrap(), new.schema_bytes().unwrap());
        let mut options = RewriteOptions::new(Recompress::BLOCK);
        options.compression = Spec::NULL.into();
        let new = open(&rewritten(&image, &options)).unwrap();
        assert!(payloads(&new, &block).iter().all(|(kind, _)| *kind == 0));
        let metadata = [SectionType::MetadataV2Schema, SectionType::MetadataV2];
        assert!(payloads(&image, &metadata) == payloads(&new, &metadata));
    }
}

/// An image without an index, with sections of types from the future between the others.
fn with_unknown_sections(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut number = 0;
    let mut push = |kind, compression, payload: &[u8]| {
        bytes.extend(encode_header(number, kind, compression, payload));
        bytes.extend(payload);
        number += 1;
    };
    push(SectionType::Unknown(4711), CompressionType::None, b"first");
    for section in image.sections() {
        if section.section_type == SectionType::SectionIndex {
            continue;
        }
        let raw = image.read_section(section, u64::MAX).unwrap();
        push(section.section_type, raw.header.compression, &raw.payload);
    }
    push(
        SectionType::Unknown(99),
        CompressionType::Unknown(55),
        &[7; 3000],
    );
    bytes
}

#[test]
fn sections_of_unknown_types_go_along() {
    let vectors = require!(Vectors::find());
    let unknown = [SectionType::Unknown(4711), SectionType::Unknown(99)];
    for path in vectors.images("generated") {
        let image = open(&with_unknown_sections(&open_file(&path).unwrap())).unwrap();
        for (kind, options) in crate::common::kinds() {
            let new = open(&rewritten(&image, &options)).unwrap();
            assert_eq!(
                payloads(&new, &unknown),
                [(0, b"first".to_vec()), (55, vec![7; 3000])],
                "{kind}"
            );
            assert_eq!(show(&image).unwrap(), show(&new).unwrap());
        }
    }
}

#[test]
fn headers_and_decoys() {
    let vectors = require!(Vectors::find());
    let mut count = 0;
    for path in vectors.with_manifest() {
        let image = open_file(&path).unwrap();
        if image.offset() == 0 {
            continue;
        }
        let mut options = RewriteOptions::new(Recompress::NONE);
        let kept = open(&rewritten(&image, &options)).unwrap();
        assert_eq!(image.header_bytes().unwrap(), kept.header_bytes().unwrap());
        options.header = Header::Remove;
        assert_eq!(open(&rewritten(&image, &options)).unwrap().offset(), 0);
        options.header = Header::Replace(b"DWARFS\x02\x05 no image".to_vec());
        assert_eq!(open(&rewritten(&image, &options)).unwrap().offset(), 17);
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn history_is_appended() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("good") {
        let image = open_file(&path).unwrap();
        let before = image.history().unwrap();
        let mut options = RewriteOptions::new(Recompress::NONE);
        let entry = HistoryEntry {
            system_id: "this test".to_owned(),
            ..HistoryEntry::default()
        };
        options.history = Some(entry.clone());
        let new = open(&rewritten(&image, &options)).unwrap();
        let mut expected = before.entries.clone();
        expected.push(entry);
        assert_eq!(new.history().unwrap().entries, expected);
        options.history = None;
        let bare = open(&rewritten(&image, &options)).unwrap();
        assert!(bare.history().unwrap().entries.is_empty());
    }
}
