//! Metadata changed at random under checksums that are right: no panic, no hang, and what passes the full check can be
//! walked to the end.

use std::time::{Duration, Instant};

use durin_format::metadata::Metadata;
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::{CheckLevel, CheckOptions, Image};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{checked, open_bytes, quick};

/// Changed images of each kind. More find nothing new in the time that a test may take.
const ROUNDS: u64 = 400;

/// The images whose metadata is changed: plain and packed tables, FSST, holes, link counts, the formats before 2.3.
const SEEDS: [(&str, &str); 9] = [
    ("handmade", "base"),
    ("handmade", "simple-bytesized"),
    ("handmade", "dirs-reverse-packed"),
    ("handmade", "packed-chunk_table"),
    ("handmade", "names-fsst"),
    ("handmade", "holes"),
    ("handmade", "cache"),
    ("generated", "packed-all"),
    ("good", "compat-v0.4.1"),
];

/// An image taken apart.
struct Parts {
    blocks: Vec<(CompressionType, Vec<u8>)>,
    schema: Vec<u8>,
    data: Vec<u8>,
}

impl Parts {
    fn of(image: &Image) -> Self {
        let blocks = image
            .sections()
            .iter()
            .filter(|section| section.section_type == SectionType::Block)
            .map(|section| {
                let number = durin_format::SectionNum(section.number);
                let compression = image.section_header(number).unwrap().compression;
                let mut payload = vec![0; usize::try_from(section.payload_len).unwrap()];
                image
                    .source()
                    .read_exact_at(section.payload_offset, &mut payload)
                    .unwrap();
                (compression, payload)
            })
            .collect();
        Self {
            blocks,
            schema: image.schema_bytes().unwrap(),
            data: image.tables().1.to_vec(),
        }
    }

    fn build(&self, schema: &[u8], data: &[u8]) -> Vec<u8> {
        let none = CompressionType::None;
        let blocks = self
            .blocks
            .iter()
            .map(|(compression, payload)| (SectionType::Block, *compression, payload.as_slice()));
        let metadata = [
            (SectionType::MetadataV2Schema, none, schema),
            (SectionType::MetadataV2, none, data),
        ];
        let mut bytes = Vec::new();
        for (number, (kind, compression, payload)) in (0..).zip(blocks.chain(metadata)) {
            bytes.extend(encode_header(number, kind, compression, payload));
            bytes.extend_from_slice(payload);
        }
        bytes
    }
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

#[test]
fn changed_metadata_is_refused_or_can_be_walked() {
    let vectors = require!(Vectors::find());
    for (folder, name) in SEEDS {
        let bytes = std::fs::read(vectors.image(folder, name)).unwrap();
        let parts = Parts::of(&open_bytes(bytes, &quick()).unwrap());
        let mut accepted = 0;
        for round in 0..ROUNDS {
            let mut numbers = Numbers(round + 1);
            let (mut schema, mut data) = (parts.schema.clone(), parts.data.clone());
            // Most changes hit the beginning, where the counts and distances of all tables are.
            let target = if round % 4 == 0 {
                &mut schema
            } else {
                &mut data
            };
            let reach = if round % 2 == 0 {
                target.len().min(200)
            } else {
                target.len()
            };
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(reach);
                target[at] ^= u8::try_from(1 + numbers.below(255)).unwrap();
            }
            let begun = Instant::now();
            accepted += u32::from(check(
                parts.build(&schema, &data),
                &format!("{name} {round}"),
            ));
            assert!(begun.elapsed() < Duration::from_secs(5), "{name} {round}");
        }
        assert!(u64::from(accepted) < ROUNDS, "{name}: nothing was refused");
    }
}

/// Returns whether the image passes the full check.
fn check(bytes: Vec<u8>, what: &str) -> bool {
    let mut ahead = quick();
    ahead.cache.workers = 1;
    ahead.cache.follows_walks = true;
    if let Ok(image) = open_bytes(bytes.clone(), &ahead) {
        walk_over(&image);
    }
    let Ok(image) = open_bytes(bytes, &checked()) else {
        return false;
    };
    let options = CheckOptions {
        level: CheckLevel::Full,
        workers: 1,
    };
    let report = image.check(&options, &|_, _| ());
    assert!(report.is_ok(), "{what}: {:?}", report.errors);
    for entry in image.walk() {
        entry.unwrap_or_else(|error| panic!("{what}: passed the check, and then {error}"));
    }
    image
        .files_in_data_order()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    true
}

/// Asks everything that can be asked, and takes any answer. Files are not read to the end, as holes can be endless.
fn walk_over(image: &Image) {
    for entry in image.walk().filter_map(Result::ok) {
        drop(image.read_link_raw(entry.entry.inode));
    }
    // More than once: files are followed from a number of them on.
    for _ in 0..3 {
        for entry in image.walk().filter_map(Result::ok) {
            drop(image.read_at(entry.entry.inode, 0, &mut [0; 100]));
        }
    }
    drop(image.info().map(|info| info.to_json()));
    drop(image.files_in_data_order());
    drop(image.stored_sizes());
    for inode in (0..image.inode_count().min(2000)).map(durin_format::InodeNum) {
        drop(image.inode_attr(inode));
        drop(image.parent(inode));
        drop(image.read_link(inode));
        drop(image.seek_hole(inode, 1));
        drop(image.hole_end(inode, 0));
        drop(image.read_at(inode, 100, &mut [0; 100]));
        drop(image.lookup(inode, b"name"));
        drop(
            image
                .dir(inode)
                .map(|entries| entries.filter(Result::is_ok).count()),
        );
    }
}

/// Only the last item of the table is looked at when an image is opened.
#[test]
fn contents_that_are_not_there_are_refused() {
    let vectors = require!(Vectors::find());
    let bytes = std::fs::read(vectors.image("handmade", "base")).unwrap();
    let image = open_bytes(bytes, &quick()).unwrap();
    let parts = Parts::of(&image);
    let mut metadata = Metadata::thaw(&parts.schema, &parts.data).unwrap();
    let table = metadata.shared_files_table.as_mut().unwrap();
    let (first, rest) = table.split_first_mut().unwrap();
    assert!(!rest.is_empty(), "the image has two files of one content");
    *first = u32::MAX - 1000;
    let frozen = metadata.freeze().unwrap();
    let image = open_bytes(parts.build(&frozen.schema, &frozen.data), &quick()).unwrap();
    let errors = [
        image.stored_sizes().unwrap_err(),
        image.files_in_data_order().unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("content 4294966"), "{text}");
    }
    let report = open_bytes(parts.build(&frozen.schema, &frozen.data), &checked());
    assert!(report.is_err() || report.is_ok_and(|image| image.check_metadata().is_err()));
}

/// A zstd frame of `mib` MiB of zeros: 32 bytes a MiB.
fn zstd_zeros(mib: usize) -> Vec<u8> {
    const BLOCK_LEN: u32 = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
    // One segment, and its length in eight bytes.
    frame.push(0xe0);
    frame.extend(((mib as u64) << 20).to_le_bytes());
    let block_count = mib * 8;
    for block in 1..=block_count {
        let is_last = u32::from(block == block_count);
        // A block of one repeated byte.
        let header = is_last | 1 << 1 | BLOCK_LEN << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

#[test]
fn metadata_that_swells_without_measure_is_refused() {
    let vectors = require!(Vectors::find());
    let bytes = std::fs::read(vectors.image("handmade", "base")).unwrap();
    let parts = Parts::of(&open_bytes(bytes, &quick()).unwrap());
    let open = |mib| {
        let payload = zstd_zeros(mib);
        let (none, zstd) = (CompressionType::None, CompressionType::Zstd);
        let mut bytes = Vec::new();
        bytes.extend(encode_header(
            0,
            SectionType::MetadataV2Schema,
            none,
            &parts.schema,
        ));
        bytes.extend_from_slice(&parts.schema);
        bytes.extend(encode_header(1, SectionType::MetadataV2, zstd, &payload));
        bytes.extend(payload);
        open_bytes(bytes, &quick()).unwrap_err().to_string()
    };
    for mib in [65, 3000] {
        let message = open(mib);
        assert!(message.contains("bytes allowed here"), "{message}");
    }
    // Below that it is read, and then makes no sense.
    let message = open(1);
    assert!(!message.contains("bytes allowed here"), "{message}");
}
