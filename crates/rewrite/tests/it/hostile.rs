//! Hostile images: an error or a sound image, in bounded time and memory, never a panic.

use std::time::{Duration, Instant};

use durin_rewrite::RewriteOptions;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{kinds, open, open_file, try_rewrite};

/// Far more than any of them needs in a debug build, far less than a hang.
const TIME_MAX: Duration = Duration::from_secs(10);

fn try_all(folder: &str, step: usize) {
    let vectors = require!(Vectors::find());
    for path in vectors.images(folder).into_iter().step_by(step) {
        let Ok(image) = open_file(&path) else {
            continue;
        };
        for (kind, checked) in kinds() {
            let unchecked = RewriteOptions {
                check: false,
                ..checked.clone()
            };
            for options in [checked, unchecked] {
                let begun = Instant::now();
                if let Ok((new, _)) = try_rewrite(&image, &options) {
                    let new = open(&new);
                    // What was copied unseen may be refused still.
                    let is_sound = options.check || options.rebuild.is_some();
                    assert!(new.is_ok() || !is_sound, "{} {kind}", path.display());
                    if let (Ok(new), true) = (new, is_sound) {
                        new.check_metadata()
                            .unwrap_or_else(|error| panic!("{} {kind}: {error}", path.display()));
                    }
                }
                let needed = begun.elapsed();
                assert!(needed < TIME_MAX, "{} {kind}: {needed:?}", path.display());
            }
        }
    }
}

#[test]
fn evil_images() {
    try_all("evil", 1);
}

#[test]
fn damaged_file_systems() {
    try_all("badfs", 1);
}

#[test]
fn rejects() {
    try_all("reject", 1);
}
