//! dwarfsextract.

use std::fs;

use crate::support::{Place, dwarfsextract, fails_with, stdout};
use durin_testkit::run::Run;

fn extract(place: &Place) -> Run {
    fs::create_dir_all(place.path("out")).unwrap();
    dwarfsextract()
        .args(["-n2", "-i"])
        .arg(place.image())
        .arg("-o")
        .arg(place.path("out"))
}

#[test]
fn unpacks_a_tree() {
    let place = Place::new();
    let outcome = extract(&place).succeed();
    assert!(outcome.stdout.is_empty());
    assert!(outcome.stderr.contains("extracted"), "{outcome}");
    for name in ["hello", "sub/copy", "sub/odd\nname", "sub/hard"] {
        let read = |top: &str| fs::read(place.path(top).join(name)).unwrap();
        assert_eq!(read("out"), read("tree"), "{name}");
    }
    assert!(place.path("out/sub/empty").is_dir());
    let target = fs::read_link(place.path("out/sub/soft")).unwrap();
    assert_eq!(target.to_str(), Some("../hello"));
}

#[test]
fn into_the_current_directory() {
    let place = Place::new();
    let image = place.image();
    fs::create_dir(place.path("here")).unwrap();
    let run = dwarfsextract().current_dir(&place.path("here"));
    run.arg("-i").arg(image).succeed();
    assert!(place.path("here/hello").is_file());
}

#[test]
fn patterns() {
    let place = Place::new();
    extract(&place)
        .args(["hello", "--pattern", "i:SUB/C*"])
        .succeed();
    assert!(place.path("out/hello").is_file() && place.path("out/sub/copy").is_file());
    assert!(!place.path("out/sub/soft").exists() && !place.path("out/sub/empty").exists());
    fails_with(extract(&place).arg("[a"), "[a");
}

#[test]
fn patterns_without_a_match_warn() {
    let place = Place::new();
    let outcome = extract(&place).arg("nothing").succeed();
    assert!(outcome.stderr.contains("match"), "{outcome}");
}

#[test]
fn percentages_on_standard_output() {
    let place = Place::new();
    let outcome = extract(&place).arg("--stdout-progress").succeed();
    assert!(stdout(&outcome).ends_with("\r100%\n"), "{outcome}");
}

#[test]
fn archives_are_not_there_yet() {
    let place = Place::new();
    for option in [
        ["-f", "pax"],
        ["--format-filters", "zstd"],
        ["--perfmon", "x"],
    ] {
        fails_with(
            extract(&place).args(option),
            "not supported by this release yet",
        );
    }
}

#[test]
fn the_target_must_exist() {
    let place = Place::new();
    let run = dwarfsextract().arg("-i").arg(place.image()).arg("-o");
    fails_with(run.arg(place.path("nowhere")), "nowhere");
}

#[test]
fn damage_ends_it_unless_it_may_go_on() {
    let place = Place::new();
    let image = place.image();
    let mut bytes = fs::read(&image).unwrap();
    bytes[70] ^= 1;
    let damaged = place.path("damaged");
    fs::write(&damaged, bytes).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    let run = || {
        dwarfsextract()
            .arg("-i")
            .arg(&damaged)
            .arg("-o")
            .arg(place.path("out"))
    };
    run().expect_code(1);
    let outcome = run().arg("--continue-on-error").expect_code(2);
    assert!(
        outcome.stderr.contains("could not be extracted"),
        "{outcome}"
    );
    assert!(place.path("out/sub/empty").is_dir());
}
