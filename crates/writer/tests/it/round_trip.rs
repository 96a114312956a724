//! Trees are in the image as they are on the disk.

use std::fs;
use std::path::Path;

use durin_codec::Spec;
use durin_testkit::compare::{Aspects, assert_same, trees};
use durin_testkit::made_tree::{MadeTreeOptions, make};
use durin_testkit::python::Decoder;
use durin_testkit::require;
use durin_testkit::tree::{Digest, Tree, TreeOptions, snapshot};
use durin_writer::{BuildOptions, PackOptions, TimeResolution};

use crate::harness::{Built, build, options, tree_of};

fn made_tree(dir: &Path) -> Tree {
    let size = MadeTreeOptions {
        wide: 3000,
        sparse_len: 1 << 40,
    };
    for left_out in make(dir, &size).unwrap() {
        eprintln!("made tree without {left_out}");
    }
    seen(dir)
}

fn seen(dir: &Path) -> Tree {
    let digest = Digest::Positions;
    snapshot(dir, &TreeOptions { digest }).unwrap()
}

fn all_kinds(dir: &Path) -> BuildOptions {
    let mut options = options(dir);
    options.with_devices = true;
    options.with_specials = true;
    options
}

fn check(tree: &Tree, options: &BuildOptions, aspects: &Aspects) -> Built {
    let built = build(options);
    assert_eq!(built.report.errors, 0, "{:?}", built.messages);
    let found = tree_of(&built.image());
    assert_same("image", &trees(tree, &found, aspects));
    built
}

#[test]
fn odd_tree() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made_tree(dir.path());
    let mut options = all_kinds(dir.path());
    check(&tree, &options, &Aspects::all(1_000_000_000));

    options.time_resolution = TimeResolution::from_ns(1).unwrap();
    options.keep_all_times = true;
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    options.metadata_compression = Spec::parse("zstd:level=3").unwrap();
    options.pack = PackOptions::ALL;
    options.header = b"#!/bin/sh\nexit 0\n".to_vec();
    options.block_size_bits = 16;
    let aspects = Aspects {
        atime_ns: Some(1),
        ..Aspects::all(1)
    };
    // The first build has read the files.
    let tree = seen(dir.path());
    let built = check(&tree, &options, &aspects);
    assert!(built.bytes.starts_with(b"#!/bin/sh\nexit 0\nDWARFS"));

    options.time_resolution = TimeResolution::from_ns(300_000_000_000).unwrap();
    options.keep_all_times = false;
    options.pack = PackOptions::parse("plain").unwrap();
    options.section_index = false;
    options.hardlink_table = false;
    options.file_hash = None;
    check(&tree, &options, &Aspects::all(300_000_000_000));
}

#[test]
fn odd_tree_seen_by_the_independent_decoder() {
    let decoder = require!(Decoder::find());
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let size = MadeTreeOptions {
        wide: 300,
        sparse_len: 1 << 28,
    };
    make(&tree, &size).unwrap();
    for pack in [
        "auto",
        "none",
        "all",
        "plain",
        "names,force",
        "directories,symlinks_index",
    ] {
        let mut options = all_kinds(&tree);
        options.compression = Spec::parse("lz4").unwrap().into();
        options.pack = PackOptions::parse(pack).unwrap();
        let image = dir.path().join("image");
        fs::write(&image, build(&options).bytes).unwrap();
        decoder
            .check(&image)
            .unwrap_or_else(|said| panic!("{pack}: {said}"));
    }
}

#[test]
fn directories_deeper_than_a_path() {
    let dir = tempfile::tempdir().unwrap();
    let name = "d".repeat(200);
    let mut at = rustix::fs::open(dir.path(), rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    for depth in 0..60 {
        rustix::fs::mkdirat(&at, &name, 0o755.into()).unwrap();
        // A second directory keeps the first one waiting, so that descriptors stay open.
        rustix::fs::mkdirat(&at, "other", 0o755.into()).unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(&at, "file", flags, 0o644.into()).unwrap();
        rustix::io::write(file, format!("at {depth}").as_bytes()).unwrap();
        at = rustix::fs::openat(&at, &name, rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    }
    let tree = seen(dir.path());
    assert!(tree.nodes.iter().any(|node| node.path.len() > 10_000));
    check(&tree, &options(dir.path()), &Aspects::all(1_000_000_000));
    durin_testkit::roundtrip::remove_tree(dir.path()).unwrap();
}

#[test]
fn empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    let tree = seen(dir.path());
    let built = check(&tree, &options(dir.path()), &Aspects::all(1_000_000_000));
    assert_eq!((built.report.blocks, built.report.inodes), (0, 1));
}
