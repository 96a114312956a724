//! dwarfsck.

use std::fs;

use durin_testkit::json;
use expect_test::expect;

use crate::support::{Place, dwarfsck, fails_with, program, stdout};

#[test]
fn lists() {
    let place = Place::new();
    let image = place.image();
    let paths = stdout(&dwarfsck().arg(&image).arg("-l").succeed());
    expect![[r"
        hello
        sub
        sub/copy
        sub/empty
        sub/hard
        sub/odd\nname
        sub/soft
    "]]
    .assert_eq(&paths);
    let long = stdout(
        &dwarfsck()
            .arg("-i")
            .arg(&image)
            .args(["-l", "-v"])
            .succeed(),
    );
    let line = |end: &str| {
        long.lines()
            .find(|line| line.ends_with(end))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        line(" hello"),
        "-rw-r----- 1000/100 6 2020-01-01 00:00:00 hello"
    );
    assert_eq!(
        line("-> ../hello"),
        "lrwxrwxrwx 1000/100 8 2020-01-01 00:00:00 sub/soft -> ../hello"
    );
}

#[test]
fn checksums_are_those_of_sha256sum() {
    let place = Place::new();
    let image = place.image();
    let sums = dwarfsck().arg(&image).arg("--checksum=sha256").succeed();
    fs::write(place.path("sums"), &sums.stdout).unwrap();
    assert_eq!(stdout(&sums).lines().count(), 4);
    let check = program("/usr/bin/sha256sum").current_dir(&place.tree());
    check
        .args(["--check", "--quiet", "--strict"])
        .arg(place.path("sums"))
        .succeed();
    let one = dwarfsck()
        .arg(&image)
        .args(["--checksum=SHA256", "-n1"])
        .succeed();
    assert_eq!(one.stdout, sums.stdout);
}

#[test]
fn information_as_text() {
    let place = Place::new();
    let text = stdout(
        &dwarfsck()
            .arg(place.image())
            .args(["-d", "version,metadata_summary"])
            .succeed(),
    );
    for line in [
        "DwarFS version 2.5 [2] at offset 0",
        "created on: 2020-01-01 00:00:00",
        "block size: 1 MiB",
        "block count: 1",
        "time resolution: 1s",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(!text.contains("history"), "{text}");
}

#[test]
fn detail_levels_add_up() {
    let place = Place::new();
    let image = place.image();
    let mut len_before = 0;
    for level in ["0", "1", "2", "3", "4", "5", "6"] {
        let text = stdout(&dwarfsck().arg(&image).args(["-d", level]).succeed());
        assert!(text.len() > len_before, "level {level}: {text}");
        len_before = text.len();
    }
    let text = stdout(&dwarfsck().arg(&image).args(["-d", "7"]).succeed());
    for part in [
        "history:",
        "sections (index: valid)",
        "table lengths:",
        "directory tree:",
        "schema:",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn information_as_json() {
    let place = Place::new();
    let image = place.image();
    let info = |detail: &str| {
        let text = stdout(&dwarfsck().arg(&image).args(["-j", "-d", detail]).succeed());
        json::parse(&text).unwrap()
    };
    let all = info("7");
    assert_eq!(all["version"]["minor"], 5);
    assert_eq!(all["block_count"], 1);
    assert_eq!(
        all["history"][0]["timestamp"]["local"],
        "2020-01-01 00:00:00"
    );
    assert_eq!(all["sections"][0]["type"], "BLOCK");
    assert_eq!(all["root"]["inodes"][0]["name"], "hello");
    assert_eq!(all["root"]["inodes"][1]["inodes"][0]["type"], "file");
    assert!(all["full_metadata"].is_object());
    let some = info("version");
    assert!(some["version"].is_object() && some["sections"].is_null() && some["root"].is_null());
}

#[test]
fn metadata_is_exported() {
    let place = Place::new();
    let image = place.image();
    let target = place.path("metadata.json");
    dwarfsck()
        .arg(&image)
        .arg("--export-metadata")
        .arg(&target)
        .succeed();
    let in_file = fs::read_to_string(&target).unwrap();
    assert!(json::parse(&in_file).unwrap()["chunks"].is_array());
    let printed = dwarfsck()
        .arg(&image)
        .args(["--export-metadata", "-"])
        .succeed();
    assert_eq!(stdout(&printed), in_file);
}

#[test]
fn header() {
    let place = Place::new();
    let image = place.image();
    let outcome = dwarfsck().arg(&image).arg("-H").expect_code(2);
    let is_warning = |line: &str| line.starts_with("W ") && line.contains("no header");
    assert!(outcome.stderr.lines().any(is_warning), "{outcome}");
    assert!(outcome.stdout.is_empty(), "{outcome}");
    fails_with(dwarfsck().arg(&image).args(["-H", "--json"]), "--json");
}

#[test]
fn damage_is_found_and_named() {
    let place = Place::new();
    let image = place.image();
    dwarfsck()
        .arg(&image)
        .args(["-q", "--check-integrity"])
        .succeed();
    let mut bytes = fs::read(&image).unwrap();
    // In the payload of the first section, a block.
    bytes[70] ^= 1;
    fs::write(&image, &bytes).unwrap();
    for flags in [
        ["-q"].as_slice(),
        &["-q", "--check-integrity"],
        &["-l"],
        &["--space", "-j"],
    ] {
        let outcome = dwarfsck().arg(&image).args(flags).expect_code(1);
        assert!(
            outcome.stderr.contains("section 0 (BLOCK) at offset 0"),
            "{outcome}"
        );
        assert!(outcome.stdout.is_empty());
    }
    dwarfsck().arg(&image).args(["-l", "--no-check"]).succeed();
    // The checksums of the files in it cannot be told; those of the others can.
    let mut bytes = fs::read(&image).unwrap();
    bytes[70] ^= 1;
    fs::write(&image, &bytes).unwrap();
    dwarfsck()
        .arg(&image)
        .args(["-q", "--checksum=md5"])
        .succeed();
}

#[test]
fn a_damaged_image_is_told_about_all_the_same() {
    let place = Place::new();
    let image = place.image();
    let mut bytes = fs::read(&image).unwrap();
    bytes[70] ^= 1;
    fs::write(&image, &bytes).unwrap();
    let run = |flags: &[&str], code| {
        let outcome = dwarfsck().arg(&image).args(flags).expect_code(code);
        let said = outcome.stderr.contains("section 0 (BLOCK) at offset 0");
        assert_eq!(said, code == 1, "{outcome}");
        stdout(&outcome)
    };
    for flags in [["-d3"].as_slice(), &["-d3", "--check-integrity"]] {
        let text = run(flags, 1);
        assert!(text.contains("inode count"), "{text}");
        let mut lines = text.lines().filter(|line| line.contains("CHECKSUM WRONG"));
        assert!(lines.next().unwrap().contains(" 0 BLOCK "), "{text}");
        assert_eq!(lines.next(), None, "{text}");
    }
    let sections = |json: &str| -> Vec<Option<bool>> {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let sections = json["sections"].as_array().unwrap();
        let told = sections
            .iter()
            .map(|section| section["checksum_ok"].as_bool());
        told.collect()
    };
    let found = sections(&run(&["-j", "-d3"], 1));
    assert_eq!(found[0], Some(false));
    assert!(found.len() > 3 && found[1..].iter().all(|ok| *ok == Some(true)));
    let found = sections(&run(&["-j", "-d3", "--no-check"], 0));
    assert!(found.iter().all(Option::is_none));
}

#[test]
fn what_is_no_image_is_refused() {
    let place = Place::new();
    fails_with(dwarfsck().arg(place.tree().join("hello")), "hello");
    fails_with(dwarfsck().arg(place.path("nowhere")), "cannot open");
    let image = place.image();
    fails_with(dwarfsck().arg(&image).args(["-O", "5"]), "offset 5");
}

#[test]
fn images_behind_other_data() {
    let place = Place::new();
    let image = fs::read(place.image()).unwrap();
    let behind = place.path("behind");
    fs::write(&behind, [b"#!/bin/sh\nexit\n".as_slice(), &image].concat()).unwrap();
    let text = stdout(&dwarfsck().arg(&behind).args(["-d1"]).succeed());
    assert!(text.contains("at offset 15\n"), "{text}");
    dwarfsck().arg(&behind).args(["-q", "-O", "15"]).succeed();
    fails_with(dwarfsck().arg(&behind).args(["-O", "0"]), "behind");
}

#[test]
fn quiet_says_nothing() {
    let place = Place::new();
    let outcome = dwarfsck().arg(place.image()).arg("--quiet").succeed();
    assert!(
        outcome.stdout.is_empty() && outcome.stderr.is_empty(),
        "{outcome}"
    );
}

#[test]
fn images_can_be_read_without_mapping_them() {
    let place = Place::new();
    let image = place.image();
    let run = dwarfsck()
        .env("DWARFS_IOLAYER_OPTS", "open_mode=read")
        .arg(&image);
    run.args(["-q", "--check-integrity"]).succeed();
    let run = dwarfsck()
        .env("DWARFS_IOLAYER_OPTS", "speed=high")
        .arg(&image)
        .arg("-l");
    let outcome = run.succeed();
    assert!(
        outcome.stderr.contains("ignoring 'speed=high'"),
        "{outcome}"
    );
}
