//! `cargo xtask bench`: our programs against squashfs, on the same tree, in the same run.
//!
//! Programs run as processes. Each table says what was compared at which settings; a peer that is not there is named as
//! skipped. CPU is user and system time of the program (and, for reads, of the driver beside the reading program);
//! compare it rather than wall time on a machine with other work.

mod baseline;
mod build;
pub(crate) mod definition;
mod document;
mod measure;
mod mount;
mod read;
mod record;
mod session;
mod size;
mod table;
mod threads;
mod tree;
mod verify;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::tree::snapshot;

use crate::report::{census, count, size};
use crate::{install, workspace};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match workspace::option(arguments, "suite") {
        Some("size") => size::run(arguments),
        Some("threads") => threads::run(arguments),
        Some("mount") => mount::run(arguments),
        Some(other) => bail!("no suite {other}: size, threads or mount"),
        None => against_squashfs(arguments),
    }
}

fn against_squashfs(arguments: &[String]) -> Result<()> {
    workspace::check_options(arguments, &["runs", "only"])?;
    let runs: usize = workspace::option(arguments, "runs")
        .unwrap_or("3")
        .parse()?;
    ensure!(runs > 0, "--runs=0 measures nothing");
    let only = workspace::option(arguments, "only").unwrap_or("");
    ensure!(
        matches!(only, "" | "build" | "read"),
        "--only=build or --only=read"
    );
    let programs = workspace::release_programs()?;
    let scratch = workspace::scratch_dir()?;
    let source = match workspace::positional(arguments) {
        Some(dir) => std::fs::canonicalize(dir).with_context(|| dir.to_owned())?,
        None => tree::kernel_source()?,
    };
    for (program, package) in [
        ("mksquashfs", "squashfs-tools"),
        ("squashfuse", "squashfuse"),
    ] {
        if let Err(error) = install::program(program, package) {
            println!("{program} is skipped: {error:#}");
        }
    }
    describe(&source)?;
    if only != "read" {
        build::run(&programs, &source, scratch.path())?;
    }
    if only != "build" {
        read::run(&programs, &source, scratch.path(), runs)?;
    }
    Ok(())
}

/// Prints what the figures depend on: the tree and the machine.
fn describe(source: &Path) -> Result<()> {
    let found = census(&snapshot(source, &POSITIONS)?);
    let cpus = std::thread::available_parallelism()?;
    let uname = rustix::system::uname();
    println!(
        "\nTree: {}, {} ({} bytes).",
        found,
        size(found.bytes),
        count(found.bytes)
    );
    println!(
        "Machine: {cpus} CPUs, {} {}.\n",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy()
    );
    Ok(())
}
