//! Damaged and hostile images: a clear error or a correct result, within bounds, whatever the bytes say.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use durin_testkit::json;
use durin_testkit::manifest::parse_sha256;
use durin_testkit::mount::{self, Mount};
use durin_testkit::run::{Outcome, Run};
use durin_testkit::tree::{Digest, Kind, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;
use durin_testkit::{require, run};

use crate::support::{programs, subdir, work_dir};

/// A second is asked for; the watchdog leaves a busy machine room.
const TIME_MAX: Duration = Duration::from_secs(20);
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// SHA-256 by path.
type Checksums = BTreeMap<Vec<u8>, [u8; 32]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// Opening or the full check must fail.
    Refuse,
    /// The full check must fail.
    Check,
    /// Each file gives its bytes or an error, never other bytes.
    Read,
    /// Must work.
    Ok,
    /// Either, but no crash.
    Lenient,
}

struct Evil {
    name: String,
    expect: Expect,
    files: Checksums,
}

/// Loads `evil.json`.
fn evil_images(vectors: &Vectors) -> Vec<Evil> {
    let path = vectors.root().join("evil/evil.json");
    let list = json::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let evil = |value: &serde_json::Value| Evil {
        name: value["image"].as_str().unwrap().to_owned(),
        expect: match value["expect"].as_str().unwrap() {
            "refuse" => Expect::Refuse,
            "check" => Expect::Check,
            "read" => Expect::Read,
            "ok" => Expect::Ok,
            "lenient" => Expect::Lenient,
            other => panic!("unknown expectation {other}"),
        },
        files: value["files"]
            .as_object()
            .into_iter()
            .flatten()
            .map(checksum_of)
            .collect(),
    };
    list.as_array().unwrap().iter().map(evil).collect()
}

fn checksum_of((path, hex): (&String, &serde_json::Value)) -> (Vec<u8>, [u8; 32]) {
    (
        json::bytes(path),
        parse_sha256(hex.as_str().unwrap()).unwrap(),
    )
}

/// Parses the lines `HEX  PATH` of `dwarfsck --checksum=sha256`.
pub(crate) fn parse_checksums(stdout: &[u8]) -> Checksums {
    let line = |line: &[u8]| {
        let hex = std::str::from_utf8(line.get(..64)?).ok()?;
        let path = line.get(64..)?.strip_prefix(b"  ")?;
        Some((path.to_vec(), parse_sha256(hex)?))
    };
    let lines = stdout
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|text| line(text).unwrap_or_else(|| panic!("{}", text.escape_ascii())))
        .collect()
}

/// Runs a program under the limits, and fails on what no image may cause.
fn tamed(run: Run, what: &str) -> Outcome {
    let outcome = run.time_max(TIME_MAX).memory_max(MEMORY_BYTES_MAX).output();
    assert!(
        outcome.killed.is_none() && outcome.signal.is_none(),
        "{what}: {outcome}"
    );
    assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome}");
    outcome
}

fn dwarfsck(argument: &str, image: &Path) -> Outcome {
    let run = programs().run("dwarfsck").arg(argument).arg(image);
    tamed(run, &format!("dwarfsck {argument} {}", image.display()))
}

/// Refused means exit code 1 and a message that says where.
fn assert_refused(outcome: &Outcome, image: &Path) {
    let name = image.file_name().unwrap().to_string_lossy();
    assert_eq!(outcome.code, Some(1), "{name}: {outcome}");
    // What is missing as a whole has no place; then the message names what.
    let places = [
        "at offset ",
        "offset 0: ",
        "no image found",
        "no section of type",
    ];
    let says_where = places.iter().any(|place| outcome.stderr.contains(place));
    assert!(
        says_where,
        "{name}: refused without saying where: {outcome}"
    );
}

#[test]
fn evil_images_behave_as_expected() {
    let vectors = require!(Vectors::find());
    let images = evil_images(&vectors);
    let mut failures = Vec::new();
    for evil in &images {
        let image = vectors.image("evil", &evil.name);
        if std::panic::catch_unwind(|| check_evil(evil, &image)).is_err() {
            failures.push(format!("{} ({:?})", evil.name, evil.expect));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}: {failures:?}",
        failures.len(),
        images.len()
    );
}

fn check_evil(evil: &Evil, image: &Path) {
    let check = dwarfsck("--check-integrity", image);
    let sums = dwarfsck("--checksum=sha256", image);
    let read_anyway = programs()
        .run("dwarfsck")
        .args(["--no-check", "-l"])
        .arg(image);
    tamed(read_anyway, &evil.name);
    match evil.expect {
        Expect::Refuse | Expect::Check => assert_refused(&check, image),
        Expect::Lenient => {}
        Expect::Ok => {
            assert_eq!(check.code, Some(0), "{}: {check}", evil.name);
            assert_eq!(sums.code, Some(0), "{}: {sums}", evil.name);
            assert_eq!(parse_checksums(&sums.stdout), evil.files, "{}", evil.name);
        }
        Expect::Read => {
            let found = parse_checksums(&sums.stdout);
            assert_no_other_bytes(&found, &evil.files, &evil.name);
            assert!(
                sums.code != Some(0) || found == evil.files,
                "{}: {sums}",
                evil.name
            );
        }
    }
    check_evil_extraction(evil, image);
}

/// Whatever was read is what was written.
fn assert_no_other_bytes(found: &Checksums, expected: &Checksums, name: &str) {
    for (path, sum) in found {
        assert_eq!(
            Some(sum),
            expected.get(path),
            "{name}: {}",
            path.escape_ascii()
        );
    }
}

fn check_evil_extraction(evil: &Evil, image: &Path) {
    let work = work_dir();
    let target = subdir(&work, "out");
    let run = programs()
        .extract(image, &target)
        .arg("--continue-on-error");
    let outcome = tamed(run, &format!("dwarfsextract {}", evil.name));
    assert_eq!(
        crate::support::names_in(work.path()),
        ["out"],
        "{}: outside",
        evil.name
    );
    if matches!(evil.expect, Expect::Ok | Expect::Read) && outcome.code == Some(0) {
        assert_eq!(checksums_below(&target), evil.files, "{}", evil.name);
    }
    assert!(
        evil.expect != Expect::Ok || outcome.code == Some(0),
        "{}: {outcome}",
        evil.name
    );
}

fn checksums_below(top: &Path) -> Checksums {
    let tree = snapshot(
        top,
        &TreeOptions {
            digest: Digest::Full,
        },
    )
    .unwrap();
    let files = tree
        .nodes
        .into_iter()
        .filter(|node| node.kind == Kind::File);
    files
        .map(|node| (node.path, node.digest.unwrap()))
        .collect()
}

#[test]
fn evil_images_give_right_bytes_or_errors_through_a_mount() {
    let vectors = require!(Vectors::find());
    require!(mount::available());
    for evil in evil_images(&vectors) {
        if !matches!(evil.expect, Expect::Ok | Expect::Read) {
            continue;
        }
        let image = vectors.image("evil", &evil.name);
        let driver = programs().path("dwarfs");
        let Ok(mount) = std::panic::catch_unwind(|| Mount::foreground(&driver, &image, &[])) else {
            assert_eq!(evil.expect, Expect::Read, "{}: does not mount", evil.name);
            continue;
        };
        for path in evil.files.keys() {
            let file = mount.path().join(std::str::from_utf8(path).unwrap());
            let read = run::Run::new("sha256sum")
                .arg(file)
                .time_max(TIME_MAX)
                .output();
            assert!(read.killed.is_none(), "{}: {read}", evil.name);
            if read.code == Some(0) {
                let hex = String::from_utf8_lossy(&read.stdout[..64]).into_owned();
                assert_eq!(
                    parse_sha256(&hex).as_ref(),
                    evil.files.get(path),
                    "{}",
                    evil.name
                );
            } else {
                assert_eq!(evil.expect, Expect::Read, "{}: {read}", evil.name);
            }
        }
        let peak_bytes = mount.peak_bytes().unwrap_or(0);
        assert!(
            peak_bytes <= MEMORY_BYTES_MAX,
            "{}: {} MiB",
            evil.name,
            peak_bytes >> 20
        );
        // A bad block is an error of its file; the mount stays up and goes down cleanly.
        assert_eq!(mount.unmount(), Some(0), "{}", evil.name);
    }
}

#[test]
fn damaged_images_are_refused() {
    let vectors = require!(Vectors::find());
    let images = [vectors.images("badfs"), vectors.images("reject")].concat();
    let mut failures = Vec::new();
    for image in &images {
        let refused = std::panic::catch_unwind(|| {
            assert_refused(&dwarfsck("--check-integrity", image), image);
        });
        if refused.is_err() {
            failures.push(image.file_name().unwrap());
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}: {failures:?}",
        failures.len(),
        images.len()
    );
}

#[test]
fn damaged_images_unpack_without_a_crash() {
    let vectors = require!(Vectors::find());
    let images = [vectors.images("badfs"), vectors.images("reject")].concat();
    // Every image is checked in the test above; unpacking and listing a sample is enough.
    for image in images.iter().step_by(7) {
        let work = work_dir();
        let target = subdir(&work, "out");
        let run = programs()
            .extract(image, &target)
            .arg("--continue-on-error");
        tamed(run, &image.display().to_string());
        assert_eq!(
            crate::support::names_in(work.path()),
            ["out"],
            "{}",
            image.display()
        );
        tamed(
            programs()
                .run("dwarfsck")
                .args(["--no-check", "-d7"])
                .arg(image),
            "dwarfsck -d7",
        );
    }
}
