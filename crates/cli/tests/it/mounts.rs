//! `durin mounts` and `durin unmount`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durin_testkit::skip::{is_root, skipped};
use serde_json::Value;

use crate::everyday::{command, records, with_image};
use crate::support::{Place, dwarfs, fails_with, program};

/// `durin mounts` asks all drivers, and while it does, a mount is in use: these tests wait for each other.
static ONE_BY_ONE: Mutex<()> = Mutex::new(());

fn one_by_one() -> MutexGuard<'static, ()> {
    ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mount_image(place: &Place) {
    crate::support::dwarfs()
        .current_dir(&place.path(""))
        .args(["image.dwarfs", "mnt"])
        .succeed();
}

/// What `durin mounts` has of one mount point.
fn listed_at(place: &Place, point: &Path) -> Vec<Value> {
    let mut listed = records(&command(place, "mounts", &["--json"]).succeed());
    listed.retain(|mount| mount["mountpoint"] == point.to_str().unwrap());
    listed
}

#[test]
fn mounts_are_listed_and_unmounted_by_image_or_place() {
    if let Err(why) = durin_testkit::mount::available() {
        return skipped(&why);
    }
    let _alone = one_by_one();
    let place = with_image();
    for target in ["image.dwarfs", "mnt"] {
        fs::create_dir_all(place.path("mnt")).unwrap();
        mount_image(&place);
        let point = place.path("mnt").canonicalize().unwrap();
        let listed = listed_at(&place, &point);
        assert!(
            listed[0]["image"]
                .as_str()
                .unwrap()
                .ends_with("image.dwarfs")
        );
        // Somebody is in there: a process of its own, for what is open here goes on to whatever other tests start.
        let mut user = Command::new("sleep")
            .arg("60")
            .current_dir(&point)
            .spawn()
            .unwrap();
        let busy = command(&place, "unmount", &[target]).expect_code(1);
        assert!(busy.stderr.contains("cannot unmount"), "{}", busy.stderr);
        user.kill().unwrap();
        user.wait().unwrap();
        command(&place, "unmount", &[target]).succeed();
        assert!(!durin_testkit::mount::is_mount_point(&point));
    }
    fails_with(
        command(&place, "unmount", &["mnt"]),
        "no image is mounted there",
    );
}

#[test]
fn the_helper_of_mount_takes_its_flags() {
    if let Err(why) = durin_testkit::mount::available() {
        return skipped(&why);
    }
    let _alone = one_by_one();
    let place = with_image();
    let point = place.path("mnt");
    fs::create_dir(&point).unwrap();
    let helper = place.path("mount.dwarfs");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dwarfs"), &helper).unwrap();
    let run = |flags: &[&str]| {
        let run = program(&helper).current_dir(&place.path(""));
        run.args(["image.dwarfs", "mnt"]).args(flags).succeed();
        durin_testkit::mount::is_mount_point(&point)
    };
    // Everything but the mount.
    assert!(!run(&["-f", "-n", "-o", "ro"]));
    assert!(run(&["-s", "-n", "-v", "-o", "ro", "-t", "dwarfs"]));
    command(&place, "unmount", &["mnt"]).succeed();
}

#[test]
fn an_image_is_found_whatever_path_it_was_mounted_by() {
    if let Err(why) = durin_testkit::mount::available() {
        return skipped(&why);
    }
    let _alone = one_by_one();
    let place = with_image();
    fs::create_dir(place.path("mnt")).unwrap();
    std::os::unix::fs::symlink("image.dwarfs", place.path("link")).unwrap();
    for path in ["link", "tree/../image.dwarfs"] {
        let run = dwarfs().current_dir(&place.path(""));
        run.args([path, "mnt"]).succeed();
        command(&place, "unmount", &["image.dwarfs"]).succeed();
        assert!(!durin_testkit::mount::is_mount_point(&place.path("mnt")));
    }
}

#[test]
fn mounts_over_each_other_go_one_by_one_or_all_at_once() {
    if let Err(why) = durin_testkit::mount::available() {
        return skipped(&why);
    }
    let _alone = one_by_one();
    let place = with_image();
    fs::create_dir(place.path("mnt")).unwrap();
    let point = place.path("mnt").canonicalize().unwrap();
    for targets in [
        &["mnt", "mnt"][..],
        &["image.dwarfs"],
        &["image.dwarfs", "mnt"],
    ] {
        mount_image(&place);
        mount_image(&place);
        let listed = listed_at(&place, &point);
        assert_eq!(listed.len(), 2);
        assert!(listed[0]["pid"].is_null(), "it cannot be asked");
        if targets == ["mnt", "mnt"] {
            command(&place, "unmount", &["mnt"]).succeed();
            assert_eq!(listed_at(&place, &point).len(), 1);
            assert_eq!(fs::read(point.join("hello")).unwrap(), b"hello\n");
            command(&place, "unmount", &["mnt"]).succeed();
        } else {
            command(&place, "unmount", targets).succeed();
        }
        assert_eq!(listed_at(&place, &point).len(), 0);
    }
}

#[test]
fn what_is_mounted_over_an_image_stays() {
    if let Err(why) = durin_testkit::mount::available() {
        return skipped(&why);
    }
    if !is_root() {
        return skipped("other file systems are mounted by root");
    }
    let _alone = one_by_one();
    let place = with_image();
    fs::create_dir(place.path("mnt")).unwrap();
    let point = place.path("mnt").canonicalize().unwrap();
    mount_image(&place);
    let mut over = Command::new("mount");
    let over = over.args(["-t", "tmpfs", "none"]).arg(&point).status();
    assert!(over.unwrap().success());
    fs::write(point.join("above"), "").unwrap();
    for (target, part) in [
        ("mnt", "no image is mounted there"),
        ("image.dwarfs", "something else is mounted over the image"),
    ] {
        fails_with(command(&place, "unmount", &[target]), part);
        assert!(point.join("above").exists());
    }
    durin_testkit::mount::unmount(&point).unwrap();
    command(&place, "unmount", &["mnt"]).succeed();
    assert_eq!(listed_at(&place, &point).len(), 0);
}
