//! Options of the driver whose effect shows in a mount or in the process behind it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use durin_testkit::mount::{self, Mount};
use durin_testkit::{require, skip};

use crate::support::Place;

fn driver() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dwarfs"))
}

#[test]
fn blocksize_is_told() {
    require!(mount::available());
    let place = Place::new();
    for (options, size) in [(&[][..], 512 << 10), (&["blocksize=64k"], 64 << 10)] {
        let mounted = Mount::new(driver(), &place.image(), options);
        let found = fs::metadata(mounted.path().join("hello")).unwrap();
        assert_eq!(found.blksize(), size, "{options:?}");
    }
}

#[test]
fn symlinks_are_not_followed_if_so_asked() {
    require!(mount::available());
    let place = Place::new();
    std::os::unix::fs::symlink("hello", place.tree().join("link")).unwrap();
    for (options, is_followed) in [
        (&[][..], true),
        (&["nosymfollow"], false),
        (&["nosymfollow,symfollow"], true),
    ] {
        if !is_followed && !skip::is_root() {
            skip::skipped("not every fusermount3 knows nosymfollow");
            continue;
        }
        let mounted = Mount::new(driver(), &place.image(), options);
        let link = mounted.path().join("link");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("hello"));
        assert_eq!(fs::read(&link).is_ok(), is_followed, "{options:?}");
    }
}

#[test]
fn metadata_is_locked_in_memory() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("others may lock next to nothing");
        return;
    }
    let place = Place::new();
    for (options, is_locked) in [
        ("mlock=none", false),
        ("mlock=try", true),
        ("mlock=must", true),
    ] {
        let mounted = Mount::foreground(driver(), &place.image(), &[options]);
        let pid = mounted.driver_pid().unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmLck:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(kib > 0, is_locked, "{options}: {line}");
    }
}

#[test]
fn memory_of_blocks_comes_from_where_it_is_asked_to() {
    require!(mount::available());
    let place = Place::new();
    for options in ["block_allocator=malloc", "block_allocator=mmap"] {
        let mounted = Mount::new(driver(), &place.image(), &[options]);
        for (name, content) in [("hello", "hello\n"), ("sub/odd\nname", "odd")] {
            let found = fs::read_to_string(mounted.path().join(name)).unwrap();
            assert_eq!(found, content, "{options}");
        }
    }
}

/// Starts a driver that is to stay in the foreground, and waits for its mount.
fn foreground(place: &Place, arguments: &[&str]) -> Child {
    let point = place.path("mnt");
    fs::create_dir_all(&point).unwrap();
    let child = Command::new(driver())
        .args([&place.image(), &point])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = std::time::Instant::now();
    while !mount::is_mount_point(&point) {
        assert!(start.elapsed().as_secs() < 60, "{arguments:?}: no mount");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

#[test]
fn the_driver_says_as_much_as_asked_for() {
    require!(mount::available());
    let place = Place::new();
    for (arguments, is_loud) in [
        (&["-f", "-o", "debuglevel=error"][..], false),
        (&["-f", "-o", "debuglevel=debug"], true),
        // Stays in the foreground by itself.
        (&["-d"], true),
        (&["-o", "debug"], true),
    ] {
        let mut child = foreground(&place, arguments);
        let point = place.path("mnt");
        fs::read(point.join("hello")).unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "{arguments:?}");
        mount::unmount(&point).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            !output.stderr.is_empty(),
            is_loud,
            "{arguments:?}: {output:?}"
        );
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn one_thread_answers_if_it_is_asked_for() {
    require!(mount::available());
    let place = Place::new();
    for (arguments, is_one) in [(&["-f", "-s"][..], true), (&["-f"], false)] {
        let child = foreground(&place, arguments);
        let point = place.path("mnt");
        let mut value = vec![0; 1 << 16];
        let name = "user.dwarfs.driver.session";
        let len = rustix::fs::getxattr(&point, name, value.as_mut_slice()).unwrap();
        let text = String::from_utf8(value[..len].to_vec()).unwrap();
        assert_eq!(text.contains("\"threads_max\":1}"), is_one, "{text}");
        assert_eq!(fs::read_to_string(point.join("hello")).unwrap(), "hello\n");
        mount::unmount(&point).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
    }
}
