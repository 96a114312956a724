//! Trees with more directories, levels and links than fit anywhere at once.

use std::fs;
use std::os::unix::fs::MetadataExt;

use durin_extract::ExtractOptions;
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::extract_image;
use crate::synthetic::{Child, Tree};

#[test]
fn deep_trees_are_walked_down_and_up_again() {
    // Far more levels than a path may have bytes.
    const DEPTH: usize = 6000;
    let mut tree = Tree::default();
    for level in 1..=DEPTH {
        tree.dirs.push(vec![("d".to_owned(), Child::Dir(level))]);
    }
    tree.dirs.push(vec![("file".to_owned(), Child::File(0))]);
    tree.files.push(b"deep".to_vec());
    let image = tree.open().unwrap();
    let target = tempfile::tempdir().unwrap();
    let outcome = extract_image(&image, target.path(), &ExtractOptions::default());
    let report = outcome.result.unwrap();
    assert_eq!((report.directories, report.files), (DEPTH as u64, 1));

    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dirs = vec![rustix::fs::open(target.path(), flags, Mode::empty()).unwrap()];
    for _ in 0..DEPTH {
        let next = rustix::fs::openat(dirs.last().unwrap(), "d", flags, Mode::empty()).unwrap();
        // Only the last one is needed; this process may not keep them all open either.
        dirs = vec![next];
    }
    let file = rustix::fs::statat(&dirs[0], "file", AtFlags::empty()).unwrap();
    assert_eq!((file.st_size, file.st_mtime), (4, 1_000_000_000));
    let last = rustix::fs::fstat(&dirs[0]).unwrap();
    assert_eq!((last.st_mode, last.st_mtime), (0o040_755, 1_000_000_000));
}

#[test]
fn twenty_thousand_directories_need_few_descriptors() {
    const WIDTH: usize = 20_000;
    let mut tree = Tree::default();
    tree.dirs.push(
        (1..=WIDTH)
            .map(|place| (format!("{place:06}"), Child::Dir(place)))
            .collect(),
    );
    for place in 0..WIDTH {
        tree.dirs
            .push(vec![("f".to_owned(), Child::File(place % 7))]);
    }
    tree.files = (1..=7).map(|len| vec![b'x'; len]).collect();
    let image = tree.open().unwrap();
    let target = tempfile::tempdir().unwrap();
    let outcome = extract_image(&image, target.path(), &ExtractOptions::default());
    let report = outcome.result.unwrap();
    assert_eq!(report.directories, WIDTH as u64);
    assert_eq!((report.files, report.links), (7, WIDTH as u64 - 7));
    for place in [1, 500, WIDTH] {
        let file = fs::metadata(target.path().join(format!("{place:06}/f"))).unwrap();
        assert_eq!(file.len(), ((place - 1) % 7 + 1) as u64);
        assert!(file.nlink() > 1);
    }
}
