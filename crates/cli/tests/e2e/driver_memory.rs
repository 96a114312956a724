//! What a driver holds: what its cache may and little beside it while it is busy, and next to nothing when nobody reads any
//! more, without being asked.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use durin_testkit::io_uring::Offer;
use durin_testkit::mount::{self, Mount};
use durin_testkit::random::Random;
use durin_testkit::require;

use crate::support::{programs, subdir, work_dir};

const FILES: u64 = 4;
const FILE_LEN: usize = 25_000_000;
/// The cache of small blocks that are read here and there.
const CACHE_BYTES: u64 = 64 << 20;
/// What there may be beside it: the program, its threads with their buffers, and what lies between pieces of memory.
const BESIDE_CACHE_MAX: u64 = 64 << 20;
const RANDOM_READS: u64 = 3000;
/// Beside the metadata, which is a few kilobytes here.
const IDLE_BYTES_MAX: u64 = 64 << 20;
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Memory of a process that has no file behind it, in bytes.
fn anonymous_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

#[test]
fn an_idle_driver_is_small() {
    require!(mount::available());
    let work = work_dir();
    let tree = subdir(&work, "tree");
    for number in 0..FILES {
        let text = Random::new(number).text(FILE_LEN);
        fs::write(tree.join(format!("f{number}")), text).unwrap();
    }
    let programs = programs();
    let image = work.path().join("image");
    programs
        .build(&tree, &image)
        .args(["-l1", "-S22"])
        .succeed();
    // Both ways at once: what matters is the time afterwards. Where the kernel keeps files, blocks go as they are read.
    let offer = Offer::new();
    let driver = programs.path("dwarfs");
    let mounts = ["io_uring", "noio_uring"]
        .map(|way| Mount::foreground(&driver, &image, &[way, "no_cache_files"]));
    drop(offer);
    for mounted in &mounts {
        std::thread::scope(|scope| {
            for number in (0..FILES).chain(0..FILES) {
                let path = mounted.path().join(format!("f{number}"));
                scope.spawn(move || assert_eq!(fs::read(path).unwrap().len(), FILE_LEN));
            }
        });
    }
    let pids = mounts
        .each_ref()
        .map(|mounted| mounted.driver_pid().unwrap());
    for pid in pids {
        let busy = anonymous_bytes(pid);
        assert!(busy > IDLE_BYTES_MAX, "{busy} bytes after all was read");
    }
    let start = Instant::now();
    for pid in pids {
        while anonymous_bytes(pid) > IDLE_BYTES_MAX {
            assert!(
                start.elapsed() < IDLE_TIME_MAX,
                "{} bytes of {pid} after {IDLE_TIME_MAX:?}",
                anonymous_bytes(pid)
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

#[test]
fn a_busy_driver_holds_what_its_cache_may() {
    require!(mount::available());
    let work = work_dir();
    let tree = subdir(&work, "tree");
    for number in 0..FILES {
        let text = Random::new(number).text(2 * FILE_LEN);
        fs::write(tree.join(format!("f{number}")), text).unwrap();
    }
    let programs = programs();
    let image = work.path().join("image");
    // Of a size that lay in the allocator's heaps once, where each took all of its room whatever of it was decoded.
    programs
        .build(&tree, &image)
        .args(["-l4", "-S19"])
        .succeed();
    let options = format!("cachesize={CACHE_BYTES},no_cache_files");
    let mounted = Mount::foreground(&programs.path("dwarfs"), &image, &[&options]);
    std::thread::scope(|scope| {
        for number in 0..FILES {
            let path = mounted.path().join(format!("f{number}"));
            scope.spawn(move || {
                let file = File::open(path).unwrap();
                let mut places = Random::new(number + FILES);
                for _ in 0..RANDOM_READS {
                    let at = places.below(2 * FILE_LEN as u64 - 4096);
                    file.read_exact_at(&mut [0; 4096], at).unwrap();
                }
            });
        }
    });
    let peak = mounted.peak_bytes().unwrap();
    assert!(
        peak < CACHE_BYTES + BESIDE_CACHE_MAX,
        "{peak} bytes with a cache of {CACHE_BYTES}"
    );
}
