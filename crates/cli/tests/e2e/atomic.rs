//! However a build ends, no partial image stands under its final name, and what stood there stays.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use durin_testkit::made_tree::make_many;
use durin_testkit::mount::unmount;
use durin_testkit::random::Random;
use durin_testkit::run::pid_of;
use durin_testkit::skip::{is_root, skipped};
use rustix::process::Signal;

use crate::support::{names_in, programs, subdir, work_dir};

pub(crate) const OLD: &[u8] = b"what stood there before";

/// A tree that takes a while to pack and does not shrink.
pub(crate) fn fill(dir: &Path) {
    let mut random = Random::new(4);
    for index in 0..20 {
        std::fs::write(dir.join(format!("random-{index}")), random.bytes(300_000)).unwrap();
        std::fs::write(dir.join(format!("text-{index}")), random.text(300_000)).unwrap();
    }
}

#[test]
fn kill_at_any_moment_leaves_no_partial_image() {
    let work = work_dir();
    let source = subdir(&work, "source");
    fill(&source);
    let out = subdir(&work, "out");
    let image = out.join("image.dwarfs");
    let whole = programs()
        .build(&source, &image)
        .args(["-l4", "-S18"])
        .succeed();
    std::fs::remove_file(&image).unwrap();

    let mut random = Random::new(5);
    let mut killed = 0;
    for round in 0..24 {
        // Every other round something stands there already.
        let replaces = round % 2 == 1;
        if replaces {
            std::fs::write(&image, OLD).unwrap();
        }
        let mut command = Command::new(programs().path("mkdwarfs"));
        command
            .arg("-i")
            .arg(&source)
            .arg("-o")
            .arg(&image)
            .args(["-l4", "-S18", "--force"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let moment = random.below(u64::try_from(whole.wall.as_micros()).unwrap().max(1));
        std::thread::sleep(Duration::from_micros(moment));
        child.kill().unwrap();
        let was_killed = !child.wait().unwrap().success();
        killed += usize::from(was_killed);
        assert_untouched_or_whole(&image, replaces, was_killed);
        remove_leftovers(&out);
    }
    assert!(
        killed > 5,
        "only {killed} of the builds were killed before they ended"
    );
    programs().build(&source, &image).args(["-l1"]).succeed();
}

#[test]
fn a_signal_at_any_moment_ends_the_build_at_once() {
    /// Ten times what it takes, for a machine that is busy with other tests.
    const END_TIME_MAX: Duration = Duration::from_secs(4);
    let work = work_dir();
    let source = subdir(&work, "source");
    fill(&source);
    make_many(&subdir(&work, "source/many"), 5000).unwrap();
    let out = subdir(&work, "out");
    let image = out.join("image.dwarfs");
    let build = |image: &Path| {
        programs()
            .build(&source, image)
            .args(["-l7", "-S22", "--force", "--progress=none"])
    };
    let whole = build(&image).succeed();
    std::fs::remove_file(&image).unwrap();

    let mut random = Random::new(6);
    let mut interrupted = 0;
    for round in 0..16 {
        let replaces = round % 2 == 1;
        if replaces {
            std::fs::write(&image, OLD).unwrap();
        }
        let signal = [Signal::INT, Signal::TERM][round / 2 % 2];
        let mut command = Command::new(programs().path("mkdwarfs"));
        command.arg("-i").arg(&source).arg("-o").arg(&image);
        command.args(["-l7", "-S22", "--force", "--progress=none"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let moment = random.below(u64::try_from(whole.wall.as_micros()).unwrap().max(1));
        // Before that the program may not have begun to watch for signals.
        std::thread::sleep(Duration::from_micros(moment).max(Duration::from_millis(50)));
        let sent = std::time::Instant::now();
        rustix::process::kill_process(pid_of(&child), signal).ok();
        let code = child.wait().unwrap().code();
        assert!(sent.elapsed() < END_TIME_MAX, "{:?} to end", sent.elapsed());
        let is_interrupted = code != Some(0);
        interrupted += usize::from(is_interrupted);
        assert_untouched_or_whole(&image, replaces, is_interrupted);
        let left = names_in(&out);
        let expected = usize::from(replaces || !is_interrupted);
        assert_eq!(left.len(), expected, "{left:?} after code {code:?}");
        std::fs::remove_file(&image).ok();
    }
    assert!(
        interrupted > 4,
        "only {interrupted} builds were interrupted"
    );
}

fn assert_untouched_or_whole(image: &Path, replaces: bool, was_killed: bool) {
    match std::fs::read(image) {
        Ok(bytes) if replaces && bytes == OLD => assert!(was_killed, "a build that did nothing"),
        Ok(_) => {
            // The kill came after the rename: then all of it must be there.
            let check = programs().check_integrity(image);
            assert_eq!(
                check.code,
                Some(0),
                "a partial image under the final name: {check}"
            );
        }
        Err(_) => assert!(was_killed && !replaces, "the old file is gone"),
    }
}

/// Removes what a killed build left: at most a temporary file that tells where it comes from.
fn remove_leftovers(dir: &Path) {
    let names = names_in(dir);
    assert!(names.len() <= 2, "{names:?}");
    for name in names {
        assert!(
            name.contains("image.dwarfs"),
            "{name} does not tell where it comes from"
        );
        std::fs::remove_file(dir.join(name)).unwrap();
    }
}

#[test]
fn an_existing_file_needs_force() {
    let work = work_dir();
    let source = subdir(&work, "source");
    std::fs::write(source.join("file"), b"content").unwrap();
    let image = work.path().join("image.dwarfs");
    std::fs::write(&image, OLD).unwrap();
    programs().build(&source, &image).expect_code(1);
    assert_eq!(std::fs::read(&image).unwrap(), OLD);
    programs().build(&source, &image).arg("--force").succeed();
    assert_eq!(programs().check_integrity(&image).code, Some(0));
}

/// A small file system of its own; unmounted when dropped.
pub(crate) struct SmallDisk {
    _dir: tempfile::TempDir,
    pub(crate) point: std::path::PathBuf,
}

impl SmallDisk {
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let dir = work_dir();
        let point = subdir(&dir, "disk");
        let size = format!("size={bytes}");
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&point)
            .stderr(Stdio::null());
        command
            .status()
            .ok()?
            .success()
            .then_some(Self { _dir: dir, point })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.point).unwrap();
    }
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let work = work_dir();
    let source = subdir(&work, "source");
    fill(&source);
    if !is_root() || SmallDisk::new(1 << 20).is_none() {
        return skipped("a small disk can only be mounted by root");
    }
    for bytes in [4096, 40_960, 1 << 20, 3 << 20, 5 << 20] {
        let disk = SmallDisk::new(bytes).unwrap();
        let image = disk.point.join("image.dwarfs");
        let build = || programs().build(&source, &image).args(["-l1", "-S16"]);
        let outcome = build().expect_code(1);
        assert!(
            outcome.stderr.to_lowercase().contains("no space"),
            "{bytes}: {outcome}"
        );
        assert_eq!(names_in(&disk.point), [""; 0], "{bytes}");

        std::fs::write(&image, OLD).unwrap();
        build().expect_code(1);
        build().arg("--force").expect_code(1);
        assert_eq!(names_in(&disk.point), ["image.dwarfs"], "{bytes}");
        assert_eq!(std::fs::read(&image).unwrap(), OLD, "{bytes}");
    }
    let disk = SmallDisk::new(64 << 20).unwrap();
    let image = disk.point.join("image.dwarfs");
    programs()
        .build(&source, &image)
        .args(["-l1", "-S16"])
        .succeed();
    assert_eq!(programs().check_integrity(&image).code, Some(0));
}
