//! What the kernel is to do on its own, by counting what it still asks.

use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};

use durin_testkit::json::parse;
use durin_testkit::require;

use crate::xattr::xattr;
use crate::{Mount, ready};

/// A number that the driver tells of the mount; 0 if there is none.
fn told(mount: &Mount, of: &str, what: &str) -> u64 {
    let session = xattr(mount.path(), "user.dwarfs.driver.session").unwrap();
    let session = parse(&session).unwrap();
    session[of][what].as_u64().unwrap_or(0)
}

/// How many requests of an operation have come.
fn requests(mount: &Mount, operation: &str) -> u64 {
    told(mount, "requests", operation)
}

fn image(vectors: &durin_testkit::vectors::Vectors) -> std::path::PathBuf {
    vectors.image("good", "compat-v0.4.1")
}

#[test]
fn opening_is_asked_for_once() {
    let vectors = require!(ready());
    let mount = Mount::new(&image(&vectors));
    for _ in 0..10 {
        fs::read(mount.join("bench.sh")).unwrap();
        fs::read_dir(mount.join("empty")).unwrap().for_each(drop);
        fs::read_dir(mount.path()).unwrap().for_each(drop);
    }
    for operation in ["open", "opendir"] {
        assert!(requests(&mount, operation) <= 1, "{operation}");
    }
    assert_eq!(requests(&mount, "release"), 0);
    assert_eq!(requests(&mount, "read"), 1, "its pages stay");
    let listings = requests(&mount, "readdirplus") + requests(&mount, "readdir");
    assert!(
        listings <= 4,
        "{listings} for two directories and their ends"
    );
}

#[test]
fn what_the_cache_has_done_is_told() {
    let vectors = require!(ready());
    // Its blocks are compressed.
    let mount = Mount::new(&vectors.image("generated", "lzma-S15"));
    let cache = |what| told(&mount, "cache", what);
    assert_eq!((cache("decoded_bytes"), cache("misses")), (0, 0));
    fs::read(mount.join("media/g0.fits")).unwrap();
    assert!(cache("decoded_bytes") > 0 && cache("misses") > 0 && cache("held_bytes") > 0);
    assert_eq!(cache("evictions"), 0);
}

#[test]
fn what_is_not_there_is_asked_for_once() {
    let vectors = require!(ready());
    let mount = Mount::new(&image(&vectors));
    fs::metadata(mount.join("bench.sh")).unwrap();
    let before = requests(&mount, "lookup");
    for _ in 0..10 {
        assert!(fs::metadata(mount.join("absent")).is_err());
    }
    assert_eq!(requests(&mount, "lookup"), before + 1);
}

#[test]
fn link_targets_stay() {
    let vectors = require!(ready());
    let mount = Mount::new(&image(&vectors));
    let links: Vec<_> = fs::read_dir(mount.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_symlink())
        .collect();
    for _ in 0..10 {
        for link in &links {
            fs::read_link(link).unwrap();
        }
    }
    assert!(requests(&mount, "readlink") <= links.len() as u64);
}

#[test]
fn names_come_first_and_attributes_when_they_are_wanted() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("generated", "default-l7-S16"));
    let (mut files, mut dirs) = (0, vec![mount.path().to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let attributes = entry.metadata().unwrap();
            assert_eq!(entry.ino(), attributes.ino());
            if kind.is_dir() {
                dirs.push(entry.path());
            } else {
                files += 1;
            }
        }
    }
    let lookups = requests(&mount, "lookup");
    assert!(lookups >= 2, "the first files are asked for one by one");
    assert!(lookups < files, "{lookups} lookups for {files} files");
}
