//! Requests through io_uring, and what happens where the kernel offers none.

use std::fs;

use durin_fuse::{FsOptions, MountOptions};
use durin_testkit::io_uring::Offer;
use durin_testkit::json::parse;
use durin_testkit::over::Over;
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use rustix::io::Errno;

use crate::xattr::xattr;
use crate::{Mount, ready};

fn mounted(image: &std::path::Path, io_uring: bool, threads: usize) -> Mount {
    let options = MountOptions {
        io_uring,
        threads,
        ..MountOptions::default()
    };
    Mount::with(image, &FsOptions::default(), &options)
}

/// What the session says of io_uring.
fn told(mount: &Mount) -> String {
    let session = xattr(mount.path(), "user.dwarfs.driver.session").unwrap();
    let session = parse(&session).unwrap();
    session["io_uring"].as_str().unwrap().to_owned()
}

fn contents(mount: &Mount) -> Vec<(String, Option<String>)> {
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let tree = snapshot(mount.path(), &options).unwrap();
    let nodes = tree.nodes.into_iter();
    nodes
        .map(|node| {
            (
                format!("{:?}", node.path),
                node.digest.map(|digest| format!("{digest:?}")),
            )
        })
        .collect()
}

#[test]
fn the_same_comes_through_io_uring() {
    let vectors = require!(ready());
    let image = vectors.image("generated", "default-l7-S16");
    let offer = Offer::new();
    let plain = mounted(&image, false, 0);
    let expected = contents(&plain);
    let mount = mounted(&image, true, 0);
    assert_eq!(contents(&mount), expected);
    if offer.is_there {
        assert_eq!(told(&mount), "in use");
        assert!(told(&plain).starts_with("on offer, not used: "));
    } else {
        assert_eq!(told(&mount), "not on offer");
    }
}

#[test]
fn many_readers_get_what_one_gets_through_io_uring() {
    let vectors = require!(ready());
    let _offer = Offer::new();
    let mount = mounted(&vectors.image("generated", "default-l7-S16"), true, 0);
    let first = contents(&mount);
    let mount = mounted(&vectors.image("generated", "default-l7-S16"), true, 0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(contents(&mount), first));
        }
    });
}

#[test]
fn too_few_threads_for_all_queues_use_the_device() {
    let vectors = require!(ready());
    let offer = Offer::new();
    let mount = mounted(&vectors.image("good", "compat-v0.4.1"), true, 1);
    assert_eq!(fs::read(mount.join("bench.sh")).unwrap().len(), 1517);
    let cores = std::thread::available_parallelism().unwrap().get();
    if offer.is_there && cores > 1 {
        let told = told(&mount);
        assert!(told.starts_with("on offer, not used: "), "{told}");
    }
}

#[test]
fn errors_come_through_io_uring() {
    let vectors = require!(ready());
    let _offer = Offer::new();
    let mount = mounted(&vectors.image("evil", "xxh-flip"), true, 0);
    let mut failures = 0;
    for entry in fs::read_dir(mount.path()).unwrap() {
        let path = entry.unwrap().path();
        assert!(fs::metadata(path.join("absent")).is_err());
        if fs::symlink_metadata(&path).unwrap().is_file()
            && let Err(error) = fs::read(&path)
        {
            assert_eq!(Errno::from_io_error(&error), Some(Errno::IO));
            failures += 1;
        }
    }
    assert!(failures > 0, "the block is bad");
    assert_eq!(mount.messages().len(), 1);
}

#[test]
fn it_ends_under_its_readers() {
    let vectors = require!(ready());
    let image = vectors.image("generated", "default-l7-S16");
    let _offer = Offer::new();
    for round in 0..10 {
        let mut mount = mounted(&image, true, 0);
        let over = Over::default();
        std::thread::scope(|scope| {
            let guard = over.guard();
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.is_over() {
                        // Once it is out of sight, there is nothing to be found.
                        let options = TreeOptions {
                            digest: Digest::Full,
                        };
                        snapshot(mount.path(), &options).ok();
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(round * 3));
            mount.unmounter.unmount().unwrap();
            drop(guard);
        });
        mount.wait().unwrap();
    }
}
