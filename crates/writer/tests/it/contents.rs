//! What is stored of files, where and how often.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use durin_format::digest::Digest;
use durin_writer::{BuildOptions, Order};

use crate::harness::{Built, build, options, put};

fn sparse_file(path: &Path, len: u64, data: &[(u64, &[u8])]) {
    let file = File::create(path).unwrap();
    file.set_len(len).unwrap();
    for (offset, bytes) in data {
        file.write_all_at(bytes, *offset).unwrap();
    }
}

#[test]
fn equal_files_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let big = vec![7; 3 << 20];
    let mut other_start = big.clone();
    other_start[0] = 8;
    let mut other_end = big.clone();
    *other_end.last_mut().unwrap() = 8;
    put(
        dir.path(),
        &[
            ("a", b"same"),
            ("b", b"same"),
            ("c", b"diff"),
            ("d", b"longer"),
            ("big1", &big),
            ("big2", &big),
            ("big3", &other_start),
            ("big4", &other_end),
            ("empty1", b""),
            ("empty2", b""),
        ],
    );
    let built = build(&options(dir.path()));
    let report = &built.report;
    assert_eq!((report.duplicate_files, report.contents), (2, 6));
    assert_eq!(report.duplicate_bytes, 4 + (3 << 20));
    // The one with its own start is not hashed in full, nor is what has its own size.
    assert_eq!(report.hashed_files, 3 + 3);
    assert_eq!(report.block_bytes, 4 + 4 + 6 + 3 * (3 << 20));
    assert_eq!(built.files()["big4"], other_end);
    assert_eq!(
        built.metadata().shared_files_table,
        Some(vec![0, 0, 1, 1, 2, 2])
    );

    let mut options = options(dir.path());
    options.file_hash = None;
    let built = build(&options);
    assert_eq!((built.report.contents, built.report.hashed_files), (8, 0));
    assert_eq!(built.metadata().shared_files_table, Some(vec![]));
    options.file_hash = Digest::parse("sha512").ok();
    assert_eq!(build(&options).report.contents, 6);
}

#[test]
fn hard_links_are_one_inode() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[("a/first", b"content"), ("b/other", b"other")],
    );
    fs::hard_link(dir.path().join("a/first"), dir.path().join("b/second")).unwrap();
    fs::hard_link(dir.path().join("a/first"), dir.path().join("third")).unwrap();
    let built = build(&options(dir.path()));
    assert_eq!((built.report.files, built.report.hardlinks), (2, 2));
    assert_eq!(built.report.original_bytes, 12);
    let metadata = built.metadata();
    assert_eq!(metadata.total_hardlink_size, Some(14));
    assert_eq!(metadata.total_fs_size, 12);
    let nlinks: Vec<u32> = metadata
        .inodes
        .iter()
        .map(|inode| inode.nlink_minus_one)
        .collect();
    assert_eq!(nlinks, [0, 0, 0, 2, 0]);
}

/// Where the data of each file begin, in the order of the image.
fn data_order(built: &Built) -> Vec<String> {
    let image = built.image();
    let inodes = image.files_in_data_order().unwrap();
    let mut paths = Vec::new();
    for inode in inodes {
        let step = image
            .walk()
            .map(Result::unwrap)
            .find(|step| step.entry.inode == inode);
        paths.push(String::from_utf8(step.unwrap().path).unwrap());
    }
    paths
}

#[test]
fn orders() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["a/z", "a/b/y", "a-/x", "b/a", "c", "m/b/y2", "z/b/y"];
    for file in files {
        put(dir.path(), &[(file, file.as_bytes())]);
    }
    let order_of = |order: Order| {
        let options = BuildOptions {
            order: order.into(),
            ..options(dir.path())
        };
        data_order(&build(&options))
    };
    assert_eq!(
        order_of(Order::Path),
        ["a/b/y", "a/z", "a-/x", "b/a", "c", "m/b/y2", "z/b/y"]
    );
    assert_eq!(
        order_of(Order::Revpath),
        ["b/a", "c", "a-/x", "a/b/y", "z/b/y", "m/b/y2", "a/z"]
    );
    let listed = ["/z/b/y", "./c", "missing", "a/b", "c"]
        .map(PathBuf::from)
        .to_vec();
    let explicit = order_of(Order::Explicit(listed));
    assert_eq!(
        explicit,
        ["z/b/y", "c", "a/b/y", "a/z", "a-/x", "b/a", "m/b/y2"]
    );
    assert_eq!(order_of(Order::None).len(), files.len());
}

#[test]
fn holes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let end = (1_u64 << 40) - 3;
    sparse_file(
        &at("huge"),
        1 << 40,
        &[(0, b"start"), (1 << 30, b"middle"), (end, b"end")],
    );
    sparse_file(
        &at("copy"),
        1 << 40,
        &[(0, b"start"), (1 << 30, b"middle"), (end, b"end")],
    );
    sparse_file(&at("only"), 1 << 20, &[]);
    sparse_file(&at("small"), 3 * 4096, &[(4096, &[9; 4096])]);
    let built = build(&options(dir.path()));
    assert_eq!(
        (built.report.contents, built.report.duplicate_files),
        (3, 1)
    );
    assert!(built.report.hashed_bytes < 1 << 20, "holes are not read");
    let metadata = built.metadata();
    assert_eq!(metadata.hole_block_index, Some(built.report.blocks as u32));
    let large = metadata.large_hole_size.unwrap();
    assert!(!large.is_empty() && large.len() < 4, "{large:?}");
    let allocated = metadata.total_allocated_fs_size.unwrap();
    assert!(allocated < 1 << 17 && metadata.total_fs_size > 2 << 40);

    fs::remove_file(at("huge")).unwrap();
    fs::remove_file(at("copy")).unwrap();
    let mut options = options(dir.path());
    options.sparse_files = false;
    let dense = build(&options);
    assert_eq!(dense.files()["small"][4096..8192], [9; 4096]);
    let metadata = dense.metadata();
    assert_eq!(
        (metadata.hole_block_index, metadata.large_hole_size),
        (None, None)
    );
    assert_eq!(metadata.features.unwrap().len(), 0);
}

#[test]
fn many_chunks_are_in_the_size_cache() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[
            ("large", &vec![1; 128 * 4096]),
            ("less", &vec![2; 126 * 4096]),
        ],
    );
    let data: Vec<(u64, &[u8])> = (0..100)
        .map(|index| (index * 16384, &b"data"[..]))
        .collect();
    sparse_file(&dir.path().join("sparse"), 100 * 16384, &data);
    let built = build(&options(dir.path()));
    let cache = built.metadata().reg_file_size_cache.unwrap();
    assert_eq!(cache.min_chunk_count, 128);
    let sizes: Vec<u64> = cache.size_lookup.values().copied().collect();
    assert_eq!(sizes, [128 * 4096, 100 * 16384]);
    assert_eq!(cache.allocated_size_lookup.len(), 1);
}

#[test]
fn data_across_blocks_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    // Ends of blocks, ends of what is read at once, and one byte to either side of both.
    let sizes = [
        1,
        4095,
        4096,
        4097,
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
        2_500_000,
    ];
    for (index, size) in sizes.into_iter().enumerate() {
        let content: Vec<u8> = (0..size).map(|at| (at * (index + 3) / 7) as u8).collect();
        fs::write(dir.path().join(format!("f{index}")), content).unwrap();
    }
    for bits in [10, 16, 22] {
        let mut options = options(dir.path());
        options.block_size_bits = bits;
        let built = build(&options);
        for (name, content) in built.files() {
            assert!(
                content == fs::read(dir.path().join(&name)).unwrap(),
                "{name}, 2^{bits}"
            );
        }
        let full = built.report.block_bytes.div_ceil(1 << bits);
        assert_eq!(built.report.blocks, full);
    }
}
