//! Images that mean harm: nothing outside of the target is touched, whatever they say.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use durin_testkit::require;
use durin_testkit::tree::{Digest, Kind, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::{extract_image, lenient, open};

/// A guarded place: the target lies in a directory whose other contents must stay as they are.
fn paths(top: &Path) -> Vec<Vec<u8>> {
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let tree = snapshot(top, &options).unwrap();
    let outside = tree
        .nodes
        .into_iter()
        .filter(|node| !node.path.starts_with(b"target/"));
    outside.map(|node| node.path).collect()
}

#[test]
fn evil_images_stay_inside() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("evil") {
        let Ok(image) = open(&path) else {
            continue;
        };
        let guarded = tempfile::tempdir().unwrap();
        let target = guarded.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::write(guarded.path().join("neighbour"), "untouched").unwrap();
        let before = paths(guarded.path());
        let outcome = extract_image(&image, &target, &lenient());
        if let Ok(report) = &outcome.result {
            assert!(
                report.errors == 0 || !outcome.messages.is_empty(),
                "{}: errors are reported",
                path.display()
            );
        }
        assert_eq!(paths(guarded.path()), before, "{}", path.display());
        let neighbour = fs::read(guarded.path().join("neighbour")).unwrap();
        assert_eq!(neighbour, b"untouched");
    }
}

#[test]
fn what_is_extracted_from_evil_images_is_right() {
    let vectors = require!(Vectors::find());
    let text = fs::read_to_string(vectors.root().join("evil/evil.json")).unwrap();
    let list = durin_testkit::json::parse(&text).unwrap();
    for case in list.as_array().unwrap() {
        let name = case["image"].as_str().unwrap();
        let Some(files) = case["files"].as_object() else {
            continue;
        };
        let opened = open(&vectors.image("evil", name));
        let image = match (case["expect"].as_str().unwrap(), opened) {
            ("ok", opened) => opened.unwrap_or_else(|error| panic!("{name}: {error}")),
            (_, Ok(image)) => image,
            (_, Err(_)) => continue,
        };
        let target = tempfile::tempdir().unwrap();
        let outcome = extract_image(&image, target.path(), &lenient());
        let report = outcome
            .result
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        if case["expect"] == "ok" {
            assert_eq!((report.errors, outcome.messages), (0, vec![]), "{name}");
        }
        let options = TreeOptions {
            digest: Digest::Full,
        };
        let tree = snapshot(target.path(), &options).unwrap();
        for node in tree.nodes.iter().filter(|node| node.kind == Kind::File) {
            let path = String::from_utf8_lossy(&node.path);
            let expected = files.get(path.as_ref()).and_then(|hex| hex.as_str());
            let expected = expected.and_then(durin_testkit::manifest::parse_sha256);
            assert_eq!(node.digest, expected, "{name}: {path}");
        }
    }
}

#[test]
fn a_symlink_in_the_place_of_a_directory_is_not_followed() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("good", "compat-v0.4.1")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    symlink(outside.path(), target.path().join("foo")).unwrap();

    let strict = extract_image(
        &image,
        target.path(),
        &durin_extract::ExtractOptions::default(),
    );
    let error = strict.result.unwrap_err();
    assert!(
        error.to_string().contains("foo: refused to follow"),
        "{error}"
    );

    let outcome = extract_image(&image, target.path(), &lenient());
    assert_eq!(outcome.result.unwrap().errors, 1, "{:?}", outcome.messages);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(target.path().join("foo").is_symlink());
    assert!(target.path().join("bench.sh").is_file());
    assert!(!target.path().join("foo/bar").exists());
}

#[test]
fn a_symlink_in_the_place_of_a_file_is_replaced() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("good", "compat-v0.4.1")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let target = tempfile::tempdir().unwrap();
    symlink(&victim, target.path().join("bench.sh")).unwrap();
    let outcome = extract_image(&image, target.path(), &lenient());
    assert_eq!(outcome.result.unwrap().errors, 0, "{:?}", outcome.messages);
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    let file = target.path().join("bench.sh");
    assert!(!file.is_symlink());
    assert_eq!(fs::read(&file).unwrap().len(), 1517);
}
