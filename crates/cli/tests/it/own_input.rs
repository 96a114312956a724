//! Outputs that are the image which is read: refused, however they are named, and before anything is written.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Place, dwarfs, dwarfsck, dwarfsextract, fails_with, mkdwarfs};
use durin_testkit::run::Run;
use durin_testkit::skip;

/// Runs what must be refused, with the image by its own name, by another one and through a symlink as its output.
#[track_caller]
fn is_refused(run: impl Fn(&str) -> Run) {
    let place = Place::new();
    let image = place.image();
    fs::hard_link(&image, place.path("linked")).unwrap();
    symlink("image.dwarfs", place.path("soft")).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    let before = fs::read(&image).unwrap();
    for name in ["image.dwarfs", "linked", "soft"] {
        let run = run(name).current_dir(&place.path(""));
        fails_with(run, "input and output are the same file");
        assert!(fs::read(&image).unwrap() == before, "{name}");
        assert_eq!(place.names(), ["image.dwarfs", "linked", "out", "soft"]);
    }
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
}

#[test]
fn results_of_dwarfsck() {
    for option in ["--export-metadata", "--html"] {
        is_refused(|name| {
            let run = dwarfsck().arg(format!("{option}={name}"));
            run.arg("image.dwarfs")
        });
    }
}

#[test]
fn archives_and_reports_of_dwarfsextract() {
    let extract = || dwarfsextract().args(["-i", "image.dwarfs"]);
    is_refused(|name| extract().args(["-f", "pax", "-o", name]));
    is_refused(|name| {
        let run = extract().args(["-o", "out", "--salvage"]);
        run.args(["--salvage-report", name])
    });
    is_refused(|name| {
        let run = extract().args(["-o", "out", "--perfmon=block_cache"]);
        run.args(["--perfmon-trace", name])
    });
}

/// A file of the image that would take its place.
#[test]
fn contents_do_not_replace_the_image() {
    let place = Place::new();
    fs::write(place.tree().join("image.dwarfs"), "inside").unwrap();
    let image = place.image();
    let before = fs::read(&image).unwrap();
    let refused = || {
        let extract = dwarfsextract().args(["-i", "image.dwarfs", "-o", "."]);
        let run = extract.current_dir(&place.path(""));
        fails_with(
            run,
            "image.dwarfs, as it would replace the image that is read",
        );
    };
    refused();
    assert!(fs::read(&image).unwrap() == before);
    // Links are made in another way.
    let inside = place.tree().join("image.dwarfs");
    fs::remove_file(&inside).unwrap();
    symlink("hello", &inside).unwrap();
    place.build("image.dwarfs").arg("-f").succeed();
    refused();
    assert!(fs::symlink_metadata(&image).unwrap().is_file());
}

#[test]
fn a_loop_device_of_the_image() {
    if !skip::is_root() {
        skip::skipped("loop devices are for root");
        return;
    }
    let place = Place::new();
    let image = place.image();
    let before = fs::read(&image).unwrap();
    let made = Run::new("losetup").args(["-f", "--show"]).arg(&image);
    let device = String::from_utf8(made.succeed().stdout).unwrap();
    let device = device.trim();
    let run = dwarfsextract().arg("-i").arg(&image);
    let outcome = run.args(["-f", "ustar", "-o", device]).output();
    Run::new("losetup").args(["-d", device]).succeed();
    assert!(outcome.stderr.contains("are the same file"), "{outcome}");
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn images_and_reports_of_rewriting() {
    let rewrite = || mkdwarfs().args(["-i", "image.dwarfs", "--recompress=none", "-f"]);
    is_refused(|name| rewrite().args(["-o", name]));
    is_refused(|name| rewrite().args(["-o", "new"]).arg(format!("--json={name}")));
    is_refused(|name| rewrite().arg("--dry-run").arg(format!("--json={name}")));
    is_refused(|name| {
        rewrite()
            .args(["-o", "new"])
            .env("DWARFS_LOG_MEMORY_USAGE", name)
    });
}

#[test]
fn logs_of_the_driver() {
    let mount = || dwarfs().args(["-f", "image.dwarfs", "out", "-o"]);
    is_refused(|name| mount().arg(format!("analysis_file={name}")));
    is_refused(|name| mount().arg(format!("perfmon=fuse,perfmon_trace={name}")));
}

#[test]
fn standard_output() {
    let onto = |program: &str, arguments: &str, name: &str| {
        let line = format!("exec \"$PROGRAM\" {arguments} >> {name}");
        let run = Run::new("sh").args(["-c", &line]);
        run.env("PROGRAM", program)
    };
    let dwarfsck = env!("CARGO_BIN_EXE_dwarfsck");
    is_refused(|name| onto(dwarfsck, "image.dwarfs", name));
    is_refused(|name| onto(dwarfsck, "--html=- image.dwarfs", name));
    let rewrite = "-i image.dwarfs -o - --recompress=none";
    is_refused(|name| onto(env!("CARGO_BIN_EXE_mkdwarfs"), rewrite, name));
    let extract = "-i image.dwarfs -f zip";
    is_refused(|name| onto(env!("CARGO_BIN_EXE_dwarfsextract"), extract, name));
    is_refused(|name| onto(env!("CARGO_BIN_EXE_durin"), "cat image.dwarfs hello", name));
}
