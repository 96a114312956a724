//! Images in archive formats with filters, unpacked by the filter's own program.
//!
//! Each image in one format with one filter, such that each format meets each filter; `cargo xtask archives` has each
//! image in each format with each filter, which takes minutes.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use durin_codec::StreamFormat;
use durin_extract::{ArchiveFormat, ArchiveOptions, ExtractOptions, Filter};
use durin_format::digest::{Digest, Hasher};
use durin_reader::Image;
use durin_testkit::skip::has_program;
use durin_testkit::vectors::Vectors;

use super::{content_bytes, write_as};
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

const FILTERS: [Program; 5] = [
    (StreamFormat::Gzip, "gzip"),
    (StreamFormat::Bzip2, "bzip2"),
    (StreamFormat::Xz, "xz"),
    (StreamFormat::Zstd, "zstd"),
    (StreamFormat::Lz4, "lz4"),
];

/// Archives of more than this, which are of holes, go through one filter each, the filters taken in turn.
const LEN_MAX: u64 = 1 << 30;

/// Set to this by `cargo xtask archives`.
const ALL: (&str, &str) = ("DURIN_ARCHIVES", "all");

/// A filter and its program.
type Program = (StreamFormat, &'static str);

/// Which archives are made of the image with this number: each format with the filters for it.
fn archives_of(
    number: usize,
    filters: &[Program],
    all: bool,
) -> Vec<(ArchiveFormat, Vec<Program>)> {
    if all {
        return FORMATS.map(|format| (format, filters.to_vec())).to_vec();
    }
    // One further in each round of the formats.
    let (round, place) = (number / FORMATS.len(), number % FORMATS.len());
    let filter = filters[(round + place) % filters.len()];
    vec![(FORMATS[place], vec![filter])]
}

#[test]
fn a_sample_has_each_format_with_each_filter() {
    let images = FORMATS.len() * FILTERS.len();
    for filters in (1..=FILTERS.len()).map(|count| &FILTERS[..count]) {
        let pairs: HashSet<String> = (0..images)
            .flat_map(|number| archives_of(number, filters, false))
            .map(|pair| format!("{pair:?}"))
            .collect();
        assert_eq!(pairs.len(), FORMATS.len() * filters.len(), "{filters:?}");
    }
}

#[test]
fn images_in_every_format_with_every_filter() {
    let vectors = durin_testkit::require!(Vectors::find());
    let filters: Vec<Program> = FILTERS
        .into_iter()
        .filter(|(_, name)| has_program(name))
        .collect();
    if filters.is_empty() {
        return;
    }
    let all = std::env::var(ALL.0).is_ok_and(|value| value == ALL.1);
    let images = vectors.with_manifest();
    assert!(images.len() >= FORMATS.len() * filters.len());
    let rest = Mutex::new(images.iter().enumerate());
    let work = || {
        loop {
            // The lock is given back before the work begins.
            let next = rest.lock().unwrap().next();
            match next {
                Some((number, path)) => {
                    one_image(path, &archives_of(number, &filters, all));
                    if all || number == 0 {
                        two_filters(path, &filters);
                    }
                }
                None => return,
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

fn one_image(path: &Path, archives: &[(ArchiveFormat, Vec<Program>)]) {
    let is_large = content_bytes(&Vectors::manifest(path)) > LEN_MAX;
    let image = open(path).unwrap();
    for (place, (format, filters)) in archives.iter().enumerate() {
        let name = format!("{} as {format:?}", path.display());
        let plain = plain(&image, *format, &name);
        for (number, (filter, program)) in filters.iter().enumerate() {
            if is_large && number != place % filters.len() {
                continue;
            }
            let found = unpacked(&image, *format, &[(*filter, program)], &name);
            assert_eq!(found, plain, "{name}, {program}");
        }
    }
}

/// One filter around the other, if there are programs for both.
fn two_filters(path: &Path, filters: &[Program]) {
    let both = [(StreamFormat::Zstd, "zstd"), (StreamFormat::Gzip, "gzip")];
    if both.iter().all(|wanted| filters.contains(wanted)) {
        let image = open(path).unwrap();
        let name = format!("{}: two filters", path.display());
        let plain = plain(&image, ArchiveFormat::Pax, &name);
        let found = unpacked(&image, ArchiveFormat::Pax, &both, &name);
        assert_eq!(found, plain, "{name}");
    }
}

/// The digest of an archive without filters.
fn plain(image: &Image, format: ArchiveFormat, name: &str) -> Vec<u8> {
    let mut target = Hashing(hasher());
    archive(image, format, &[], name, &mut target);
    target.0.finish()
}

/// The digest of what the filters' own programs make of an archive; nothing of it is kept.
fn unpacked(image: &Image, format: ArchiveFormat, filters: &[Program], name: &str) -> Vec<u8> {
    // The first filter is the innermost.
    let mut children: Vec<Child> = Vec::new();
    for (_, program) in filters.iter().rev() {
        let input = children.last_mut().map_or_else(Stdio::piped, |before| {
            Stdio::from(before.stdout.take().unwrap())
        });
        let child = Command::new(program)
            .args(["-d", "-c"])
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        children.push(child);
    }
    let mut target = children.first_mut().unwrap().stdin.take().unwrap();
    let mut output = children.last_mut().unwrap().stdout.take().unwrap();
    let digest = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut hasher = hasher();
            let mut buffer = vec![0; 256 << 10];
            loop {
                match output.read(&mut buffer).unwrap() {
                    0 => return hasher.finish(),
                    len => hasher.update(&buffer[..len]),
                }
            }
        });
        let formats: Vec<_> = filters.iter().map(|(format, _)| *format).collect();
        archive(image, format, &formats, name, &mut target);
        drop(target);
        reader.join().unwrap()
    });
    for mut child in children {
        assert!(child.wait().unwrap().success(), "{name}, {filters:?}");
    }
    digest
}

fn archive(
    image: &Image,
    format: ArchiveFormat,
    filters: &[StreamFormat],
    name: &str,
    target: &mut dyn Write,
) {
    let mut options = ArchiveOptions::new(format);
    let filter = |format: &StreamFormat| Filter {
        format: *format,
        level: Some(1),
        threads: 0,
    };
    options.filters = filters.iter().map(filter).collect();
    // Names too long for a format are told and left out.
    let lenient = ExtractOptions {
        continue_on_error: true,
        ..ExtractOptions::default()
    };
    let outcome = write_as(image, &options, target, &lenient);
    outcome
        .result
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}

fn hasher() -> Hasher {
    Digest::parse("xxh3-128").unwrap().hasher()
}

struct Hashing(Hasher);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
