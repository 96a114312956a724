//! Extraction with little memory, and to places that cannot take it.

use std::path::Path;
use std::process::Command;

use durin_testkit::compare::{Aspects, assert_same, trees};
use durin_testkit::random::Random;
use durin_testkit::run::Run;
use durin_testkit::skip::{is_root, skipped};
use tempfile::TempDir;

use crate::atomic::SmallDisk;
use crate::support::{names_in, programs, read_tree, subdir, work_dir};

/// What programs may take whatever the tree: themselves, tables, threads.
const PROGRAM_BYTES: u64 = 64 << 20;

/// A tree of `mib` MiB, half of which compresses, and an image of it with blocks of 1 MiB.
fn image_of(work: &TempDir, mib: usize) -> std::path::PathBuf {
    let source = subdir(work, "source");
    let mut random = Random::new(21);
    for number in 0..mib / 2 {
        std::fs::write(source.join(format!("noise{number}")), random.bytes(1 << 20)).unwrap();
        std::fs::write(source.join(format!("text{number}")), random.text(1 << 20)).unwrap();
    }
    let image = work.path().join("image.dwarfs");
    let build = programs().build(&source, &image);
    build.args(["-l1", "-S20"]).succeed();
    image
}

fn archive(image: &Path, target: &Path, options: &[&str]) -> Run {
    let run = programs().run("dwarfsextract").arg("-i").arg(image);
    run.arg("-o").arg(target).args(options)
}

#[test]
fn memory_is_bounded_however_large_the_tree() {
    let work = work_dir();
    let image = image_of(&work, 120);
    let source = work.path().join("source");
    let limit = PROGRAM_BYTES + (16 << 20);
    let out = subdir(&work, "out");
    let run = programs().extract(&image, &out);
    run.args(["-s16m", "-n2", "--num-disk-writers=2"])
        .memory_max(limit)
        .succeed();
    let aspects = Aspects::all(1_000_000_000);
    let differences = trees(&read_tree(&source), &read_tree(&out), &aspects);
    assert_same("extracted with little memory", &differences);
    std::fs::remove_dir_all(&out).unwrap();

    for options in [
        ["-f", "pax", "-s16m", "-n2"].as_slice(),
        &["-f", "newc", "-s16m", "-n2", "--format-filters=gzip"],
        &["-f", "zip", "-s16m", "-n2"],
    ] {
        let target = work.path().join("archive");
        let run = archive(&image, &target, options);
        run.memory_max(limit).succeed();
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn archives_leave_nothing_on_a_full_disk_and_on_one_that_cannot_be_written() {
    let work = work_dir();
    let image = image_of(&work, 8);
    if !is_root() || SmallDisk::new(1 << 20).is_none() {
        return skipped("a small disk can only be mounted by root");
    }
    let disk = SmallDisk::new(2 << 20).unwrap();
    for format in ["pax", "ustar", "newc", "zip"] {
        let target = disk.point.join("archive");
        for old in [false, true] {
            if old {
                std::fs::write(&target, "old").unwrap();
            }
            // Going on after errors is about the image, not about the disk.
            for options in [
                ["-f", format].as_slice(),
                &["-f", format, "--continue-on-error"],
            ] {
                let outcome = archive(&image, &target, options).expect_code(1);
                let text = outcome.stderr.to_lowercase();
                assert!(text.contains("no space"), "{format}: {outcome}");
                let names: &[&str] = if old { &["archive"] } else { &[] };
                assert_eq!(names_in(&disk.point), names, "{format}");
            }
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        std::fs::remove_file(&target).unwrap();
    }
    let out = disk.point.join("out");
    std::fs::create_dir(&out).unwrap();
    let salvage = programs().extract(&image, &out).arg("--salvage");
    let outcome = salvage.expect_code(1);
    assert!(outcome.stderr.contains("cannot write "), "{outcome}");

    let disk = SmallDisk::new(1 << 20).unwrap();
    let mut remount = Command::new("mount");
    remount.args(["-o", "remount,ro"]).arg(&disk.point);
    assert!(remount.status().unwrap().success());
    for format in ["pax", "mtree"] {
        let run = archive(&image, &disk.point.join("archive"), &["-f", format]);
        let outcome = run.expect_code(1);
        let text = outcome.stderr.to_lowercase();
        assert!(text.contains("read-only file system"), "{outcome}");
        assert!(text.contains("archive"), "says what: {outcome}");
    }
}
