//! What the reader decodes before it is asked for, of images as they are built.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durin_codec::Spec;
use durin_reader::{CacheOptions, Image, ImageOptions};
use durin_source::MemorySource;
use durin_testkit::random::Random;
use durin_writer::Order;

use crate::harness::{build, options};

const FILES: usize = 100;
const FILE_LEN: usize = 8 << 10;
/// Files of which a byte is read.
const READ: usize = 30;

fn open(bytes: &[u8], follows_walks: bool) -> Image {
    let options = ImageOptions {
        cache: CacheOptions {
            workers: 2,
            follows_walks,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    };
    Image::open(Arc::new(MemorySource::new(bytes.to_vec())), &options).unwrap()
}

/// Reads the first byte of some files, and returns how much was decoded for that.
fn decoded(image: &Image, files: impl Iterator<Item = usize>, at_least: u64) -> u64 {
    for file in files.take(READ) {
        let path = format!("{file:03}");
        let entry = image.resolve(path.as_bytes()).unwrap().unwrap();
        image.read_at(entry.inode, 0, &mut [0]).unwrap();
    }
    // The worker threads come to it when they can.
    let start = Instant::now();
    let bytes = || image.cache().stats().decoded_bytes;
    while bytes() < at_least && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    bytes()
}

#[test]
fn files_in_order_have_those_behind_them_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(5);
    for file in 0..FILES {
        let path = dir.path().join(format!("{file:03}"));
        fs::write(path, random.text(FILE_LEN)).unwrap();
    }
    let mut options = options(dir.path());
    options.order = Order::Path.into();
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    let built = build(&options);

    // A file has blocks of its own.
    let alone = decoded(&open(&built.bytes, false), 0..FILES, 0);
    assert!((1..=(READ * FILE_LEN) as u64).contains(&alone), "{alone}");
    let ahead = decoded(&open(&built.bytes, true), 0..FILES, alone + 1);
    assert!(ahead > alone, "{ahead}, alone {alone}");
    let others = || (0..FILES).rev();
    let alone = decoded(&open(&built.bytes, false), others(), 0);
    let scattered = decoded(&open(&built.bytes, true), others(), 0);
    assert_eq!(scattered, alone);
}
