//! Listing directories from any place in them.

use std::fs;

use durin_testkit::require;
use rustix::fs::{Dir, Mode, OFlags};

use crate::{Mount, ready};

/// Names and the offset behind each, as the kernel gives them.
fn listing(dir: &mut Dir) -> Vec<(Vec<u8>, i64)> {
    dir.map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().to_bytes().to_vec(), entry.offset())
    })
    .collect()
}

fn open_dir(mount: &Mount, path: &str) -> Dir {
    let fd = rustix::fs::open(
        mount.join(path),
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    )
    .unwrap();
    Dir::new(fd).unwrap()
}

#[test]
fn offsets_count_from_dot_and_can_be_gone_back_to() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.9.10"));
    let mut dir = open_dir(&mount, "");
    let all = listing(&mut dir);
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_slice()).collect();
    assert_eq!(names[..2], [&b"."[..], b".."]);
    assert!(names[2..].is_sorted());
    assert!(names.len() > 4);
    let offsets: Vec<_> = all.iter().map(|(_, offset)| *offset).collect();
    let expected: Vec<_> = (1..=i64::try_from(all.len()).unwrap()).collect();
    assert_eq!(offsets, expected);

    for (place, (_, offset)) in all.iter().enumerate() {
        dir.seek(*offset).unwrap();
        assert_eq!(listing(&mut dir), all[place + 1..], "from {offset}");
    }
    dir.rewind();
    assert_eq!(listing(&mut dir), all);
}

#[test]
fn listing_twice_gives_the_same() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("generated", "default-l7-S16"));
    let list = || {
        let mut names: Vec<_> = fs::read_dir(mount.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let first = list();
    assert!(!first.is_empty());
    for name in &first {
        fs::symlink_metadata(mount.path().join(name)).unwrap();
    }
    assert_eq!(list(), first);
}
