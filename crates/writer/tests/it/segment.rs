//! Repetitions of earlier data are found, in whole builds.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use durin_codec::Spec;
use durin_testkit::random::Random;
use durin_writer::{BuildOptions, Order, Report, SmallTree, Stats};

use crate::harness::{Built, Recorder, build, options, put};

fn searching(dir: &Path) -> BuildOptions {
    let mut options = options(dir);
    options.window_size = 9.into();
    options.window_step = 2.into();
    options.max_lookback_blocks = u32::MAX.into();
    options.block_size_bits = 16;
    options
}

/// Data of which each file has its own mixture, at odd offsets.
fn near_duplicates(dir: &Path, count: usize) -> u64 {
    let mut random = Random::new(31);
    let parts: Vec<_> = (0..4).map(|_| random.bytes(150_000)).collect();
    let mut all = 0;
    for index in 0..count {
        let mut content = random.bytes(1 + 1371 * index % 4095);
        for part in 0..3 {
            content.extend_from_slice(&parts[(index * 3 + part) % 4][index..]);
            content.extend(random.bytes(300));
        }
        all += content.len() as u64;
        put(dir, &[(&format!("{}/file{index}", index % 3), &content)]);
    }
    all
}

fn check_files(built: &Built, dir: &Path) {
    for (name, content) in built.files() {
        assert!(content == fs::read(dir.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn shifted_copies_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let all = near_duplicates(dir.path(), 20);
    let mut options = searching(dir.path());
    for bits in [10, 12, 16, 20, 24] {
        options.block_size_bits = bits;
        let built = build(&options);
        let report = &built.report;
        assert_eq!(report.block_bytes + report.segment_saved_bytes, all);
        assert!(report.block_bytes < 800_000, "2^{bits}: {report:?}");
        check_files(&built, dir.path());
    }
    options.window_size = 0.into();
    assert_eq!(build(&options).report.block_bytes, all);
    options.window_size = 9.into();
    options.max_lookback_blocks = 0.into();
    assert_eq!(build(&options).report.segment_matches, 0);
}

#[test]
fn neither_threads_nor_memory_change_the_image() {
    let dir = tempfile::tempdir().unwrap();
    near_duplicates(dir.path(), 20);
    put(dir.path(), &[("zeros", &vec![0; 3_000_000])]);
    let mut options = searching(dir.path());
    (options.workers, options.scanner_workers) = (1, 1);
    let expected = build(&options).bytes;
    // The lowest limit leaves no memory for earlier blocks, which are then read again.
    for limit in [None, Some(1), Some(32 << 20)] {
        for threads in [1, 3, 8] {
            (options.workers, options.scanner_workers) = (threads, threads);
            options.memory_limit = limit;
            assert!(build(&options).bytes == expected, "{limit:?}, {threads}");
        }
    }
}

#[test]
fn data_between_holes_repeat_too() {
    use std::os::unix::fs::FileExt;

    let dir = tempfile::tempdir().unwrap();
    let data = Random::new(5).bytes(100_000);
    for (name, offset) in [("a", 0), ("b", 1 << 20), ("c", 7_000_000)] {
        let file = fs::File::create(dir.path().join(name)).unwrap();
        file.set_len(10 << 20).unwrap();
        file.write_all_at(&data, offset).unwrap();
        file.write_all_at(&data[1000..50_000], 9 << 20).unwrap();
    }
    let built = build(&searching(dir.path()));
    check_files(&built, dir.path());
    assert!(built.report.block_bytes < 300_000, "{:?}", built.report);
    assert!(built.report.segment_saved_bytes > 300_000);
}

/// Overwrites some files, without a trace in size and time, whenever something of the image is written.
struct Saboteur<'a> {
    dir: &'a Path,
    bytes: Vec<u8>,
    round: Cell<u64>,
}

impl Write for Saboteur<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let round = self.round.replace(self.round.get() + 1);
        for index in (0..30).step_by(3) {
            let path = self.dir.join(format!("{}/file{index}", index % 3));
            let metadata = fs::metadata(&path)?;
            let content = Random::new(round).bytes(metadata.len() as usize);
            fs::write(&path, content)?;
            let file = fs::File::options().write(true).open(&path)?;
            file.set_modified(metadata.modified()?)?;
        }
        self.bytes.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_changes_makes_no_other_wrong() {
    let dir = tempfile::tempdir().unwrap();
    near_duplicates(dir.path(), 30);
    let mut options = searching(dir.path());
    // Small blocks and no memory for them: nearly all comparisons read the input again.
    options.block_size_bits = 14;
    options.memory_limit = Some(1);
    let mut output = Saboteur {
        dir: dir.path(),
        bytes: Vec::new(),
        round: Cell::new(0),
    };
    let (stats, recorder) = (Stats::default(), Recorder::default());
    let never = AtomicBool::new(false);
    durin_writer::build(&options, &mut output, &stats, &recorder, &never).unwrap();
    assert!(stats.reread_grains.get() > 0);
    let built = Built {
        bytes: output.bytes,
        report: Report::default(),
        messages: Vec::new(),
    };
    let files = built.files();
    assert_eq!(files.len(), 30);
    for index in (0..30).filter(|index| index % 3 != 0) {
        let name = format!("{}/file{index}", index % 3);
        assert!(
            files[&name] == fs::read(dir.path().join(&name)).unwrap(),
            "{name}"
        );
    }
}

/// Many small files that could be pieced together from everywhere.
#[test]
fn small_files_touch_few_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(77);
    let parts: Vec<_> = (0..60).map(|_| random.bytes(2000)).collect();
    for index in 0..1500 {
        let mut content = random.bytes(500);
        for _ in 0..4 {
            let part = &parts[random.below(60) as usize];
            content.extend_from_slice(&part[..600 + random.below(1400) as usize]);
        }
        put(
            dir.path(),
            &[(&format!("{}/{index}", index % 10), &content)],
        );
    }
    let built = build(&searching(dir.path()));
    let report = &built.report;
    check_files(&built, dir.path());
    assert!(report.segment_saved_bytes > 500_000, "{report:?}");
    let average = report.small_file_blocks * 100 / report.small_files;
    assert!(average <= 130, "{average} of {report:?}");
}

#[test]
fn a_long_run_of_one_byte_takes_few_chunks() {
    const BLOCK_BITS: u32 = 18;
    const LEN: usize = 24 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mut data = Random::new(3).bytes(100_000);
    data.resize(LEN, 0);
    data.extend(Random::new(4).bytes(100_000));
    fs::write(dir.path().join("disk"), &data).unwrap();
    for window_size in [9, 12] {
        let mut options = searching(dir.path());
        options.block_size_bits = BLOCK_BITS;
        options.window_size = window_size.into();
        options.compression = Spec::parse("lz4").unwrap().into();
        let built = build(&options);
        let image = built.image();
        let inode = image.resolve(b"disk").unwrap().unwrap().inode;
        // A piece of the input begins each mebibyte, and a block each 256 KiB.
        let chunks = image.chunk_count(inode).unwrap() as usize;
        assert!(chunks <= 8 * (LEN >> BLOCK_BITS), "{chunks}");
        assert!(built.files()["disk"] == data);
    }
}

/// Bytes of each block in which files have something.
fn block_lens(built: &Built) -> Vec<u32> {
    let mut lens = Vec::new();
    for chunk in built.metadata().chunks {
        let block = chunk.block as usize;
        lens.resize(lens.len().max(block + 1), 0);
        lens[block] = lens[block].max(chunk.offset + chunk.size);
    }
    lens
}

#[test]
fn trees_with_little_data_have_blocks_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(11);
    let data = random.bytes(40_000);
    put(dir.path(), &[("a", &data), ("same", &data)]);
    let hole = fs::File::create(dir.path().join("hole")).unwrap();
    hole.set_len(1 << 20).unwrap();
    let mut options = searching(dir.path());
    options.block_size_bits = 14;
    let small_tree = SmallTree {
        data_len_max: 50_000,
        block_size_bits: 17,
    };
    let mut block_size = |small_tree| {
        options.small_tree = small_tree;
        let built = build(&options);
        check_files(&built, dir.path());
        let largest = block_lens(&built).into_iter().max();
        assert!(largest <= Some(built.metadata().block_size));
        built.metadata().block_size
    };
    // What is equal counts once, and holes do not count.
    assert_eq!(block_size(Some(small_tree)), 1 << 17);
    assert_eq!(block_size(None), 1 << 14);
    put(dir.path(), &[("b", &random.bytes(10_000))]);
    assert_eq!(block_size(Some(small_tree)), 1 << 17);
    put(dir.path(), &[("c", &random.bytes(1))]);
    assert_eq!(block_size(Some(small_tree)), 1 << 14);
}

#[test]
fn contents_that_are_alike_have_larger_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(9);
    for number in 0..20 {
        put(
            dir.path(),
            &[(&format!("a/unlike{number:02}"), &random.bytes(6300))],
        );
    }
    let base = random.bytes(9000);
    for number in 0..30 {
        let mut like = base.clone();
        like[number * 100..][..100].copy_from_slice(&random.bytes(100));
        put(dir.path(), &[(&format!("b/like{number:02}"), &like)]);
    }
    // In slices, of which each begins a group.
    put(dir.path(), &[("c/large", &random.bytes(1 << 20))]);
    let mut options = searching(dir.path());
    options.window_size = 0.into();
    options.order = Order::Similarity.into();
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    options.mixed_block_size_bits = 14.into();
    let built = build(&options);
    check_files(&built, dir.path());
    let lens = block_lens(&built);
    // Two of the first kind in each, all others in as few as possible.
    assert_eq!(lens[..10], [12_600; 10]);
    let whole = (30 * 9000 + (1 << 20)) / (1 << 16);
    assert_eq!(lens[10..10 + whole], vec![1 << 16; whole]);
    assert_eq!(lens.len(), 10 + whole + 1);

    // Where size counts more than reading, all blocks are full.
    options.compression = Spec::parse("lzma:level=1").unwrap().into();
    let lens = block_lens(&build(&options));
    assert_eq!(lens[0], 63_000);
}
