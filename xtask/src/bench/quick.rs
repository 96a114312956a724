//! `cargo xtask bench --quick`: a small run of every suite, one after the other, in about ten minutes.
//!
//! What is missing is installed or skipped by name; a suite that fails does not hold up the next. Runs are recorded, so that
//! a second call shows the tables at once; `--fresh` forgets them first.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::peers::{self, Effort};
use super::{mount, size, steps, threads};
use crate::workspace::{self, check_options, option};
use crate::{corpora, report};

/// The tree of all suites.
const CORPUS: &str = "quick";
/// Time limit of a run.
const SECONDS_MAX: u64 = 60;

type Suite = fn(&[String]) -> Result<()>;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let known = [
        "quick", "fresh", "record", "programs", "profile", "corpora", "lock",
    ];
    check_options(arguments, &known)?;
    let start = Instant::now();
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
    if option(arguments, "programs").is_none() && option(arguments, "profile").is_none() {
        shared.push("--profile=fast".to_owned());
    }
    let passed = ["--programs=", "--profile=", "--corpora=", "--lock="];
    let is_passed = |argument: &&String| passed.iter().any(|name| argument.starts_with(name));
    shared.extend(arguments.iter().filter(is_passed).cloned());
    let mut failed = Vec::new();
    for (name, suite, own) in suites() {
        println!("\n== {name} (after {})", report::seconds(start.elapsed()));
        let own = own
            .iter()
            .map(|argument| argument.replace("CORPUS", &corpus));
        let arguments: Vec<String> = own.chain(shared.iter().cloned()).collect();
        if let Err(error) = suite(&arguments) {
            println!("{name}: {error:#}");
            failed.push(name);
        }
    }
    println!(
        "\nIn all: {}. Runs are in {}.",
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

/// What is run, with its options, which come before those of all.
fn suites() -> [(&'static str, Suite, &'static [&'static str]); 6] {
    [
        (
            "size",
            size::run,
            &[
                "--suite=size",
                "--corpus=CORPUS",
                "--peers=quick",
                "--levels=1,3,5,7,9",
            ],
        ),
        (
            "threads",
            threads::run,
            &[
                "--suite=threads",
                "--corpus=CORPUS",
                "--levels=1,3",
                "--threads=1,2,4",
            ],
        ),
        (
            "steps",
            steps::run,
            &["--suite=steps", "--corpus=CORPUS", "--quick"],
        ),
        (
            "mount",
            mount::run,
            &["--suite=mount", "--corpus=CORPUS", "--quick"],
        ),
        (
            "mounted source",
            mount::run,
            &[
                "--suite=mount",
                "--corpus=own",
                "--quick",
                "--jobs=build-rust",
            ],
        ),
        (
            "mounted files",
            mount::run,
            // Drivers that decompress from the beginning for each read never end.
            &[
                "--suite=mount",
                "--corpus=files",
                "--quick",
                "--seconds-max=15",
            ],
        ),
    ]
}

/// The name or directory of the tree: a small one from registries, or our own source where there are none.
fn corpus() -> String {
    let made = corpora::run(&[CORPUS.to_owned()]);
    match made {
        Ok(()) => CORPUS.to_owned(),
        Err(error) => {
            println!("{CORPUS}: {error:#}; our own source is taken instead");
            format!("own={}", workspace::root().join("crates").display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_names_of_their_own() {
        let suites = suites();
        for (index, (name, _, options)) in suites.iter().enumerate() {
            assert!(suites[..index].iter().all(|other| other.0 != *name));
            assert!(options[0].starts_with("--suite="));
        }
    }
}
