//! Which blocks the reader holds, and how, of images as they are built.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use durin_codec::Spec;
use durin_reader::{
    BlockBytes, CacheOptions, CacheStats, Filling, Image, ImageOptions, Loan, ReadTarget,
};
use durin_source::MemorySource;
use durin_testkit::random::Random;

use crate::harness::{build, options};

const BLOCK_BITS: u32 = 20;
const BLOCK_LEN: u64 = 1 << BLOCK_BITS;
const LEN: usize = 80 << 20;

/// An image of the tree, in blocks of a mebibyte. No thread decodes ahead.
fn image(dir: &Path, cache: CacheOptions) -> Image {
    let mut options = options(dir);
    options.block_size_bits = BLOCK_BITS;
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    let options_of_image = ImageOptions {
        cache: CacheOptions {
            workers: 0,
            ..cache
        },
        ..ImageOptions::default()
    };
    let bytes = build(&options).bytes;
    Image::open(Arc::new(MemorySource::new(bytes)), &options_of_image).unwrap()
}

/// An image whose cache lets go what has been read.
fn image_let_go(dir: &Path, lets_go: bool) -> Image {
    let cache = CacheOptions {
        lets_go,
        ..CacheOptions::default()
    };
    image(dir, cache)
}

/// Text in which no long part comes twice.
fn text() -> Vec<u8> {
    let words = Random::new(11).text(64 << 10);
    let mut random = Random::new(12);
    let mut text = Vec::with_capacity(LEN);
    while text.len() < LEN {
        let at = usize::try_from(random.below(65_000)).unwrap();
        text.extend_from_slice(&words[at..at + 40]);
    }
    text.truncate(LEN);
    text
}

/// Reads at random places of a file and compares; returns what the cache did for that.
fn read_at_random(image: &Image, name: &str, expected: &[u8], reads: u32) -> CacheStats {
    let entry = image.resolve(name.as_bytes()).unwrap().unwrap();
    let mut random = Random::new(13);
    for _ in 0..reads {
        let offset = random.below(expected.len() as u64 - 4096);
        let mut buf = [0; 4096];
        let len = image.read_at(entry.inode, offset, &mut buf).unwrap();
        let expected = &expected[usize::try_from(offset).unwrap()..][..len];
        assert_eq!(buf[..len], *expected, "{name} {offset}");
    }
    image.cache().stats()
}

/// Reads a file from front to back and compares it; returns the most that the cache held meanwhile.
fn read(image: &Image, name: &str, expected: &[u8]) -> u64 {
    let entry = image.resolve(name.as_bytes()).unwrap().unwrap();
    let mut buf = vec![0; 300_000];
    let mut offset = 0;
    while offset < expected.len() {
        let len = match image
            .read_ready(
                entry.inode,
                offset as u64,
                buf.len(),
                &mut Filling(&mut buf),
            )
            .unwrap()
        {
            Some(len) => len,
            None => image.read_at(entry.inode, offset as u64, &mut buf).unwrap(),
        };
        assert_eq!(
            buf[..len],
            expected[offset..offset + len],
            "{name} {offset}"
        );
        offset += len;
    }
    image.cache().memory().held_bytes_most()
}

/// Keeps what it is lent.
#[derive(Default)]
struct Borrower {
    copied: Vec<u8>,
    lent: Vec<BlockBytes>,
}

impl ReadTarget for Borrower {
    fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.copied.len();
        self.copied.resize(start + len, 0);
        &mut self.copied[start..]
    }

    fn lend(&mut self, loan: &Loan<'_>) -> bool {
        self.lent.push(loan.take());
        true
    }
}

fn joined(parts: &[BlockBytes]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_vec()).collect()
}

#[test]
fn what_is_lent_stays_as_it_is_while_the_cache_reads_on() {
    const PART: usize = 1 << 19;
    let dir = tempfile::tempdir().unwrap();
    let text = text();
    fs::write(dir.path().join("a"), &text).unwrap();
    let image = image_let_go(dir.path(), true);
    let entry = image.resolve(b"a").unwrap().unwrap();
    let mut kept = Vec::new();
    for offset in (0..LEN).step_by(PART) {
        let mut target = Borrower::default();
        let len = image.read_to(entry.inode, offset as u64, PART, &mut target);
        assert_eq!(len.unwrap(), PART);
        let lent: usize = target.lent.iter().map(|bytes| bytes.len()).sum();
        assert_eq!(lent + target.copied.len(), PART);
        if target.copied.is_empty() {
            kept.push((offset, joined(&target.lent), target.lent));
        }
    }
    // The first half of a block is read before the second has been decoded.
    assert!(kept.len() >= LEN / PART / 3, "{}", kept.len());
    for (offset, then, lent) in kept {
        assert!(then == text[offset..][..PART], "{offset}");
        assert!(joined(&lent) == then, "{offset}: changed later");
    }
}

#[test]
fn a_file_that_is_streamed_takes_a_part_of_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let text = text();
    fs::write(dir.path().join("a"), &text).unwrap();
    let kept = read(&image_let_go(dir.path(), false), "a", &text);
    assert!(kept >= LEN as u64, "{kept}");
    let image = image_let_go(dir.path(), true);
    let held = read(&image, "a", &text);
    // Nobody looks before 32 MiB have been decoded.
    assert!(held <= (36 << 20) + 2 * BLOCK_LEN, "{held}");
    assert_eq!(image.cache().stats().decoded_bytes, LEN as u64);
    // Somebody without the kernel's cache reads it again.
    read(&image, "a", &text);
    let again = image.cache().stats().decoded_bytes - LEN as u64;
    assert!((LEN as u64 / 2..=LEN as u64).contains(&again), "{again}");
}

#[test]
fn what_another_file_has_there_too_stays() {
    let dir = tempfile::tempdir().unwrap();
    let text = text();
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(name), &text).unwrap();
    }
    let image = image_let_go(dir.path(), true);
    for name in ["a", "b", "c"] {
        read(&image, name, &text);
    }
    assert_eq!(image.cache().stats().decoded_bytes, LEN as u64);
}

#[test]
fn readers_who_come_back_find_blocks_packed() {
    let dir = tempfile::tempdir().unwrap();
    let text = text();
    fs::write(dir.path().join("a"), &text).unwrap();
    let cache = CacheOptions {
        bytes_max: LEN as u64 * 7 / 8,
        ..CacheOptions::default()
    };
    let image = image(dir.path(), cache);
    let stats = read_at_random(&image, "a", &text, 5000);
    assert!(stats.packed_bytes > 0, "{stats:?}");
    // An eighth of the reads would decode half of a block each.
    assert!(stats.decoded_bytes < 3 * LEN as u64, "{stats:?}");
    let held = image.cache().memory().held_bytes_most();
    assert!(held <= LEN as u64 * 7 / 8 + 4 * BLOCK_LEN, "{held}");
    // They are read in order as well as before.
    read(&image, "a", &text);
    let image = image_let_go(dir.path(), true);
    assert_eq!(read_at_random(&image, "a", &text, 500).packed_bytes, 0);
}

#[test]
fn packing_that_does_no_good_ends() {
    let dir = tempfile::tempdir().unwrap();
    let text = text();
    fs::write(dir.path().join("a"), &text).unwrap();
    let cache = CacheOptions {
        bytes_max: LEN as u64 / 16,
        ..CacheOptions::default()
    };
    let stats = read_at_random(&image(dir.path(), cache), "a", &text, 1000);
    assert!(stats.packed_bytes > 0, "{stats:?}");
    assert!(stats.packed_bytes < stats.decoded_bytes / 4, "{stats:?}");
}
