//! Runs one shell command line and tells what it cost: all processes that it started, to their ends.
//!
//! A peer is often a pipe of programs, so that neither the time of one process nor its peak would be the whole truth.
//! CPU time is what the kernel has added up for the shell and everything that it waited for.
//! Peak memory is sampled: the largest sum, at one moment, of what each process of the tree has held at most.

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use durin_testkit::run::{peak_resident_bytes, pid_of};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group};

use super::clean::{kill, processes};
use crate::install;

/// Short enough for the peak of a program that runs a second, long enough to cost nothing beside it.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// Where a machine is so busy that a program gets less than half a processor, it may take so many times its limit.
const PATIENCE: u32 = 4;
/// What is kept of the messages of a command that failed.
const MESSAGE_BYTES_MAX: usize = 2000;

/// The files of a command line, given to it as variables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// `$SOURCE`, a directory.
    pub(super) source: &'a Path,
    /// `$OUTPUT`, the file to make.
    pub(super) output: &'a Path,
    /// `$TARGET`, an empty directory.
    pub(super) target: &'a Path,
    /// `$PROGRAMS`, the folder of our programs.
    pub(super) programs: &'a Path,
    /// `$THREADS`.
    pub(super) threads: usize,
    /// `$WORK`, a directory for what is made on the way.
    pub(super) work: &'a Path,
}

/// What a command took.
#[derive(Debug, Clone)]
pub(super) struct Cost {
    pub(super) end: End,
    pub(super) wall: Duration,
    pub(super) user: Duration,
    pub(super) sys: Duration,
    pub(super) peak_bytes: u64,
    /// The end of what it wrote to standard error.
    pub(super) message: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Success,
    Failure,
    /// It was killed after its time limit.
    TimeLimit,
}

/// How long a command may run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// Of its own time; more where it gets less than half a processor.
    pub(super) time_max: Duration,
    /// When everything must end.
    pub(super) end: Option<Instant>,
}

/// Runs a command line of `sh`, up to a limit.
pub(super) fn run(script: &str, places: &Places<'_>, limit: Limit) -> Result<Cost> {
    let mut stderr = tempfile::tempfile()?;
    let start = Instant::now();
    let mut child = shell(script, places)
        .stdout(Stdio::null())
        .stderr(stderr.try_clone()?)
        // A group of its own, so that a time limit ends all of a pipe.
        .process_group(0)
        .spawn()
        .context("cannot run sh")?;
    let pid = pid_of(&child);
    let (peak_bytes, is_late) = watch(child.id(), pid, limit, start);
    if is_late {
        // Some have groups of their own.
        kill(&processes(child.id()));
        kill_process_group(pid, Signal::KILL)?;
        rustix::process::waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )?;
    }
    let wall = start.elapsed();
    let (user, sys) = times(&std::fs::read_to_string(format!(
        "/proc/{}/stat",
        child.id()
    ))?);
    let status = child.wait()?;
    let end = match (is_late, status.success()) {
        (true, _) => End::TimeLimit,
        (false, true) => End::Success,
        (false, false) => End::Failure,
    };
    let mut message = Vec::new();
    stderr.rewind()?;
    stderr.read_to_end(&mut message)?;
    let start = message.len().saturating_sub(MESSAGE_BYTES_MAX);
    Ok(Cost {
        end,
        wall,
        user,
        sys,
        peak_bytes,
        message: String::from_utf8_lossy(&message[start..]).trim().to_owned(),
    })
}

/// Returns the first line of a command's output that has a digit: its version.
pub(super) fn version(script: &str, places: &Places<'_>) -> String {
    let output = shell(script, places).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat());
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| line.contains(|c: char| c.is_ascii_digit()));
    line.unwrap_or("unknown").to_owned()
}

/// Whether a command line of `sh` succeeds that needs no files.
pub(super) fn succeeds(script: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PATH", install::path());
    let ran = command.stdin(Stdio::null()).output();
    ran.is_ok_and(|output| output.status.success())
}

/// Returns the first line that a command prints.
pub(super) fn first_line(script: &str, places: &Places<'_>) -> String {
    let output = shell(script, places).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn shell(script: &str, places: &Places<'_>) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env("SOURCE", places.source)
        .env("OUTPUT", places.output)
        .env("TARGET", places.target)
        .env("PROGRAMS", places.programs)
        .env("THREADS", places.threads.to_string())
        .env("WORK", places.work)
        .env("PATH", install::path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// Waits for the end without reaping; gives the peak and whether the time is over.
fn watch(process: u32, pid: Pid, limit: Limit, start: Instant) -> (u64, bool) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut peak_bytes = 0;
    loop {
        peak_bytes = peak_bytes.max(peak_of_tree(process));
        // Any error means that there is nothing to wait for.
        if rustix::process::waitid(WaitId::Pid(pid), options).map_or(true, |end| end.is_some()) {
            return (peak_bytes, false);
        }
        let (wall, time_max) = (start.elapsed(), limit.time_max);
        let is_over = limit.end.is_some_and(|end| Instant::now() >= end);
        let is_slow = || wall / PATIENCE > time_max || cpu_of_tree(process) > time_max / 2;
        if is_over || (wall > time_max && is_slow()) {
            return (peak_bytes, true);
        }
        std::thread::sleep(SAMPLE_EVERY);
    }
}

/// Sums what each live process of a tree has held at most. Processes that end meanwhile count as nothing.
fn peak_of_tree(top: u32) -> u64 {
    let peaks = processes(top).into_iter().filter_map(peak_resident_bytes);
    peaks.sum()
}

/// Sums what each live process of a tree and those that it waited for have used.
fn cpu_of_tree(top: u32) -> Duration {
    let stat = |process| std::fs::read_to_string(format!("/proc/{process}/stat"));
    let used = processes(top)
        .into_iter()
        .filter_map(|process| stat(process).ok());
    used.map(|stat| times(&stat))
        .map(|(user, sys)| user + sys)
        .sum()
}

/// Takes user and system time of a process and of the children that it waited for from `/proc/PID/stat`.
fn times(stat: &str) -> (Duration, Duration) {
    // The second field is the name in parentheses and may hold anything; fields 14 to 17 are the times.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: Vec<u64> = fields
        .split(' ')
        .skip(11)
        .take(4)
        .flat_map(str::parse::<u64>)
        .collect();
    let &[user, sys, children_user, children_sys] = ticks.as_slice() else {
        return (Duration::ZERO, Duration::ZERO);
    };
    let time = |ticks| {
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
    };
    (time(user + children_user), time(sys + children_sys))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn measured(script: &str, time_max: Duration) -> Cost {
        let here = Path::new(".");
        let places = Places {
            source: here,
            output: here,
            target: here,
            programs: here,
            threads: 3,
            work: here,
        };
        let limit = Limit {
            time_max,
            end: None,
        };
        run(script, &places, limit).unwrap()
    }

    #[test]
    fn all_of_a_pipe_is_counted() {
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let cost = measured(
            &format!("({count}) | ({count}); test $THREADS = 3"),
            Duration::from_secs(60),
        );
        assert_eq!(cost.end, End::Success, "{}", cost.message);
        assert!(cost.user > Duration::ZERO && cost.peak_bytes > 0);
    }

    #[test]
    fn an_end_is_told_with_its_message() {
        let cost = measured("echo why >&2; exit 3", Duration::from_secs(60));
        assert_eq!((cost.end, cost.message.as_str()), (End::Failure, "why"));
        let cost = measured("sleep 60 | sleep 60", Duration::from_millis(50));
        assert_eq!(cost.end, End::TimeLimit);
        assert!(cost.wall < Duration::from_secs(30));
        let busy = "while :; do :; done";
        assert_eq!(
            measured(busy, Duration::from_millis(50)).end,
            End::TimeLimit
        );
    }

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4 9 9 0 0 250 30 50 20 20 0 1 0";
        let ticks = rustix::param::clock_ticks_per_second();
        let time = |count: u64| Duration::from_millis(count * 1000 / ticks);
        assert_eq!(times(stat), (time(300), time(50)));
        assert_eq!(times(""), (Duration::ZERO, Duration::ZERO));
    }
}
