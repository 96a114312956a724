//! Damaged images: nothing that is wrong gets a checksum that says it is right.

use durin_format::ErrorKind;
use durin_rewrite::RewriteOptions;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{kinds, open, open_file, show, try_rewrite};

/// Images of all ages that have checksums, small enough to be damaged everywhere.
fn images(vectors: &Vectors) -> Vec<Vec<u8>> {
    let images = vectors.with_manifest().into_iter();
    let images = images.filter(|path| {
        open_file(path).is_ok_and(|image| {
            !image.version().has_v1_sections() && image.offset() == 0 && image.len() < 100_000
        })
    });
    let step = 7;
    images
        .step_by(step)
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Flips a bit in the header and in the payload of every section.
fn damaged(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let image = open(bytes).unwrap();
    let mut all = Vec::new();
    for section in image.sections() {
        let start = usize::try_from(section.offset).unwrap();
        let payload = usize::try_from(section.payload_offset).unwrap();
        let len = usize::try_from(section.payload_len).unwrap();
        for at in [start + 0x28, start + 0x36, payload, payload + len / 2] {
            let mut bytes = bytes.to_vec();
            if at < payload + len {
                bytes[at] ^= 0x10;
                all.push((section.number, bytes));
            }
        }
    }
    all
}

#[test]
fn every_section_flipped_is_refused() {
    let vectors = require!(Vectors::find());
    let mut refused = 0;
    for good in images(&vectors) {
        let expected = show(&open(&good).unwrap()).unwrap();
        for (number, bad) in damaged(&good) {
            let Ok(image) = open(&bad) else {
                refused += 1;
                continue;
            };
            for (kind, checked) in kinds() {
                let unchecked = RewriteOptions {
                    check: false,
                    ..checked.clone()
                };
                for options in [checked, unchecked] {
                    match try_rewrite(&image, &options) {
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                            let place = error.location().section;
                            assert!(place.is_none_or(|place| place == number), "{error}");
                            refused += 1;
                        }
                        // What is not used, such as an index or the history, may be wrong.
                        Ok((new, _)) => {
                            assert!(!options.check || number + 1 >= 3, "{kind} section {number}");
                            let new = open(&new).unwrap();
                            assert_eq!(show(&new).unwrap().len(), expected.len());
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 500, "only {refused}");
}

#[test]
fn cut_short_is_refused() {
    let vectors = require!(Vectors::find());
    for good in images(&vectors).into_iter().take(4) {
        for len in (0..good.len()).step_by(good.len() / 50 + 1) {
            let Ok(image) = open(&good[..len]) else {
                continue;
            };
            for (_, options) in kinds() {
                assert!(try_rewrite(&image, &options).is_err(), "{len}");
            }
        }
    }
}
