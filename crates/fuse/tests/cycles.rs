//! Mounting and unmounting in one process, again and again: no file, thread or memory may stay behind.
//!
//! Alone in its process, so that what is counted is its own. `cargo xtask cycles --count=10000` does it for longer.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, which is what it should do"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durin_format::events::{Events, Message};
use durin_fuse::{FsOptions, MountOptions};
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;
use durin_testkit::io_uring::Offer;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

const CYCLES: u64 = 40;
/// What comes to stay in the first cycles: the allocator's own, threads' stacks.
const WARM_UP: u64 = 20;
/// A leak of one page a cycle would be more than this in a long run.
const GROWTH_KIB_MAX: u64 = 16 << 10;
const END_TIME_MAX: Duration = Duration::from_secs(30);

struct Silent;

impl Events for Silent {
    fn message(&self, _: &Message<'_>) {}
}

/// What this process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    files: usize,
    threads: usize,
    kib: u64,
}

impl Held {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let first = line.unwrap().split_whitespace().next();
            first.unwrap().parse().unwrap()
        };
        Self {
            files: fs::read_dir("/proc/self/fd").unwrap().count(),
            threads: usize::try_from(number("Threads:")).unwrap(),
            kib: number("VmRSS:"),
        }
    }

    /// The same once what is on its way out is gone.
    fn settled(before: Self) -> Self {
        let end = Instant::now() + END_TIME_MAX;
        loop {
            let now = Self::now();
            let is_settled = now.files <= before.files && now.threads <= before.threads;
            if is_settled || Instant::now() > end {
                return now;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn cycle(image: &Path, point: &Path, io_uring: bool) {
    let source = durin_source::open(image, OpenMode::Mmap).unwrap();
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    let options = MountOptions {
        io_uring,
        ..MountOptions::default()
    };
    let session = durin_fuse::mount(
        Arc::new(image),
        point,
        &FsOptions::default(),
        &options,
        Arc::new(Silent),
    );
    let session = session.unwrap();
    let unmounter = session.unmounter();
    let server = std::thread::Builder::new().spawn(move || session.run());
    let mut bytes = 0;
    for entry in fs::read_dir(point).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            bytes += fs::read(entry.path()).unwrap().len();
        }
    }
    assert!(bytes > 0);
    unmounter.unmount().unwrap();
    server.unwrap().join().unwrap().unwrap();
}

#[test]
#[expect(clippy::print_stdout, reason = "figures of a long run")]
fn a_process_that_mounts_keeps_nothing() {
    let ready = || {
        durin_testkit::mount::available()?;
        Vectors::find()
    };
    let image = require!(ready()).image("handmade", "base");
    let count = std::env::var("DURIN_CYCLES").ok();
    let count = count.map_or(CYCLES, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let _offer = Offer::new();
    for number in 0..WARM_UP {
        cycle(&image, dir.path(), number % 2 == 0);
    }
    let before = Held::now();
    for number in 0..count {
        cycle(&image, dir.path(), number % 2 == 0);
    }
    let after = Held::settled(before);
    println!("cycles in one process: {count}, {before:?} before, {after:?} after");
    assert!(after.files <= before.files, "{before:?}, {after:?}");
    assert!(after.threads <= before.threads, "{before:?}, {after:?}");
    assert!(
        after.kib <= before.kib + GROWTH_KIB_MAX,
        "{before:?}, {after:?}"
    );
}
