//! Options of the reference that change how something is done and not what comes out, and those that only show inside
//! an image: docs/compat.md names these tests.

use std::fs;

use durin_testkit::mount::{self, Mount};
use durin_testkit::random::Random;
use durin_testkit::run::Run;
use durin_testkit::{json, require};
use serde_json::Value;

use crate::support::{Place, dwarfsck, dwarfsextract, fails_with, mkdwarfs, stdout};

/// A place whose tree has some text, shifted repetitions of it, and noise.
fn place_with_text() -> Place {
    let place = Place::new();
    let mut random = Random::new(11);
    let text = random.text(300_000);
    fs::write(place.tree().join("text"), &text).unwrap();
    fs::write(place.tree().join("shifted"), [b"odd", &text[..]].concat()).unwrap();
    fs::write(place.tree().join("noise"), random.bytes(50_000)).unwrap();
    place
}

fn build(place: &Place, name: &str, options: &[&str]) -> Run {
    let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
    run.arg(place.path(name)).args(options)
}

fn info(place: &Place, name: &str) -> Value {
    let run = dwarfsck().args(["--json", "-d3"]).arg(place.path(name));
    json::parse(&stdout(&run.succeed())).unwrap()
}

fn len(place: &Place, name: &str) -> u64 {
    fs::metadata(place.path(name)).unwrap().len()
}

#[test]
fn variables_without_effect_do_no_harm() {
    let place = Place::new();
    place.build("plain").succeed();
    let run = place
        .build("image")
        .env("DWARFS_WORKER_GROUP_AFFINITY", "compress=0:scanner=0");
    let run = run.env("DWARFS_DUMP_INODES", place.path("dump"));
    run.env("DWARFS_LOGGER_STACK_TRACE", "1").succeed();
    assert!(!place.path("dump").exists());
    let [plain, image] = ["plain", "image"].map(|name| fs::read(place.path(name)).unwrap());
    assert!(plain == image);
}

#[test]
fn work_is_divided_as_asked() {
    let place = place_with_text();
    let options = ["-l3", "--no-history"];
    build(&place, "plain", &options).succeed();
    let plain = fs::read(place.path("plain")).unwrap();
    for (option, bad) in [
        ("--num-workers=1", "--num-workers=-1"),
        ("--num-scanner-workers=3", "--num-scanner-workers=x"),
        ("--num-segmenter-workers=5", "--num-segmenter-workers="),
        ("--compress-niceness=19", "--compress-niceness=low"),
        ("--compress-niceness=-1", "--compress-niceness=1.5"),
    ] {
        let with = |option| [&options[..], &[option, "-f"]].concat();
        build(&place, "image", &with(option)).succeed();
        assert!(
            plain == fs::read(place.path("image")).unwrap(),
            "{option}: other bytes"
        );
        let name = bad.split('=').next().unwrap();
        fails_with(build(&place, "image", &with(bad)), name);
    }
}

#[test]
fn the_search_for_repetitions_is_as_asked() {
    let place = place_with_text();
    let built = |name: &str, options: &[&str]| {
        build(&place, name, &[&["-l3", "-Cnull"], options].concat()).succeed();
        len(&place, name)
    };
    let found = built("found", &[]);
    for (name, options) in [
        ("not", ["-W0"]),
        ("back", ["-B0"]),
        ("long", ["--window-size=22"]),
    ] {
        let len = built(name, &options);
        assert!(len > found + 200_000, "{name}: {len} and {found}");
    }
    let closer = built("step", &["--window-step=4", "-B3"]);
    assert!(closer < found + 10_000, "{closer} and {found}");
    fails_with(build(&place, "image", &["-W25"]), "--window-size");
    fails_with(build(&place, "image", &["-w9"]), "--window-step");
}

#[test]
fn each_part_is_compressed_as_asked() {
    let place = place_with_text();
    // Tables that shrink.
    for number in 0..500 {
        fs::write(
            place.tree().join(format!("a name with a number {number}")),
            "",
        )
        .unwrap();
    }
    let options = [
        "-Clz4",
        "--schema-compression=zstd:level=3",
        "--metadata-compression=lzma:level=1",
        "--history-compression=brotli",
        "--categorize=none",
    ];
    build(&place, "image", &options).succeed();
    let info = info(&place, "image");
    let sections = info["sections"].as_array().unwrap();
    let compression = |kind: &str| {
        let section = sections.iter().find(|section| section["type"] == kind);
        section.unwrap()["compression"]
            .as_str()
            .unwrap()
            .to_lowercase()
    };
    for (kind, expect) in [("BLOCK", "lz4"), ("METADATA_V2", "lzma")] {
        assert_eq!(compression(kind), expect, "{kind}");
    }
    // What does not shrink is stored.
    for (kind, expect) in [("METADATA_V2_SCHEMA", "zstd"), ("HISTORY", "brotli")] {
        let found = compression(kind);
        assert!(found == expect || found == "none", "{kind}: {found}");
    }
    fails_with(
        build(&place, "none", &["--metadata-compression=flac"]),
        "flac",
    );
}

#[test]
fn an_image_is_read_as_asked() {
    let place = place_with_text();
    build(&place, "image", &["-l4"]).succeed();
    let image = fs::read(place.path("image")).unwrap();
    let behind = place.path("behind");
    fs::write(&behind, [b"in front of it".as_slice(), &image].concat()).unwrap();
    let sums = |options: &[&str]| {
        let run = dwarfsck().arg("--checksum=sha256").args(options);
        stdout(&run.arg(&behind).succeed())
    };
    let archive = |options: &[&str]| {
        let run = dwarfsextract().args(["-f", "ustar"]).args(options);
        run.arg("-i").arg(&behind).succeed().stdout
    };
    let (plain_sums, plain_archive) = (sums(&[]), archive(&[]));
    for options in [
        ["-O14"].as_slice(),
        &["--image-offset=auto"],
        &["-n1", "-s1m"],
        &["--num-workers=9", "--cache-size=0"],
    ] {
        assert_eq!(plain_sums, sums(options), "{options:?}");
        assert!(plain_archive == archive(options), "{options:?}");
    }
    for bad in ["-O3", "-O99999999", "-Oback", "-s1kb", "-nx"] {
        dwarfsck().arg(&behind).arg(bad).expect_code(1);
        let run = dwarfsextract().args(["-f", "ustar", bad, "-i"]);
        run.arg(&behind).expect_code(1);
    }
}

#[test]
fn one_of_several_images_in_a_file_is_mounted() {
    require!(mount::available());
    let place = Place::new();
    build(&place, "first", &["-l1"]).succeed();
    fs::write(place.tree().join("second"), "this is the second").unwrap();
    build(&place, "second", &["-l1"]).succeed();
    let [first, second] = ["first", "second"].map(|name| fs::read(place.path(name)).unwrap());
    let both = place.path("both");
    fs::write(&both, [&first[..], &second].concat()).unwrap();
    for (offset, len, has_it) in [(0, first.len(), false), (first.len(), second.len(), true)] {
        let option = format!("offset={offset},imagesize={len}");
        let driver = std::path::Path::new(env!("CARGO_BIN_EXE_dwarfs"));
        let mounted = Mount::new(driver, &both, &[&option]);
        assert!(mounted.path().join("hello").is_file());
        assert_eq!(mounted.path().join("second").is_file(), has_it, "{option}");
    }
}
