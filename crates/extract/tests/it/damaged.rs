//! Blocks that cannot be read.

use std::fs;
use std::sync::atomic::AtomicBool;

use durin_extract::{ExtractOptions, Stats, extract_to_directory};
use durin_format::ErrorKind;
use durin_format::events::Quiet;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::{extract, lenient, open};

#[test]
fn the_first_bad_file_ends_it_unless_told_otherwise() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("evil", "xxh-flip");
    let target = tempfile::tempdir().unwrap();
    let error = extract(&image, target.path(), &ExtractOptions::default())
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("BLOCK"), "{error}");

    let target = tempfile::tempdir().unwrap();
    let outcome = extract(&image, target.path(), &lenient());
    let report = outcome.result.unwrap();
    assert!(report.errors > 0);
    assert_eq!(report.errors, outcome.messages.len() as u64);
    for message in &outcome.messages {
        let path = message
            .split(": ")
            .find(|part| target.path().join(part).exists());
        assert_eq!(path, None, "no partial file stays: {message}");
    }
}

#[test]
fn cancelling_ends_it_with_whole_files_only() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("generated", "default-l7-S16")).unwrap();
    let target = tempfile::tempdir().unwrap();
    let cancel = AtomicBool::new(true);
    let options = ExtractOptions::default();
    let stats = Stats::default();
    let result = extract_to_directory(&image, target.path(), &options, &stats, &Quiet, &cancel);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}
