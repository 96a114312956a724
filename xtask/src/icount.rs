//! `cargo xtask icount`: how many instructions fixed small jobs take, against a baseline in the tree.
//!
//! Times on shared machines differ by tens of percent; instructions, counted by callgrind, hardly do.
//! A change that costs more than [`TOLERANCE_PERCENT`] fails until `--update` writes a new baseline, whose reason belongs
//! into the message of the commit. Counts depend on the compilers, on valgrind and on what the processor can do, for which
//! there are different kernels: they are compared where all of that is as it was for the baseline, and nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::random::Random;
use serde::{Deserialize, Serialize};

use crate::install;
use crate::report::count;
use crate::say::say;
use crate::workspace::{self, check_options};

/// By how much a job may cost more, or less, than the baseline says.
const TOLERANCE_PERCENT: f64 = 3.0;
/// Differences up to this are no change: what a start takes depends on the environment, on control groups and on the length
/// of paths. 93,000 were seen between two shells with the same programs.
const TOLERANCE_INSTRUCTIONS: u64 = 100_000;

const HEADER: &str = "\
# Instructions of fixed small jobs, counted by callgrind: `cargo xtask icount` compares, `cargo xtask icount --update`
# writes this file. They hold for these compilers only; a commit that changes them says why.

";

/// What a run counted, or is expected to.
#[derive(Debug, Serialize, Deserialize)]
struct Baseline {
    #[serde(flatten)]
    conditions: Conditions,
    instructions: BTreeMap<String, u64>,
}

/// What counts depend on beside our source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Conditions {
    rustc: String,
    cc: String,
    valgrind: String,
    processor: String,
}

/// A job: the program and its arguments, in which `TREE`, `IMAGE` and `OUT` stand for paths.
struct Job {
    name: &'static str,
    command: &'static [&'static str],
}

/// The image that later jobs read is made by the second.
const JOBS: [Job; 6] = [
    Job {
        name: "build-level-1",
        command: &[
            "mkdwarfs", "-i", "TREE", "-o", "OUT", "-f", "-l", "1", "-N", "1",
        ],
    },
    Job {
        name: "build-level-4",
        command: &[
            "mkdwarfs", "-i", "TREE", "-o", "IMAGE", "-f", "-l", "4", "-N", "1",
        ],
    },
    Job {
        name: "open",
        command: &["dwarfsck", "--no-check", "-d", "0", "IMAGE"],
    },
    Job {
        name: "walk",
        command: &["dwarfsck", "--no-check", "-l", "IMAGE"],
    },
    Job {
        name: "read",
        command: &[
            "dwarfsck",
            "--no-check",
            "--checksum=xxh3-64",
            "-n",
            "1",
            "IMAGE",
        ],
    },
    Job {
        name: "check",
        command: &[
            "dwarfsck",
            "--check-integrity",
            "-d",
            "0",
            "-n",
            "1",
            "IMAGE",
        ],
    },
];

/// Counts the jobs and compares them with the baseline, or makes that.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    check_options(arguments, &["update"])?;
    if arguments.iter().any(|argument| argument == "--update") {
        install::program("valgrind", "valgrind")?;
        let found = Baseline {
            conditions: Conditions::here()?,
            instructions: measure(&workspace::programs("fast")?)?,
        };
        let text = HEADER.to_owned() + &toml::to_string(&found)?;
        return fs::write(file(), text).with_context(|| file().display().to_string());
    }
    if let Some(why) = check()? {
        say!("SKIPPED: {why}");
    }
    Ok(())
}

/// Counts and compares; says why not where that would tell nothing.
pub(crate) fn check() -> Result<Option<String>> {
    let why = |what: &str| format!("{what}: instructions are not compared with the baseline");
    if let Err(error) = install::program("valgrind", "valgrind") {
        return Ok(Some(why(&format!("{error:#}"))));
    }
    let text = fs::read_to_string(file()).with_context(|| file().display().to_string())?;
    let baseline: Baseline = toml::from_str(&text).with_context(|| file().display().to_string())?;
    if let Some(difference) = baseline.conditions.difference(&Conditions::here()?) {
        return Ok(Some(why(&difference)));
    }
    compare(
        &baseline.instructions,
        &measure(&workspace::programs("fast")?)?,
    )?;
    Ok(None)
}

fn file() -> PathBuf {
    workspace::benchmarks().join("icount.toml")
}

impl Conditions {
    fn here() -> Result<Self> {
        Ok(Self {
            rustc: first_line("rustc")?,
            cc: first_line("cc")?,
            valgrind: first_line("valgrind")?,
            processor: processor(),
        })
    }

    /// The first that is another one.
    fn difference(&self, here: &Self) -> Option<String> {
        let pairs = [
            (&self.rustc, &here.rustc),
            (&self.cc, &here.cc),
            (&self.valgrind, &here.valgrind),
            (&self.processor, &here.processor),
        ];
        let (before, now) = pairs.into_iter().find(|(before, now)| before != now)?;
        Some(format!("{now} is not {before}"))
    }
}

/// The kind of processor, with the extensions that kernels of ours or of the codecs look for.
fn processor() -> String {
    let mut features = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    for (name, is_there) in [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("sha", is_x86_feature_detected!("sha")),
    ] {
        if is_there {
            features.push(name);
        }
    }
    features.join(" ")
}

fn measure(programs: &Path) -> Result<BTreeMap<String, u64>> {
    let scratch = workspace::scratch_dir()?;
    let tree = scratch.path().join("tree");
    make_tree(&tree)?;
    let mut instructions = BTreeMap::new();
    for job in &JOBS {
        let place = |word: &&str| -> PathBuf {
            match *word {
                "TREE" => tree.clone(),
                "IMAGE" => scratch.path().join("image.dwarfs"),
                "OUT" => scratch.path().join("out.dwarfs"),
                other => PathBuf::from(other),
            }
        };
        let (program, rest) = job.command.split_first().context("an empty job")?;
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(programs.join(program))
            .args(rest.iter().map(place))
            // What a shell has in its environment is read at each start.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // The time of the image, so that each run writes the same bytes.
            .env("SOURCE_DATE_EPOCH", "1");
        let ran = command.output().context("valgrind")?;
        let messages = String::from_utf8_lossy(&ran.stderr);
        ensure!(
            ran.status.success(),
            "{}: {}\n{messages}",
            job.name,
            ran.status
        );
        let found = collected(&messages)
            .with_context(|| format!("{}: no count in\n{messages}", job.name))?;
        instructions.insert(job.name.to_owned(), found);
    }
    Ok(instructions)
}

/// Finds callgrind's line `Collected : N`.
fn collected(messages: &str) -> Option<u64> {
    let line = messages.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// What a program says its version is.
fn first_line(program: &str) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .context(program.to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn compare(baseline: &BTreeMap<String, u64>, found: &BTreeMap<String, u64>) -> Result<()> {
    let mut outside = Vec::new();
    say!("| job | instructions | baseline | change |\n|---|--:|--:|--:|");
    for (name, &now) in found {
        let Some(&before) = baseline.get(name) else {
            outside.push(format!("{name} is not in the baseline"));
            continue;
        };
        let change = percent(before, now);
        say!(
            "| {name} | {} | {} | {change:+.1}% |",
            count(now),
            count(before)
        );
        if change.abs() > TOLERANCE_PERCENT && before.abs_diff(now) > TOLERANCE_INSTRUCTIONS {
            outside.push(format!("{name}: {change:+.1}%"));
        }
    }
    if outside.is_empty() {
        return Ok(());
    }
    bail!(
        "more than {TOLERANCE_PERCENT}% from the baseline: {}; if that is meant: cargo xtask icount --update, and the reason into the commit",
        outside.join(", ")
    )
}

#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
fn percent(before: u64, now: u64) -> f64 {
    (now as f64 / before.max(1) as f64 - 1.0) * 100.0
}

/// Makes what the jobs work on: small texts, versions of a larger one, numbers, noise; the same bytes on every machine.
fn make_tree(top: &Path) -> Result<()> {
    let mut random = Random::new(7);
    for dir in 0..20_u32 {
        let dir_path = top.join(format!("texts-{dir}"));
        fs::create_dir_all(&dir_path)?;
        for file in 0..20_u32 {
            let len = usize::try_from(200 + random.below(6000))?;
            write(&dir_path.join(format!("{file}.txt")), &random.text(len))?;
        }
    }
    let versions = top.join("versions");
    fs::create_dir_all(&versions)?;
    let mut text = random.text(200_000);
    for version in 0..8_u32 {
        let at = usize::try_from(random.below(190_000))?;
        let insert = random.text(300);
        text.splice(at..at, insert);
        write(&versions.join(format!("v{version}.txt")), &text)?;
    }
    let table: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| (n.wrapping_mul(n) / 7).to_le_bytes())
        .collect();
    write(&top.join("table.bin"), &table)?;
    write(&top.join("noise.bin"), &random.bytes(300_000))
}

/// Writes a file whose time does not depend on when this runs.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content)?;
    durin_testkit::made_tree::set_times(path, 1_000_000_000, 0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_tolerance_fails_either_way() {
        let counts = |millions: u64| BTreeMap::from([("read".to_owned(), millions * 1_000_000)]);
        assert!(compare(&counts(1000), &counts(1029)).is_ok());
        assert!(compare(&counts(1000), &counts(1031)).is_err());
        assert!(compare(&counts(1000), &counts(969)).is_err());
        let small = |count: u64| BTreeMap::from([("open".to_owned(), count)]);
        assert!(compare(&small(1_000_000), &small(1_090_000)).is_ok());
        assert!(compare(&BTreeMap::new(), &counts(1)).is_err());
    }

    #[test]
    fn other_compilers_or_processors_are_not_compared() {
        let before = Conditions {
            rustc: "rustc 1".to_owned(),
            cc: "cc 1".to_owned(),
            valgrind: "valgrind 1".to_owned(),
            processor: processor(),
        };
        assert_eq!(before.difference(&before), None);
        let now = Conditions {
            cc: "cc 2".to_owned(),
            ..before.clone()
        };
        assert_eq!(before.difference(&now).as_deref(), Some("cc 2 is not cc 1"));
    }

    #[test]
    fn the_baseline_of_the_tree_has_all_jobs() -> Result<()> {
        let baseline: Baseline = toml::from_str(&fs::read_to_string(file())?)?;
        for job in &JOBS {
            assert!(baseline.instructions.contains_key(job.name), "{}", job.name);
        }
        Ok(())
    }

    #[test]
    fn the_count_is_read_from_the_messages_of_callgrind() {
        let text = "==1== Events    : Ir\n==1== Collected : 1640669\n==1== \n";
        assert_eq!(collected(text), Some(1_640_669));
    }
}
