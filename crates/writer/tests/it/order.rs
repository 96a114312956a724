//! The order of contents, seen in the blocks of images.

use std::fs;
use std::path::Path;

use durin_codec::Spec;
use durin_reader::{FileKind, Place};
use durin_testkit::random::Random;
use durin_writer::{BuildOptions, NilsimsaOptions, Order};

use crate::harness::{Built, build, options, put};

/// Text-like bytes that no other seed has.
fn text(seed: u64, words: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = (0..words).map(|_| format!("{:x} ", random.next() >> 24));
    words.collect::<String>().into_bytes()
}

/// Replaces some words.
fn edited(text: &[u8], version: usize) -> Vec<u8> {
    let mut text = text.to_vec();
    for edit in 0..version {
        let place = edit * 1013 % text.len();
        let replacement = format!("version {version}.{edit}");
        text.splice(place..place, replacement.into_bytes());
    }
    text
}

/// Releases of a project: files that change a little, one that is renamed, and one that is new each time.
fn put_releases(dir: &Path) {
    for version in 0..4 {
        for file in 0..5 {
            let content = edited(&text(file, 600), version * 2);
            put(dir, &[(&format!("v{version}/src/file{file}.c"), &content)]);
        }
        let moved = edited(&text(77, 600), version);
        put(
            dir,
            &[(&format!("v{version}/doc{version}/read.me{version}"), &moved)],
        );
        put(
            dir,
            &[(
                &format!("v{version}/new.txt"),
                &text(100 + version as u64, 300),
            )],
        );
    }
}

fn options_for(dir: &Path, order: Order) -> BuildOptions {
    let mut options = options(dir);
    options.order = order.into();
    // Nothing is to be found twice, so that each file is in one piece.
    options.window_size = 0.into();
    options
}

/// The paths of all files in the order in which their first bytes are stored.
fn stored(built: &Built) -> Vec<String> {
    let image = built.image();
    let mut placed: Vec<_> = image
        .walk()
        .filter_map(|step| {
            let step = step.unwrap();
            if step.attr.kind != FileKind::Regular {
                return None;
            }
            let first = image.chunks(step.attr.inode).unwrap().next()?.unwrap();
            let Place::Data { block, offset, .. } = first.place else {
                return None;
            };
            Some(((block, offset), String::from_utf8(step.path).unwrap()))
        })
        .collect();
    placed.sort();
    placed.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn versions_are_stored_next_to_each_other() {
    let dir = tempfile::tempdir().unwrap();
    put_releases(dir.path());
    let order = stored(&build(&options_for(dir.path(), Order::Similarity)));
    let versions = |name: &str| -> Vec<String> {
        (0..4)
            .map(|version| name.replace('#', &version.to_string()))
            .collect()
    };
    let mut want = Vec::new();
    // Along the first release: files of a directory, then its directories.
    want.push("v0/new.txt".to_owned());
    want.extend(versions("v#/doc#/read.me#"));
    for file in 0..5 {
        want.extend(versions(&format!("v#/src/file{file}.c")));
    }
    want.extend(["v1/new.txt", "v2/new.txt", "v3/new.txt"].map(str::to_owned));
    assert_eq!(order, want);
}

#[test]
fn digests_bring_versions_together() {
    let dir = tempfile::tempdir().unwrap();
    put_releases(dir.path());
    let order = Order::Nilsimsa(NilsimsaOptions::default());
    let order = stored(&build(&options_for(dir.path(), order)));
    assert_eq!(order.len(), 28);
    for file in 0..5 {
        let name = format!("file{file}.c");
        let places: Vec<_> = (0..28).filter(|at| order[*at].ends_with(&name)).collect();
        assert_eq!(places[3] - places[0], 3, "{name}: {order:?}");
    }
}

#[test]
fn same_bytes_whatever_threads_and_directory_order() {
    let dir = tempfile::tempdir().unwrap();
    put_releases(dir.path());
    // The same tree, made the other way round.
    let other = tempfile::tempdir().unwrap();
    let mut paths: Vec<_> = walk(dir.path());
    paths.sort();
    for path in paths.iter().rev() {
        let target = other.path().join(path.strip_prefix(dir.path()).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
    for order in [
        Order::Similarity,
        Order::Nilsimsa(NilsimsaOptions::default()),
    ] {
        let bytes = |dir: &Path, threads| {
            let mut options = options_for(dir, order.clone());
            options.set_time = Some(0);
            options.scanner_workers = threads;
            options.workers = threads;
            build(&options).bytes
        };
        let first = bytes(dir.path(), 1);
        assert!(bytes(dir.path(), 2) == first, "{order:?}");
        assert!(bytes(dir.path(), 7) == first, "{order:?}");
        assert!(bytes(other.path(), 3) == first, "{order:?}");
    }
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn large_files_come_first() {
    let dir = tempfile::tempdir().unwrap();
    put_releases(dir.path());
    put(
        dir.path(),
        &[("z/large", &text(1, 5000)), ("z/larger", &text(2, 6000))],
    );
    for order in [
        Order::Similarity,
        Order::Nilsimsa(NilsimsaOptions::default()),
    ] {
        let mut options = options_for(dir.path(), order);
        options.max_similarity_size = Some(20_000);
        let order = stored(&build(&options));
        assert_eq!(order[..2], ["z/larger", "z/large"]);
        assert_eq!(order.len(), 30);
    }
}

/// Versions of one program: none of its bytes stays where it was, and passages of 40 bytes stay as they are.
fn put_programs(dir: &Path) {
    let mut random = Random::new(11);
    let passages: Vec<[u8; 40]> = (0..40_000)
        .map(|_| std::array::from_fn(|_| random.next().to_le_bytes()[3]))
        .collect();
    for version in 0..3_u32 {
        let mut program = vec![0; 5000 * version as usize];
        for (place, passage) in (0..).zip(&passages) {
            program.extend(passage);
            program.extend((version.wrapping_mul(0x9e37_79b9) ^ place).to_le_bytes());
        }
        put(dir, &[(&format!("v{version}/program"), &program)]);
    }
}

#[test]
fn slices_of_large_files_follow_those_they_are_like() {
    let dir = tempfile::tempdir().unwrap();
    put_programs(dir.path());
    let build_with = |order, block_size_bits| {
        let mut options = options_for(dir.path(), order);
        options.block_size_bits = block_size_bits;
        options.compression = Spec::parse("zstd:level=3").unwrap().into();
        build(&options)
    };
    let by_path = build_with(Order::Path, 20);
    let by_similarity = build_with(Order::Similarity, 20);
    let slices = |built: &Built| {
        let image = built.image();
        let is_second = |path: &[u8]| path == b"v1/program";
        let mut steps = image.walk().map(Result::unwrap);
        let step = steps.find(|step| is_second(&step.path)).unwrap();
        image.chunks(step.attr.inode).unwrap().count()
    };
    assert_eq!(slices(&by_path), 3, "two borders of blocks");
    assert!(slices(&by_similarity) >= 6, "1.7 MB in slices of 256 KiB");
    // A block by path has parts of two versions that are not alike; one by similarity has the same part of all three.
    let (path, similarity) = (by_path.bytes.len(), by_similarity.bytes.len());
    assert!(similarity * 10 < path * 7, "{similarity} of {path}");
    let in_one_block = build_with(Order::Similarity, 23);
    assert_eq!(slices(&in_one_block), 1, "nothing to be gained");
}

#[test]
fn explicit_order_and_what_it_does_not_list() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c, d] = [1, 2, 3, 4].map(|seed| text(seed, 50));
    put(dir.path(), &[("a", &a), ("b/x", &b), ("c", &c), ("d", &d)]);
    let listed = ["/d", "b/x", "missing", "d"].map(Into::into).to_vec();
    let built = build(&options_for(dir.path(), Order::Explicit(listed)));
    assert_eq!(stored(&built), ["d", "b/x", "a", "c"]);
    let told = built
        .messages
        .iter()
        .any(|message| message.contains("'missing'"));
    assert!(told, "{:?}", built.messages);
}

#[test]
fn files_that_cannot_be_told_apart_by_content() {
    let dir = tempfile::tempdir().unwrap();
    // Empty, tiny, of one byte only, and holes.
    put(
        dir.path(),
        &[
            ("empty", b""),
            ("one", b"1"),
            ("two", b"22"),
            ("zeros", &[0; 9000]),
        ],
    );
    fs::File::create(dir.path().join("hole"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    for order in [
        Order::Similarity,
        Order::Nilsimsa(NilsimsaOptions::default()),
    ] {
        let files = build(&options_for(dir.path(), order)).files();
        assert_eq!(files["two"], b"22");
        assert_eq!(files["zeros"].len(), 9000);
        assert_eq!(files["hole"].len(), 1 << 20);
    }
}
