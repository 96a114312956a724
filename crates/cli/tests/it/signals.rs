//! Signals end mkdwarfs, and dwarfsextract when it writes an archive, whatever they wait for.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::json;
use durin_testkit::run::{Run, pid_of};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Signal, kill_process};

use crate::support::{Place, dwarfsextract, mkdwarfs};

/// Long enough for a machine that is busy with other tests.
const TIME_MAX: Duration = Duration::from_secs(30);

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
}

/// Starts a program that has a standard input without end and messages that nobody reads, and returns once it takes care
/// of signals.
fn start(run: Run) -> Child {
    let child = run
        .into_command()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/status", child.id());
    wait_until(|| {
        let status = fs::read_to_string(&path).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap_or("0").trim(), 16).unwrap();
        caught >> (Signal::TERM.as_raw() - 1) & 1 == 1
    });
    child
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIME_MAX, "waited for {TIME_MAX:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal and expects the exit code of a program that it has ended.
#[track_caller]
fn ends_at(child: &mut Child, signal: Signal) {
    kill_process(pid_of(child), signal).unwrap();
    let sent = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if sent.elapsed() > TIME_MAX {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(128 + signal.as_raw()));
}

#[test]
fn whatever_is_waited_for_before_a_build() {
    let place = Place::new();
    make_pipe(&place.path("pipe"));
    fs::write(
        place.path("script.lua"),
        "function configure() io.open('pipe') end",
    )
    .unwrap();
    place.build("image").succeed();
    for arguments in [
        &["-i", "tree", "--input-list=-", "-o", "new"][..],
        &["-i", "tree", "-o", "pipe"],
        &["-i", "tree", "--header=pipe", "-o", "new"],
        &["-i", "tree", "--script=script.lua", "-o", "new"],
        &["-i", "image", "--recompress", "-o", "pipe"],
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            let run = mkdwarfs().current_dir(&place.path(""));
            let mut child = start(run.args(arguments));
            // Most probably it waits by then; it is to end if it does not, too.
            std::thread::sleep(Duration::from_millis(200));
            ends_at(&mut child, signal);
        }
    }
    assert_eq!(place.names(), ["image", "pipe", "script.lua"]);
}

#[test]
fn archives_that_nobody_takes() {
    let place = Place::new();
    make_pipe(&place.path("pipe"));
    fs::write(place.tree().join("large"), vec![7; 4 << 20]).unwrap();
    place.build("image").succeed();
    let run = || {
        dwarfsextract()
            .current_dir(&place.path(""))
            .args(["-i", "image", "-f", "pax"])
    };
    // No reader at all,
    let mut child = start(run().args(["-o", "pipe"]));
    std::thread::sleep(Duration::from_millis(200));
    ends_at(&mut child, Signal::TERM);
    // and one that does not read.
    let reader = fs::File::options()
        .read(true)
        .write(true)
        .open(place.path("pipe"))
        .unwrap();
    let mut child = start(run().args(["-o", "pipe"]));
    std::thread::sleep(Duration::from_millis(200));
    ends_at(&mut child, Signal::INT);
    drop(reader);
    assert_eq!(place.names(), ["image", "pipe"]);
}

#[test]
fn messages_that_nobody_reads() {
    let place = Place::new();
    let names: String = (0..5000)
        .map(|number| format!("missing{number}\n"))
        .collect();
    fs::write(place.path("list"), names).unwrap();
    for progress in ["none", "unicode", "json"] {
        let run = place.build("image").arg("--input-list=list");
        let mut child = start(run.arg(format!("--progress={progress}")));
        // Time to fill the pipe.
        std::thread::sleep(Duration::from_millis(700));
        ends_at(&mut child, Signal::TERM);
    }
    assert_eq!(place.names(), ["list"]);
}

#[test]
fn a_summary_that_nobody_reads() {
    let place = Place::new();
    make_pipe(&place.path("pipe"));
    let mut child = start(place.build("image").arg("--json=pipe"));
    wait_until(|| place.path("image").exists());
    ends_at(&mut child, Signal::INT);
    assert_eq!(place.names(), ["image", "pipe"]);
}

#[test]
fn events_tell_of_the_signal() {
    let place = Place::new();
    make_pipe(&place.path("pipe"));
    let run = place.build("pipe").args(["--progress=json", "-f"]);
    let mut child = start(run);
    std::thread::sleep(Duration::from_millis(200));
    ends_at(&mut child, Signal::TERM);
    let text = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    let events: Vec<_> = text
        .lines()
        .map(|line| json::parse(line).unwrap())
        .collect();
    let [.., error, end] = &events[..] else {
        panic!("{text}");
    };
    assert_eq!(
        (&error["event"], &error["message"]),
        (&"error".into(), &"cancelled".into())
    );
    assert_eq!(
        (&end["event"], &end["status"]),
        (&"end".into(), &143.into())
    );
}
