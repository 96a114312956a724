//! The same tree gives the same bytes, whatever the threads do.

use std::fs;

use durin_codec::Spec;
use durin_testkit::random::Random;
use durin_writer::{BuildOptions, Order};

use crate::harness::{build, options};

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    for index in 0..400_usize {
        let sub = dir.path().join(format!("{}/{}", index % 7, index % 11));
        fs::create_dir_all(&sub).unwrap();
        let content = match index % 5 {
            0 => random.bytes(3_000_000 / (index + 1)),
            1 => random.text(1000),
            2 => b"the same".repeat(index % 3),
            3 => Vec::new(),
            _ => vec![0; 5000],
        };
        fs::write(sub.join(format!("file{index}")), content).unwrap();
    }
    dir
}

fn check_same(options: &mut BuildOptions) {
    (options.workers, options.scanner_workers) = (1, 1);
    let expected = build(options).bytes;
    for (workers, scanner_workers) in [(1, 4), (4, 1), (3, 3), (8, 8)] {
        (options.workers, options.scanner_workers) = (workers, scanner_workers);
        let bytes = build(options).bytes;
        assert!(
            bytes == expected,
            "{workers} and {scanner_workers} threads, {:?}",
            options.order
        );
    }
}

#[test]
fn any_number_of_threads() {
    let dir = tree();
    let mut options = options(dir.path());
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    for order in [Order::None, Order::Path, Order::Revpath] {
        options.order = order.into();
        check_same(&mut options);
    }
    // One block in memory at a time takes the longest way through the queues.
    options.memory_limit = Some(1);
    check_same(&mut options);
}

#[test]
fn any_limit_on_memory() {
    let dir = tree();
    let mut options = options(dir.path());
    options.compression = Spec::parse("zstd:level=1").unwrap().into();
    (options.workers, options.scanner_workers) = (2, 2);
    let expected = build(&options).bytes;
    for limit in [1, 64 << 20, 512 << 20, 1 << 40] {
        options.memory_limit = Some(limit);
        assert!(build(&options).bytes == expected, "{limit}");
    }
}

#[test]
fn any_order_of_creation() {
    let names: Vec<String> = (0..300)
        .map(|index| format!("name{:03}", index * 7 % 300))
        .collect();
    let build_in = |names: &[String], order: &Order| {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let below = dir.path().join(&name[..name.len() - 1]);
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join(name), name).unwrap();
            fs::write(dir.path().join(name), format!("{name} above")).unwrap();
        }
        let mut options = options(dir.path());
        options.set_time = Some(1_000_000_000);
        options.order = order.clone().into();
        build(&options).bytes
    };
    let mut sorted = names.clone();
    sorted.sort();
    for order in [Order::None, Order::Path] {
        assert!(
            build_in(&names, &order) == build_in(&sorted, &order),
            "{order:?}"
        );
    }
}
