//! Reads at any place by any number of threads give the same bytes, within the bound of the cache.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use durin_format::section::{CompressionType, SectionType};
use durin_format::{BlockIndex, ErrorKind, InodeNum};
use durin_reader::perfmon::{Component, Operation, Perfmon};
use durin_reader::{CacheOptions, FileKind, Filling, Image, ImageOptions, Place};
use durin_source::{MemorySource, OpenMode, Source};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{open_bytes, quick};

fn open(vectors: &Vectors, name: &str, cache: CacheOptions) -> Image {
    let source = durin_source::open(&vectors.image("generated", name), OpenMode::Mmap).unwrap();
    let options = ImageOptions {
        cache,
        ..ImageOptions::default()
    };
    Image::open(source, &options).unwrap()
}

/// All regular files of up to a few megabytes with their contents.
fn files(image: &Image) -> Vec<(InodeNum, Vec<u8>)> {
    image
        .files_in_data_order()
        .unwrap()
        .into_iter()
        .filter_map(|inode| {
            let attr = image.inode_attr(inode).unwrap();
            assert_eq!(attr.kind, FileKind::Regular);
            let mut content = vec![
                0;
                usize::try_from(attr.size)
                    .ok()
                    .filter(|size| *size < 8 << 20)?
            ];
            assert_eq!(
                image.read_at(inode, 0, &mut content).unwrap(),
                content.len()
            );
            Some((inode, content))
        })
        .collect()
}

/// How many blocks a file has something in; `None` if one of them is stored, which is not decoded.
fn compressed_blocks(image: &Image, inode: InodeNum) -> Option<usize> {
    let is_block = |section: &&durin_reader::Section| section.section_type == SectionType::Block;
    let sections: Vec<_> = image.sections().iter().filter(is_block).collect();
    let mut blocks = Vec::new();
    for extent in image.chunks(inode).unwrap() {
        let Place::Data { block, .. } = extent.unwrap().place else {
            continue;
        };
        if is_stored(image, sections[block.0 as usize]) {
            return None;
        }
        blocks.push(block);
    }
    blocks.sort_unstable();
    blocks.dedup();
    Some(blocks.len())
}

fn is_stored(image: &Image, section: &durin_reader::Section) -> bool {
    let number = durin_format::SectionNum(section.number);
    let header = image.section_header(number).unwrap();
    header.compression == CompressionType::None
}

/// A disk that gives nothing for as long as it is told to wait.
#[derive(Debug)]
struct Stalled {
    image: MemorySource,
    waits: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Stalled {
    fn set(&self, waits: bool) {
        *self.waits.lock().unwrap() = waits;
        self.changed.notify_all();
    }
}

impl Source for Stalled {
    fn len(&self) -> u64 {
        self.image.len()
    }

    fn name(&self) -> &'static str {
        "stalled"
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let mut waits = self.waits.lock().unwrap();
        self.waiting
            .fetch_add(usize::from(*waits), Ordering::Relaxed);
        while *waits {
            waits = self.changed.wait(waits).unwrap();
        }
        drop(waits);
        self.image.read_at(offset, buf)
    }
}

#[test]
fn what_is_not_ready_is_told_while_another_thread_waits_for_the_disk() {
    let vectors = require!(Vectors::find());
    let image = std::fs::read(vectors.image("generated", "lzma-S15")).unwrap();
    let source = Arc::new(Stalled {
        image: MemorySource::new(image),
        waits: Mutex::new(false),
        changed: Condvar::new(),
        waiting: AtomicUsize::new(0),
    });
    let image = Image::open(Arc::clone(&source) as Arc<dyn Source>, &quick()).unwrap();
    let is_compressed = |inode: &InodeNum| compressed_blocks(&image, *inode) == Some(1);
    let inodes = image.files_in_data_order().unwrap();
    let inode = inodes.into_iter().find(is_compressed).unwrap();
    source.set(true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| image.read_at(inode, 0, &mut [0; 10]).unwrap());
        while source.waiting.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // It would wait for as long as the disk is told to wait, which is until it has returned.
        let mut buf = [0; 10];
        let ready = image.read_ready(inode, 0, 10, &mut Filling(&mut buf));
        source.set(false);
        assert!(matches!(ready, Ok(None)));
        assert!(reader.join().unwrap() > 0);
        let ready = image.read_ready(inode, 0, 10, &mut Filling(&mut buf));
        assert!(matches!(ready, Ok(Some(1..))));
    });
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

#[test]
fn threads_read_the_same_bytes_at_random_places() {
    let vectors = require!(Vectors::find());
    for name in [
        "lzma-S15",
        "brotli-S15",
        "default-l7-S16",
        "null-l0",
        "cat-l7",
        "hollow",
    ] {
        let expected = files(&open(&vectors, name, CacheOptions::default()));
        let bytes_max = 200_000;
        let image = open(
            &vectors,
            name,
            CacheOptions {
                bytes_max,
                workers: 2,
                verify_blocks: true,
                ..CacheOptions::default()
            },
        );
        let reads = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (image, expected, reads) = (&image, &expected, &reads);
                scope.spawn(move || {
                    let mut numbers = Numbers(seed);
                    for _ in 0..1_500 {
                        let (inode, content) = &expected[numbers.below(expected.len())];
                        let offset = numbers.below(content.len() + 10);
                        let mut buf = vec![0xaa; numbers.below(70_000)];
                        let len = image.read_at(*inode, offset as u64, &mut buf).unwrap();
                        let rest = content.get(offset..).unwrap_or_default();
                        assert_eq!(&buf[..len], &rest[..rest.len().min(buf.len())], "{name}");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(reads.into_inner(), 6_000);
        let stats = image.cache().stats();
        // What is being decoded at the moment comes on top: a block for each thread.
        let most = bytes_max + 6 * 3 * u64::from(image.block_size());
        assert!(stats.held_bytes <= most, "{name}: {stats:?}");
        let blocks = image
            .sections()
            .iter()
            .filter(|section| section.section_type == SectionType::Block);
        if !blocks.into_iter().all(|section| is_stored(&image, section)) {
            assert!(stats.hits > 0 && stats.misses > 0, "{name}: {stats:?}");
        }
    }
}

#[test]
fn seeking_agrees_with_the_extents() {
    let vectors = require!(Vectors::find());
    for name in ["hollow", "huge-holes-S14"] {
        let image = open(&vectors, name, CacheOptions::default());
        for inode in image.files_in_data_order().unwrap() {
            let size = image.inode_attr(inode).unwrap().size;
            let extents: Vec<_> = image.chunks(inode).unwrap().map(Result::unwrap).collect();
            let is_hole = |offset| {
                let extent = extents
                    .iter()
                    .rfind(|extent| extent.offset <= offset)
                    .unwrap();
                extent.place == Place::Hole
            };
            assert_eq!(image.seek_data(inode, size).unwrap(), None);
            assert_eq!(image.seek_hole(inode, size).unwrap(), None);
            assert_eq!(image.hole_end(inode, size).unwrap(), None);
            for offset in extents
                .iter()
                .flat_map(|extent| [extent.offset, extent.offset + extent.len - 1])
            {
                let data = image.seek_data(inode, offset).unwrap();
                let hole = image.seek_hole(inode, offset).unwrap().unwrap();
                assert_eq!(data == Some(offset), !is_hole(offset));
                assert_eq!(hole == offset, is_hole(offset));
                assert!(hole == size || is_hole(hole));
                let end = is_hole(offset).then_some(data.unwrap_or(size));
                assert_eq!(image.hole_end(inode, offset).unwrap(), end);
            }
        }
    }
}

#[test]
fn a_block_is_decoded_once_and_only_as_far_as_it_is_read() {
    let vectors = require!(Vectors::find());
    let path = vectors.image("good", "catdata");
    let image = open_bytes(std::fs::read(path).unwrap(), &quick()).unwrap();
    let mut again = 0;
    for block in 0..image.block_count() {
        let block = BlockIndex(block);
        let len = image.cache().block_len(block).unwrap();
        let mut whole = vec![0; usize::try_from(len).unwrap()];
        image.cache().read(block, 0, &mut whole).unwrap();
        let decoded = image.cache().stats().decoded_bytes;
        image.cache().read(block, 0, &mut whole).unwrap();
        again += image.cache().stats().decoded_bytes - decoded;
        let end = u32::try_from(len).unwrap();
        let error = image.cache().read(block, end, &mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("BLOCK"), "{error}");
    }
    assert_eq!(again, 0);
    let none = BlockIndex(image.block_count());
    assert_eq!(
        image.cache().read(none, 0, &mut [0]).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
}

#[test]
fn threads_decode_the_blocks_of_one_read_together() {
    let vectors = require!(Vectors::find());
    let mut tried = 0;
    for name in ["lzma-S15", "brotli-S15", "default-l7-S16"] {
        let expected = files(&open(&vectors, name, CacheOptions::default()));
        for (inode, content) in &expected {
            let perfmon = Arc::new(Perfmon::new(&[Component::BlockCache], false));
            let image = open(
                &vectors,
                name,
                CacheOptions {
                    workers: 2,
                    // Nothing else is decoded ahead then.
                    run_min: 0,
                    whole_permille: 1000,
                    perfmon: Some(Arc::clone(&perfmon)),
                    ..CacheOptions::default()
                },
            );
            let Some(blocks) = compressed_blocks(&image, *inode) else {
                continue;
            };
            let mut buf = vec![0; content.len()];
            image.read_at(*inode, 0, &mut buf).unwrap();
            assert!(buf == *content, "{name}: inode {inode}");
            // Waits for the threads.
            drop(image);
            let ahead = perfmon.figures(Operation::BlockDecodeAhead);
            let ahead = ahead.map_or(0, |figures| figures.count);
            let further = blocks.saturating_sub(1).min(2);
            assert_eq!(ahead, further as u64, "{name}: {inode} in {blocks} blocks");
            tried += u32::from(further == 2);
        }
    }
    assert!(tried >= 3, "{tried} files in three blocks or more");
}

#[test]
fn most_of_a_block_becomes_all_of_it_where_that_fits() {
    let vectors = require!(Vectors::find());
    let bytes = std::fs::read(vectors.image("good", "catdata")).unwrap();
    let image = open_bytes(bytes.clone(), &quick()).unwrap();
    // Long enough for several steps.
    let block_len = |block: &BlockIndex| image.cache().block_len(*block).unwrap();
    let mut blocks = (0..image.block_count()).map(BlockIndex);
    let block = blocks.find(|block| block_len(block) >= 1 << 20);
    let block = block.expect("a large block");
    let len = image.cache().block_len(block).unwrap();
    // How much of the block is decoded when a byte after so many percent of it has been read.
    let decoded = |bytes_max: u64, percent: u64| {
        let mut options = quick();
        options.cache.whole_permille = 600;
        options.cache.bytes_max = bytes_max;
        let image = open_bytes(bytes.clone(), &options).unwrap();
        let offset = u32::try_from(len * percent / 100).unwrap();
        image.cache().read(block, offset, &mut [0]).unwrap();
        image.cache().stats().decoded_bytes
    };
    assert!(decoded(64 * len, 10) < len);
    assert_eq!(decoded(64 * len, 61), len);
    assert!(decoded(len, 61) < len, "it would not stay");
}

#[test]
fn a_damaged_block_gives_the_same_error_each_time() {
    let vectors = require!(Vectors::find());
    for name in ["codec-0", "codec-2"] {
        let mut bytes = std::fs::read(vectors.image("handmade", name)).unwrap();
        let block = open_bytes(bytes.clone(), &quick()).unwrap().sections()[0];
        bytes[usize::try_from(block.payload_offset + block.payload_len / 2).unwrap()] ^= 1;
        let image = open_bytes(bytes, &quick()).unwrap();
        let read = || {
            image
                .cache()
                .read(BlockIndex(0), 0, &mut [0])
                .unwrap_err()
                .to_string()
        };
        let first = read();
        assert!(
            first.starts_with("section 0 (BLOCK) at offset 0: block 0: xxh3 mismatch"),
            "{first}"
        );
        assert_eq!(read(), first, "{name}");
    }
}
