//! What a record says of where its figures come from: the state of our source, and the machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// Names programs that were built elsewhere, of whose source nothing is known here.
pub(super) fn build_time(programs: &Path) -> Result<String> {
    let program = programs.join("mkdwarfs");
    let data = program.metadata();
    let data = data.with_context(|| program.display().to_string())?;
    let since = data.modified()?.duration_since(std::time::UNIX_EPOCH)?;
    Ok(format!("durin built at {}", since.as_secs()))
}

/// The last commit that changed the programs, with a + if they have been changed since.
pub(super) fn commit() -> Result<String> {
    let git = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(workspace::root());
        let output = command.output().context("cannot run git")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let sources = ["--", "crates", "Cargo.toml", "Cargo.lock"];
    let commit = git(&[&["log", "-1", "--format=%h"], sources.as_slice()].concat())?;
    let changes = git(&[&["status", "--porcelain"], sources.as_slice()].concat())?;
    let mark = if changes.is_empty() { "" } else { "+" };
    Ok(format!("durin {commit}{mark}"))
}

pub(super) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let uname = rustix::system::uname();
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default()
        .trim_start_matches(['\t', ' ', ':']);
    format!(
        "{cpus} CPUs {model}, {} {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy()
    )
}
