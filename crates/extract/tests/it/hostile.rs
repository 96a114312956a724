//! Images that mean harm: nothing outside of the target is touched, whatever they say.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use durin_extract::{ArchiveFormat, ExtractOptions};
use durin_format::ErrorKind;
use durin_testkit::require;
use durin_testkit::tree::{Digest, Kind, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::synthetic::{Child, Tree};
use crate::{archives, extract_image, lenient, open};

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

    for options in [ExtractOptions::default(), lenient()] {
        let outcome = extract_image(&image, target.path(), &options);
        let error = outcome.result.unwrap_err().to_string();
        assert!(error.contains("foo: refused to follow"), "{error}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(target.path().join("foo").is_symlink());
        assert!(!target.path().join("foo/bar").exists());
    }
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

#[test]
fn a_symlink_of_the_image_is_not_followed_either() {
    let outside = tempfile::tempdir().unwrap();
    let guarded = tempfile::tempdir().unwrap();
    let target = guarded.path().join("target");
    fs::create_dir(&target).unwrap();
    // Two entries of one name: a way out, and a directory with a file that would go there.
    for is_link_first in [true, false] {
        let mut entries = vec![
            ("a".to_owned(), Child::Link("..")),
            ("a".to_owned(), Child::Dir(1)),
        ];
        if !is_link_first {
            entries.reverse();
        }
        let tree = Tree {
            dirs: vec![entries, vec![("escaped".to_owned(), Child::File(0))]],
            files: vec![b"x".to_vec()],
        };
        // An image that is refused as a whole is just as good.
        if let Ok(image) = tree.open() {
            extract_image(&image, &target, &lenient()).result.ok();
        }
        assert!(!guarded.path().join("escaped").exists());
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn names_that_lead_out_make_nothing() {
    for name in [
        "..",
        ".",
        "",
        "/tmp/escaped",
        "../escaped",
        "a/../../escaped",
        "nul\0byte",
    ] {
        let guarded = tempfile::tempdir().unwrap();
        let target = guarded.path().join("target");
        fs::create_dir(&target).unwrap();
        let tree = Tree {
            dirs: vec![vec![
                (name.to_owned(), Child::File(0)),
                ("good".to_owned(), Child::File(1)),
            ]],
            files: vec![b"bad".to_vec(), b"good".to_vec()],
        };
        let image = tree.open().unwrap();
        let outcome = extract_image(&image, &target, &lenient());
        assert_eq!(outcome.result.unwrap().errors, 1, "{name}");
        assert!(
            outcome.messages[0].contains("cannot be a name"),
            "{:?}",
            outcome.messages
        );
        let made: Vec<_> = fs::read_dir(&target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(made, ["good"], "{name}");
        assert!(!guarded.path().join("escaped").exists());

        for format in [
            ArchiveFormat::Pax,
            ArchiveFormat::Gnutar,
            ArchiveFormat::CpioNewc,
            ArchiveFormat::Zip,
            ArchiveFormat::Mtree,
        ] {
            let mut archive = Vec::new();
            let outcome = archives::write(&image, format, &mut archive, &lenient());
            assert_eq!(outcome.result.unwrap().errors, 1, "{name} as {format:?}");
            let has = |text: &[u8]| archive.windows(text.len()).any(|part| part == text);
            assert!(
                has(b"good") && !has(b"escaped") && !has(b"nul"),
                "{format:?}"
            );
            assert!(!has(b"bad"), "{format:?}");
        }

        let strict = extract_image(&image, &target, &ExtractOptions::default());
        assert_eq!(strict.result.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
