//! A suite that is interrupted, killed, or that nobody listens to any more leaves nothing behind, and goes on where it was.
//!
//! The programs are scripts: one level of the build waits for a file, and has started and mounted things by then.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::skip::{is_root, skipped};
use rustix::process::{Pid, Signal, kill_process};

const TIME_MAX: Duration = Duration::from_secs(60);

/// Packs with tar. Level 3 leaves a process in a session of its own and, if it may, a mount, and then waits.
const MKDWARFS: &str = r#"#!/bin/sh
case "$*" in *--version*) echo "fake 1"; exit;; esac
while [ $# -gt 0 ]; do
    case "$1" in -i) source=$2;; -o) output=$2;; -l) level=$2;; esac
    shift
done
echo "$level" >> "$TOP/builds"
if [ "$level" = 3 ] && ! [ -e "$TOP/go" ]; then
    mkdir "$output.mnt"
    mount -t tmpfs none "$output.mnt" 2> /dev/null
    (setsid sleep 600 & echo $! > "$TOP/left")
    dirname "$output" > "$TOP/scratch"
    mv "$TOP/left" "$TOP/ready"
    sleep 600
fi
tar -c -f "$output" -C "$source" .
"#;
const EXTRACT: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in -i) image=$2;; -o) target=$2;; -f) exec cat "$image";; esac
    shift
done
tar -x -p --same-owner -f "$image" -C "$target"
"#;

struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let programs = dir.path().join("programs");
        std::fs::create_dir_all(dir.path().join("source")).unwrap();
        std::fs::create_dir(&programs).unwrap();
        std::fs::write(dir.path().join("source/file"), "content").unwrap();
        for (name, script) in [("mkdwarfs", MKDWARFS), ("dwarfsextract", EXTRACT)] {
            std::fs::write(programs.join(name), script).unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(programs.join(name), mode).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self) -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["bench", "--suite=size", "--levels=1,3", "--peers=none"])
            .arg(format!("--corpus=tiny={}", self.path("source").display()))
            .arg(format!("--programs={}", self.path("programs").display()))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("TOP", self.dir.path())
            // Without the peers.
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        (child, stdout)
    }

    fn wait_for(&self, name: &str) {
        wait_until(&format!("no {name}"), || self.path(name).exists());
    }

    fn text(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.trim().to_owned()
    }

    /// Nothing may be left: no process, no mount, no file but the record.
    fn assert_clean(&self) {
        let left = self.text("ready");
        assert!(!Path::new(&format!("/proc/{left}")).exists(), "a process");
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.dir.path().to_str().unwrap()));
        let scratch = self.text("scratch");
        assert!(!Path::new(&scratch).exists(), "{scratch}");
        let names: Vec<_> = std::fs::read_dir(self.path("target"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["bench"]);
    }
}

fn wait_until(complaint: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIME_MAX, "{complaint}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn message(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_interrupted_suite_leaves_nothing_and_goes_on() {
    if !is_root() {
        skipped("no mounts: not root, so only processes and files are looked at");
    }
    for end in [Signal::INT, Signal::TERM, Signal::HUP] {
        let stage = Stage::new();
        let (child, _stdout) = stage.start();
        stage.wait_for("ready");
        signal(&child, end);
        let message = message(child);
        assert!(
            message.contains("ended by SIG") && !message.contains("panicked"),
            "{message}"
        );
        stage.assert_clean();

        std::fs::write(stage.path("go"), "").unwrap();
        let (mut child, stdout) = stage.start();
        let printed: Vec<String> = stdout.lines().map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success(), "{printed:?}");
        // Level 1 was recorded the first time, and level 3 is run again.
        assert_eq!(stage.text("builds"), "1\n3\n3");
        assert!(printed.iter().any(|line| line.contains("durin -l3")));
    }
}

#[test]
fn a_reader_that_goes_ends_the_suite() {
    let stage = Stage::new();
    let (child, stdout) = stage.start();
    stage.wait_for("ready");
    drop(stdout);
    // What it prints next has no reader.
    std::fs::write(stage.path("go"), "").unwrap();
    let name = format!("/proc/{}/comm", stage.text("ready"));
    // It is `setsid` still for a moment.
    wait_until("no sleep", || {
        std::fs::read_to_string(&name).unwrap().trim() == "sleep"
    });
    wait_until("nothing waits", || end_waiting(&stage));
    let message = message(child);
    assert!(
        message.contains("nobody reads") && !message.contains("panicked"),
        "{message}"
    );
    stage.assert_clean();
}

/// Ends what level 3 waits for, so that the build fails and is told; whether there was something.
fn end_waiting(stage: &Stage) -> bool {
    let mut is_ended = false;
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        let mark = format!("TOP={}", stage.dir.path().display());
        let is_of_stage = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes());
        let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if is_of_stage && comm.trim() == "sleep" && name != stage.text("ready") {
            let pid = Pid::from_raw(name.parse().unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
            is_ended = true;
        }
    }
    is_ended
}

#[test]
fn a_suite_that_is_killed_outright_is_cleaned_up_behind_by_the_next() {
    let stage = Stage::new();
    let (child, _stdout) = stage.start();
    stage.wait_for("ready");
    signal(&child, Signal::KILL);
    message(child);
    std::fs::write(stage.path("go"), "").unwrap();
    let (mut child, stdout) = stage.start();
    let printed: Vec<String> = stdout.lines().map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{printed:?}");
    let scratch = stage.text("scratch");
    assert!(!Path::new(&scratch).exists(), "{scratch}: {printed:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&scratch));
    // Nobody is there to end what had lost its parent, or left it.
    end_waiting(&stage);
    let left = Pid::from_raw(stage.text("ready").parse().unwrap()).unwrap();
    kill_process(left, Signal::KILL).unwrap();
}
