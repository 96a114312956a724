//! zip, mtree and raw; compression; threads and damage.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use durin_extract::{ArchiveFormat, ArchiveOptions, ExtractOptions, Filter, PatternSet};
use durin_reader::{Image, ImageOptions};
use durin_source::MemorySource;
use durin_testkit::manifest::ManifestEntry;
use durin_testkit::require;
use durin_testkit::run::Run;
use durin_testkit::skip::has_program;
use durin_testkit::tree::Kind;
use durin_testkit::vectors::Vectors;

use super::{Kept, every_image, write, write_as};
use crate::synthetic::{Child, Tree};
use crate::{lenient, open};

const ZIP: Kept = Kept {
    mtime_ns: 1_000_000_000,
    sockets: false,
    links: false,
    holes: false,
    nodes: false,
    dir_times: false,
    devices: false,
    names: true,
};

fn unzip(archive: &Path, target: &Path) -> Run {
    let run = Run::new("unzip").args(["-q", "-X", "-K", "-o"]);
    run.arg(archive).arg("-d").arg(target)
}

fn bsdtar(archive: &Path, target: &Path) -> Run {
    let run = Run::new("bsdtar").args(["--numeric-owner", "-xpf"]);
    run.arg(archive).arg("-C").arg(target)
}

#[test]
fn zip() {
    if has_program("bsdtar") {
        every_image(ArchiveFormat::Zip, "zip", ZIP, bsdtar);
    }
    if has_program("unzip") {
        every_image(ArchiveFormat::Zip, "zip", ZIP, unzip);
    }
}

/// Takes a line of mtree apart: the path, and what is said of it.
fn parse(line: &str) -> (Vec<u8>, BTreeMap<&str, &str>) {
    let mut words = line.split(' ');
    let path = unquoted(words.next().unwrap());
    let keys = words.map(|word| word.split_once('=').unwrap()).collect();
    (path.strip_prefix(b"./").unwrap_or_default().to_vec(), keys)
}

fn unquoted(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.bytes().next() {
        if first == b'\\' {
            bytes.push(u8::from_str_radix(&rest[1..4], 8).unwrap());
            rest = &rest[4..];
        } else {
            bytes.push(first);
            rest = &rest[1..];
        }
    }
    bytes
}

fn check_line(keys: &BTreeMap<&str, &str>, entry: &ManifestEntry) {
    let kind = match entry.kind {
        Kind::File => "file",
        Kind::Directory => "dir",
        Kind::Symlink => "link",
        Kind::CharDevice => "char",
        Kind::BlockDevice => "block",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
    };
    assert_eq!(keys["type"], kind);
    assert_eq!(keys["mode"], format!("{:04o}", entry.mode & 0o7777));
    assert_eq!(keys["uid"], entry.uid.to_string());
    assert_eq!(keys["gid"], entry.gid.to_string());
    let time = format!("{}.{:09}", entry.mtime.0, entry.mtime.1);
    assert_eq!(keys["time"], time);
    if entry.kind == Kind::File {
        assert_eq!(keys["size"], entry.size.unwrap().to_string());
        let digest: String = entry
            .sha256
            .iter()
            .flatten()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(keys["sha256digest"], digest);
    }
    if let Some(target) = &entry.target {
        assert_eq!(unquoted(keys["link"]), *target);
    }
}

#[test]
fn mtree() {
    let vectors = require!(Vectors::find());
    for path in vectors.with_manifest() {
        if path.ends_with("huge-holes-S14.dwarfs") {
            continue;
        }
        let manifest = Vectors::manifest(&path);
        let mut text = Vec::new();
        let image = open(&path).unwrap();
        let outcome = write(
            &image,
            ArchiveFormat::Mtree,
            &mut text,
            &ExtractOptions::default(),
        );
        outcome.result.unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines: BTreeMap<_, _> = text.lines().skip(1).map(parse).collect();
        for entry in &manifest.entries {
            let keys = lines.remove(&entry.path).unwrap();
            check_line(&keys, entry);
        }
        assert!(lines.is_empty());
    }
}

#[test]
fn raw_is_one_file() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("generated", "default-l7-S16")).unwrap();
    let manifest = Vectors::manifest(&vectors.image("generated", "default-l7-S16"));
    let file = manifest
        .entries
        .iter()
        .filter(|entry| entry.kind == Kind::File && entry.path.is_ascii())
        .max_by_key(|entry| entry.size)
        .unwrap();
    let pattern = |pattern: &str| ExtractOptions {
        pattern: Some(PatternSet::parse(&[pattern]).unwrap()),
        ..ExtractOptions::default()
    };
    let path = String::from_utf8(file.path.clone()).unwrap();
    let mut content = Vec::new();
    let outcome = write(&image, ArchiveFormat::Raw, &mut content, &pattern(&path));
    outcome.result.unwrap();
    assert_eq!(content.len() as u64, file.size.unwrap());
    let refused = write(&image, ArchiveFormat::Raw, &mut Vec::new(), &pattern("**"));
    assert!(refused.result.unwrap_err().to_string().contains("several"));
    let nothing = write(
        &image,
        ArchiveFormat::Raw,
        &mut Vec::new(),
        &pattern("none"),
    );
    assert!(nothing.result.is_err());
}

#[test]
fn compressed_archives_are_the_same_inside() {
    use durin_codec::StreamFormat;
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("generated", "default-l7-S16")).unwrap();
    let mut plain = Vec::new();
    let options = ExtractOptions::default();
    write(&image, ArchiveFormat::Pax, &mut plain, &options)
        .result
        .unwrap();
    for (format, tool) in [
        (StreamFormat::Gzip, "gzip"),
        (StreamFormat::Bzip2, "bzip2"),
        (StreamFormat::Xz, "xz"),
        (StreamFormat::Zstd, "zstd"),
        (StreamFormat::Lz4, "lz4"),
    ] {
        let mut made = Vec::new();
        for threads in [1, 3] {
            let mut out = Vec::new();
            let archive = ArchiveOptions {
                filters: vec![Filter {
                    format,
                    level: Some(1),
                    threads,
                }],
                ..ArchiveOptions::new(ArchiveFormat::Pax)
            };
            write_as(&image, &archive, &mut out, &options)
                .result
                .unwrap();
            made.push(out);
        }
        assert!(made[0] == made[1], "{tool}: the number of threads shows");
        if has_program(tool) {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("a");
            fs::write(&file, &made[0]).unwrap();
            let run = Run::new(tool).args(["-d", "-c"]).arg(&file).succeed();
            assert!(run.stdout == plain, "{tool}");
        }
    }
}

#[test]
fn neither_threads_nor_memory_change_a_byte() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("generated", "lzma-S15")).unwrap();
    for format in [
        ArchiveFormat::Gnutar,
        ArchiveFormat::CpioNewc,
        ArchiveFormat::Mtree,
    ] {
        let mut made = Vec::new();
        for (disk_writers, memory) in [(1, 64 << 20), (7, 64 << 20), (2, 1)] {
            let options = ExtractOptions {
                disk_writers,
                memory,
                ..ExtractOptions::default()
            };
            let mut out = Vec::new();
            write(&image, format, &mut out, &options).result.unwrap();
            made.push(out);
        }
        assert!(made.iter().all(|archive| *archive == made[0]), "{format:?}");
    }
}

/// A file of three pieces and a bit that can be compressed, though not as zeros can.
fn in_pieces() -> Tree {
    let words = (0_u32..).flat_map(|n| (n.wrapping_mul(n) % 1009).to_string().into_bytes());
    Tree {
        dirs: vec![vec![
            ("large".to_owned(), Child::File(0)),
            ("soft".to_owned(), Child::Link("elsewhere")),
        ]],
        files: vec![words.take((3 << 20) + 100).collect()],
    }
}

#[test]
fn neither_threads_nor_memory_change_a_byte_of_files_in_pieces() {
    let image = in_pieces().open().unwrap();
    for zip_level in [Some(6), None] {
        let archive = ArchiveOptions {
            zip_level,
            ..ArchiveOptions::new(ArchiveFormat::Zip)
        };
        let made = [
            (1, 64 << 20),
            (5, 64 << 20),
            (6, 64 << 20),
            (8, 64 << 20),
            (40, 64 << 20),
            (2, 8 << 20),
            (8, 2 << 20),
            (8, 1),
        ];
        let mut made = made.into_iter().map(|(disk_writers, memory)| {
            let options = ExtractOptions {
                disk_writers,
                memory,
                ..ExtractOptions::default()
            };
            let mut out = Vec::new();
            let written = write_as(&image, &archive, &mut out, &options);
            assert_eq!(written.result.unwrap().files, 1);
            (out, disk_writers, memory)
        });
        let (first, ..) = made.next().unwrap();
        for (other, disk_writers, memory) in made {
            assert!(other == first, "{disk_writers} threads, {memory} bytes");
        }
    }
}

#[test]
fn damaged_files_in_pieces_are_left_out_before_anything_is_written_of_them() {
    let mut bytes = in_pieces().build();
    bytes[1000] ^= 1;
    let source = std::sync::Arc::new(MemorySource::new(bytes));
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    for format in [ArchiveFormat::Zip, ArchiveFormat::Pax, ArchiveFormat::Mtree] {
        let mut out = Vec::new();
        let outcome = write(&image, format, &mut out, &lenient());
        assert_eq!(outcome.result.unwrap().errors, 1, "{format:?}");
        let [message] = &outcome.messages[..] else {
            panic!("{:?}", outcome.messages);
        };
        assert!(message.contains("block 0"), "{message}");
        assert!(!out.windows(5).any(|name| name == b"large"), "{format:?}");
    }
}

#[test]
fn damaged_files_are_left_out_whole() {
    let vectors = require!(Vectors::find());
    let path = vectors.image("generated", "default-l7-S16");
    let good = open(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let section = good.sections()[0];
    bytes[usize::try_from(section.payload_offset).unwrap() + 10] ^= 1;
    let source = std::sync::Arc::new(MemorySource::new(bytes));
    let damaged = Image::open(source, &ImageOptions::default()).unwrap();
    let mut out = Vec::new();
    assert!(
        write(
            &damaged,
            ArchiveFormat::Mtree,
            &mut out,
            &ExtractOptions::default()
        )
        .result
        .is_err()
    );
    let options = lenient();
    let mut found = Vec::new();
    let outcome = write(&damaged, ArchiveFormat::Mtree, &mut found, &options);
    assert_eq!(
        outcome.result.unwrap().errors,
        outcome.messages.len() as u64
    );
    assert!(!outcome.messages.is_empty());
    let mut all = Vec::new();
    write(&good, ArchiveFormat::Mtree, &mut all, &options)
        .result
        .unwrap();
    let lines = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text)
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let (found, all) = (lines(&found), lines(&all));
    assert!(found.len() < all.len() && found.iter().all(|line| all.contains(line)));
    for message in &outcome.messages {
        assert!(message.contains("block 0"), "{message}");
    }
}
