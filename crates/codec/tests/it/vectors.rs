//! The images of other programs: each block decodes, and hostile ones do what their list says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use durin_codec::{Decoder, decompress};
use durin_format::section::{CompressionType, SectionType};
use durin_format::{Error, Result};

/// More than any of the images has in a block or in metadata.
const OUTPUT_MAX: u64 = 64 << 20;

fn vectors() -> Option<PathBuf> {
    let path = std::env::var_os("DURIN_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/format/vectors/public"),
        PathBuf::from,
    );
    if path.is_dir() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "no test vectors at {}",
        path.display()
    );
    eprintln!("SKIPPED: no test vectors at {}", path.display());
    None
}

fn images(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut images: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "dwarfs")
        })
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    images.sort();
    images
}

/// The sections of an image: enough of a reader for whole images of either version.
fn sections(image: &[u8]) -> Vec<(SectionType, CompressionType, &[u8])> {
    let u16_at = |at: usize| u16::from_le_bytes(image[at..at + 2].try_into().unwrap());
    let mut start = find(image, b"DWARFS\x02", 0).unwrap();
    let mut sections = Vec::new();
    if image[start + 7] < 2 {
        start += 8;
        while start + 8 <= image.len() {
            let len = u32::from_le_bytes(image[start + 4..start + 8].try_into().unwrap()) as usize;
            let compression = CompressionType::from(u16::from(image[start + 2]));
            let payload = &image[start + 8..start + 8 + len];
            sections.push((SectionType::from(u16_at(start)), compression, payload));
            start += 8 + len;
        }
        return sections;
    }
    // A header in front may hold the magic by chance: the first section has number 0 and another follows it.
    loop {
        let len = v2_len(image, start);
        if len.is_some_and(|len| {
            image
                .get(start + 64 + len..)
                .is_some_and(|b| b.starts_with(b"DWARFS"))
        }) {
            break;
        }
        start = find(image, b"DWARFS\x02", start + 1).unwrap();
    }
    while let Some(len) = v2_len(image, start) {
        let Some(payload) = image.get(start + 64..start + 64 + len) else {
            break;
        };
        let kind = SectionType::from(u16_at(start + 0x34));
        sections.push((kind, CompressionType::from(u16_at(start + 0x36)), payload));
        start += 64 + len;
    }
    sections
}

fn v2_len(image: &[u8], start: usize) -> Option<usize> {
    let header = image.get(start..start + 64)?;
    let len = u64::from_le_bytes(header[0x38..].try_into().unwrap());
    usize::try_from(len).ok().filter(|len| *len <= image.len())
}

fn find(image: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let place = image[from..]
        .windows(needle.len())
        .position(|bytes| bytes == needle)?;
    Some(from + place)
}

/// Decodes at once and in steps.
fn decode(kind: CompressionType, payload: &[u8]) -> Result<Vec<u8>> {
    let whole = decompress(kind, payload, OUTPUT_MAX)?;
    let mut decoder = Decoder::new(kind, payload, OUTPUT_MAX)?;
    let mut out = Vec::new();
    while out.len() < whole.len() {
        let want = out.len() + 30_011;
        decoder.decode_to(payload, &mut out, want)?;
    }
    assert!(out == whole, "steps give other bytes");
    Ok(whole)
}

/// The SHA-256 of the contents of each regular file of an image, by the list beside it.
///
/// Whole files can be compared where each is one piece of a block, which those of the codec grids are.
fn files_of(list: &Path) -> Vec<(u64, String)> {
    let list: serde_json::Value = serde_json::from_slice(&fs::read(list).unwrap()).unwrap();
    list["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["type"] == "file" || entry["sha256"].is_string())
        .map(|entry| {
            let sha256 = entry["sha256"].as_str().unwrap().to_owned();
            (entry["size"].as_u64().unwrap(), sha256)
        })
        .collect()
}

#[test]
fn every_section_of_good_images_decodes() {
    let Some(vectors) = vectors() else { return };
    let mut counts = BTreeMap::new();
    for folder in ["good", "generated", "handmade"] {
        for (name, image) in images(&vectors.join(folder)) {
            for (number, (kind, compression, payload)) in sections(&image).into_iter().enumerate() {
                let out = decode(compression, payload)
                    .unwrap_or_else(|error| panic!("{name}, section {number}: {error}"));
                assert!(!out.is_empty() || payload.is_empty(), "{name}");
                *counts.entry((kind, compression)).or_insert(0) += 1;
            }
        }
    }
    for compression in [
        CompressionType::None,
        CompressionType::Lzma,
        CompressionType::Zstd,
        CompressionType::Lz4,
        CompressionType::Brotli,
        CompressionType::Flac,
        CompressionType::Ricepp,
    ] {
        let count = counts.get(&(SectionType::Block, compression));
        assert!(
            count.is_some_and(|count| *count > 0),
            "no {compression:?} block: {counts:?}"
        );
    }
}

/// Blocks of the grids of FLAC and RICEPP parameters are one file each, whose checksum is known.
#[test]
fn sample_codecs_give_the_right_bytes() {
    let Some(vectors) = vectors() else { return };
    let mut checked = 0;
    for (name, image) in images(&vectors.join("handmade")) {
        if !name.starts_with("flac-") && !name.starts_with("rice-") {
            continue;
        }
        let files = files_of(&vectors.join("handmade").join(format!("{name}.json")));
        for (kind, compression, payload) in sections(&image) {
            if kind != SectionType::Block {
                continue;
            }
            let out = decode(compression, payload).unwrap();
            let sum = sha256(&out);
            let known = files
                .iter()
                .any(|(size, sha256)| (*size, sha256) == (out.len() as u64, &sum));
            assert!(known, "{name}: {} bytes with SHA-256 {sum}", out.len());
            checked += 1;
        }
    }
    assert!(checked >= 26, "{checked} blocks");
}

fn sha256(data: &[u8]) -> String {
    use sha2::Digest;
    use std::fmt::Write;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(data) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn hostile_payloads_do_what_their_list_says() {
    let Some(vectors) = vectors() else { return };
    let list: Vec<serde_json::Value> =
        serde_json::from_slice(&fs::read(vectors.join("evil/evil.json")).unwrap()).unwrap();
    let codec = ["lz4-", "zstd-", "xz-", "brotli-", "flac-", "rice-", "comp-"];
    let mut checked = 0;
    for (name, image) in images(&vectors.join("evil")) {
        if !codec.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let expectation = list
            .iter()
            .find(|entry| entry["image"] == name.as_str())
            .unwrap();
        let blocks: Vec<Result<Vec<u8>>> = sections(&image)
            .into_iter()
            .filter(|(kind, ..)| *kind == SectionType::Block)
            .map(|(_, compression, payload)| decode(compression, payload))
            .collect();
        let errors: Vec<&Error> = blocks
            .iter()
            .filter_map(|block| block.as_ref().err())
            .collect();
        match expectation["expect"].as_str().unwrap() {
            "ok" => assert!(errors.is_empty(), "{name}: {errors:?}"),
            "read" => assert!(!errors.is_empty(), "{name}: nothing wrong"),
            "lenient" => {}
            other => panic!("{name}: {other}"),
        }
        checked += 1;
    }
    assert!(checked >= 25, "{checked} images");
}

/// No section of a damaged image may do more than fail; what `sections` cannot follow is left to the reader's tests.
#[test]
fn damaged_images_are_survived() {
    let Some(vectors) = vectors() else { return };
    for (_, image) in images(&vectors.join("badfs")) {
        let mut start = 8;
        while let Some(header) = image.get(start..start + 8) {
            let len = u32::from_le_bytes(header[4..].try_into().unwrap()) as usize;
            let end = image.len().min(start + 8 + len);
            let compression = CompressionType::from(u16::from(header[2]));
            drop(decode(compression, &image[start + 8..end]));
            start = start + 8 + len;
        }
    }
}
