//! `cargo xtask bench`: our programs against squashfs, on the same tree, in the same run.
//!
//! Programs run as processes. Each table says what was compared at which settings; a peer that is not there is named as
//! skipped. CPU is user and system time of the program (and, for reads, of the driver beside the reading program);
//! compare it rather than wall time on a machine with other work.

mod baseline;
mod build;
mod clean;
pub(crate) mod definition;
mod docs;
mod document;
mod expected;
mod full;
mod guard;
mod judge;
mod losses;
mod measure;
mod mount;
mod needs;
mod newer_debian;
mod notes;
mod origin;
mod peers;
mod plot;
mod quick;
mod read;
mod readme;
mod record;
mod session;
mod size;
mod steps;
mod table;
mod threads;
mod tree;
#[cfg(test)]
mod typed;
mod verify;
mod whole;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::tree::snapshot;

use crate::report::{census, count, size};
use crate::say::say;
use crate::{install, workspace};

pub(crate) use self::guard::TASK;

const HELP: &str = "\
cargo xtask bench --quick [--minutes=9] [--fresh] [--record=FILE] [--programs=DIR] [--plan]
                          installs what is missing and runs a small version of every suite; what does not fit into the
                          time is skipped by name, and run by the next call. --plan says what would be run
cargo xtask bench --full [--runs=3] [--record=FILE] [--minutes=N] [--programs=DIR] [--plan]
                          makes the corpora, installs everybody, runs every suite in full, for as long as the time limits
                          of all programs allow or --minutes, and renews tables and plots of README.md and docs
cargo xtask bench --install
                          installs whom durin is compared with (benchmarks/peers.toml), also what must be built
cargo xtask bench [DIR] [--runs=N] [--only=build|read]
                          figures against squashfs, as a Markdown table
cargo xtask bench --suite=NAME ...
                          runs a suite, records each run, prints tables of the record; what is recorded is not run again
cargo xtask bench --docs [--keep=FILE] [--check]
                          renews tables and plots of README.md and docs from benchmarks/record, to which
                          --keep adds the runs of a record; --check writes nothing and fails if there is something to renew

Suites
  size     --corpus=NAME|DIR,... [--levels=1,3-5] [--peers=all|quick|none|NAME,...] [--threads=N]
           how small each program makes a tree, for how much CPU time and memory (benchmarks/tools.toml)
  threads  --corpus=... [--levels=1-3] [--threads=1,2,4,8]
           build time by number of threads, and the stages' part of it
  mount    [--corpus=NAME|DIR|own|files,...] [--systems=all|NAME,...] [--jobs=all|NAME,...] [--quick] [--file-mib=1024]
           [--idle=30] [--images=DIR]
           what using a mounted tree takes (benchmarks/mount.toml)
  steps    [--tables=all|NAME,...] [--systems=all|NAME,...] [--corpus=NAME|DIR] [--quick]
           tables of steps: btrfs with ten copies, a tarball, recompression, a root file system, unpacking
           (benchmarks/steps.toml)

Options of all suites
  --record=FILE         where runs are recorded (target/bench/record.jsonl)
  --runs=N              how often each is run; medians are shown (1)
  --seconds-max=N       time limit of a run, where the definition's is longer
  --seconds-all=N       time limit of all; what does not fit is skipped by name
  --tables-only         runs nothing, shows what is recorded
  --into=FILE           writes tables into a document, between <!-- bench: NAME --> and <!-- bench: end -->
  --format=text|markdown|json
  --corpora=DIR         where corpora are (target/corpora, or DURIN_CORPORA)
  --profile=release|fast, --programs=DIR
                        which programs of ours: how they are built, or where they are
  --lock=FILE           waits for the lock of this file before each run
";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_there = |name: &str| arguments.iter().any(|argument| argument == name);
    if is_there("--help") || is_there("-h") {
        say!("{}", HELP.trim_end());
        return Ok(());
    }
    if is_there("--docs") {
        return docs::run(arguments);
    }
    if is_there("--tables-only") || is_there("--plan") {
        return suite(arguments);
    }
    guard::run(arguments)
}

/// The process that `run` starts and cleans up behind.
pub(crate) fn run_guarded(arguments: &[String]) -> Result<()> {
    guard::begin()?;
    if arguments.iter().any(|argument| argument == "--install") {
        workspace::check_options(arguments, &["install"])?;
        return peers::install(peers::Effort::Everything);
    }
    suite(arguments)
}

fn suite(arguments: &[String]) -> Result<()> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    match workspace::option(arguments, "suite") {
        Some("size") => size::run(arguments),
        Some("threads") => threads::run(arguments),
        Some("mount") => mount::run(arguments),
        Some("steps") => steps::run(arguments),
        Some(other) => bail!("no suite {other}: size, threads, mount or steps"),
        None if has("--quick") => quick::run(arguments),
        None if has("--full") => full::run(arguments),
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
            say!("{program} is skipped: {error:#}");
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
    say!(
        "\nTree: {}, {} ({} bytes).",
        found,
        size(found.bytes),
        count(found.bytes)
    );
    say!(
        "Machine: {cpus} CPUs, {} {}.\n",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy()
    );
    Ok(())
}
