//! Runs a program under a watchdog: a time limit, a limit on resident memory, and what it used in the end.
//!
//! The peak of resident memory is `VmHWM`, sampled every millisecond. The kernel's `ru_maxrss` would count the memory
//! of the test that started the program too, because a child shares it until it executes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

const SAMPLE_EVERY: Duration = Duration::from_millis(1);

/// A program to run.
#[derive(Debug)]
pub struct Run {
    command: Command,
    time_max: Duration,
    memory_bytes_max: Option<u64>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Why the watchdog killed it, if it did.
    pub killed: Option<String>,
    /// Most resident memory seen, in bytes.
    pub peak_bytes: u64,
    /// User and system time of all its threads and of the children that it waited for.
    pub cpu: Duration,
    /// Time from start to end.
    pub wall: Duration,
}

impl Run {
    /// Prepares to run a program, for at most two minutes.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Self {
            command,
            time_max: Duration::from_secs(120),
            memory_bytes_max: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, arguments: I) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets its current directory.
    #[must_use]
    pub fn current_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Kills it after this time.
    #[must_use]
    pub const fn time_max(mut self, limit: Duration) -> Self {
        self.time_max = limit;
        self
    }

    /// Kills it when it holds more resident memory than this.
    #[must_use]
    pub const fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = Some(bytes);
        self
    }

    /// Returns it for a test that starts it in a way of its own.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// If the program cannot be started or waited for.
    #[must_use]
    pub fn output(self) -> Outcome {
        let shown = format!("{:?}", self.command);
        self.try_output()
            .unwrap_or_else(|error| panic!("cannot run {shown}: {error}"))
    }

    /// Runs it, and panics with its messages unless it exits with 0.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[track_caller]
    pub fn succeed(self) -> Outcome {
        self.expect_code(0)
    }

    /// Runs it, and panics with its messages unless it exits with this code.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Outcome {
        let shown = format!("{:?}", self.command);
        let outcome = self.output();
        assert!(
            outcome.code == Some(code),
            "{shown}: expected exit code {code}: {outcome}"
        );
        outcome
    }

    fn try_output(mut self) -> io::Result<Outcome> {
        // Files, not pipes: nothing has to be drained meanwhile, and a driver that stays behind cannot hold us up.
        let mut stdout = tempfile::tempfile()?;
        let mut stderr = tempfile::tempfile()?;
        self.command
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?);
        let start = Instant::now();
        let mut child = self.command.spawn()?;
        let watched = watch(&child, self.time_max, self.memory_bytes_max, start);
        let mut killed = None;
        let peak_bytes = match watched {
            Ok(peak) => peak,
            Err(Killed { why, peak_bytes }) => {
                killed = Some(why);
                child.kill()?;
                wait_unreaped(&child)?;
                peak_bytes
            }
        };
        let wall = start.elapsed();
        let cpu = cpu_time(child.id());
        let status: ExitStatus = child.wait()?;
        Ok(Outcome {
            code: status.code(),
            signal: status.signal(),
            stdout: content(&mut stdout)?,
            stderr: String::from_utf8_lossy(&content(&mut stderr)?).into_owned(),
            killed,
            peak_bytes,
            cpu,
            wall,
        })
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.killed, self.code, self.signal) {
            (Some(why), _, _) => write!(f, "killed by the watchdog: {why}")?,
            (None, Some(code), _) => write!(f, "exit code {code}")?,
            (None, None, signal) => write!(f, "ended by signal {}", signal.unwrap_or(0))?,
        }
        write!(
            f,
            " after {:?}, peak {} MiB\n{}",
            self.wall,
            self.peak_bytes >> 20,
            self.stderr
        )
    }
}

struct Killed {
    why: String,
    peak_bytes: u64,
}

/// Waits for the end without reaping, sampling memory; gives the peak, or why the program must be killed.
fn watch(
    child: &Child,
    time_max: Duration,
    memory_bytes_max: Option<u64>,
    start: Instant,
) -> Result<u64, Killed> {
    let mut peak_bytes = 0;
    let mut is_executing = false;
    loop {
        is_executing = is_executing || has_executed(child.id());
        if is_executing {
            peak_bytes = peak_bytes.max(peak_resident_bytes(child.id()).unwrap_or(0));
        }
        if memory_bytes_max.is_some_and(|max| peak_bytes > max) {
            let why = format!("more than {} MiB", memory_bytes_max.unwrap_or(0) >> 20);
            return Err(Killed { why, peak_bytes });
        }
        if has_ended(child) {
            return Ok(peak_bytes);
        }
        if start.elapsed() > time_max {
            return Err(Killed {
                why: format!("longer than {time_max:?}"),
                peak_bytes,
            });
        }
        std::thread::sleep(SAMPLE_EVERY);
    }
}

/// Whether a child is the program that it was started for. The kernel lets the parent go on a moment before the child gives
/// up the memory of the parent, which is not its own to count.
fn has_executed(pid: u32) -> bool {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let its = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    its.is_some() && its != own
}

/// Whether the program has ended; it stays a zombie, so that its times can still be read.
fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(pid_of(child)), options);
    // Any error means that there is nothing to wait for.
    status.map_or(true, |status| status.is_some())
}

fn wait_unreaped(child: &Child) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(pid_of(child)), options)?;
    Ok(())
}

/// Returns the process id of a child in rustix' words.
#[must_use]
pub fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Returns the most resident memory that a live process has held, in bytes.
#[must_use]
pub fn peak_resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns user and system time of a process that has not been reaped, with its waited-for children.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the name in parentheses and may hold anything; fields 14 to 17 are the times.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(4)
        .flat_map(str::parse::<u64>)
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Run {
        Run::new("sh").args(["-c", script])
    }

    #[test]
    fn the_memory_of_the_test_is_not_counted() {
        let mut held = vec![1_u8; 300 << 20];
        for _ in 0..200 {
            let outcome = Run::new("true").memory_max(64 << 20).output();
            assert_eq!(outcome.killed, None);
        }
        held[0] = 2;
        assert_eq!(held.iter().filter(|byte| **byte == 2).count(), 1);
    }

    #[test]
    fn output_and_code_arrive() {
        let outcome = shell("echo out; echo err >&2; exit 3").expect_code(3);
        assert_eq!(
            (outcome.stdout.as_slice(), outcome.stderr.as_str()),
            (&b"out\n"[..], "err\n")
        );
        assert_eq!(shell("kill -9 $$").output().signal, Some(9));
    }

    #[test]
    fn the_watchdog_bites() {
        let outcome = shell("sleep 60")
            .time_max(Duration::from_millis(50))
            .output();
        assert!(outcome.killed.is_some() && outcome.wall < Duration::from_secs(30));
        let outcome = shell("x=$(head -c 100000000 /dev/zero | tr '\\0' x); sleep 60")
            .memory_max(50 << 20)
            .output();
        assert!(outcome.killed.is_some_and(|why| why.contains("50 MiB")));
    }

    #[test]
    fn cpu_time_is_counted() {
        let outcome = shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").succeed();
        assert!(
            outcome.cpu > Duration::ZERO && outcome.peak_bytes > 0,
            "{outcome}"
        );
    }
}
