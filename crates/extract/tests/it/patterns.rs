//! Extracting a part.

use std::fs;
use std::path::Path;

use durin_extract::{ExtractOptions, PatternSet};
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::extract;

fn paths(target: &Path) -> Vec<String> {
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let nodes = snapshot(target, &options).unwrap().nodes;
    let mut paths: Vec<_> = nodes
        .into_iter()
        .map(|node| String::from_utf8(node.path).unwrap())
        .filter(|path| !path.is_empty())
        .collect();
    paths.sort();
    paths
}

fn matching(patterns: &[&str]) -> ExtractOptions {
    ExtractOptions {
        pattern: Some(PatternSet::parse(patterns).unwrap()),
        ..ExtractOptions::default()
    }
}

#[test]
fn matches_and_the_directories_above_them() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("generated", "default-l7-S16");
    let whole = tempfile::tempdir().unwrap();
    extract(&image, whole.path(), &ExtractOptions::default())
        .result
        .unwrap();

    let part = tempfile::tempdir().unwrap();
    let outcome = extract(
        &image,
        part.path(),
        &matching(&["bin/run.sh", "i:BIN/*.DAT"]),
    );
    outcome.result.unwrap();
    let expected: Vec<_> = paths(whole.path())
        .into_iter()
        .filter(|path| {
            let in_bin = path
                .strip_prefix("bin/")
                .is_some_and(|rest| !rest.contains('/'));
            path == "bin" || path == "bin/run.sh" || (in_bin && path.ends_with(".dat"))
        })
        .collect();
    assert!(expected.len() > 3, "{expected:?}");
    assert_eq!(paths(part.path()), expected);
    for path in &expected {
        let (a, b) = (whole.path().join(path), part.path().join(path));
        if a.is_file() {
            assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap(), "{path}");
        }
    }
}

#[test]
fn no_match_is_a_warning() {
    let vectors = require!(Vectors::find());
    let target = tempfile::tempdir().unwrap();
    let image = vectors.image("good", "compat-v0.4.1");
    let outcome = extract(&image, target.path(), &matching(&["absent/**"]));
    assert_eq!(outcome.result.unwrap().errors, 0);
    assert_eq!(outcome.messages, ["nothing in the image matches"]);
    assert_eq!(paths(target.path()), [""; 0]);
}

#[test]
fn devices_and_specials_can_be_left_out() {
    let vectors = require!(Vectors::find());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can make devices");
        return;
    }
    let image = vectors.image("good", "compat-v0.4.1");
    for (skip_devices, skip_specials, nodes) in [
        (false, false, 3),
        (true, false, 1),
        (false, true, 2),
        (true, true, 0),
    ] {
        let options = ExtractOptions {
            skip_devices,
            skip_specials,
            ..ExtractOptions::default()
        };
        let target = tempfile::tempdir().unwrap();
        let report = extract(&image, target.path(), &options).result.unwrap();
        assert_eq!(report.nodes, nodes);
    }
}
