//! Files of known kinds go where their category does, and come back as they were.

#![expect(
    clippy::big_endian_bytes,
    reason = "formats of files, not of images, may be big-endian"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durin_codec::Spec;
use durin_format::ErrorKind;
use durin_reader::{FileKind, Image, ImageOptions};
use durin_source::MemorySource;
use durin_testkit::random::Random;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use durin_writer::{BuildOptions, Categorizer, CategoryPresets, Order, Stats};

use crate::harness::{Built, Recorder, build, options, put};

fn categorizing(dir: &Path) -> BuildOptions {
    let mut options = options(dir);
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    options.categorize.categorizers = Categorizer::USUAL.to_vec();
    CategoryPresets {
        compression: &mut options.compression,
        order: &mut options.order,
        window_size: &mut options.window_size,
    }
    .apply(5)
    .unwrap();
    options
}

/// A sound of 16 bits with a tone and some noise in it, behind a header.
fn wav(channels: u16, frames: u32, claimed: u32) -> Vec<u8> {
    let frame_len = 2 * channels;
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0".to_vec();
    file.extend(channels.to_le_bytes());
    file.extend([0; 8]);
    file.extend(frame_len.to_le_bytes());
    file.extend([16, 0]);
    file.extend(b"data");
    file.extend(claimed.to_le_bytes());
    let mut noise = Random::new(u64::from(channels));
    for frame in 0..frames {
        for channel in 0..channels {
            let tone = (f64::from(frame) / (20.0 + f64::from(channel))).sin() * 9000.0;
            let sample = tone as i16 + i16::from(noise.bytes(1)[0]);
            file.extend(sample.to_le_bytes());
        }
    }
    file
}

fn fits(pixels: u32) -> Vec<u8> {
    let mut file = Vec::new();
    for card in [
        "SIMPLE  =                    T",
        "BITPIX  =                   16",
        "NAXIS   =                    2",
        &format!("NAXIS1  = {pixels:>20}"),
        "NAXIS2  =                    1",
        "END",
    ] {
        file.extend(format!("{card:<80}").bytes());
    }
    file.resize(2880, b' ');
    let mut noise = Random::new(3);
    for pixel in 0..pixels {
        let value = 400 + pixel as u16 / 16 + u16::from(noise.bytes(1)[0] & 7);
        file.extend((value << 2).to_be_bytes());
    }
    file.resize(file.len().next_multiple_of(2880), 0);
    file
}

fn elf(len: usize) -> Vec<u8> {
    let mut file = b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0".to_vec();
    while file.len() < len {
        file.extend(b"\xE8\x10\x20\x00\x00\x48\x89\xC7");
        file.push(file.len().to_le_bytes()[0]);
    }
    file
}

fn check_files(built: &Built, files: &[(&str, Vec<u8>)]) {
    let found = built.files();
    assert_eq!(found.len(), files.len());
    for (name, content) in files {
        assert!(found[*name] == *content, "{name}");
    }
}

/// Bytes of blocks by the names of their categories.
fn category_bytes(built: &Built) -> BTreeMap<String, u64> {
    let categories = built.image().info().unwrap().categories;
    let named = categories.into_iter();
    named
        .map(|category| (category.name, category.uncompressed_size.unwrap_or(0)))
        .collect()
}

#[test]
fn every_category_gets_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let (sound, image) = (wav(2, 30_000, 120_000), fits(20_000));
    let noise = Random::new(1).bytes(50_000);
    let mut trailed = wav(1, 9_999, 19_998);
    trailed.extend(b"LIST\x04\0\0\0more");
    let files = [
        ("a.wav", sound.clone()),
        ("b.wav", trailed),
        ("copy.wav", sound),
        ("image", image),
        ("noise", noise.clone()),
        ("program", elf(40_000)),
        ("text", b"nothing of the kind ".repeat(2000)),
    ];
    put(
        dir.path(),
        &files
            .each_ref()
            .map(|(name, content)| (*name, &content[..])),
    );
    let mut options = categorizing(dir.path());
    let built = build(&options);
    check_files(&built, &files);
    let bytes = category_bytes(&built);
    assert_eq!(bytes["pcmaudio/waveform"], 120_000 + 19_998);
    assert_eq!(bytes["fits/image"], 40_000);
    assert_eq!(bytes["incompressible"], 50_000);
    assert!(bytes["binary/elf"] <= 40_008, "{bytes:?}");
    // The headers are too little for blocks of their own.
    assert!(!bytes.contains_key("pcmaudio/metadata"), "{bytes:?}");
    let metadata = built.metadata();
    let objects = metadata.category_metadata_json.unwrap();
    assert_eq!(objects.len(), 3, "{objects:?}");

    // Sound and images become smaller than without categories, and what cannot be compressed is stored.
    options.categorize.categorizers.clear();
    let plain = build(&options);
    check_files(&plain, &files);
    assert!(plain.metadata().category_names.is_none());
    assert!(built.bytes.len() < plain.bytes.len() * 9 / 10);
    assert!(
        built
            .bytes
            .windows(1000)
            .any(|window| window == &noise[..1000])
    );
}

/// Whoever starts a program has decoded what lies before it in its blocks.
#[test]
fn blocks_of_programs_that_are_unlike_end_earlier() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(5);
    let mut files = Vec::new();
    for number in 0..24 {
        let text = random.bytes(1560);
        let text = text
            .iter()
            .flat_map(|byte| format!("{byte:02x}").into_bytes());
        let (name, mut content) = if number % 2 == 0 {
            (format!("program{number:02}"), elf(20))
        } else {
            (format!("text{number:02}"), Vec::new())
        };
        content.extend(text);
        files.push((name, content));
    }
    let files: Vec<(&str, Vec<u8>)> = (files.iter())
        .map(|(name, content)| (name.as_str(), content.clone()))
        .collect();
    let of_tree: Vec<(&str, &[u8])> = (files.iter())
        .map(|(name, content)| (*name, &content[..]))
        .collect();
    put(dir.path(), &of_tree);
    let mut options = categorizing(dir.path());
    options.order = Order::Similarity.into();
    options.block_size_bits = 16;
    options.mixed_block_size_bits = 14.into();
    let blocks_of = |options: &BuildOptions| {
        let built = build(options);
        check_files(&built, &files);
        let categories = built.image().info().unwrap().categories;
        let named = categories.into_iter();
        let blocks: BTreeMap<String, u32> = named
            .map(|category| (category.name, category.block_count))
            .collect();
        (blocks["binary/elf"], blocks["<default>"])
    };
    assert_eq!(blocks_of(&options), (3, 3));
    options.mixed_block_size_bits.preset("binary/elf", 12);
    assert_eq!(blocks_of(&options), (12, 3));
    // Who says how large blocks are gets them.
    options.mixed_block_size_bits = 16.into();
    assert_eq!(blocks_of(&options), (1, 1));
    options.mixed_block_size_bits.preset("binary/elf", 99);
    assert!(is_refused(&options));
    options.mixed_block_size_bits = 16.into();
    options.mixed_block_size_bits.preset("binary/coffee", 12);
    assert!(is_refused(&options));
}

/// Whether the options are an error before anything is read.
fn is_refused(options: &BuildOptions) -> bool {
    let (stats, never) = (Stats::default(), AtomicBool::new(false));
    let mut bytes = Vec::new();
    let built = durin_writer::build(options, &mut bytes, &stats, &Recorder::default(), &never);
    assert!(bytes.is_empty());
    built.is_err_and(|error| error.kind() == ErrorKind::InvalidInput)
}

/// Pixels that wander, with noise in the lowest bits; a header before them.
fn pixels(bytes_per_pixel: usize, len: usize, seed: u64) -> Vec<u8> {
    let noise = Random::new(seed).bytes(len);
    let mut values: Vec<i16> = (0..bytes_per_pixel).map(|at| 40 * at as i16).collect();
    for (at, byte) in noise.iter().enumerate() {
        let change = i16::from(byte % 9) - 4;
        values.push((values[at] + change).clamp(0, 255));
    }
    let mut file = b"header".to_vec();
    file.extend(values.into_iter().map(|value| value.to_le_bytes()[0]));
    file
}

#[test]
fn pixels_of_one_size_go_together() {
    let dir = tempfile::tempdir().unwrap();
    let text = b"nothing of the kind ".repeat(2000);
    let files = [
        ("a.raw", pixels(3, 150_000, 1)),
        ("b.raw", pixels(4, 150_000, 2)),
        ("c.raw", pixels(3, 150_000, 3)),
        ("noise", Random::new(4).bytes(50_000)),
        ("program", elf(40_000)),
        ("short", pixels(3, 5000, 5)),
        ("text", text),
    ];
    put(
        dir.path(),
        &files
            .each_ref()
            .map(|(name, content)| (*name, &content[..])),
    );
    let mut options = categorizing(dir.path());
    options.compression = Spec::parse("lzma:level=6:tune").unwrap().into();
    options.block_size_bits = 19;
    let without = build(&options);
    assert!(!category_bytes(&without).contains_key("delta"));
    options.categorize.categorizers = Categorizer::WITH_DELTA.to_vec();
    let built = build(&options);
    check_files(&built, &files);
    let bytes = category_bytes(&built);
    let expected: usize = files[..3].iter().map(|(_, file)| file.len()).sum();
    assert_eq!(bytes["delta"], expected as u64, "{bytes:?}");
    let names = built.metadata().category_names.unwrap();
    let streams = names.iter().filter(|name| **name == b"delta").count();
    assert_eq!(streams, 1, "{names:?}");
    assert!(
        built.bytes.len() < without.bytes.len() * 9 / 10,
        "{} of {}",
        built.bytes.len(),
        without.bytes.len()
    );
}

#[test]
fn any_number_of_threads_and_any_list() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..40_u8 {
        let name = |kind: &str| format!("{}/{kind}{number}", number % 3);
        let noise = Random::new(u64::from(number)).bytes(3000);
        put(
            dir.path(),
            &[
                (
                    &name("sound"),
                    &wav(1 + u16::from(number % 3), 2000, 99_999),
                ),
                (&name("noise"), &noise),
                (&name("elf"), &elf(5000 + usize::from(number))),
                (&name("text"), &[number; 700]),
            ],
        );
    }
    let mut options = categorizing(dir.path());
    let mut lists = vec![Categorizer::USUAL.to_vec()];
    lists.extend(Categorizer::USUAL.map(|one| vec![one]));
    for list in lists {
        options.categorize.categorizers = list;
        (options.workers, options.scanner_workers) = (1, 1);
        let expected = build(&options);
        assert_eq!(expected.files().len(), 160);
        for (workers, scanner_workers) in [(4, 4), (2, 7)] {
            (options.workers, options.scanner_workers) = (workers, scanner_workers);
            assert!(build(&options).bytes == expected.bytes, "{options:?}");
        }
    }
}

#[test]
fn the_first_categorizer_wins() {
    let dir = tempfile::tempdir().unwrap();
    // A program that cannot be compressed.
    let mut program = elf(64);
    program.extend(Random::new(5).bytes(30_000));
    let files = [("program", program)];
    put(dir.path(), &[("program", &files[0].1)]);
    let mut options = categorizing(dir.path());
    options.categorize.hot_paths = BTreeSet::from(["program".into()]);
    use Categorizer::{Binary, Hotness, Incompressible};
    for (list, expected) in [
        (vec![Binary, Incompressible, Hotness], "binary/elf"),
        (vec![Incompressible, Binary], "incompressible"),
        (vec![Hotness, Incompressible], "hotness"),
        (vec![Hotness, Binary], "hotness"),
    ] {
        options.categorize.categorizers = list;
        let built = build(&options);
        check_files(&built, &files);
        let names: Vec<_> = category_bytes(&built).into_keys().collect();
        assert!(
            names.contains(&expected.to_owned()),
            "{expected}: {names:?}"
        );
    }
}

#[test]
fn headers_that_lie() {
    let dir = tempfile::tempdir().unwrap();
    let whole = wav(2, 5000, u32::MAX);
    // Samples of 20 bits whose other bits are not empty: no codec for sound takes them.
    let mut padded = wav(1, 9000, 17_999);
    padded[32] = 3;
    padded[34] = 20;
    let mut many = wav(2, 3000, 12_000);
    many[22] = 0xFF;
    let files = [
        ("many channels", many),
        ("padding", padded),
        ("too long", whole.clone()),
        ("cut", whole[..whole.len() / 2 - 1].to_vec()),
        ("header only", whole[..44].to_vec()),
        ("half a header", whole[..30].to_vec()),
        ("fits cut", fits(5000)[..5760].to_vec()),
        ("fits cut odd", fits(5000)[..6001].to_vec()),
        ("elf cut", elf(1000)[..40].to_vec()),
    ];
    put(
        dir.path(),
        &files
            .each_ref()
            .map(|(name, content)| (*name, &content[..])),
    );
    check_files(&build(&categorizing(dir.path())), &files);
}

#[test]
fn parts_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut mixed = b"some text ".repeat(20_000);
    mixed.truncate(3 << 16);
    mixed.extend(Random::new(9).bytes(2 << 16));
    mixed.extend(b"and more text ".repeat(900));
    let files = [
        ("mixed", mixed.clone()),
        ("text", mixed[..100_000].to_vec()),
    ];
    put(
        dir.path(),
        &files
            .each_ref()
            .map(|(name, content)| (*name, &content[..])),
    );
    // The same with holes.
    let sparse = fs::File::create(dir.path().join("sparse")).unwrap();
    sparse.write_all_at(&mixed, 1 << 20).unwrap();
    sparse.set_len(4 << 20).unwrap();
    let mut holes = vec![0; 4 << 20];
    holes[1 << 20..(1 << 20) + mixed.len()].copy_from_slice(&mixed);
    let mut options = categorizing(dir.path());
    options.categorize.incompressible.fragments = true;
    options.categorize.incompressible.block_size = 1 << 16;
    let built = build(&options);
    let files = [&files[..], &[("sparse", holes)]].concat();
    check_files(&built, &files);
    assert_eq!(category_bytes(&built)["incompressible"], 4 << 16);
}

#[test]
fn names_and_metadata_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("sound", &wav(1, 9000, 18_000))]);
    let mut options = categorizing(dir.path());
    options.category_metadata = false;
    let metadata = build(&options).metadata();
    assert!(metadata.category_names.is_some() && metadata.block_category_metadata.is_none());
    options.category_names = false;
    let metadata = build(&options).metadata();
    assert!(metadata.category_names.is_none() && metadata.block_categories.is_none());
}

#[test]
fn a_category_that_its_codec_cannot_take_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("sound", &wav(2, 9000, 36_000))]);
    let mut options = categorizing(dir.path());
    // That codec wants other metadata.
    options
        .compression
        .set("pcmaudio/waveform", Spec::parse("ricepp").unwrap());
    let built = build(&options);
    assert!(!category_bytes(&built).contains_key("pcmaudio/waveform"));
    // One that takes anything does.
    options
        .compression
        .set("pcmaudio/waveform", Spec::parse("lz4").unwrap());
    options.order.set("pcmaudio/waveform", Order::None);
    let built = build(&options);
    assert_eq!(category_bytes(&built)["pcmaudio/waveform"], 36_000);
}

#[test]
fn as_the_reference_categorizes() {
    let vectors = require!(Vectors::find());
    let path = vectors.image("generated", "cat-l7");
    let source = Arc::new(MemorySource::new(fs::read(path).unwrap()));
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for step in image.walk() {
        let step = step.unwrap();
        let path = dir.path().join(String::from_utf8(step.path).unwrap());
        match step.attr.kind {
            FileKind::Directory => fs::create_dir_all(path).unwrap(),
            FileKind::Regular if step.attr.size < 1 << 20 => {
                let mut data = vec![0; usize::try_from(step.attr.size).unwrap()];
                image.read_at(step.attr.inode, 0, &mut data).unwrap();
                fs::write(path, data).unwrap();
            }
            _ => {}
        }
    }
    let mut options = categorizing(dir.path());
    options.block_size_bits = 14;
    let built = build(&options);
    let layouts = |image: &Image| -> BTreeSet<_> {
        let metadata = image.thaw_metadata().unwrap();
        metadata
            .category_metadata_json
            .unwrap()
            .into_iter()
            .collect()
    };
    assert_eq!(layouts(&built.image()), layouts(&image));
    let found = category_bytes(&built);
    for category in image.info().unwrap().categories {
        if ["pcmaudio/waveform", "fits/image"].contains(&category.name.as_str()) {
            assert_eq!(
                found.get(&category.name).copied(),
                category.uncompressed_size
            );
        }
    }
}
