//! The ways a mount ends.

use std::fs;
use std::io::Read;

use durin_fuse::Unmounted;
use durin_testkit::mount::is_mount_point;
use durin_testkit::require;
use rustix::mount::UnmountFlags;

use crate::{Mount, ready};

#[test]
fn the_server_ends_with_the_mount() {
    let vectors = require!(ready());
    let mut mount = Mount::new(&vectors.image("handmade", "base"));
    assert!(is_mount_point(mount.path()));
    assert_eq!(mount.unmounter.unmount().unwrap(), Unmounted::Clean);
    mount.wait().unwrap();
    assert!(!is_mount_point(mount.path()));
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0);
    assert_eq!(mount.unmounter.unmount().unwrap(), Unmounted::Clean);
}

#[test]
fn a_busy_mount_goes_out_of_sight_and_serves_its_last_user() {
    let vectors = require!(ready());
    let mut mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let mut file = fs::File::open(mount.join("bench.sh")).unwrap();
    assert_eq!(mount.unmounter.unmount().unwrap(), Unmounted::Detached);
    assert!(!is_mount_point(mount.path()));
    let mut content = Vec::new();
    file.read_to_end(&mut content).unwrap();
    assert_eq!(content.len(), 1517);
    assert!(!mount.server.as_ref().unwrap().is_finished());
    drop(file);
    mount.wait().unwrap();
}

#[test]
fn somebody_else_may_unmount() {
    let vectors = require!(ready());
    let mut mount = Mount::new(&vectors.image("handmade", "base"));
    durin_testkit::mount::unmount(mount.path()).unwrap();
    mount.wait().unwrap();
}

/// By these the driver knows its own mount.
fn has_unique_numbers() -> Result<(), &'static str> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (version >= (6, 8)).then_some(()).ok_or("Linux before 6.8")
}

/// It fails, but has cut the connection by then.
#[test]
fn a_busy_mount_that_is_forced_leaves_no_dead_one() {
    let vectors = require!(ready());
    let is_root = rustix::process::geteuid().is_root();
    require!(is_root.then_some(()).ok_or("not root"));
    require!(has_unique_numbers());
    let mut mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let file = fs::File::open(mount.join("bench.sh")).unwrap();
    let forced = rustix::mount::unmount(mount.path(), UnmountFlags::FORCE);
    assert_eq!(forced, Err(rustix::io::Errno::BUSY));
    mount.wait().unwrap();
    assert!(!is_mount_point(mount.path()));
    drop(file);
}

#[test]
fn a_mount_below_is_not_taken_for_ours() {
    let vectors = require!(ready());
    let image = vectors.image("handmade", "base");
    let mut lower = Mount::new(&image);
    let events = std::sync::Arc::new(crate::Messages::default());
    // A second one at the same place, which somebody else then unmounts.
    let upper = durin_fuse::mount(
        std::sync::Arc::new(crate::open(&image)),
        lower.path(),
        &durin_fuse::FsOptions::default(),
        &durin_fuse::MountOptions::default(),
        events,
    )
    .unwrap();
    let unmounter = upper.unmounter();
    rustix::mount::unmount(lower.path(), UnmountFlags::DETACH).unwrap();
    drop(upper);
    assert_eq!(unmounter.unmount().unwrap(), Unmounted::NotFound);
    assert!(is_mount_point(lower.path()), "the lower mount still stands");
    assert_eq!(lower.unmounter.unmount().unwrap(), Unmounted::Clean);
    lower.wait().unwrap();
}

#[test]
fn a_mount_that_was_moved_is_found() {
    let vectors = require!(ready());
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("with space"));
    fs::create_dir_all(before.join("mnt")).unwrap();
    let session = durin_fuse::mount(
        std::sync::Arc::new(crate::open(&vectors.image("handmade", "base"))),
        &before.join("mnt"),
        &durin_fuse::FsOptions::default(),
        &durin_fuse::MountOptions::default(),
        std::sync::Arc::new(crate::Messages::default()),
    )
    .unwrap();
    fs::rename(&before, &after).unwrap();
    let unmounter = session.unmounter();
    assert_eq!(unmounter.unmount().unwrap(), Unmounted::Clean);
    session.run().unwrap();
    assert!(!is_mount_point(&after.join("mnt")));
}

#[test]
fn what_is_covered_stays() {
    let vectors = require!(ready());
    let image = vectors.image("handmade", "base");
    let mut lower = Mount::new(&image);
    let upper = durin_fuse::mount(
        std::sync::Arc::new(crate::open(&image)),
        lower.path(),
        &durin_fuse::FsOptions::default(),
        &durin_fuse::MountOptions::default(),
        std::sync::Arc::new(crate::Messages::default()),
    )
    .unwrap();
    assert_eq!(lower.unmounter.unmount().unwrap(), Unmounted::Covered);
    drop(upper);
    assert_eq!(lower.unmounter.unmount().unwrap(), Unmounted::Clean);
    lower.wait().unwrap();
}

#[test]
fn the_next_mount_at_the_same_place_is_not_taken_for_ours() {
    let vectors = require!(ready());
    let image = vectors.image("handmade", "base");
    let dir = tempfile::tempdir().unwrap();
    // Device numbers are given again at once, but not to us if another program mounts something just then.
    for _ in 0..5 {
        let mount = || {
            durin_fuse::mount(
                std::sync::Arc::new(crate::open(&image)),
                dir.path(),
                &durin_fuse::FsOptions::default(),
                &durin_fuse::MountOptions::default(),
                std::sync::Arc::new(crate::Messages::default()),
            )
            .unwrap()
        };
        let first = mount();
        rustix::mount::unmount(dir.path(), UnmountFlags::DETACH).unwrap();
        let second = mount();
        let unmounter = first.unmounter();
        first.run().unwrap();
        assert_eq!(unmounter.unmount().unwrap(), Unmounted::Clean);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let path = dir.path().to_str().unwrap();
        assert!(mounts.contains(path), "the second mount still stands");
        drop(second);
    }
}
