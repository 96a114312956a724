//! Every truncation of a small good image and every single-byte corruption of it.
//!
//! All of them go through the reader library, in a child process under a limit of memory, so that not only a panic but
//! also a stack overflow or a runaway allocation is seen; a sample goes through the programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use durin_format::section::{SectionHeader, SectionType, encode_header};
use durin_format::{Error, ErrorKind, Result};
use durin_reader::{CheckLevel, CheckOptions, FileKind, Image, ImageOptions};
use durin_source::MemorySource;
use durin_testkit::random::Random;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::support::{Child, programs, work_dir};

const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// No case may take longer; a second is asked for, and a busy machine is slow.
const CASE_TIME_MAX: Duration = Duration::from_secs(10);
/// A file of a damaged image is read up to here; its size may be anything.
const READ_LEN_MAX: usize = 1 << 20;

/// Runs `sweep` in a child process that executes only the named test.
fn in_child(test: &str, sweep: impl FnOnce()) {
    let child = Child::of(test).memory_max(MEMORY_BYTES_MAX);
    let Some(outcome) = child.time_max(Duration::from_secs(900)).run(sweep) else {
        return;
    };
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    // A child that ran no test at all would succeed too.
    let has_run = outcome.code == Some(0) && said.contains("1 passed");
    assert!(has_run, "{outcome}\n{said}");
}

/// Small images that together hold every kind of section, codec and table worth breaking.
fn small_images(vectors: &Vectors) -> Vec<PathBuf> {
    let names = [
        "one-dir",
        "one-link",
        "rice-1-1-8-128-best",
        "flac-8-1-0-0-0-ch2",
        "only-root",
    ];
    let handmade = names.map(|name| vectors.image("handmade", name));
    let good = [
        "unixlink",
        "dir-sentinel-self-entry-nonzero",
        "setuidgid-v0.4.1",
        "compat-v0.4.1",
    ];
    let good = good.map(|name| vectors.image("good", name));
    handmade.into_iter().chain(good).collect()
}

/// All that an image shows, by path.
type Content = BTreeMap<Vec<u8>, (durin_reader::Attr, Vec<u8>)>;

/// Opens and reads everything; the errors of files are in their place of the content.
fn read_all(bytes: &[u8]) -> Result<Content> {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    let image = Image::open(source, &ImageOptions::default())?;
    let mut content = Content::new();
    for entry in image.walk() {
        let entry = entry?;
        let inode = entry.entry.inode;
        let bytes = match entry.attr.kind {
            FileKind::Regular => read_file(&image, inode, entry.attr.size)?,
            FileKind::Symlink => image.read_link(inode)?,
            _ => Vec::new(),
        };
        content.insert(entry.path, (entry.attr, bytes));
    }
    image.history()?;
    Ok(content)
}

fn read_file(image: &Image, inode: durin_format::InodeNum, size: u64) -> Result<Vec<u8>> {
    let len = READ_LEN_MAX.min(usize::try_from(size).unwrap_or(READ_LEN_MAX));
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        let read = image.read_at(inode, filled as u64, &mut bytes[filled..])?;
        if read == 0 {
            return Err(Error::corrupt("a file ends before its size"));
        }
        filled += read;
    }
    Ok(bytes)
}

/// Runs the full check as `dwarfsck --check-integrity` does; whether it finds an error.
fn check_finds_fault(bytes: &[u8]) -> bool {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    let Ok(image) = Image::open(source, &ImageOptions::default()) else {
        return true;
    };
    let options = CheckOptions {
        level: CheckLevel::Full,
        workers: 1,
    };
    !image.check(&options, &|_, _| {}).errors.is_empty()
}

/// One damaged image: an error, or the right content, or a fault that the full check finds.
fn judge(what: &str, damaged: &[u8], pristine: &Content, is_checksummed: bool) {
    let start = Instant::now();
    match read_all(damaged) {
        Ok(content) => {
            let is_right = content == *pristine;
            let is_found = is_right || check_finds_fault(damaged);
            assert!(
                is_found || !is_checksummed,
                "{what}: wrong content and the check is silent"
            );
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{what}: an empty message");
            let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Limit];
            let is_clear = kinds.contains(&error.kind()) || error.kind() == ErrorKind::Io;
            assert!(
                is_clear || error.kind() == ErrorKind::NotFound,
                "{what}: {error}"
            );
        }
    }
    assert!(
        start.elapsed() < CASE_TIME_MAX,
        "{what}: {:?}",
        start.elapsed()
    );
}

/// Images since 2.3 are in sections with checksums; in those before, a flipped byte can go unseen.
fn is_checksummed(image: &[u8]) -> bool {
    image
        .get(6..8)
        .is_some_and(|version| version >= &[2, 3][..])
}

#[test]
fn every_truncation_is_an_error() {
    let vectors = require!(Vectors::find());
    in_child("hostile_bytes::every_truncation_is_an_error", || {
        for path in small_images(&vectors) {
            let bytes = std::fs::read(&path).unwrap();
            let pristine = read_all(&bytes).unwrap();
            for len in 0..bytes.len() {
                let what = format!("{} cut to {len}", path.display());
                judge(&what, &bytes[..len], &pristine, is_checksummed(&bytes));
            }
        }
    });
}

#[test]
fn every_corrupt_byte_is_found_or_harmless() {
    let vectors = require!(Vectors::find());
    in_child(
        "hostile_bytes::every_corrupt_byte_is_found_or_harmless",
        || {
            for path in small_images(&vectors) {
                let bytes = std::fs::read(&path).unwrap();
                let pristine = read_all(&bytes).unwrap();
                for offset in 0..bytes.len() {
                    for flip in [0x01, 0x80, 0xff] {
                        let mut damaged = bytes.clone();
                        damaged[offset] ^= flip;
                        let what = format!("{} with {flip:#x} at {offset}", path.display());
                        judge(&what, &damaged, &pristine, is_checksummed(&bytes));
                    }
                }
            }
        },
    );
}

#[test]
fn random_damage_is_survived() {
    let vectors = require!(Vectors::find());
    in_child("hostile_bytes::random_damage_is_survived", || {
        let mut random = Random::new(3);
        for path in small_images(&vectors) {
            let bytes = std::fs::read(&path).unwrap();
            let pristine = read_all(&bytes).unwrap();
            for round in 0..300 {
                let mut damaged = bytes.clone();
                for _ in 0..=random.below(8) {
                    let offset = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                    damaged[offset] = random.next().to_le_bytes()[0];
                }
                let what = format!("{} round {round}", path.display());
                judge(&what, &damaged, &pristine, is_checksummed(&bytes));
            }
        }
    });
}

/// The payload of every section of a checksummed image: offset of the first byte, length.
fn payloads(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    while let Some(len) = bytes.get(offset + 56..offset + 64) {
        let len = usize::try_from(u64::from_le_bytes(len.try_into().unwrap())).unwrap();
        ranges.push(offset + 64..offset + 64 + len);
        offset += 64 + len;
    }
    assert_eq!(offset, bytes.len(), "the sections fill the image");
    ranges
}

#[test]
fn every_flipped_payload_bit_is_detected() {
    let vectors = require!(Vectors::find());
    in_child(
        "hostile_bytes::every_flipped_payload_bit_is_detected",
        || {
            for name in ["one-dir", "rice-1-1-8-128-best"] {
                let bytes = std::fs::read(vectors.image("handmade", name)).unwrap();
                for offset in payloads(&bytes).into_iter().flatten() {
                    for bit in 0..8 {
                        let mut damaged = bytes.clone();
                        damaged[offset] ^= 1 << bit;
                        assert!(check_finds_fault(&damaged), "{name}: bit {bit} at {offset}");
                    }
                }
            }
        },
    );
}

/// Flips bytes behind right checksums, where nothing but the checks of the contents stands guard.
#[test]
fn every_corrupt_byte_under_right_checksums_is_survived() {
    let vectors = require!(Vectors::find());
    in_child(
        "hostile_bytes::every_corrupt_byte_under_right_checksums_is_survived",
        || {
            for name in SEALED_IMAGES {
                let bytes = std::fs::read(vectors.image("handmade", name)).unwrap();
                let pristine = read_all(&bytes).unwrap();
                for payload in payloads(&bytes) {
                    for offset in payload.clone().take(sealed_len_max(&bytes, &payload)) {
                        let flip = [0x01, 0x10, 0xff, 0x80][offset % 4];
                        let mut damaged = bytes.clone();
                        damaged[offset] ^= flip;
                        seal(&mut damaged, &payload);
                        let what = format!("{name} with {flip:#x} at {offset}, sealed");
                        judge(&what, &damaged, &pristine, false);
                        // Whatever the check says, it must come to an end.
                        check_finds_fault(&damaged);
                    }
                }
            }
        },
    );
}

/// Images of plain and packed tables, compressed names, holes, caches, categories, and the codecs.
const SEALED_IMAGES: [&str; 10] = [
    "one-dir",
    "one-link",
    "rice-1-1-8-128-best",
    "flac-8-1-0-0-0-ch2",
    "simple-bytesized",
    "names-fsst",
    "holes-simple",
    "cache",
    "categories",
    "dirs-reverse-packed",
];
/// How much of a payload is damaged: data is long and alike, metadata is where every byte has a meaning.
fn sealed_len_max(image: &[u8], payload: &std::ops::Range<usize>) -> usize {
    const DATA_LEN_MAX: usize = 100;
    const METADATA_LEN_MAX: usize = 3000;
    let header: [u8; 64] = image[payload.start - 64..payload.start].try_into().unwrap();
    let is_data = SectionHeader::parse_v2(&header).unwrap().section_type == SectionType::Block;
    if is_data {
        DATA_LEN_MAX
    } else {
        METADATA_LEN_MAX
    }
}

/// Gives the section with this payload the header that belongs to it.
fn seal(image: &mut [u8], payload: &std::ops::Range<usize>) {
    let header_start = payload.start - 64;
    let raw: [u8; 64] = image[header_start..payload.start].try_into().unwrap();
    let old = SectionHeader::parse_v2(&raw).unwrap();
    let bytes = &image[payload.clone()];
    let number = old.number.unwrap();
    let header = encode_header(number, old.section_type, old.compression, bytes);
    image[header_start..payload.start].copy_from_slice(&header);
}

#[test]
fn the_programs_refuse_damage_too() {
    let vectors = require!(Vectors::find());
    let bytes = std::fs::read(vectors.image("handmade", "rice-1-1-8-128-best")).unwrap();
    let work = work_dir();
    let image = work.path().join("damaged.dwarfs");
    for range in payloads(&bytes) {
        for offset in [range.start, range.start + range.len() / 2, range.end - 1] {
            let mut damaged = bytes.clone();
            damaged[offset] ^= 0x10;
            std::fs::write(&image, &damaged).unwrap();
            assert_check_fails(&image, &format!("a bit at {offset}"));
        }
    }
    for len in (0..bytes.len()).step_by(97) {
        std::fs::write(&image, &bytes[..len]).unwrap();
        assert_check_fails(&image, &format!("cut to {len}"));
    }
}

fn assert_check_fails(image: &Path, what: &str) {
    let run = programs()
        .run("dwarfsck")
        .arg("--check-integrity")
        .arg(image);
    let outcome = run
        .memory_max(MEMORY_BYTES_MAX)
        .time_max(Duration::from_secs(20))
        .output();
    assert_eq!(outcome.code, Some(1), "{what}: {outcome}");
    assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome}");
}
