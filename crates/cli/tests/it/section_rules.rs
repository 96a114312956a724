//! Sections that are more, fewer or other than a reader expects. Source: format specification, A.4.

use std::fs;
use std::path::PathBuf;

use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_testkit::json;
use durin_testkit::run::Outcome;

use crate::support::{Place, dwarfsck, dwarfsextract, fails_with, mkdwarfs, stdout};

/// An image of a small tree without index, and how many sections it has.
fn image(place: &Place) -> (Vec<u8>, u32) {
    let build = place.build("plain");
    build.args(["--no-section-index", "-f"]).succeed();
    let bytes = fs::read(place.path("plain")).unwrap();
    let info = dwarfsck().args(["-j", "-d3"]).arg(place.path("plain"));
    let info = json::parse(&stdout(&info.succeed())).unwrap();
    let count = info["sections"].as_array().unwrap().len();
    (bytes, u32::try_from(count).unwrap())
}

/// The image with further sections at its end.
fn with(place: &Place, further: &[(SectionType, CompressionType, &[u8])]) -> PathBuf {
    let (mut bytes, count) = image(place);
    for (number, (kind, compression, payload)) in (count..).zip(further) {
        bytes.extend(encode_header(number, *kind, *compression, payload));
        bytes.extend(*payload);
    }
    let path = place.path("image");
    fs::write(&path, bytes).unwrap();
    path
}

/// The payloads of the sections of a type, as they are stored.
fn stored(place: &Place, name: &str, wanted: &str) -> Vec<Vec<u8>> {
    let info = dwarfsck().args(["-j", "-d3"]).arg(place.path(name));
    let info = json::parse(&stdout(&info.succeed())).unwrap();
    let bytes = fs::read(place.path(name)).unwrap();
    let sections = info["sections"].as_array().unwrap().iter();
    let wanted = sections.filter(|section| section["type"] == wanted);
    let payload = |section: &serde_json::Value| {
        let number = |key: &str| usize::try_from(section[key].as_u64().unwrap()).unwrap();
        let begin = number("offset") + 64;
        bytes[begin..begin + number("compressed_size")].to_vec()
    };
    wanted.map(payload).collect()
}

/// The numbers of the types that are not known.
fn unknown_numbers(place: &Place, name: &str) -> Vec<u64> {
    let info = dwarfsck().args(["-j", "-d3"]).arg(place.path(name));
    let info = json::parse(&stdout(&info.succeed())).unwrap();
    let sections = info["sections"].as_array().unwrap().iter();
    let numbers = sections.filter_map(|section| section["type_number"].as_u64());
    numbers.collect()
}

fn check(path: &PathBuf) -> Outcome {
    dwarfsck().args(["--check-integrity"]).arg(path).succeed()
}

#[test]
fn types_of_the_future_only_warn_and_are_carried_along() {
    let place = Place::new();
    let path = with(
        &place,
        &[
            (SectionType::Unknown(77), CompressionType::None, b"later"),
            (
                SectionType::Unknown(78),
                CompressionType::Unknown(99),
                b"even later",
            ),
        ],
    );
    let seen = check(&path);
    assert!(seen.stderr.contains("unknown section type 77"), "{seen}");
    fs::create_dir(place.path("out")).unwrap();
    let run = dwarfsextract().arg("-i").arg(&path).arg("-o");
    run.arg(place.path("out")).succeed();
    let hello = fs::read(place.path("out/hello")).unwrap();
    assert_eq!(hello, b"hello\n");

    for (name, options) in [
        ("none", ["--recompress=none"].as_slice()),
        ("all", &["--recompress", "-l9"]),
        ("rebuilt", &["--rebuild-metadata"]),
        ("cut", &["--change-block-size", "-S12"]),
    ] {
        let run = mkdwarfs().arg("-i").arg(&path).arg("-o");
        run.arg(place.path(name)).args(options).succeed();
        let seen = check(&place.path(name));
        assert!(seen.stderr.contains("unknown section type 77"), "{seen}");
        let carried = stored(&place, name, "UNKNOWN");
        assert_eq!(unknown_numbers(&place, name), [77, 78]);
        assert_eq!(carried, [&b"later"[..], b"even later"], "{name}");
    }
}

#[test]
fn what_there_is_one_of_is_refused_twice() {
    let place = Place::new();
    image(&place);
    for (kind, name) in [
        (SectionType::MetadataV2, "METADATA_V2"),
        (SectionType::MetadataV2Schema, "METADATA_V2_SCHEMA"),
    ] {
        let payload = stored(&place, "plain", name).remove(0);
        let path = with(&place, &[(kind, CompressionType::None, &payload)]);
        fails_with(
            dwarfsck().arg(&path),
            &format!("more than one section of type {name}"),
        );
    }
    let unknown: (SectionType, CompressionType, &[u8]) =
        (SectionType::Unknown(77), CompressionType::None, b"x");
    let path = with(&place, &[unknown, unknown]);
    fails_with(
        dwarfsck().arg("--check-integrity").arg(&path),
        "duplicate section",
    );
}

#[test]
fn history_may_be_there_twice_and_blocks_as_often_as_they_like() {
    let place = Place::new();
    image(&place);
    let history = stored(&place, "plain", "HISTORY").remove(0);
    let block: (SectionType, CompressionType, &[u8]) = (
        SectionType::Block,
        CompressionType::None,
        b"nobody needs it",
    );
    let path = with(
        &place,
        &[
            block,
            (SectionType::History, CompressionType::None, &history),
        ],
    );
    check(&path);
}
