//! Images whose checksums are right and whose contents are hostile do what `evil.json` says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use durin_reader::{CheckLevel, CheckOptions, FileKind, Image};
use durin_source::OpenMode;
use durin_testkit::manifest::parse_sha256;
use durin_testkit::vectors::Vectors;
use durin_testkit::{json, require};

use crate::common::{open_checked, quick, sha256, show};

/// Far more than any of them needs in a debug build, far less than a hang.
const TIME_MAX: Duration = Duration::from_secs(5);

struct Case {
    name: String,
    expect: String,
    /// SHA-256 by path.
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn cases(vectors: &Vectors) -> Vec<Case> {
    let text = std::fs::read_to_string(vectors.root().join("evil/evil.json")).unwrap();
    let all = json::parse(&text).unwrap();
    all.as_array()
        .unwrap()
        .iter()
        .map(|case| Case {
            name: case["image"].as_str().unwrap().to_owned(),
            expect: case["expect"].as_str().unwrap().to_owned(),
            files: case["files"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(path, sum)| {
                    let sum = parse_sha256(sum.as_str().unwrap()).unwrap();
                    (json::bytes(path), sum.to_vec())
                })
                .collect(),
        })
        .collect()
}

#[test]
fn hostile_images_do_what_they_should() {
    let vectors = require!(Vectors::find());
    let mut wrong = Vec::new();
    for case in cases(&vectors) {
        let path = vectors.image("evil", &case.name);
        let begun = Instant::now();
        wrong.extend(
            check(&path, &case).map(|why| format!("{} ({}): {why}", case.name, case.expect)),
        );
        let needed = begun.elapsed();
        if needed > TIME_MAX {
            wrong.push(format!("{}: took {needed:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is wrong, if anything.
fn check(path: &Path, case: &Case) -> Option<String> {
    let refused = fully_checked(path).err();
    match case.expect.as_str() {
        "refuse" | "check" => refused.is_none().then(|| "was accepted".to_owned()),
        "read" => reads(path, case),
        "ok" => refused
            .map(|error| error.to_string())
            .or_else(|| reads_all(path, case)),
        "lenient" => {
            // Either way will do; everything is read all the same.
            if let Ok(image) = open(path) {
                drop(show(&image));
            }
            None
        }
        other => Some(format!("unknown expectation {other}")),
    }
}

fn open(path: &Path) -> durin_format::Result<Image> {
    Image::open(durin_source::open(path, OpenMode::Read).unwrap(), &quick())
}

/// Opens with all checks and makes the check of all sections.
fn fully_checked(path: &Path) -> durin_format::Result<()> {
    let image = open_checked(path)?;
    let options = CheckOptions {
        level: CheckLevel::Full,
        workers: 1,
    };
    let report = image.check(&options, &|_, _| ());
    report.errors.into_iter().next().map_or(Ok(()), Err)
}

/// Every file has the right bytes or an error.
fn reads(path: &Path, case: &Case) -> Option<String> {
    let image = match open(path) {
        Ok(image) => image,
        Err(error) => return Some(error.to_string()),
    };
    for entry in image.walk() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(error.to_string()),
        };
        if entry.attr.kind != FileKind::Regular {
            continue;
        }
        let Ok(sum) = sha256(&image, entry.entry.inode) else {
            continue;
        };
        if case.files.get(&entry.path) != Some(&sum) {
            return Some(format!("{} has wrong bytes", entry.path.escape_ascii()));
        }
    }
    None
}

/// Every file has the right bytes.
fn reads_all(path: &Path, case: &Case) -> Option<String> {
    let image = open(path).unwrap();
    case.files.iter().find_map(|(path, sum)| {
        let shown = path.escape_ascii();
        let Some(entry) = image.resolve(path).unwrap() else {
            return Some(format!("{shown} is missing"));
        };
        match sha256(&image, entry.inode) {
            Ok(found) if found == *sum => None,
            Ok(_) => Some(format!("{shown} has wrong bytes")),
            Err(error) => Some(format!("{shown}: {error}")),
        }
    })
}
