//! Mounting and unmounting, again and again, with readers at work: nothing may stay behind and nothing may hang.
//!
//! `cargo xtask cycles --count=10000` does it for longer.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use durin_testkit::io_uring::Offer;
use durin_testkit::mount::{self, Mount};
use durin_testkit::over::Over;
use durin_testkit::random::Random;
use durin_testkit::require;

use crate::support::{programs, subdir, work_dir};

const CYCLES: u64 = 40;
const CYCLES_CI: u64 = 300;
/// A mount that has gone must be gone, with its driver, by then.
const CYCLE_TIME_MAX: Duration = Duration::from_secs(60);

/// The exit code of a driver that a signal has ended.
const CODE_OF_SIGNAL: i32 = 8;

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// Takes a mount out of the tree although somebody uses it.
fn detach(point: &Path) {
    let point = point.to_str().unwrap();
    if durin_testkit::skip::is_root() {
        run("umount", &["-l", point]);
    } else {
        run("fusermount3", &["-u", "-z", point]);
    }
}

fn mounts_of(image: &Path) -> usize {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let image = image.display().to_string();
    mounts
        .lines()
        .filter(|line| line.starts_with(&image))
        .count()
}

/// Drivers of an image that run, as processes that have its name among their arguments.
fn drivers_of(image: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_image = |process: &fs::DirEntry| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut arguments = line.split(|byte| *byte == 0);
        arguments.any(|argument| argument == image.as_os_str().as_bytes())
    };
    processes.filter(has_image).count()
}

/// What the kernel holds for itself and cannot give back, in KiB.
fn kernel_kib() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("SUnreclaim:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB"));
    number.unwrap().trim().parse().unwrap()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures of a long run")]
fn nothing_stays_behind() {
    require!(mount::available());
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let count = std::env::var("DURIN_CYCLES")
        .ok()
        .and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(if is_ci { CYCLES_CI } else { CYCLES });
    let work = work_dir();
    let tree = subdir(&work, "tree");
    let mut random = Random::new(3);
    for number in 0..20 {
        fs::write(tree.join(format!("f{number}")), random.text(300_000)).unwrap();
    }
    let programs = programs();
    let image = work.path().join("image");
    programs
        .build(&tree, &image)
        .args(["-l3", "-S16"])
        .succeed();
    let expected = fs::read(tree.join("f7")).unwrap();
    let offer = Offer::new();
    let kernel_before = kernel_kib();
    let begin = Instant::now();
    for cycle in 0..count {
        let start = Instant::now();
        // By turns in the foreground, where the end can be seen, and as a daemon.
        let driver = programs.path("dwarfs");
        let in_foreground = cycle % 2 == 0;
        let way = if cycle % 4 < 2 {
            "io_uring"
        } else {
            "noio_uring"
        };
        let mounted = if in_foreground {
            Mount::foreground(&driver, &image, &["preload_all", way])
        } else {
            Mount::new(&driver, &image, &[way])
        };
        assert_eq!(fs::read(mounted.path().join("f7")).unwrap(), expected);
        let over = Over::default();
        let point = mounted.path().to_owned();
        std::thread::scope(|scope| {
            let mut guard = Some(over.guard());
            for reader in 0..2 {
                let (point, over) = (&point, &over);
                scope.spawn(move || {
                    let mut number = reader;
                    while !over.is_over() {
                        // What is read while the mount goes away may fail, but must come to an end.
                        fs::read(point.join(format!("f{}", number % 20))).ok();
                        number += 1;
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(cycle % 7));
            // A third ends by a signal, a third is taken away under its readers, a third is unmounted when they are done.
            let by_signal = in_foreground && cycle % 3 == 0;
            match (cycle % 3, mounted.driver_pid()) {
                (0, Some(pid)) => run("kill", &["-TERM", &pid.to_string()]),
                (1, _) => detach(&point),
                _ => guard = None,
            }
            while by_signal && mount::is_mount_point(&point) && start.elapsed() < CYCLE_TIME_MAX {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(guard);
            let code = mounted.unmount();
            let expected = in_foreground.then_some(if by_signal { CODE_OF_SIGNAL } else { 0 });
            assert_eq!(code, expected, "cycle {cycle}");
        });
        assert!(
            start.elapsed() < CYCLE_TIME_MAX,
            "cycle {cycle} took {:?}",
            start.elapsed()
        );
    }
    drop(offer);
    // A daemon ends a moment after its mount.
    let end = Instant::now() + CYCLE_TIME_MAX;
    while drivers_of(&image) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (mounts, drivers) = (mounts_of(&image), drivers_of(&image));
    println!(
        "cycles: {count} in {} s; {mounts} mounts and {drivers} drivers are left, the kernel held {kernel_before} KiB \
         and holds {}",
        begin.elapsed().as_secs(),
        kernel_kib(),
    );
    assert_eq!((mounts, drivers), (0, 0));
}
