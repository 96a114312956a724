//! Readers that others wrote accept what we write, and read what was there.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use durin_testkit::compare::{Seen, assert_same, manifest};
use durin_testkit::made_tree::{self, MadeTreeOptions};
use durin_testkit::manifest::Manifest;
use durin_testkit::python::Decoder;
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;
use dwarfs::{Archive, AsChunks, InodeKind};

use crate::round_trip::python_library;
use crate::support::{programs, work_dir};

/// Enough of everything, and small enough for a decoder that holds all in memory.
const SMALL: MadeTreeOptions = MadeTreeOptions {
    wide: 500,
    sparse_len: 8 << 20,
};

#[test]
fn the_python_decoder_reads_our_images() {
    let decoder = require!(Decoder::find());
    let source = work_dir();
    made_tree::make(source.path(), &SMALL).unwrap();
    let work = work_dir();
    for build_args in [
        &["-l0"][..],
        &["-l1"],
        &["-l2", "--pack-metadata=all"],
        &["-l4", "--pack-metadata=all,force", "--keep-all-times"],
        &["-l6"],
        &["-l7"],
        &["-l8", "--pack-metadata=none", "--no-hardlink-table"],
        &["-C", "brotli:quality=5", "-S12", "--no-history"],
        &["-l1", "--no-section-index"],
    ] {
        let way = format!("{build_args:?}");
        let image = work.path().join("image.dwarfs");
        let build = programs().build(source.path(), &image).args(build_args);
        let build = build.args(["--with-devices", "--with-specials", "--time-resolution=1ns"]);
        build.arg("--force").succeed();
        if let Err(said) = decoder.check(&image) {
            panic!("{way}: {said}");
        }
        let text = decoder.manifest(&image).unwrap();
        let found = Manifest::parse(&text).unwrap();
        let tree = snapshot(
            source.path(),
            &TreeOptions {
                digest: Digest::Full,
            },
        )
        .unwrap();
        assert_same(&way, &manifest(&found, &tree, Seen::Source));
    }
}

#[test]
fn the_python_decoder_reads_categories() {
    let decoder = require!(Decoder::find());
    let vectors = require!(Vectors::find());
    // It has sounds and pictures of many layouts, and more.
    let categorized = vectors.image("generated", "cat-l7");
    let work = work_dir();
    let (source, image) = (work.path().join("tree"), work.path().join("image.dwarfs"));
    std::fs::create_dir(&source).unwrap();
    programs().extract(&categorized, &source).succeed();
    for build_args in [
        &["-l3"][..],
        &["-l7", "-S14", "--categorize"],
        &["-l9", "-S16", "--incompressible-fragments"],
        &["-l5", "-S12", "--categorize=incompressible,binary"],
    ] {
        let way = format!("{build_args:?}");
        let build = programs().build(&source, &image).args(build_args);
        build.arg("--force").succeed();
        if let Err(said) = decoder.check(&image) {
            panic!("{way}: {said}");
        }
        let found = Manifest::parse(&decoder.manifest(&image).unwrap()).unwrap();
        let options = TreeOptions {
            digest: Digest::Full,
        };
        let tree = snapshot(&source, &options).unwrap();
        assert_same(&way, &manifest(&found, &tree, Seen::Source));
    }
}

#[test]
fn the_dwarfs_crate_reads_our_images() {
    let work = work_dir();
    let made = work_dir();
    made_tree::make(made.path(), &SMALL).unwrap();
    // That crate wants names in UTF-8 and knows no holes.
    let contents = made.path().join("contents");
    let wide = made.path().join("wide");
    for build_args in [
        &["-l1"][..],
        &["-l4"],
        &["-l6"],
        &["-l7"],
        &["-l8"],
        &["-l0", "--pack-metadata=none"],
    ] {
        for source in [&contents, &wide] {
            assert_crate_reads(source, work.path(), build_args);
        }
    }
    match python_library() {
        Some(dir) => assert_crate_reads(&dir, work.path(), &["-l4"]),
        None => durin_testkit::skip::skipped("no Python library of a handy size"),
    }
}

fn assert_crate_reads(source: &Path, work: &Path, build_args: &[&str]) {
    let way = format!("{} packed with {build_args:?}", source.display());
    let image = work.join("image.dwarfs");
    let build = programs().build(source, &image).args(build_args);
    build.args(["--force", "--no-sparse-files"]).succeed();
    let opened = Archive::new(File::open(&image).unwrap());
    let (index, mut archive) = opened.unwrap_or_else(|error| panic!("{way}: {error}"));
    let mut dirs = vec![(index.root(), source.to_owned())];
    let mut files = 0;
    while let Some((dir, path)) = dirs.pop() {
        let mut names = 0;
        for entry in dir.entries() {
            names += 1;
            let path = path.join(entry.name());
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            match entry.inode().classify() {
                InodeKind::Directory(inner) => dirs.push((inner, path)),
                InodeKind::Symlink(link) => {
                    assert_eq!(Path::new(link.target()), std::fs::read_link(&path).unwrap());
                }
                InodeKind::File(file) => {
                    files += 1;
                    let found = file.read_to_vec(&mut archive).unwrap();
                    assert!(
                        found == std::fs::read(&path).unwrap(),
                        "{way}: {}",
                        path.display()
                    );
                    assert_attributes(&entry, &metadata);
                }
                _ => panic!("{}", path.display()),
            }
        }
        assert_eq!(
            names,
            std::fs::read_dir(&path).unwrap().count(),
            "{way}: {}",
            path.display()
        );
    }
    assert!(files > 0, "{way}: no files");
}

fn assert_attributes(entry: &dwarfs::archive::DirEntry<'_>, on_disk: &Metadata) {
    let found = entry.inode().metadata();
    let mode = found.file_type_mode();
    assert_eq!(mode.type_bits() | mode.mode_bits(), on_disk.mode());
    assert_eq!((found.uid(), found.gid()), (on_disk.uid(), on_disk.gid()));
    assert_eq!(found.mtime().cast_signed(), on_disk.mtime());
}
