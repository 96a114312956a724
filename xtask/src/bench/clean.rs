//! Leaves nothing of a run behind: processes, mounts, loop devices, files.
//!
//! What is killed cleans up nothing itself, and a script that was ended at its time limit may have mounted something.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::say::complain;
use anyhow::{Context, Result, ensure};
use durin_testkit::mount::unmount;
use durin_testkit::roundtrip::remove_tree;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// A process that waits for a file system may take so long to notice that it was killed.
const END_TIME_MAX: Duration = Duration::from_secs(20);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// A process and all that it started, while they live.
pub(super) fn processes(top: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let mut open = vec![top];
    while let Some(process) = open.pop() {
        all.push(process);
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let children = std::fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            open.extend(children.split_whitespace().flat_map(str::parse::<u32>));
        }
    }
    all
}

/// Kills processes; those that have ended meanwhile count as killed.
pub(super) fn kill(processes: &[u32]) {
    for process in processes {
        if let Some(pid) = i32::try_from(*process).ok().and_then(Pid::from_raw) {
            // It may have ended just now.
            let _ended = kill_process(pid, Signal::KILL);
        }
    }
}

/// Kills everything that this process has started and waits for it. Orphans must come to this process.
pub(super) fn end_descendants() -> Result<()> {
    let start = Instant::now();
    loop {
        // Those that have ended are still listed until somebody asks for how.
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        let descendants = processes(std::process::id()).split_off(1);
        if descendants.is_empty() {
            return Ok(());
        }
        ensure!(
            start.elapsed() < END_TIME_MAX,
            "processes {descendants:?} do not end"
        );
        kill(&descendants);
        std::thread::sleep(POLL_EVERY);
    }
}

/// Unmounts what is mounted below a directory and frees loop devices with files there. Gives what there was.
pub(super) fn unmount_below(dir: &Path) -> Vec<PathBuf> {
    // Mount tables name things without links.
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mounts = mounts_below(&dir);
    for point in &mounts {
        if let Err(error) = unmount(point) {
            complain!("cannot unmount {}: {error}", point.display());
        }
    }
    let devices = loops_below(&dir);
    for device in &devices {
        // Most go with their mount.
        let _gone = Command::new("losetup").arg("-d").arg(device).output();
    }
    mounts.into_iter().chain(devices).collect()
}

/// Removes a directory with all in it, unless something is mounted there still.
pub(super) fn remove(dir: &Path) -> Result<()> {
    unmount_below(dir);
    if !dir.exists() {
        return Ok(());
    }
    let mounts = mounts_below(&std::fs::canonicalize(dir)?);
    ensure!(mounts.is_empty(), "{mounts:?} cannot be unmounted");
    remove_tree(dir).with_context(|| dir.display().to_string())
}

/// Mount points at or below a directory, the latest first.
fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let points = table.split(|byte| *byte == b'\n').filter_map(mount_point);
    let mut below: Vec<PathBuf> = points.filter(|point| point.starts_with(dir)).collect();
    below.reverse();
    below
}

/// The fifth field; blanks and the like are octal there.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let value = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let value = value.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

fn loops_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for block in std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
    {
        let Ok(file) = std::fs::read(block.path().join("loop/backing_file")) else {
            continue;
        };
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        if Path::new(std::ffi::OsStr::from_bytes(file)).starts_with(dir) {
            found.push(Path::new("/dev").join(block.file_name()));
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_blanks() {
        let line = b"36 35 98:0 / /mnt/a\\040b\\134 rw - ext4 /dev/root rw";
        assert_eq!(mount_point(line).unwrap(), Path::new("/mnt/a b\\"));
        assert!(mounts_below(Path::new("/no/such/place")).is_empty());
        assert!(!mounts_below(Path::new("/")).is_empty());
    }

    #[test]
    fn all_that_a_process_started_is_found() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60; true"])
            .spawn()
            .unwrap();
        let start = Instant::now();
        while processes(child.id()).len() < 3 {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(POLL_EVERY);
        }
        kill(&processes(child.id()));
        child.wait().unwrap();
    }
}
