//! Damage of every kind to real images, and what comes out of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durin_extract::salvage::{SalvageOptions, Salvaged, SectionState, repair_index, salvage};
use durin_extract::{ExtractOptions, Stats};
use durin_format::section::SectionType;
use durin_format::{BlockIndex, Result};
use durin_reader::{FileKind, ImageOffset, ImageOptions, Place, Section};
use durin_source::{MemorySource, Source};
use durin_testkit::require;
use durin_testkit::tree::{Digest, Kind, Tree, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::{Messages, extract, open};

const IMAGES: [(&str, &str); 3] = [
    ("generated", "default-l7-S16"),
    ("generated", "lzma-S15"),
    ("handmade", "order-meta-first"),
];

fn try_salvage(bytes: Vec<u8>, target: &Path, with_partial: bool) -> Result<Salvaged> {
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes));
    let options = SalvageOptions {
        image: ImageOptions::default(),
        extract: ExtractOptions::default(),
        with_partial,
    };
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    salvage(
        &source,
        target,
        &options,
        &stats,
        &Messages::default(),
        &cancel,
    )
}

fn tree(top: &Path) -> Tree {
    let options = TreeOptions {
        digest: Digest::Full,
    };
    snapshot(top, &options).unwrap()
}

/// What an image has, for comparison.
struct Known {
    bytes: Vec<u8>,
    sections: Vec<Section>,
    tree: Tree,
    /// For each block, the paths that need it.
    users: BTreeMap<u32, BTreeSet<Vec<u8>>>,
}

impl Known {
    fn of(path: &Path) -> Self {
        let image = open(path).unwrap();
        let target = tempfile::tempdir().unwrap();
        extract(path, target.path(), &ExtractOptions::default())
            .result
            .unwrap();
        let mut users: BTreeMap<u32, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for entry in image.walk().map(|entry| entry.unwrap()) {
            if entry.attr.kind != FileKind::Regular {
                continue;
            }
            for extent in image.chunks(entry.entry.inode).unwrap() {
                if let Place::Data { block, .. } = extent.unwrap().place {
                    users.entry(block.0).or_default().insert(entry.path.clone());
                }
            }
        }
        Self {
            bytes: fs::read(path).unwrap(),
            sections: image.sections().to_vec(),
            tree: tree(target.path()),
            users,
        }
    }

    fn blocks(&self) -> impl Iterator<Item = (u32, &Section)> {
        let is_block = |section: &&Section| section.section_type == SectionType::Block;
        (0..).zip(self.sections.iter().filter(is_block))
    }

    /// Salvages damaged bytes and checks that exactly what needs the blocks `lost` is missing and all else is right.
    fn check(&self, bytes: Vec<u8>, lost: &[u32], what: &str) {
        let target = tempfile::tempdir().unwrap();
        let salvaged = try_salvage(bytes, target.path(), false).unwrap();
        assert_eq!(salvaged.metadata_error, None, "{what}");
        let empty = BTreeSet::new();
        let expected: BTreeSet<&Vec<u8>> = lost
            .iter()
            .flat_map(|block| self.users.get(block).unwrap_or(&empty))
            .collect();
        let reported: BTreeSet<&Vec<u8>> =
            salvaged.lost.iter().flat_map(|file| &file.paths).collect();
        assert_eq!(reported, expected, "{what}");
        for file in &salvaged.lost {
            assert!(
                !file.ranges.is_empty()
                    && file.ranges.iter().all(|range| lost.contains(&range.block))
            );
        }
        let found = tree(target.path());
        for node in &self.tree.nodes {
            let Some(other) = found.find(&node.path) else {
                assert!(
                    expected.contains(&node.path),
                    "{what}: {:?} is missing",
                    node.path
                );
                continue;
            };
            assert!(!expected.contains(&node.path), "{what}: {:?}", node.path);
            assert_eq!(
                (node.mode, node.digest),
                (other.mode, other.digest),
                "{what}"
            );
            assert!(
                node.kind == Kind::Directory || node.mtime == other.mtime,
                "{what}"
            );
        }
        assert_eq!(
            found.nodes.len() + expected.len(),
            self.tree.nodes.len(),
            "{what}"
        );
    }
}

fn known() -> Option<Vec<Known>> {
    let vectors = match Vectors::find() {
        Ok(vectors) => vectors,
        Err(why) => {
            durin_testkit::skip::skipped(&why);
            return None;
        }
    };
    let paths = IMAGES.map(|(folder, name)| vectors.image(folder, name));
    Some(paths.iter().map(|path: &PathBuf| Known::of(path)).collect())
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

#[test]
fn a_flipped_block_costs_exactly_its_files() {
    for known in known().into_iter().flatten() {
        // All of them would take minutes.
        let step = known.blocks().count().div_ceil(12);
        for (block, section) in known.blocks().step_by(step) {
            let mut bytes = known.bytes.clone();
            bytes[at(section.payload_offset + section.payload_len / 2)] ^= 0x10;
            known.check(bytes, &[block], &format!("block {block}"));
        }
    }
}

#[test]
fn a_damaged_header_costs_no_more_than_its_block() {
    for known in known().into_iter().flatten() {
        let step = known.blocks().count().div_ceil(4);
        for (block, section) in known.blocks().step_by(step) {
            let header = at(section.offset);
            // Magic, version, number, and the two ends of the length can be worked out.
            for byte in [0, 6, 48, 56, 61] {
                let mut bytes = known.bytes.clone();
                bytes[header + byte] ^= 0x11;
                known.check(
                    bytes,
                    &[],
                    &format!("block {block}, byte {byte} of the header"),
                );
            }
            // The checksum cannot, nor can a header that is gone.
            for len in [0x29, 64] {
                let mut bytes = known.bytes.clone();
                bytes[header + len - 1] ^= 0x11;
                if len == 64 {
                    bytes[header..header + 64].fill(0xaa);
                }
                known.check(bytes, &[block], &format!("block {block}, {len}"));
            }
        }
    }
}

#[test]
fn neither_the_index_nor_what_is_before_the_image_matters() {
    for known in known().into_iter().flatten() {
        let index = known.sections.last().unwrap();
        assert_eq!(index.section_type, SectionType::SectionIndex);
        let mut destroyed = known.bytes.clone();
        destroyed[at(index.offset)..].fill(0x55);
        known.check(destroyed, &[], "index destroyed");
        known.check(
            known.bytes[..at(index.offset)].to_vec(),
            &[],
            "index cut off",
        );
        known.check(
            known.bytes[..known.bytes.len() - 3].to_vec(),
            &[],
            "index cut",
        );
        let garbage = b"#!/bin/sh\nDWARFS\x02\x05 is no image\n".repeat(100);
        known.check(
            [garbage, known.bytes.clone()].concat(),
            &[],
            "garbage before",
        );
    }
}

#[test]
fn truncated_at_every_border() {
    for known in known().into_iter().flatten() {
        let needed = [SectionType::MetadataV2Schema, SectionType::MetadataV2];
        let end = |section: &Section| section.payload_offset + section.payload_len;
        let metadata_end = known
            .sections
            .iter()
            .filter(|section| needed.contains(&section.section_type))
            .map(end)
            .max()
            .unwrap();
        let step = known.sections.len().div_ceil(20);
        for section in known.sections.iter().skip(1).step_by(step) {
            for cut in [
                section.offset,
                section.offset + 30,
                section.payload_offset + 1,
            ] {
                let bytes = known.bytes[..at(cut)].to_vec();
                let lost: Vec<u32> = known
                    .blocks()
                    .filter(|(_, block)| end(block) > cut)
                    .map(|(block, _)| block)
                    .collect();
                if cut >= metadata_end {
                    known.check(bytes, &lost, &format!("cut at {cut}"));
                    continue;
                }
                let target = tempfile::tempdir().unwrap();
                let salvaged = try_salvage(bytes, target.path(), false).unwrap();
                assert!(salvaged.metadata_error.is_some());
                let written = fs::read_dir(target.path()).unwrap().count();
                assert_eq!(written, known.blocks().count() - lost.len(), "cut at {cut}");
            }
        }
    }
}

#[test]
fn without_metadata_blocks_are_written() {
    let vectors = require!(Vectors::find());
    let path = vectors.image("generated", "default-l7-S16");
    let image = open(&path).unwrap();
    for lost in [SectionType::MetadataV2Schema, SectionType::MetadataV2] {
        let mut bytes = fs::read(&path).unwrap();
        let section = image
            .sections()
            .iter()
            .find(|section| section.section_type == lost);
        bytes[at(section.unwrap().payload_offset)] ^= 1;
        let target = tempfile::tempdir().unwrap();
        let salvaged = try_salvage(bytes, target.path(), false).unwrap();
        assert!(salvaged.metadata_error.is_some());
        assert_eq!(salvaged.raw_blocks.len(), image.block_count() as usize);
        for (block, name) in (0..).map(BlockIndex).zip(&salvaged.raw_blocks) {
            let content = fs::read(target.path().join(name)).unwrap();
            let len = image.cache().block_len(block).unwrap();
            let mut expected = vec![0; at(len)];
            image.cache().read(block, 0, &mut expected).unwrap();
            assert!(content == expected, "{name}");
        }
    }
}

#[test]
fn partial_files_have_zeros_and_another_name() {
    let vectors = require!(Vectors::find());
    let path = vectors.image("generated", "lzma-S15");
    let known = Known::of(&path);
    let (block, section) = known
        .blocks()
        .find(|(block, _)| known.users.contains_key(block))
        .unwrap();
    let mut bytes = known.bytes.clone();
    bytes[at(section.payload_offset + 5)] ^= 1;
    let target = tempfile::tempdir().unwrap();
    let salvaged = try_salvage(bytes, target.path(), true).unwrap();
    assert_eq!(
        salvaged.sections[at(section.number.into())].state,
        Some(SectionState::Damaged)
    );
    let image = open(&path).unwrap();
    assert!(!salvaged.lost.is_empty());
    for file in &salvaged.lost {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(file.partial.as_ref().unwrap());
        let found = fs::read(target.path().join(name)).unwrap();
        let entry = image.resolve(&file.paths[0]).unwrap().unwrap();
        let mut expected = vec![0; at(file.size)];
        image.read_at(entry.inode, 0, &mut expected).unwrap();
        for range in &file.ranges {
            assert_eq!(range.block, block);
            expected[at(range.offset)..at(range.offset + range.len)].fill(0);
        }
        assert!(found == expected, "{name:?}");
    }
}

#[test]
fn an_index_is_made_anew() {
    let vectors = require!(Vectors::find());
    for (folder, name) in IMAGES {
        let path = vectors.image(folder, name);
        let good = fs::read(&path).unwrap();
        let image = open(&path).unwrap();
        let index = image.sections().last().unwrap();
        let repair = |bytes: Vec<u8>| {
            let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes));
            repair_index(&source, ImageOffset::Auto)
        };
        assert!(repair(good.clone()).unwrap().is_right, "{name}");
        let mut destroyed = good.clone();
        destroyed[at(index.payload_offset) + 1] ^= 7;
        for damaged in [
            good[..at(index.offset)].to_vec(),
            destroyed,
            good[..good.len() - 9].to_vec(),
        ] {
            let repaired = repair(damaged).unwrap();
            assert!(!repaired.is_right, "{name}");
            let mut bytes = Vec::new();
            repaired.write(&mut bytes).unwrap();
            assert!(bytes == good, "{name}: the same program wrote it before");
        }
        let mut header = good.clone();
        header[at(image.sections()[1].offset)..][..64].fill(0);
        assert!(repair(header).is_err());
    }
}

#[test]
fn no_damage_makes_it_panic() {
    let vectors = require!(Vectors::find());
    for folder in ["evil", "reject", "badfs"] {
        for path in vectors.images(folder).into_iter().step_by(7) {
            let target = tempfile::tempdir().unwrap();
            let bytes = fs::read(&path).unwrap();
            // Whether anything comes out does not matter here.
            drop(try_salvage(bytes, target.path(), true));
        }
    }
}
