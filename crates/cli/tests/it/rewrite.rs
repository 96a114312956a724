//! mkdwarfs with an image as its input.

use std::fs;
use std::path::PathBuf;

use durin_testkit::run::Run;

use durin_testkit::json;
use durin_testkit::random::Random;
use serde_json::Value;

use crate::support::{Place, TIME, dwarfsck, fails_with, mkdwarfs, stdout};

/// A place with an image of its tree, `old`.
fn place_with_image() -> Place {
    let place = Place::new();
    place.build("old").succeed();
    place
}

/// Rewrites `old`.
fn rewrite(place: &Place, name: &str, arguments: &[&str]) -> Run {
    mkdwarfs()
        .arg("-i")
        .arg(place.path("old"))
        .arg("-o")
        .arg(place.path(name))
        .args(arguments)
}

fn checksums(image: PathBuf) -> String {
    stdout(&dwarfsck().arg("--checksum=sha256").arg(image).succeed())
}

fn listing(image: PathBuf) -> String {
    stdout(&dwarfsck().args(["-l", "-v"]).arg(image).succeed())
}

#[test]
fn every_kind_reads_the_same() {
    let place = place_with_image();
    for (number, arguments) in [
        ["--recompress"].as_slice(),
        &["--recompress=all", "-l", "9"],
        &["--recompress=block", "-C", "lzma:level=1"],
        &["--recompress=metadata", "--metadata-compression=zstd"],
        &["--recompress=none"],
        &["--rebuild-metadata", "-P", "all"],
        &["--rebuild-metadata", "--recompress", "-P", "plain"],
        &["--change-block-size", "-S", "10"],
        &["--change-block-size", "-S", "30", "-l", "0"],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("new{number}");
        rewrite(&place, &name, arguments).succeed();
        let image = place.path(&name);
        dwarfsck()
            .args(["-q", "--check-integrity"])
            .arg(&image)
            .succeed();
        assert_eq!(checksums(place.path("old")), checksums(image.clone()));
        assert_eq!(listing(place.path("old")), listing(image), "{arguments:?}");
    }
}

#[test]
fn history_grows_and_can_be_left_out() {
    let place = place_with_image();
    let entries = |name: &str| {
        let info = dwarfsck().arg("--json").arg(place.path(name)).succeed();
        stdout(&info).matches("\"compiler_id\"").count()
    };
    assert_eq!(entries("old"), 1);
    rewrite(&place, "new", &["--recompress=none"]).succeed();
    assert_eq!(entries("new"), 2);
    rewrite(&place, "bare", &["--recompress=none", "--no-history"]).succeed();
    assert_eq!(entries("bare"), 0);
}

#[test]
fn headers_are_kept_replaced_or_removed() {
    let place = Place::new();
    fs::write(place.path("head"), "#!/bin/sh\n").unwrap();
    let head = place.path("head");
    let head = head.to_str().unwrap();
    place.build("old").args(["--header", head]).succeed();
    let begins = |name: &str, with: &str| {
        assert!(
            fs::read(place.path(name))
                .unwrap()
                .starts_with(with.as_bytes()),
            "{name}"
        );
    };
    rewrite(&place, "kept", &["--recompress=none"]).succeed();
    begins("kept", "#!/bin/sh\nDWARFS");
    rewrite(&place, "removed", &["--recompress=none", "--remove-header"]).succeed();
    begins("removed", "DWARFS");
    fs::write(place.path("other"), "other").unwrap();
    let other = place.path("other");
    let outcome = rewrite(
        &place,
        "replaced",
        &["--recompress=none", "--header", other.to_str().unwrap()],
    )
    .succeed();
    begins("replaced", "otherDWARFS");
    assert!(outcome.stderr.contains("is replaced"), "{outcome}");
}

#[test]
fn attributes_are_changed_on_request() {
    let place = place_with_image();
    rewrite(
        &place,
        "new",
        &[
            "--rebuild-metadata",
            "--set-owner=4000000000",
            "--set-group=5",
            "--set-time=1000000000",
            "--chmod=Fo+w",
        ],
    )
    .succeed();
    let listing = listing(place.path("new"));
    let files = || listing.lines().filter(|line| line.starts_with('-'));
    assert!(files().count() >= 3, "{listing}");
    for line in files() {
        assert!(line.contains("4000000000/5"), "{line}");
        assert!(line.contains("2001-09-09"), "{line}");
        assert_eq!(line.as_bytes().get(8), Some(&b'w'), "{line}");
    }
    let info = dwarfsck().arg("-d7").arg(place.path("new")).succeed();
    assert!(stdout(&info).contains("metadata_version_history"), "{info}");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let place = place_with_image();
    let refused = |arguments: &[&str], expect: &str| {
        fails_with(rewrite(&place, "new", arguments), expect);
    };
    refused(&["--recompress=some"], "some");
    refused(
        &["--recompress", "--recompress-categories=nonsense"],
        "unknown category",
    );
    refused(
        &["--recompress=none", "--recompress-categories=hotness"],
        "needs --recompress=all",
    );
    refused(&["--rebuild-metadata", "--time-resolution=1ms"], "multiple");
    refused(&["--recompress", "--debug-filter"], "--debug-filter");
    refused(&["--recompress", "-C", "flac"], "flac");
    refused(&["--remove-header"], "only applies to rewriting");
    refused(&["--no-check"], "only applies to rewriting");
    fails_with(rewrite(&place, "old", &["--recompress"]), "same file");
    fails_with(rewrite(&place, "old", &["--recompress", "-f"]), "same file");
    fs::write(place.path("taken"), "precious").unwrap();
    fails_with(
        rewrite(&place, "taken", &["--recompress"]),
        "already exists",
    );
    assert_eq!(fs::read(place.path("taken")).unwrap(), b"precious");
    assert_eq!(place.names(), ["old", "taken"]);
}

#[test]
fn damage_is_named_and_leaves_nothing() {
    let place = place_with_image();
    let mut bytes = fs::read(place.path("old")).unwrap();
    bytes[70] ^= 1;
    fs::write(place.path("old"), bytes).unwrap();
    let outcome = rewrite(&place, "new", &["--recompress=none"]).output();
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("section 0 (BLOCK) at offset 0"),
        "{outcome}"
    );
    assert!(
        outcome
            .stderr
            .contains("input filesystem is corrupt: detected 1 error"),
        "{outcome}"
    );
    let outcome = rewrite(&place, "new", &["--recompress=none", "--no-check"]).output();
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("section 0 (BLOCK) at offset 0"),
        "{outcome}"
    );
    assert_eq!(place.names(), ["old"]);
}

#[test]
fn options_without_effect_are_named() {
    let place = place_with_image();
    let outcome = rewrite(&place, "new", &["--recompress", "--order=path", "-W", "12"]).succeed();
    assert!(
        outcome
            .stderr
            .contains("without effect on this rewriting: --order, --window-size"),
        "{outcome}"
    );
}

#[test]
fn a_limit_on_memory_is_held_or_refused() {
    let place = Place::new();
    fs::write(place.tree().join("text"), Random::new(5).text(4 << 20)).unwrap();
    place.build("old").arg("-S22").succeed();
    let (mut is_lower, mut is_refused) = (false, false);
    for limit in (16..=112).rev().step_by(16) {
        let text = format!("-L{limit}m");
        let run = rewrite(&place, "new", &["--recompress", "-f", "-l8", "-N2", &text]);
        let outcome = run.output();
        let messages = &outcome.stderr;
        match outcome.code {
            Some(0) => {
                assert!(!is_refused, "{limit}: {messages}");
                assert!(outcome.peak_bytes <= limit << 20, "{limit}: {outcome:?}");
                is_lower |= messages.contains("compressed as at level");
                assert_eq!(checksums(place.path("old")), checksums(place.path("new")));
            }
            code => {
                assert!(
                    code == Some(1) && messages.contains("--memory-limit"),
                    "{messages}"
                );
                is_refused = true;
            }
        }
    }
    assert!(is_lower && is_refused, "{is_lower} {is_refused}");
    // Who says how to compress is not contradicted.
    let options = ["--recompress", "-f", "-Clzma:level=9", "-L48m"];
    fails_with(rewrite(&place, "new", &options), "--compression");
}

#[test]
fn summary_and_standard_output() {
    let place = place_with_image();
    let summary = stdout(&rewrite(&place, "new", &["--recompress", "--json"]).succeed());
    for name in ["old_image_bytes", "copied_blocks", "categories", "chunks"] {
        assert!(summary.contains(&format!("\"{name}\"")), "{summary}");
    }
    let events = rewrite(&place, "events", &["--recompress", "--progress=json"]).succeed();
    assert!(events.stderr.contains("\"event\":\"start\""), "{events}");
    assert!(events.stderr.contains("\"rewrites\":true"), "{events}");
    let events: Vec<Value> = events.stderr.lines().map(parsed).collect();
    let phases = events.iter().filter(|event| event["event"] == "phase");
    let phases: Vec<&str> = phases.filter_map(|event| event["phase"].as_str()).collect();
    assert_eq!(phases, ["checking", "blocks", "metadata", "finished"]);
    let last = events.iter().rfind(|event| event["event"] == "progress");
    assert_eq!(last.map(|event| &event["phase"]), Some(&"finished".into()));
    let piped = mkdwarfs()
        .arg("-i")
        .arg(place.path("old"))
        .args(["-o", "-", "--recompress", "-N3"])
        .succeed();
    assert_eq!(
        piped.stdout,
        fs::read(place.path("events")).unwrap(),
        "at {TIME}"
    );
}

#[test]
fn a_dry_run_comes_close_and_writes_nothing() {
    let place = Place::new();
    let mut random = Random::new(5);
    let noise = random.bytes(1 << 20);
    let text = random.text(6 << 20);
    fs::write(place.tree().join("noise"), noise).unwrap();
    fs::write(place.tree().join("text"), text).unwrap();
    mkdwarfs()
        .arg("-i")
        .arg(place.tree())
        .arg("-o")
        .arg(place.path("old"))
        .args(["-l3", "-S", "17", "--categorize=none"])
        .succeed();
    for arguments in [
        ["--recompress", "-l4"].as_slice(),
        &["--recompress=metadata"],
        &["--change-block-size", "-S", "16", "-l2"],
        &["--rebuild-metadata", "--recompress", "-l0"],
    ] {
        let name = format!("new{}", arguments.concat());
        rewrite(&place, &name, arguments).succeed();
        let image = fs::metadata(place.path(&name)).unwrap().len();
        let before = fs::read_dir(place.path(".")).unwrap().count();
        let dry = || {
            let run = mkdwarfs().arg("-i").arg(place.path("old"));
            run.args(arguments).arg("--dry-run")
        };
        let report = parsed(&stdout(&dry().arg("--json").succeed()));
        assert_eq!(fs::read_dir(place.path(".")).unwrap().count(), before);
        let estimate = &report["estimate"];
        let bytes = |name: &str| estimate[name].as_u64().unwrap();
        let range = bytes("image_bytes_low")..=bytes("image_bytes_high");
        assert!(
            range.contains(&image) && bytes("image_bytes").abs_diff(image) <= image / 20,
            "{arguments:?}: {image} bytes, not {estimate}"
        );
        assert!(estimate["cpu_seconds"].as_f64().unwrap() > 0.0);
        let samples = bytes("sampled_blocks");
        assert!(samples <= bytes("blocks"), "{estimate}");
        let text = stdout(&dry().succeed());
        assert!(text.starts_with("image size: "), "{text}");
        let again = parsed(&stdout(&dry().args(["--json", "-N1"]).succeed()));
        assert_eq!(again["estimate"]["image_bytes"], estimate["image_bytes"]);
    }
}

fn parsed(text: &str) -> Value {
    json::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
