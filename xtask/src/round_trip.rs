//! `cargo xtask roundtrip`: real trees through levels and back, compared byte for byte.
//!
//! Each image is verified, mounted and unpacked. Beside what it took stands how many blocks a small file is spread over:
//! what makes an image small must not make reading from it slow.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use durin_testkit::programs::Programs;
use durin_testkit::roundtrip::{POSITIONS, Times, Trip, TripReport};
use durin_testkit::tree::{Tree, snapshot};
use serde_json::Value;

use crate::bench::definition::{corpus, levels};
use crate::report::{Census, census, percent, seconds, size};
use crate::say::say;
use crate::{corpora, workspace};

/// One of each block size and codec family.
const LEVELS: &str = "0,1,3,4,7,8";
/// A small file may touch this many blocks in the mean, in thousandths.
const SMALL_FILE_BLOCKS_MILLI_MAX: u64 = 1300;
/// Of fewer small files the mean says nothing: a sound file alone has a block for its header and one for its samples.
const SMALL_FILES_MIN: u64 = 100;
const DIFFERENCES_SHOWN: usize = 20;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(
        arguments,
        &["levels", "corpus", "profile", "programs", "arguments"],
    )?;
    let levels = levels(workspace::option(arguments, "levels").unwrap_or(LEVELS))?;
    let names = workspace::option(arguments, "corpus").unwrap_or_default();
    let names = names.split(',').chain(workspace::positional(arguments));
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    ensure!(!names.is_empty(), "which directory or --corpus=NAME,...?");
    let programs = match workspace::option(arguments, "programs") {
        Some(dir) => PathBuf::from(dir),
        None => workspace::programs(workspace::option(arguments, "profile").unwrap_or("release"))?,
    };
    let programs = Programs::in_dir(&programs);
    let more = workspace::option(arguments, "arguments").unwrap_or_default();
    let scratch = workspace::scratch_dir()?;
    let mut failures = Vec::new();
    for name in names {
        let dir = if Path::new(name).is_dir() {
            format!("{name}/.")
        } else {
            name.to_owned()
        };
        let (name, source) = corpus(&dir, &corpora::dir())?;
        say!("{name}: reading {} ...", source.display());
        let tree = snapshot(&source, &POSITIONS)?;
        let found = census(&tree);
        say!("{name}: {found}, {}", size(found.bytes));
        for (index, level) in levels.iter().enumerate() {
            // Both ways of keeping times take their turn.
            let times = if index % 2 == 0 {
                Times::Exact
            } else {
                Times::Default
            };
            let shown = format!("{name} level {level}");
            let tour = Tour {
                programs: &programs,
                source: &source,
                work: scratch.path(),
                times,
            };
            let complaints = tour.make(&shown, *level, more, &tree, &found)?;
            failures.extend((complaints > 0).then_some(shown));
        }
    }
    ensure!(failures.is_empty(), "wrong: {}", failures.join(", "));
    Ok(())
}

struct Tour<'a> {
    programs: &'a Programs,
    source: &'a Path,
    work: &'a Path,
    times: Times,
}

impl Tour<'_> {
    /// Makes one trip, prints what it took, and returns how much is wrong with it.
    fn make(
        &self,
        shown: &str,
        level: u8,
        more: &str,
        tree: &Tree,
        found: &Census,
    ) -> Result<usize> {
        let json = self.work.join("report.json");
        let (level, json_arg) = (level.to_string(), format!("--json={}", json.display()));
        let mut build_args = vec!["-l", &level, &json_arg];
        build_args.extend(more.split_whitespace());
        let trip = Trip {
            programs: self.programs,
            source: self.source,
            work: self.work,
            build_args: &build_args,
            times: self.times,
        };
        let report = trip.make(tree)?;
        // A build that failed has left none; that is among the differences.
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        let text = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let blocks = small_file_blocks_milli(&text);
        say!("{shown}: {}", line(&report, found, blocks));
        for difference in report.differences.iter().take(DIFFERENCES_SHOWN) {
            say!("    {difference}");
        }
        let is_many = text["small_files"].as_u64().unwrap_or(0) >= SMALL_FILES_MIN;
        let is_scattered =
            is_many && blocks.is_some_and(|blocks| blocks > SMALL_FILE_BLOCKS_MILLI_MAX);
        if is_scattered {
            say!("    a small file is spread over too many blocks");
        }
        Ok(report.differences.len() + usize::from(is_scattered))
    }
}

fn line(report: &TripReport, found: &Census, blocks: Option<u64>) -> String {
    let mounted = report.mount.map_or("no FUSE".to_owned(), seconds);
    let blocks = blocks.map_or("?".to_owned(), |blocks| {
        format!("{}.{:03}", blocks / 1000, blocks % 1000)
    });
    format!(
        "{} ({}), build {} wall {} CPU {} MiB peak, {blocks} blocks a small file, mount {mounted}, read {}, unpack {}: {}",
        size(report.image_bytes),
        percent(report.image_bytes, found.bytes),
        seconds(report.build.wall),
        seconds(report.build.cpu),
        report.build.peak_bytes >> 20,
        seconds(report.read),
        seconds(report.extract),
        if report.differences.is_empty() {
            "all equal"
        } else {
            "DIFFERS"
        },
    )
}

/// Thousandths of blocks that a small file touches in the mean, from the report of a build.
fn small_file_blocks_milli(report: &Value) -> Option<u64> {
    let files = report["small_files"].as_u64()?;
    let blocks = report["small_file_blocks"].as_u64()?;
    (blocks * 1000).checked_div(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_of_a_small_file() {
        let check = |report, expect| assert_eq!(small_file_blocks_milli(&report), expect);
        check(
            json!({"small_files": 3, "small_file_blocks": 4}),
            Some(1333),
        );
        check(json!({"small_files": 0, "small_file_blocks": 0}), None);
        check(json!({}), None);
    }
}
