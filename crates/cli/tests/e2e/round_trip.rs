//! Trees survive: packed, checked, mounted, unpacked, and compared with themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use durin_testkit::compare::assert_same;
use durin_testkit::made_tree::{self, MadeTreeOptions};
use durin_testkit::mount;
use durin_testkit::require;
use durin_testkit::roundtrip::{Times, Trip};
use durin_testkit::tree::{Digest, TreeOptions, snapshot};

use crate::support::{programs, read_tree, subdir, work_dir};

/// Sends a tree through several ways of packing.
fn assert_survives(source: &Path, ways: &[(&[&str], Times)]) {
    require!(mount::available());
    let tree = read_tree(source);
    let programs = programs();
    let work = work_dir();
    for (build_args, times) in ways {
        let trip = Trip {
            programs: &programs,
            source,
            work: work.path(),
            build_args,
            times: *times,
        };
        let report = trip.make(&tree).unwrap();
        let way = format!("{} packed with {build_args:?}, {times:?}", source.display());
        assert_same(&way, &report.differences);
    }
}

fn made_tree(options: &MadeTreeOptions) -> tempfile::TempDir {
    let dir = work_dir();
    let left_out = made_tree::make(dir.path(), options).unwrap();
    if !left_out.is_empty() {
        durin_testkit::skip::skipped(&format!("parts of the made tree: {left_out:?}"));
    }
    dir
}

#[test]
fn the_odd_tree_survives_at_full_size() {
    let source = made_tree(&MadeTreeOptions::default());
    assert_survives(source.path(), &[(&["-l1"], Times::Exact)]);
}

#[test]
fn the_odd_tree_survives_every_level() {
    let source = made_tree(&MadeTreeOptions {
        wide: 300,
        ..MadeTreeOptions::default()
    });
    let levels = [
        "-l0", "-l1", "-l2", "-l3", "-l4", "-l5", "-l6", "-l7", "-l8", "-l9",
    ];
    let args = levels.map(|level| [level]);
    let times = [Times::Default, Times::Exact].into_iter().cycle();
    let ways: Vec<(&[&str], Times)> = args.iter().map(<[_; 1]>::as_slice).zip(times).collect();
    assert_survives(source.path(), &ways);
}

#[test]
fn the_odd_tree_survives_every_packing() {
    let source = made_tree(&MadeTreeOptions {
        wide: 300,
        ..MadeTreeOptions::default()
    });
    assert_survives(
        source.path(),
        &[
            (&["-l1", "--pack-metadata=all"], Times::Default),
            (&["-l1", "--pack-metadata=none"], Times::Exact),
            (&["-l1", "--pack-metadata=all,force"], Times::Exact),
            (
                &[
                    "-l1",
                    "--pack-metadata=chunk_table,directories,shared_files",
                ],
                Times::Default,
            ),
            (
                &["-l1", "-S10", "--no-section-index", "--no-history"],
                Times::Default,
            ),
            (
                &["-l1", "--no-hardlink-table", "--file-hash=none"],
                Times::Exact,
            ),
            (&["-C", "brotli:quality=4", "-S18"], Times::Default),
            (
                &["-C", "lzma:level=1:binary=x86", "-S18", "--order=revpath"],
                Times::Default,
            ),
            (
                &["-C", "null", "--metadata-compression=lzma:level=3"],
                Times::Default,
            ),
        ],
    );
}

#[test]
fn sparse_files_may_be_stored_dense() {
    let small = MadeTreeOptions {
        wide: 10,
        sparse_len: 64 << 20,
    };
    let source = made_tree(&small);
    let work = work_dir();
    let image = work.path().join("dense.dwarfs");
    programs()
        .build(source.path(), &image)
        .args(["-l1", "--no-sparse-files"])
        .succeed();
    let target = subdir(&work, "out");
    programs().extract(&image, &target).succeed();
    let tree = read_tree(source.path());
    for node in read_tree(&target)
        .nodes
        .iter()
        .filter(|node| node.digest.is_some())
    {
        let original = tree.find(&node.path).unwrap();
        assert_eq!(node.digest, original.digest, "{}", node.path.escape_ascii());
    }
}

#[test]
fn a_python_installation_survives() {
    let Some(dir) = python_library() else {
        return durin_testkit::skip::skipped("no Python library of a handy size");
    };
    assert_survives(
        &dir,
        &[(&["-l1"], Times::Default), (&["-l4"], Times::Exact)],
    );
}

/// The library folder of a Python, unless so much is installed in it that a test would take long.
pub(crate) fn python_library() -> Option<PathBuf> {
    const BYTES_MAX: u64 = 400 << 20;
    let script = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let own = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let system = std::fs::read_dir("/usr/lib")
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let is_python = |path: &PathBuf| path.to_string_lossy().starts_with("/usr/lib/python3");
    let candidates = system.filter(is_python).chain([own]);
    let bytes = |dir: &Path| {
        let tree = snapshot(
            dir,
            &TreeOptions {
                digest: Digest::None,
            },
        )
        .ok()?;
        Some(tree.nodes.iter().map(|node| node.size).sum::<u64>())
    };
    let sizes = candidates.filter_map(|dir| Some((bytes(&dir)?, dir)));
    sizes
        .filter(|(size, _)| *size < BYTES_MAX)
        .max()
        .map(|(_, dir)| dir)
}

#[test]
fn a_source_tree_survives() {
    // The kernel source takes minutes: `cargo xtask roundtrip` or this variable.
    if let Some(dir) = std::env::var_os("DURIN_LINUX") {
        let exact: (&[&str], _) = (&["-l7"], Times::Exact);
        return assert_survives(Path::new(&dir), &[(&["-l1"], Times::Default), exact]);
    }
    let headers = Path::new("/usr/include");
    if !headers.is_dir() {
        return durin_testkit::skip::skipped("no /usr/include, and DURIN_LINUX is not set");
    }
    assert_survives(
        headers,
        &[(&["-l1"], Times::Default), (&["-l4"], Times::Exact)],
    );
}
