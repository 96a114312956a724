//! Damaged images from a fuzzer, most of them without checksums, and one from the future: refused, and quickly.

use std::time::{Duration, Instant};

use durin_format::ErrorKind;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{open_bytes, open_checked, quick, show};

/// Far more than a debug build needs.
const TIME_MAX: Duration = Duration::from_secs(5);

#[test]
fn damaged_images_are_refused() {
    let vectors = require!(Vectors::find());
    let images = vectors.images("badfs");
    let mut wrong = Vec::new();
    for path in &images {
        let begun = Instant::now();
        if open_checked(path).is_ok() {
            wrong.push(format!("{} was accepted", path.display()));
        }
        // Without the full check more of them open; whatever they then say must be said without a panic.
        if let Ok(image) = open_bytes(std::fs::read(path).unwrap(), &quick()) {
            drop(show(&image));
        }
        if begun.elapsed() > TIME_MAX {
            wrong.push(format!("{} took {:?}", path.display(), begun.elapsed()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}: {wrong:#?}",
        wrong.len(),
        images.len()
    );
}

#[test]
fn unknown_features_are_named() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("reject") {
        let error = open_checked(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("features"), "{error}");
    }
}
