//! `cargo xtask bench --quick`: a small run of every suite, one after the other, in ten minutes.
//!
//! What is missing is installed or skipped by name; a suite that fails does not hold up the next. The time is bounded: a
//! suite has its part of what is left once peers and programs are there, and what the one before did not need. What does
//! not fit is skipped by name. Runs are recorded, so that a second call goes on there; `--fresh` forgets them first.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::peers::{self, Effort};
use super::{mount, size, steps, threads};
use crate::say::say;
use crate::workspace::{self, check_options, option};
use crate::{corpora, report};

/// The tree of all suites.
const CORPUS: &str = "quick";
/// Time limit of a run.
const SECONDS_MAX: u64 = 60;
/// Time for all; building this task runner has taken up to two minutes by then.
const MINUTES: u64 = 8;

/// A suite, as it is run here.
struct Suite {
    name: &'static str,
    run: fn(&[String]) -> Result<()>,
    /// Names of what is run, with the options that it is run with.
    names: fn(&[String]) -> Result<Vec<String>>,
    /// Its options, which come before those of all.
    options: &'static [&'static str],
    /// Its part of the time, in percent.
    percent: u32,
}

/// All suites, those first that say most.
const SUITES: [Suite; 6] = [
    Suite {
        name: "size",
        run: size::run,
        names: size::names,
        options: &[
            "--suite=size",
            "--corpus=CORPUS",
            "--peers=quick",
            "--levels=1,3,5,7,9",
        ],
        percent: 34,
    },
    Suite {
        name: "mounted tree",
        run: mount::run,
        names: mount::names,
        options: &["--suite=mount", "--corpus=CORPUS", "--quick"],
        percent: 19,
    },
    Suite {
        name: "steps",
        run: steps::run,
        names: steps::names,
        options: &["--suite=steps", "--corpus=CORPUS", "--quick"],
        percent: 21,
    },
    Suite {
        name: "threads",
        run: threads::run,
        names: threads::names,
        options: &[
            "--suite=threads",
            "--corpus=CORPUS",
            "--levels=1,3",
            "--threads=1,2,4",
        ],
        percent: 3,
    },
    Suite {
        name: "mounted source",
        run: mount::run,
        names: mount::names,
        options: &[
            "--suite=mount",
            "--corpus=own",
            "--quick",
            "--jobs=build-rust",
        ],
        percent: 3,
    },
    Suite {
        name: "mounted files",
        run: mount::run,
        names: mount::names,
        // Drivers that decompress from the beginning for each read never end.
        options: &[
            "--suite=mount",
            "--corpus=files",
            "--quick",
            "--seconds-max=2",
        ],
        percent: 20,
    },
];

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let known = [
        "quick", "fresh", "record", "programs", "profile", "corpora", "lock", "minutes", "plan",
    ];
    check_options(arguments, &known)?;
    let start = Instant::now();
    let minutes = option(arguments, "minutes").map_or(Ok(MINUTES), str::parse)?;
    let end = start + Duration::from_secs(minutes * 60);
    if arguments.iter().any(|argument| argument == "--plan") {
        return plan(end);
    }
    peers::install(Effort::Packages)?;
    let record = option(arguments, "record").map_or_else(
        || workspace::target_dir().join("bench").join("quick.jsonl"),
        std::path::PathBuf::from,
    );
    if arguments.iter().any(|argument| argument == "--fresh") && record.exists() {
        std::fs::remove_file(&record).with_context(|| record.display().to_string())?;
    }
    let corpus = corpus();
    // The release profile takes minutes to build and is some percent faster.
    let mut shared = vec![
        format!("--record={}", record.display()),
        format!("--seconds-max={SECONDS_MAX}"),
    ];
    if option(arguments, "programs").is_none() {
        let profile = option(arguments, "profile").unwrap_or("fast");
        workspace::programs(profile)?;
        shared.push(format!("--profile={profile}"));
    }
    let passed = ["--programs=", "--corpora=", "--lock="];
    let is_passed = |argument: &&String| passed.iter().any(|name| argument.starts_with(name));
    shared.extend(arguments.iter().filter(is_passed).cloned());
    let failed = all(&corpus, &shared, start, end);
    say!(
        "\nIn all: {}. Runs are in {}; what was skipped for want of time is run by calling this again.",
        report::seconds(start.elapsed()),
        record.display()
    );
    ensure!(
        failed.is_empty(),
        "something failed in {}",
        failed.join(", ")
    );
    Ok(())
}

/// Runs all suites; gives the names of those that failed.
fn all(corpus: &str, shared: &[String], start: Instant, end: Instant) -> Vec<&'static str> {
    let begin = Instant::now();
    let mut failed = Vec::new();
    for (suite, until) in SUITES.iter().zip(ends(begin, end)) {
        let left = until.saturating_duration_since(Instant::now());
        say!(
            "\n== {} (after {}, for at most {})",
            suite.name,
            report::seconds(start.elapsed()),
            report::seconds(left)
        );
        let mut arguments = suite.arguments(corpus);
        arguments.push(format!("--seconds-all={}", left.as_secs()));
        arguments.extend_from_slice(shared);
        if let Err(error) = (suite.run)(&arguments) {
            say!("{}: {error:#}", suite.name);
            failed.push(suite.name);
        }
    }
    failed
}

/// When each suite must have ended.
fn ends(begin: Instant, end: Instant) -> Vec<Instant> {
    let time = end.saturating_duration_since(begin);
    let mut percent = 0;
    let until = SUITES.iter().map(|suite| {
        percent += suite.percent;
        begin + time * percent / 100
    });
    until.collect()
}

/// Says what would be run, and for how long at most.
fn plan(end: Instant) -> Result<()> {
    let begin = Instant::now();
    say!("Peers are installed and programs built first; what is left of the time is parted so:");
    let mut before = begin;
    for (suite, until) in SUITES.iter().zip(ends(begin, end)) {
        let arguments = suite.arguments(CORPUS);
        let seconds_max = option(&arguments, "seconds-max").map_or(Ok(SECONDS_MAX), str::parse)?;
        say!(
            "\n{}: at most {}, a run {seconds_max} s",
            suite.name,
            report::seconds(until - before)
        );
        for name in (suite.names)(&arguments)? {
            say!("  {name}");
        }
        before = until;
    }
    Ok(())
}

impl Suite {
    fn arguments(&self, corpus: &str) -> Vec<String> {
        let options = self.options.iter();
        options.map(|text| text.replace("CORPUS", corpus)).collect()
    }
}

/// The name or directory of the tree: a small one from registries, or our own source where there are none.
fn corpus() -> String {
    let made = corpora::run(&[CORPUS.to_owned()]);
    match made {
        Ok(()) => CORPUS.to_owned(),
        Err(error) => {
            say!("{CORPUS}: {error:#}; our own source is taken instead");
            format!("own={}", workspace::root().join("crates").display())
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn suites_have_names_of_their_own_and_part_the_time() {
        for (index, suite) in SUITES.iter().enumerate() {
            assert!(SUITES[..index].iter().all(|other| other.name != suite.name));
            assert!(suite.options[0].starts_with("--suite="));
            assert!(!(suite.names)(&suite.arguments(CORPUS)).unwrap().is_empty());
        }
        let begin = Instant::now();
        let end = begin + Duration::from_secs(100);
        let ends = ends(begin, end);
        assert!(ends.is_sorted() && ends.last() == Some(&end));
        // Nothing is left, but nothing goes wrong either.
        assert!(super::ends(end, begin).iter().all(|until| *until == end));
    }
}
