//! A small good image, cut at each byte and changed at each byte: an error, or what was there before.

use durin_reader::{CheckLevel, CheckOptions, ImageOffset, ImageOptions};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{Shown, checked, open_bytes, quick, show};

/// The image, and what it shows.
fn good(name: &str, folder: &str) -> Result<(Vec<u8>, Vec<Shown>), String> {
    let path = Vectors::find()?.image(folder, name);
    let bytes = std::fs::read(path).unwrap();
    let shown = show(&open_bytes(bytes.clone(), &checked()).unwrap()).unwrap();
    Ok((bytes, shown))
}

/// The image begins the file: the scan for one would find the image that is a file in `datadata`.
fn at_start() -> ImageOptions {
    ImageOptions {
        offset: ImageOffset::At(0),
        ..quick()
    }
}

/// Opens with and without the full check and reads everything: an error, or the right things.
fn check(bytes: &[u8], shown: &[Shown], what: &str) {
    for options in [at_start(), checked()] {
        let read = open_bytes(bytes.to_vec(), &options).and_then(|image| show(&image));
        if let Ok(read) = read {
            assert!(read == shown, "{what}");
        }
    }
}

#[test]
fn no_truncation_changes_what_is_read() {
    for (folder, name) in [
        ("handmade", "one-link"),
        ("good", "datadata"),
        ("good", "compat-v0.2.3"),
    ] {
        let (bytes, shown) = require!(good(name, folder));
        let mut opened = 0;
        for len in 0..bytes.len() {
            if let Ok(image) = open_bytes(bytes[..len].to_vec(), &at_start()) {
                assert!(
                    show(&image).unwrap() == shown,
                    "{name}: {len} of {} bytes",
                    bytes.len()
                );
                opened += 1;
            }
        }
        // What ends with a section and has the metadata is a whole image without history or index.
        assert!(opened <= 2, "{name}: {opened} truncations are images");
    }
}

#[test]
fn no_changed_byte_changes_what_is_read() {
    let (bytes, shown) = require!(good("datadata", "good"));
    for at in 0..bytes.len() {
        for change in [1 << (at % 8), 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            check(
                &changed,
                &shown,
                &format!("byte {at} changed by {change:#x}"),
            );
        }
    }
}

#[test]
fn every_changed_payload_bit_is_found() {
    let (bytes, _) = require!(good("one-link", "handmade"));
    let payloads: Vec<_> = open_bytes(bytes.clone(), &quick())
        .unwrap()
        .sections()
        .iter()
        .map(|section| section.payload_offset..section.payload_offset + section.payload_len)
        .collect();
    for at in payloads.into_iter().flatten() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[usize::try_from(at).unwrap()] ^= 1 << bit;
            for level in [CheckLevel::Quick, CheckLevel::Full] {
                let found = match open_bytes(changed.clone(), &quick()) {
                    Ok(image) => !image
                        .check(&CheckOptions { level, workers: 1 }, &|_, _| ())
                        .is_ok(),
                    Err(_) => true,
                };
                assert!(found, "bit {bit} of byte {at} at {level:?}");
            }
        }
    }
}

#[test]
fn metadata_without_checksums_never_panics() {
    // Format 2.0 has none: changes reach the parsers.
    let vectors = require!(Vectors::find());
    let bytes = std::fs::read(vectors.image("good", "compat-v0.2.3")).unwrap();
    let image = open_bytes(bytes.clone(), &quick()).unwrap();
    let metadata: Vec<_> = image
        .sections()
        .iter()
        .filter(|section| section.section_type != durin_format::section::SectionType::Block)
        .map(|section| section.offset..section.payload_offset + section.payload_len)
        .collect();
    for at in metadata.into_iter().flatten() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[usize::try_from(at).unwrap()] ^= change;
            if let Ok(image) = open_bytes(changed, &quick()) {
                drop(show(&image));
            }
        }
    }
}
