//! Every good image gives exactly its manifest: paths, attributes, targets, contents.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use durin_format::InodeNum;
use durin_reader::{
    Attr, CacheOptions, CheckLevel, CheckOptions, FileKind, Image, ImageOptions, MetadataCheck,
    Time, WalkEntry,
};
use durin_source::{Fault, FaultySource, MemorySource, OpenMode, Source};
use durin_testkit::manifest::{Manifest, ManifestEntry};
use durin_testkit::require;
use durin_testkit::tree::Kind;
use durin_testkit::vectors::Vectors;

use crate::common::sha256;

/// Opens and compares all images, each from a source made by `source`.
fn check_all(options: &ImageOptions, source: impl Fn(&Path) -> Arc<dyn Source>) {
    let vectors = require!(Vectors::find());
    let mut compared = 0;
    for path in vectors.with_manifest() {
        let manifest = Vectors::manifest(&path);
        let image = Image::open(source(&path), options)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        compare(&path, &image, &manifest);
        compared += 1;
    }
    assert!(compared > 90, "only {compared} images");
}

#[test]
fn mapped_with_the_full_check() {
    let options = ImageOptions {
        check: MetadataCheck::Full,
        ..ImageOptions::default()
    };
    check_all(&options, |path| {
        durin_source::open(path, OpenMode::Mmap).unwrap()
    });
}

#[test]
fn read_in_short_pieces_with_a_tiny_cache() {
    let options = ImageOptions {
        cache: CacheOptions {
            bytes_max: 10_000,
            workers: 1,
            verify_blocks: true,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    };
    check_all(&options, |path| {
        let inner = MemorySource::new(std::fs::read(path).unwrap());
        Arc::new(FaultySource::new(inner, vec![Fault::ShortReads(5_000)]))
    });
}

#[test]
fn every_image_passes_the_check_of_all_sections() {
    let vectors = require!(Vectors::find());
    for path in vectors.with_manifest() {
        let image = crate::common::open_checked(&path).unwrap();
        let done = std::sync::atomic::AtomicU64::new(0);
        let options = CheckOptions {
            level: CheckLevel::Full,
            workers: 2,
        };
        let report = image.check(&options, &|bytes, _| {
            done.fetch_max(bytes, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(report.is_ok(), "{}: {:?}", path.display(), report.errors);
        assert_eq!(done.into_inner(), report.bytes, "{}", path.display());
        assert_eq!(report.sections_checked as usize, image.sections().len());
    }
}

#[test]
fn every_image_tells_about_itself() {
    let vectors = require!(Vectors::find());
    for path in vectors.with_manifest() {
        let image = crate::common::open_checked(&path).unwrap();
        let mut info = image.info().unwrap();
        info.take_checked(&image.check(&CheckOptions::default(), &|_, _| {}));
        let name = path.display();
        assert!(info.uncompressed_block_size.is_some(), "{name}");
        assert!(
            info.sections
                .iter()
                .all(|section| section.checksum_ok != Some(false)),
            "{name}"
        );
        let json = info.to_json();
        assert_eq!(json["inode_count"], image.inode_count(), "{name}");
        assert_eq!(
            json["sections"].as_array().unwrap().len(),
            image.sections().len(),
            "{name}"
        );
        assert_eq!(image.history().unwrap(), info.history, "{name}");
        let metadata = image.thaw_metadata().unwrap();
        assert_eq!(metadata.block_size, image.block_size(), "{name}");
        let (tables, _) = image.tables();
        assert_eq!(metadata.chunks.len() as u64, tables.chunks.len(), "{name}");
    }
}

fn compare(path: &Path, image: &Image, manifest: &Manifest) {
    let name = path.file_name().unwrap().display();
    assert_eq!(image.offset(), manifest.image_offset, "{name}");
    let version = (
        u32::from(image.version().major),
        u32::from(image.version().minor),
    );
    assert_eq!(version, manifest.format, "{name}");
    let found: Vec<WalkEntry> = image.walk().collect::<Result<_, _>>().unwrap();
    let paths = |path: &[u8]| path.escape_ascii().to_string();
    let found_paths: Vec<_> = found.iter().map(|entry| paths(&entry.path)).collect();
    let expected_paths: Vec<_> = manifest
        .entries
        .iter()
        .map(|entry| paths(&entry.path))
        .collect();
    assert_eq!(found_paths, expected_paths, "{name}");
    let mut hashes = BTreeMap::new();
    for (found, expected) in found.iter().zip(&manifest.entries) {
        let at = format!("{name}: {}", paths(&found.path));
        compare_attr(&at, &found.attr, expected);
        compare_kind(&at, image, found, expected, &mut hashes);
        compare_lookup(&at, image, found);
    }
}

fn compare_attr(at: &str, found: &Attr, expected: &ManifestEntry) {
    assert_eq!(kind(found.kind), expected.kind, "{at}");
    assert_eq!(found.mode, expected.mode, "{at}: mode");
    assert_eq!(
        (found.uid, found.gid),
        (expected.uid, expected.gid),
        "{at}: owner"
    );
    assert_eq!(u64::from(found.inode.0), expected.inode, "{at}: inode");
    let (sec, nsec) = expected.mtime;
    assert_eq!(found.mtime, Time { sec, nsec }, "{at}: mtime");
    // Where only the modification time is stored, all three are the same.
    assert_eq!(
        found.atime.sec,
        expected.atime.unwrap_or(sec),
        "{at}: atime"
    );
    assert_eq!(
        found.ctime.sec,
        expected.ctime.unwrap_or(sec),
        "{at}: ctime"
    );
    assert_eq!(found.nlink, expected.nlink.unwrap_or(1), "{at}: nlink");
    assert_eq!(found.rdev, expected.rdev.unwrap_or(0), "{at}: rdev");
    if let Some(size) = expected.size {
        assert_eq!(found.size, size, "{at}: size");
        assert_eq!(
            found.allocated,
            expected.allocated_size.unwrap_or(size),
            "{at}: allocated size"
        );
    }
}

fn compare_kind(
    at: &str,
    image: &Image,
    found: &WalkEntry,
    expected: &ManifestEntry,
    hashes: &mut BTreeMap<InodeNum, Vec<u8>>,
) {
    let inode = found.entry.inode;
    match found.attr.kind {
        FileKind::Directory => {
            let len = u64::from(image.dir_len(inode).unwrap());
            assert_eq!(Some(len), expected.dir_len, "{at}: entries");
            assert_eq!(found.attr.size, len, "{at}: size");
        }
        FileKind::Symlink => {
            let raw = image.read_link_raw(inode).unwrap();
            assert_eq!(Some(&raw), expected.target.as_ref(), "{at}: target");
            assert_eq!(found.attr.size, raw.len() as u64, "{at}: size");
        }
        FileKind::Regular => {
            let sum = hashes.entry(inode).or_insert_with(|| {
                sha256(image, inode).unwrap_or_else(|error| panic!("{at}: {error}"))
            });
            assert_eq!(
                Some(sum.as_slice()),
                expected.sha256.as_ref().map(<[u8; 32]>::as_slice),
                "{at}: content"
            );
            let total: u64 = image
                .chunks(inode)
                .unwrap()
                .map(|extent| extent.unwrap().len)
                .sum();
            assert_eq!(total, found.attr.size, "{at}: chunks");
        }
        _ => assert_eq!(found.attr.size, 0, "{at}: size"),
    }
}

/// Whatever a walk finds is found by its path, and directories know their parents.
fn compare_lookup(at: &str, image: &Image, found: &WalkEntry) {
    assert_eq!(
        image.resolve(&found.path).unwrap(),
        Some(found.entry),
        "{at}: lookup"
    );
    assert_eq!(
        image.kind(found.entry).unwrap(),
        found.attr.kind,
        "{at}: kind"
    );
    let inode = found.entry.inode;
    if image.entry_differs(found.entry) {
        assert_ne!(
            image.inode_attr(inode).unwrap(),
            found.attr,
            "{at}: differs"
        );
        assert_eq!(
            image.entry_at(found.entry.entry_index).unwrap(),
            Some(found.entry),
            "{at}"
        );
    } else {
        assert_eq!(
            image.inode_attr(inode).unwrap(),
            found.attr,
            "{at}: by inode"
        );
    }
    if found.attr.kind == FileKind::Directory {
        let above = found
            .path
            .iter()
            .rposition(|byte| *byte == b'/')
            .unwrap_or(0);
        let parent = image.resolve(&found.path[..above]).unwrap().unwrap();
        assert_eq!(image.parent(inode).unwrap(), parent.inode, "{at}: parent");
        assert_eq!(image.lookup(inode, b"no such name").unwrap(), None);
        assert_eq!(image.lookup(inode, b"..").unwrap(), None);
    }
}

fn kind(kind: FileKind) -> Kind {
    match kind {
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Regular => Kind::File,
        FileKind::CharDevice => Kind::CharDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
    }
}
