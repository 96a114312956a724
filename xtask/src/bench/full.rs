//! `cargo xtask bench --full`: makes the corpora, installs whom durin is compared with, runs every suite, and renews the
//! documents.
//!
//! What is recorded is not run again, so it can be interrupted and called again.
//! A corpus that cannot be made is skipped by name.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::peers::{self, Effort};
use super::whole::{self, Job, Suite};
use super::{docs, mount, size, steps, threads};
use crate::say::say;
use crate::workspace::{self, check_options, option};
use crate::{corpora, report};

/// How often each program runs.
pub(super) const RUNS: u32 = 3;

/// All suites; `--corpus` names what is made first.
pub(super) static SUITES: [Suite; 5] = [
    Suite {
        name: "size",
        run: size::run,
        names: size::names,
        options: &[
            "--suite=size",
            "--corpus=multiver-small,rootfs,media,linux",
            "--peers=all",
            "--levels=1,3,4,5,6,7,9",
        ],
        percent: 60,
    },
    Suite {
        name: "threads",
        run: threads::run,
        names: threads::names,
        options: &["--suite=threads", "--corpus=multiver-small"],
        percent: 2,
    },
    Suite {
        name: "steps",
        run: steps::run,
        names: steps::names,
        options: &["--suite=steps"],
        percent: 8,
    },
    Suite {
        name: "mounted trees",
        run: mount::run,
        names: mount::names,
        options: &[
            "--suite=mount",
            "--corpus=linux-part,rootfs-part,multiver-small,go",
        ],
        percent: 20,
    },
    Suite {
        name: "mounted files",
        run: mount::run,
        names: mount::names,
        options: &["--suite=mount", "--corpus=files"],
        percent: 10,
    },
];

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let known = [
        "full",
        "runs",
        "record",
        "programs",
        "corpora",
        "lock",
        "minutes",
        "seconds-max",
        "plan",
    ];
    check_options(arguments, &known)?;
    let start = Instant::now();
    let minutes: Option<u64> = option(arguments, "minutes").map(str::parse).transpose()?;
    let time = minutes.map(|minutes| Duration::from_secs(minutes * 60));
    if arguments.iter().any(|argument| argument == "--plan") {
        return whole::plan(&jobs(&|_| true), "its definition's", time);
    }
    peers::install(Effort::Everything)?;
    let record = option(arguments, "record").map_or_else(
        || workspace::target_dir().join("bench").join("record.jsonl"),
        PathBuf::from,
    );
    let mut shared = vec![format!("--record={}", record.display())];
    if option(arguments, "programs").is_none() {
        workspace::programs("release")?;
    }
    if option(arguments, "runs").is_none() {
        shared.push(format!("--runs={RUNS}"));
    }
    let handed_on = [
        "--runs=",
        "--programs=",
        "--corpora=",
        "--lock=",
        "--seconds-max=",
    ];
    shared.extend(whole::handed_on(arguments, &handed_on));
    let end = time.map(|time| start + time);
    let corpora = option(arguments, "corpora").map_or_else(corpora::dir, PathBuf::from);
    let jobs = jobs(&|name| is_made(name, &corpora));
    // The tables of steps name their corpora themselves; this one nobody else has.
    is_made("mixed", &corpora);
    let failed = whole::all(jobs, &shared, start, end);
    say!("\nIn all: {}.", report::seconds(start.elapsed()));
    if record.exists() {
        docs::run(&[format!("--keep={}", record.display())])?;
    }
    ensure!(
        failed.is_empty(),
        "something failed in {}",
        failed.join(", ")
    );
    Ok(())
}

/// The suites with their options, without corpora that are not there, and without suites that have none left.
fn jobs(is_there: &dyn Fn(&str) -> bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for suite in &SUITES {
        let mut arguments = suite.arguments("");
        if let Some(named) = option(&arguments, "corpus") {
            let left: Vec<&str> = named.split(',').filter(|name| is_there(name)).collect();
            if left.is_empty() {
                say!("{}: skipped, it has no corpus", suite.name);
                continue;
            }
            let left = format!("--corpus={}", left.join(","));
            arguments.retain(|argument| !argument.starts_with("--corpus="));
            arguments.push(left);
        }
        jobs.push((suite, arguments));
    }
    jobs
}

/// Makes a corpus that is not there yet; says why if that fails.
fn is_made(name: &str, corpora: &Path) -> bool {
    // The suite makes these itself.
    if name == "files" {
        return true;
    }
    let dest = corpora.join(name).display().to_string();
    match corpora::run(&[name.to_owned(), dest]) {
        Ok(()) => true,
        Err(error) => {
            say!("{name}: skipped, {error:#}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_do_without_corpora_that_are_not_there() {
        let jobs = jobs(&|name| name == "linux" || name == "files");
        let named = jobs.iter().map(|(suite, arguments)| {
            let corpus = option(arguments, "corpus").unwrap_or_default();
            (suite.name, corpus)
        });
        assert_eq!(
            named.collect::<Vec<_>>(),
            [("size", "linux"), ("steps", ""), ("mounted files", "files")]
        );
    }
}
