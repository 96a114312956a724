//! Images that mean harm: the mount stays up, says what is wrong once, and gives no wrong bytes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use durin_format::events::Quiet;
use durin_fuse::{FsOptions, MountOptions};
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;
use durin_testkit::require;
use rustix::io::Errno;

use crate::{Mount, ready};

/// Goes through a whole tree as a program would, whatever happens.
fn walk(dir: &Path, depth: usize) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten().take(10_000) {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        if found.is_dir() && depth > 0 {
            walk(&path, depth - 1);
        } else if found.is_file() && found.len() < 1 << 30 {
            fs::read(&path).ok();
        } else if found.is_symlink() {
            fs::read_link(&path).ok();
        }
    }
}

#[test]
fn evil_images_that_open_can_be_walked() {
    let vectors = require!(ready());
    for path in vectors.images("evil") {
        let source = durin_source::open(&path, OpenMode::Mmap).unwrap();
        let Ok(image) = Image::open(source, &ImageOptions::default()) else {
            continue;
        };
        let point = tempfile::tempdir().unwrap();
        let session = durin_fuse::mount(
            Arc::new(image),
            point.path(),
            &FsOptions::default(),
            &MountOptions::default(),
            Arc::new(Quiet),
        )
        .unwrap();
        let unmounter = session.unmounter();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| session.run());
            walk(point.path(), 40);
            unmounter.unmount().unwrap();
            server.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_bad_block_is_an_input_output_error_reported_once() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("evil", "xxh-flip"));
    let mut failures = 0;
    for entry in fs::read_dir(mount.path()).unwrap() {
        let path = entry.unwrap().path();
        if !fs::symlink_metadata(&path).unwrap().is_file() {
            continue;
        }
        for _ in 0..3 {
            if let Err(error) = fs::read(&path) {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::IO));
                failures += 1;
            }
        }
    }
    assert!(failures >= 3, "the block is bad");
    let messages = mount.messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("BLOCK"), "{messages:?}");
}
