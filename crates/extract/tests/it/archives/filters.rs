//! Every image in every format with every filter, unpacked by the filter's own program: `cargo xtask archives`.

use std::fs;
use std::path::Path;
use std::process::Command;

use durin_codec::StreamFormat;
use durin_extract::{ArchiveFormat, ArchiveOptions, ExtractOptions, Filter};
use durin_reader::Image;
use durin_testkit::vectors::Vectors;

use super::{has, write_as};
use crate::open;

const FORMATS: [ArchiveFormat; 9] = [
    ArchiveFormat::Pax,
    ArchiveFormat::PaxRestricted,
    ArchiveFormat::Gnutar,
    ArchiveFormat::Ustar,
    ArchiveFormat::V7,
    ArchiveFormat::CpioOdc,
    ArchiveFormat::CpioNewc,
    ArchiveFormat::Zip,
    ArchiveFormat::Mtree,
];

const FILTERS: [(StreamFormat, &str); 5] = [
    (StreamFormat::Gzip, "gzip"),
    (StreamFormat::Bzip2, "bzip2"),
    (StreamFormat::Xz, "xz"),
    (StreamFormat::Zstd, "zstd"),
    (StreamFormat::Lz4, "lz4"),
];

/// Archives longer than this, most of them of holes, are made as pax only, where holes take nothing.
const LEN_MAX: u64 = 8 << 20;

#[test]
#[ignore = "some minutes; cargo xtask archives"]
fn every_image_in_every_format_with_every_filter() {
    let vectors = durin_testkit::require!(Vectors::find());
    let filters: Vec<_> = FILTERS.into_iter().filter(|(_, name)| has(name)).collect();
    let images = vectors.with_manifest();
    let mut count = 0;
    for path in &images {
        let space: u64 = Vectors::manifest(path)
            .entries
            .iter()
            .filter_map(|entry| entry.size)
            .sum();
        let image = open(path).unwrap();
        for format in FORMATS {
            if space > LEN_MAX && format != ArchiveFormat::Pax {
                continue;
            }
            let name = format!("{} as {format:?}", path.display());
            let plain = archive(&image, format, Vec::new(), &name);
            for (filter, program) in &filters {
                let filtered = archive(&image, format, vec![*filter], &name);
                assert_eq!(unpacked(program, &filtered), plain, "{name}, {program}");
                count += 1;
            }
        }
        let both = vec![StreamFormat::Zstd, StreamFormat::Gzip];
        let name = path.display().to_string();
        let plain = archive(&image, ArchiveFormat::Pax, Vec::new(), &name);
        let twice = archive(&image, ArchiveFormat::Pax, both, &name);
        // The first filter is the innermost.
        let inner = unpacked("gzip", &twice);
        assert_eq!(unpacked("zstd", &inner), plain, "{name}: two filters");
    }
    assert!(count >= images.len(), "{count} archives with a filter");
}

fn archive(
    image: &Image,
    format: ArchiveFormat,
    filters: Vec<StreamFormat>,
    name: &str,
) -> Vec<u8> {
    let mut options = ArchiveOptions::new(format);
    let filter = |format| Filter {
        format,
        level: Some(1),
        threads: 0,
    };
    options.filters = filters.into_iter().map(filter).collect();
    // Names too long for a format are told and left out.
    let lenient = ExtractOptions {
        continue_on_error: true,
        ..ExtractOptions::default()
    };
    let mut bytes = Vec::new();
    let outcome = write_as(image, &options, &mut bytes, &lenient);
    outcome
        .result
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    bytes
}

/// What the filter's own program makes of it.
fn unpacked(program: &str, bytes: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = &dir.path().join("archive");
    fs::write(path, bytes).unwrap();
    let input = fs::File::open(path).unwrap();
    let output = Command::new(program)
        .args(["-d", "-c"])
        .stdin(input)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    output.stdout
}
