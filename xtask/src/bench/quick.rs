//! `cargo xtask bench --quick`: a small run of every suite, one after the other, in ten minutes.
//!
//! What is missing is installed or skipped by name, and so is what does not fit into the time that is left once peers and
//! programs are there. Runs are recorded, so that a second call goes on there; `--fresh` forgets them first.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::peers::{self, Effort};
use super::whole::{self, Job, Suite};
use super::{mount, size, steps, threads};
use crate::say::say;
use crate::workspace::{self, check_options, option};
use crate::{corpora, report};

/// The tree of all suites.
pub(super) const CORPUS: &str = "quick";
/// Time limit of a run.
const SECONDS_MAX: &str = "60";
/// Time for all; building this task runner has taken up to two minutes by then.
const MINUTES: u64 = 8;

/// All suites, those first that say most.
pub(super) static SUITES: [Suite; 6] = [
    Suite {
        name: "size",
        run: size::run,
        names: size::names,
        options: &[
            "--suite=size",
            "--corpus=CORPUS",
            "--peers=quick",
            "--levels=1,3,5,6,7,9",
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
    let time = Duration::from_secs(minutes * 60);
    if arguments.iter().any(|argument| argument == "--plan") {
        say!(
            "Peers are installed and programs built first; what is left of the time is parted so:"
        );
        return whole::plan(&jobs(CORPUS), SECONDS_MAX, Some(time));
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
    let handed_on = ["--programs=", "--corpora=", "--lock="];
    shared.extend(whole::handed_on(arguments, &handed_on));
    let failed = whole::all(jobs(&corpus), &shared, start, Some(start + time));
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

fn jobs(corpus: &str) -> Vec<Job> {
    let suites = SUITES.iter();
    suites
        .map(|suite| (suite, suite.arguments(corpus)))
        .collect()
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
