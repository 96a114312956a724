//! Memory of the cache: shared by images, bounded while blocks are decoded, and given back.

use std::time::{Duration, Instant};

use durin_format::BlockIndex;
use durin_reader::{CacheMemory, CacheOptions, Image, ImageOptions, Tidy, TidyStrategy};
use durin_source::OpenMode;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

const BLOCKS: &str = "lzma-S15";

fn open(vectors: &Vectors, cache: CacheOptions) -> Image {
    let path = vectors.image("generated", BLOCKS);
    let source = durin_source::open(&path, OpenMode::Mmap).unwrap();
    let options = ImageOptions {
        cache,
        ..ImageOptions::default()
    };
    Image::open(source, &options).unwrap()
}

fn read_all(image: &Image) {
    for block in (0..image.block_count()).map(BlockIndex) {
        let len = image.cache().block_len(block).unwrap();
        let mut whole = vec![0; usize::try_from(len).unwrap()];
        image.cache().read(block, 0, &mut whole).unwrap();
    }
}

#[test]
fn images_share_memory() {
    let vectors = require!(Vectors::find());
    let memory = CacheMemory::new(100_000);
    let options = CacheOptions {
        memory: Some(memory.clone()),
        workers: 0,
        ..CacheOptions::default()
    };
    let images = [open(&vectors, options.clone()), open(&vectors, options)];
    let mut most = 0;
    for image in &images {
        read_all(image);
        most = most.max(memory.held_bytes());
    }
    assert!(most > 0 && most <= memory.bytes_max(), "{memory:?}");
    // A block in the making, with its payload and decoder, comes on top.
    let block = 4 * u64::from(images[0].block_size()) + (1 << 17);
    assert!(memory.held_bytes_most() <= memory.bytes_max() + block);
    drop(images);
    assert_eq!(memory.held_bytes(), 0);
}

#[test]
fn what_readers_come_back_to_survives_a_sweep() {
    let vectors = require!(Vectors::find());
    let probe = open(&vectors, CacheOptions::default());
    read_all(&probe);
    let everything = probe.cache().stats().held_bytes;
    let image = open(
        &vectors,
        CacheOptions {
            bytes_max: everything / 2,
            workers: 0,
            ..CacheOptions::default()
        },
    );
    let favourite = |image: &Image| image.cache().read(BlockIndex(0), 0, &mut [0]).unwrap();
    let other = |image: &Image| image.cache().read(BlockIndex(1), 0, &mut [0]).unwrap();
    for _ in 0..3 {
        favourite(&image);
        (0..100).for_each(|_| other(&image));
    }
    read_all(&image);
    let before = image.cache().stats();
    assert!(before.evictions > 0, "{before:?}");
    favourite(&image);
    assert_eq!(image.cache().stats().misses, before.misses);
}

#[test]
fn memory_is_given_back() {
    let vectors = require!(Vectors::find());
    for strategy in [TidyStrategy::Idle, TidyStrategy::Time, TidyStrategy::Swap] {
        let image = open(
            &vectors,
            CacheOptions {
                tidy: Tidy {
                    strategy,
                    interval: Duration::from_millis(10),
                    age_max: Duration::from_millis(30),
                    kept_bytes: 0,
                    release: None,
                },
                workers: 0,
                ..CacheOptions::default()
            },
        );
        read_all(&image);
        let patience = Instant::now();
        let limit = Duration::from_secs(if strategy == TidyStrategy::Swap {
            1
        } else {
            30
        });
        while image.cache().stats().held_bytes > 0 && patience.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        let held = image.cache().stats().held_bytes;
        // Nothing of a test is swapped out, as a rule.
        assert_eq!(held == 0, strategy != TidyStrategy::Swap, "{strategy:?}");
        read_all(&image);
    }
}
