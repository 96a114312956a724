//! What the kernel keeps and what it asks for again.

use std::fs;

use durin_fuse::{FsOptions, MountOptions};
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};

use crate::{Mount, ready};

#[test]
fn without_page_cache_the_content_is_the_same() {
    let vectors = require!(ready());
    let image = vectors.image("handmade", "holes");
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let cached = snapshot(Mount::new(&image).path(), &options).unwrap();
    for (cache_files, cache_sparse) in [(false, false), (true, false)] {
        let fs = FsOptions {
            cache_files,
            cache_sparse,
            ..FsOptions::default()
        };
        let mount = Mount::with(&image, &fs, &MountOptions::default());
        let direct = snapshot(mount.path(), &options).unwrap();
        assert_eq!(direct.nodes.len(), cached.nodes.len());
        for (a, b) in direct.nodes.iter().zip(&cached.nodes) {
            assert_eq!((&a.path, a.digest), (&b.path, b.digest));
        }
    }
}

#[test]
fn one_thread_is_enough() {
    let vectors = require!(ready());
    let options = MountOptions {
        threads: 1,
        clone_fd: false,
        ..MountOptions::default()
    };
    let image = vectors.image("good", "compat-v0.4.1");
    let mount = Mount::with(&image, &FsOptions::default(), &options);
    assert_eq!(fs::read(mount.join("bench.sh")).unwrap().len(), 1517);
}

#[test]
fn many_readers_at_once_get_what_one_gets() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("generated", "default-l7-S16"));
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let digests = || -> Vec<_> {
        let tree = snapshot(mount.path(), &options).unwrap();
        tree.nodes
            .into_iter()
            .map(|node| (node.path, node.digest))
            .collect()
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..6).map(|_| scope.spawn(digests)).collect();
        let mut all = readers.into_iter().map(|reader| reader.join().unwrap());
        let first = all.next().unwrap();
        assert!(all.all(|other| other == first));
    });
}
