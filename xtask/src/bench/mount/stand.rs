//! A mount while it stands: made by a command, found, watched, and taken down again.
//!
//! The command returns when the mount is usable; a driver that it leaves running becomes our child, because this process
//! asks for orphans among its descendants. That is how it is found, whatever its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::mount::{is_mount_point, unmount};
use durin_testkit::run::{cpu_time, peak_resident_bytes};
use durin_testkit::skip::is_root;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

use super::definition::System;
use super::shell::{self, Variables};
use crate::bench::clean;
use crate::say::complain;

const MOUNT_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a driver may live on without its mount.
const END_TIME_MAX: Duration = Duration::from_secs(20);
const POLL_EVERY: Duration = Duration::from_millis(2);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Kernel threads that work for file systems. Others have nothing to do with them.
const WORKERS: [&str; 4] = ["kworker", "loop", "erofs", "btrfs"];

/// A system that is mounted, or a directory that needs no mounting.
pub(super) struct Stand<'a> {
    pub(super) point: PathBuf,
    system: &'a System,
    variables: &'a Variables,
    drivers: Vec<u32>,
}

/// Has drivers whose parent has ended become our children.
pub(super) fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(rustix::process::getpid())).context("cannot adopt drivers")
}

/// Empties the caches of the kernel, if this process may.
pub(in crate::bench) fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    if is_root() {
        std::fs::write(DROP_CACHES, "3\n").context(DROP_CACHES)?;
    }
    Ok(())
}

impl<'a> Stand<'a> {
    /// Mounts; `variables` has the image and the point.
    pub(super) fn new(
        system: &'a System,
        variables: &'a Variables,
        source: &Path,
        point: &Path,
    ) -> Result<Self> {
        let mut stand = Self {
            point: point.to_owned(),
            system,
            variables,
            drivers: Vec::new(),
        };
        let Some(script) = &system.mount else {
            source.clone_into(&mut stand.point);
            return Ok(stand);
        };
        ensure!(
            !is_mount_point(point),
            "{} is mounted already",
            point.display()
        );
        let before = children();
        let taken = shell::run(script, variables, MOUNT_TIME_MAX)?;
        stand.drivers = children();
        stand.drivers.retain(|pid| !before.contains(pid));
        if let Some(failure) = taken.failure {
            bail!("cannot mount: {failure}");
        }
        ensure!(is_mount_point(point), "the mount did not come up");
        Ok(stand)
    }

    /// Processor time that the drivers have used so far.
    pub(super) fn driver_cpu(&self) -> Duration {
        self.drivers.iter().map(|pid| process_cpu(*pid)).sum()
    }

    /// Most memory that the drivers have held.
    pub(super) fn driver_peak_bytes(&self) -> u64 {
        let peaks = self.drivers.iter().copied().filter_map(peak_resident_bytes);
        peaks.sum()
    }

    /// Memory that the drivers hold now.
    pub(super) fn driver_bytes(&self) -> u64 {
        self.drivers
            .iter()
            .copied()
            .filter_map(resident_bytes)
            .sum()
    }

    pub(super) fn has_driver(&self) -> bool {
        !self.drivers.is_empty()
    }

    /// Works over the mount; what takes longer has the mount taken away under it, which makes it fail.
    /// Gives whether that was so.
    pub(super) fn within<T>(
        &self,
        time_max: Duration,
        work: impl FnOnce() -> T,
    ) -> Result<(T, bool)> {
        let (ended, end) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = move || {
                let is_late = end.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout);
                if is_late {
                    clean::kill(&self.drivers);
                    clean::unmount_below(&self.point);
                }
                is_late
            };
            let watchdog = std::thread::Builder::new().spawn_scoped(scope, watch)?;
            let done = work();
            drop(ended);
            Ok((done, watchdog.join().unwrap_or(false)))
        })
    }

    /// Unmounts and waits for the end of the drivers.
    pub(super) fn take_down(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.system.mount.is_some() && is_mount_point(&self.point) {
            if let Some(script) = &self.system.unmount {
                // If it fails, the ordinary way follows.
                shell::run(script, self.variables, MOUNT_TIME_MAX)?;
            }
            if is_mount_point(&self.point) {
                unmount(&self.point).with_context(|| self.point.display().to_string())?;
            }
        }
        for pid in std::mem::take(&mut self.drivers) {
            reap(pid).with_context(|| format!("the driver of {}", self.system.name))?;
        }
        Ok(())
    }
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            complain!("{}: {error:#}", self.system.name);
        }
    }
}

/// Waits for a driver to end, which is killed if it does not.
fn reap(pid: u32) -> Result<()> {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let start = Instant::now();
    while waitpid(Some(process), WaitOptions::NOHANG)?.is_none() {
        if start.elapsed() > END_TIME_MAX {
            kill_process(process, Signal::KILL)?;
            waitpid(Some(process), WaitOptions::empty())?;
            bail!("it outlived its mount");
        }
        std::thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Our children, adopted ones included.
fn children() -> Vec<u32> {
    let mut all = Vec::new();
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return all;
    };
    for thread in threads.flatten() {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().flat_map(str::parse::<u32>));
    }
    all
}

/// What a process has used: to the nanosecond that of the threads that live, or in ticks that of all, if more.
fn process_cpu(pid: u32) -> Duration {
    let mut of_threads = Duration::ZERO;
    if let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) {
        let times = threads.flatten().map(|thread| run_time(&thread.path()));
        of_threads = times.sum();
    }
    of_threads.max(cpu_time(pid))
}

/// The first field of `schedstat`: nanoseconds on a processor.
fn run_time(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let first = text.split_whitespace().next().unwrap_or_default();
    Duration::from_nanos(first.parse().unwrap_or(0))
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Processor time of the kernel's own threads so far, by thread.
pub(in crate::bench) struct KernelThreads(BTreeMap<u32, Duration>);

impl KernelThreads {
    pub(in crate::bench) fn now() -> Self {
        let mut all = BTreeMap::new();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let path = process.path();
            let name = process.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if WORKERS.iter().any(|worker| comm.starts_with(worker)) {
                all.insert(pid, run_time(&path));
            }
        }
        Self(all)
    }

    /// What they have used since. Of threads that have ended meanwhile nothing is known.
    pub(in crate::bench) fn since(&self, before: &Self) -> Duration {
        let used = self.0.iter().map(|(pid, time)| {
            let earlier = before.0.get(pid).copied().unwrap_or_default();
            time.saturating_sub(earlier)
        });
        used.sum()
    }
}
