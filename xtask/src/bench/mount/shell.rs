//! Runs one command line and tells its processor time exactly: that of all processes that it started and waited for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use durin_testkit::run::pid_of;
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Signal, kill_process_group};

use crate::bench::clean;
use crate::install;

/// What is kept of the messages of a command that failed.
const MESSAGE_BYTES_MAX: usize = 2000;

/// Variables of a command line.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables(BTreeMap<&'static str, std::ffi::OsString>);

impl Variables {
    /// Adds a path.
    pub(super) fn with(&self, name: &'static str, value: impl AsRef<Path>) -> Self {
        let mut all = self.0.clone();
        all.insert(name, value.as_ref().into());
        Self(all)
    }
}

/// What a command took.
#[derive(Debug)]
pub(super) struct Taken {
    /// Why it is no result: it failed or was killed.
    pub(super) failure: Option<String>,
    /// Whether it was killed for taking too long.
    pub(super) is_late: bool,
    pub(super) wall: Duration,
    pub(super) user: Duration,
    pub(super) sys: Duration,
    pub(super) stdout: File,
}

/// Runs a command line of `sh`, for at most `time_max`.
pub(super) fn run(script: &str, variables: &Variables, time_max: Duration) -> Result<Taken> {
    let (stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let before = usage()?;
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", script])
        .envs(&variables.0)
        .env("PATH", install::path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        // A group of its own, so that a time limit ends all of a pipe.
        .process_group(0)
        .spawn()
        .context("cannot run sh")?;
    let pid = pid_of(&child);
    let (ended, end) = channel::<()>();
    let (status, is_late) = std::thread::scope(|scope| {
        let watchdog = std::thread::Builder::new().spawn_scoped(scope, move || {
            let is_late = end.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout);
            // Some have groups of their own. It may have ended just now.
            is_late && {
                let process = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0);
                clean::kill(&clean::processes(process));
                kill_process_group(pid, Signal::KILL).is_ok()
            }
        })?;
        let status = child.wait();
        drop(ended);
        Ok::<_, std::io::Error>((status?, watchdog.join().unwrap_or(false)))
    })?;
    let wall = start.elapsed();
    let after = usage()?;
    let failure = if is_late {
        Some(format!("killed after {} s", time_max.as_secs()))
    } else if status.success() {
        None
    } else {
        Some(format!("{status}: {}", message(&mut stderr)?))
    };
    Ok(Taken {
        failure,
        is_late,
        wall,
        user: after.0.saturating_sub(before.0),
        sys: after.1.saturating_sub(before.1),
        stdout,
    })
}

/// User and system time of all children that this process has waited for.
fn usage() -> Result<(Duration, Duration)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |value: nix::sys::time::TimeVal| {
        let seconds = u64::try_from(value.tv_sec()).unwrap_or(0);
        let micros = u64::try_from(value.tv_usec()).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    Ok((time(usage.user_time()), time(usage.system_time())))
}

fn message(stderr: &mut File) -> Result<String> {
    let mut message = Vec::new();
    stderr.rewind()?;
    stderr.read_to_end(&mut message)?;
    let start = message.len().saturating_sub(MESSAGE_BYTES_MAX);
    Ok(String::from_utf8_lossy(&message[start..]).trim().to_owned())
}

/// The lines of an output in order, for comparing: several processes write them in any.
pub(super) fn sorted_lines(mut output: File) -> Result<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut bytes)?;
    let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(Vec::from).collect();
    lines.sort();
    Ok(lines)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn times_and_output_are_those_of_the_command() {
        let variables = Variables::default().with("WORD", "b");
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $WORD; echo a";
        let taken = run(script, &variables, Duration::from_secs(60)).unwrap();
        assert!(taken.failure.is_none());
        assert!(taken.user > Duration::ZERO && taken.wall >= Duration::from_millis(1));
        assert_eq!(sorted_lines(taken.stdout).unwrap(), [&b""[..], b"a", b"b"]);
    }

    #[test]
    fn what_fails_or_hangs_is_told() {
        let check = |script, part: &str| {
            let taken = run(script, &Variables::default(), Duration::from_millis(300)).unwrap();
            assert!(taken.failure.unwrap().contains(part));
        };
        check("echo why >&2; exit 3", "why");
        check("sleep 60 | sleep 60", "killed");
    }
}
