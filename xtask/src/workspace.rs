//! Where things are in the workspace, and running cargo in it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::say::{complain, say};
use anyhow::{Context, Result, bail, ensure};
use durin_testkit::programs::Programs;
use durin_testkit::run::pid_of;
use rustix::process::{Signal, kill_process_group};

/// Returns the top of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Returns the folder of the benchmarks' definitions.
pub(crate) fn benchmarks() -> PathBuf {
    root().join("benchmarks")
}

/// Returns the folder that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Starts a cargo command at the top of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command and fails unless it succeeds.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command
        .status()
        .with_context(|| format!("cannot run {shown}"))?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// The same for what may hang: it is killed, with all that it started, after `time_max`.
pub(crate) fn succeed_within(command: &mut Command, time_max: Duration) -> Result<()> {
    let shown = format!("{command:?}");
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{shown}: {status}");
            return Ok(());
        }
        if start.elapsed() > time_max {
            kill_process_group(pid_of(&child), Signal::KILL)?;
            child.wait()?;
            bail!("{shown}: killed after {} s", time_max.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Builds the release programs and says where they are.
pub(crate) fn release_programs() -> Result<Programs> {
    Ok(Programs::in_dir(&programs("release")?))
}

/// Builds the programs with a profile of cargo and returns their folder.
pub(crate) fn programs(profile: &str) -> Result<PathBuf> {
    say!("building the programs (cargo build --profile {profile}) ...");
    succeed(&mut cargo(&[
        "build",
        "--profile",
        profile,
        "--locked",
        "--package",
        "durin-cli",
    ]))?;
    Ok(target_dir().join(profile))
}

/// Names of scratch directories begin with this; the process follows.
pub(crate) const SCRATCH_PREFIX: &str = "xtask-";

/// The scratch directory of a process.
pub(crate) fn scratch_of(process: u32) -> PathBuf {
    target_dir().join(format!("{SCRATCH_PREFIX}{process}"))
}

/// A directory for images and unpacked trees, on the disk of the build, gone when dropped.
pub(crate) fn scratch_dir() -> Result<Scratch> {
    let path = scratch_of(std::process::id());
    std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(Scratch(path))
}

/// See [`scratch_dir`].
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = durin_testkit::roundtrip::remove_tree(&self.0) {
            complain!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Returns the value of `--NAME=VALUE`.
pub(crate) fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let value_of = |argument: &'a String| {
        argument
            .strip_prefix("--")?
            .strip_prefix(name)?
            .strip_prefix('=')
    };
    arguments.iter().find_map(value_of)
}

/// Returns the first argument that is no option.
pub(crate) fn positional(arguments: &[String]) -> Option<&str> {
    arguments
        .iter()
        .find(|argument| !argument.starts_with("--"))
        .map(String::as_str)
}

/// Fails on an option that the task does not know.
pub(crate) fn check_options(arguments: &[String], known: &[&str]) -> Result<()> {
    for argument in arguments
        .iter()
        .filter_map(|argument| argument.strip_prefix("--"))
    {
        let name = argument.split('=').next().unwrap_or_default();
        ensure!(known.contains(&name), "unknown option --{name}");
    }
    ensure!(
        arguments
            .iter()
            .filter(|argument| !argument.starts_with("--"))
            .count()
            <= 1,
        "too many arguments"
    );
    Ok(())
}
