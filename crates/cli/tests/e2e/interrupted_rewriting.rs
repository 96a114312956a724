//! Rewriting that is ended at any moment, in every mode: under the final name there is what was there, or a whole new
//! image. In place it is refused; who wants that has the new one replace the old one when it is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::random::Random;
use durin_testkit::run::pid_of;
use durin_testkit::skip::{is_root, skipped};
use rustix::process::Signal;

use crate::atomic::{OLD, SmallDisk, fill};
use crate::support::{names_in, programs, subdir, work_dir};

/// Every mode. Levels are such that writing takes longer than reading.
const MODES: [&[&str]; 7] = [
    &["--recompress", "-l4"],
    &["--recompress=block", "-C", "zstd:level=12"],
    &["--recompress=metadata"],
    &["--recompress=none"],
    &[
        "--recompress",
        "-l4",
        "--recompress-categories=!incompressible",
    ],
    &["--rebuild-metadata", "--keep-all-times", "-P", "all"],
    &["--change-block-size", "-S17", "-l4"],
];

const SIGNALS: [Signal; 3] = [Signal::KILL, Signal::INT, Signal::TERM];

/// Where the new image goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    NewFile,
    OverAnother,
}

const TARGETS: [Target; 2] = [Target::NewFile, Target::OverAnother];

fn image(dir: &Path, work: &tempfile::TempDir) -> PathBuf {
    let source = subdir(work, "source");
    fill(&source);
    let image = dir.join("image.dwarfs");
    let build = programs().build(&source, &image);
    build.args(["-l1", "-S16", "--categorize"]).succeed();
    image
}

fn command(image: &Path, new: &Path, mode: &[&str]) -> Command {
    let mut command = Command::new(programs().path("mkdwarfs"));
    command.arg("-i").arg(image).arg("-o").arg(new).args(mode);
    command.args(["--force", "--progress=none"]);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn ended_at_any_moment() {
    let work = work_dir();
    let out = subdir(&work, "out");
    let image = image(&out, &work);
    let before = fs::read(&image).unwrap();
    let other = out.join("other.dwarfs");
    let mut random = Random::new(11);
    let mut ended = 0;
    for mode in MODES {
        let started = Instant::now();
        assert!(command(&image, &other, mode).status().unwrap().success());
        let wall = u64::try_from(started.elapsed().as_micros()).unwrap().max(1);
        fs::remove_file(&other).unwrap();
        let status = command(&image, &image, mode).status().unwrap();
        assert_eq!(status.code(), Some(1), "{mode:?} in place");
        assert_eq!(fs::read(&image).unwrap(), before, "{mode:?} in place");
        for signal in SIGNALS {
            for target in TARGETS {
                let what = format!("{mode:?} {signal:?} {target:?}");
                if target == Target::OverAnother {
                    fs::write(&other, OLD).unwrap();
                }
                let mut child = command(&image, &other, mode).spawn().unwrap();
                std::thread::sleep(Duration::from_micros(random.below(wall)));
                rustix::process::kill_process(pid_of(&child), signal).ok();
                let is_done = child.wait().unwrap().success();
                ended += usize::from(!is_done);
                check(&what, target, &other, is_done);
                assert_eq!(fs::read(&image).unwrap(), before, "{what}: the input");
                fs::remove_file(&other).ok();
                clear(&what, &out, signal);
            }
        }
    }
    assert!(ended > 10, "only {ended} were ended before they were done");
}

/// What stands under the final name.
fn check(what: &str, target: Target, new: &Path, is_done: bool) {
    let found = fs::read(new).ok();
    let stood = match target {
        Target::NewFile => None,
        Target::OverAnother => Some(OLD),
    };
    if found.as_deref() == stood {
        assert!(!is_done, "{what}: nothing was done");
        return;
    }
    assert!(found.is_some(), "{what}: what stood there is gone");
    let check = programs().check_integrity(new);
    assert_eq!(check.code, Some(0), "{what}: a partial image: {check}");
}

/// Nothing is left beside the image, unless the program had no chance to remove it; and that does not look like one.
fn clear(what: &str, out: &Path, signal: Signal) {
    for name in names_in(out) {
        if name == "image.dwarfs" {
            continue;
        }
        assert!(
            signal == Signal::KILL && !name.ends_with(".dwarfs"),
            "{what}: {name} is left"
        );
        fs::remove_file(out.join(name)).unwrap();
    }
}

#[test]
fn no_room_for_the_new_one() {
    if !is_root() || SmallDisk::new(1 << 20).is_none() {
        return skipped("a small disk can only be mounted by root");
    }
    let work = work_dir();
    let original = image(&subdir(&work, "out"), &work);
    let before = fs::read(&original).unwrap();
    let len = u64::try_from(before.len()).unwrap();
    // Room for the image, and for less than another beside it.
    for room in [len + 8192, len + (1 << 20), len * 3 / 2] {
        let disk = SmallDisk::new(room.next_multiple_of(4096)).unwrap();
        let image = disk.point.join("image.dwarfs");
        let other = disk.point.join("other.dwarfs");
        fs::write(&image, &before).unwrap();
        for mode in MODES {
            for new in [&image, &other] {
                let status = command(&image, new, mode).status().unwrap();
                assert_eq!(status.code(), Some(1), "{mode:?} {room}");
                assert_eq!(fs::read(&image).unwrap(), before, "{mode:?} {room}");
                assert_eq!(names_in(&disk.point), ["image.dwarfs"], "{mode:?} {room}");
            }
        }
    }
}
