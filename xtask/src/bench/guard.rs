//! Runs a suite as a process of its own, and cleans up behind it, however it ends.
//!
//! A suite mounts, starts drivers that leave their parents, and writes gigabytes. Interrupted (Ctrl-C, SIGTERM, SIGHUP),
//! killed, or with nobody left to read what it prints, it could not clean up; so another process waits for it that can:
//! orphans come to that one, and everything a suite makes is below directories that both know.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal};
use rustix::process::{getpid, set_child_subreaper, set_parent_process_death_signal};

use super::{clean, mount};
use crate::say::{complain, say};
use crate::workspace::{self, SCRATCH_PREFIX, Scratch};

/// The task that is the suite itself.
pub(crate) const TASK: &str = "bench-run";

/// What ends a suite from outside.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Runs `xtask bench-run ARGUMENTS`.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    sweep()?;
    let scratch = workspace::scratch_dir()?;
    let images = mount::images(arguments);
    set_child_subreaper(Some(getpid())).context("cannot adopt orphans")?;
    let mut signals: SigSet = ENDS.into_iter().collect();
    signals.add(Signal::SIGCHLD);
    // The thread that copies inherits this, so that all of them come to `wait`.
    signals.thread_block()?;
    let mut suite = start(arguments, &scratch)?;
    let id = suite.id();
    let copier = suite.stdout.take().map(|from| copy(from, id)).transpose()?;
    let end = wait(&mut suite, &signals)?;
    let ended = clean::end_descendants();
    let is_read = copier.is_none_or(|copier| copier.join().unwrap_or(true));
    clean::remove(&workspace::scratch_of(id))?;
    tidy(&images)?;
    drop(scratch);
    ended?;
    match end {
        End::Signal(signal) => bail!(
            "ended by {}; what had run is recorded, nothing else is left",
            signal.as_str()
        ),
        // As every program is that writes into a pipe.
        End::Itself(_) if !is_read => bail!("nobody reads what this prints"),
        End::Itself(status) if status.success() => Ok(()),
        End::Itself(status) => bail!("the suite has ended with {status}"),
    }
}

/// To be called first in the suite's process.
pub(crate) fn begin() -> Result<()> {
    let mut signals: SigSet = ENDS.into_iter().collect();
    signals.add(Signal::SIGCHLD);
    // Programs that are started from here inherit what is blocked.
    signals.thread_unblock()?;
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn start(arguments: &[String], scratch: &Scratch) -> Result<Child> {
    let temporary = scratch.path().join("tmp");
    std::fs::create_dir_all(&temporary)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(TASK)
        .args(arguments)
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    // A terminal signals its foreground group: only this process is to hear it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().context("cannot start the suite")
}

/// Hands on what the suite prints; gives whether all of it was read. When nobody reads, the suite is ended.
fn copy(mut from: ChildStdout, suite: u32) -> Result<JoinHandle<bool>> {
    let copying = move || {
        let mut buffer = [0; 1 << 14];
        loop {
            let len = match from.read(&mut buffer) {
                Ok(0) => return true,
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return true,
            };
            let mut stdout = std::io::stdout().lock();
            if stdout
                .write_all(&buffer[..len])
                .and_then(|()| stdout.flush())
                .is_err()
            {
                clean::kill(&[suite]);
                return false;
            }
        }
    };
    Ok(std::thread::Builder::new().spawn(copying)?)
}

enum End {
    Itself(ExitStatus),
    Signal(Signal),
}

fn wait(suite: &mut Child, signals: &SigSet) -> Result<End> {
    loop {
        if let Some(status) = suite.try_wait()? {
            return Ok(End::Itself(status));
        }
        let signal = signals.wait()?;
        if signal != Signal::SIGCHLD {
            complain!("{}: cleaning up ...", signal.as_str());
            suite.kill()?;
            suite.wait()?;
            return Ok(End::Signal(signal));
        }
    }
}

/// Takes away what was only half made among the images.
fn tidy(images: &Path) -> Result<()> {
    for entry in std::fs::read_dir(images).into_iter().flatten() {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "partial")
        {
            clean::remove(&path)?;
        }
    }
    Ok(())
}

/// Takes away what is left of runs whose guard was killed too.
fn sweep() -> Result<()> {
    for entry in std::fs::read_dir(workspace::target_dir())
        .into_iter()
        .flatten()
    {
        let path: PathBuf = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_prefix(SCRATCH_PREFIX);
        let Some(process) = process.and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        if !is_alive(process) {
            say!(
                "removing {}, which an earlier run has left ...",
                path.display()
            );
            clean::remove(&path)?;
        }
    }
    Ok(())
}

/// Whether a process runs: one that is about to end, or that nobody has asked for its end, is still listed.
fn is_alive(process: u32) -> bool {
    /// `PF_EXITING`, which comes before files are closed, by which others may learn of the end.
    const EXITING: u64 = 4;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Source: proc(5). Behind the name: state, parent, group, session, terminal, its group, flags.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let flags = rest
        .split(' ')
        .nth(6)
        .and_then(|flags| flags.parse::<u64>().ok());
    !rest.starts_with(['Z', 'X']) && flags.is_some_and(|flags| flags & EXITING == 0)
}
