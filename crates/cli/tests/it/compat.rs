//! Options of the reference that no other test uses by their names, and the table that lists all of them.

use std::fs;
use std::path::Path;

use durin_testkit::json;
use durin_testkit::random::Random;
use serde_json::Value;

use crate::support::{Place, dwarfs, dwarfsck, dwarfsextract, fails_with, mkdwarfs, stdout};

/// The options of the reference's programs, release 0.15, as sections 2 to 5 of its description have them.
const OPTIONS: [(&str, &str); 4] = [
    (
        "mkdwarfs",
        "--input --input-list --output --force --compress-level --long-help --block-size-bits --num-workers \
         --num-scanner-workers --num-segmenter-workers --compress-niceness --memory-limit --categorize --order \
         --max-similarity-size --file-hash --progress --no-progress --recompress --recompress-categories \
         --rebuild-metadata --change-block-size --no-check --filter --debug-filter --remove-empty-dirs \
         --max-lookback-blocks --window-size --window-step --bloom-filter-size --compression --schema-compression \
         --metadata-compression --history-compression --with-devices --with-specials --no-sparse-files --hollow --header \
         --remove-header --no-section-index --no-history --no-history-timestamps --no-history-command-line --set-owner \
         --set-group --set-time --keep-all-times --time-resolution --chmod --no-create-timestamp --no-category-names \
         --no-category-metadata --no-hardlink-table --no-metadata-version-history --pack-metadata \
         --incompressible-min-input-size --incompressible-block-size --incompressible-fragments --incompressible-ratio \
         --incompressible-zstd-level --hotness-list --help --man --log-level --log-with-context",
    ),
    (
        "dwarfs",
        "--auto-mountpoint cachesize blocksize readahead workers uid gid mlock decratio offset imagesize readonly \
         case_insensitive preload_category preload_all cache_files no_cache_files cache_sparse no_cache_sparse debuglevel \
         analysis_file tidy_strategy tidy_interval tidy_max_age block_allocator seq_detector perfmon perfmon_trace",
    ),
    (
        "dwarfsck",
        "--input --detail --quiet --verbose --image-offset --print-header --list --checksum --num-workers --cache-size \
         --check-integrity --no-check --json --export-metadata",
    ),
    (
        "dwarfsextract",
        "--input --output --pattern --skip-devices --skip-specials --image-offset --format --format-filters \
         --format-options --continue-on-error --disable-integrity-check --stdout-progress --num-workers \
         --num-disk-writers --cache-size --perfmon --perfmon-trace",
    ),
];

/// Options of the driver that only make it say that they are obsolete; its help does not have them.
const OBSOLETE: [&str; 3] = ["enable_nlink", "cache_image", "no_cache_image"];

/// Whether a text has a name that is not a part of another.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !behind.starts_with(is_part)
    })
}

#[test]
fn every_option_of_the_reference_is_there_and_in_the_table() {
    let table = include_str!("../../../../docs/compat.md");
    for (program, options) in OPTIONS {
        let section = table
            .split("\n## ")
            .find(|part| part.starts_with(&format!("{program}\n")));
        let section = section.unwrap();
        let all = table
            .split("\n## ")
            .find(|part| part.starts_with("All programs\n"));
        let run = match program {
            "mkdwarfs" => mkdwarfs().arg("--long-help"),
            "dwarfs" => dwarfs().arg("--man").env("PAGER", "cat"),
            "dwarfsck" => dwarfsck().arg("--man").env("PAGER", "cat"),
            _ => dwarfsextract().arg("--man").env("PAGER", "cat"),
        };
        let help = stdout(&run.succeed());
        for option in options.split_whitespace() {
            // `[no_]cache_files` is two.
            let is_one_of_two = option
                .strip_prefix("no_")
                .is_some_and(|option| help.contains(&format!("[no_]{option}")));
            let is_there = is_one_of_two || names(&help, option);
            assert!(is_there, "{program} {option}: no such option");
            // `--incompressible-*` stands for a few.
            let family = option.split_inclusive('-').take(3).collect::<String>() + "*";
            let is_listed =
                names(section, option) || names(all.unwrap(), option) || section.contains(&family);
            assert!(is_listed, "{program} {option}: not in docs/compat.md");
        }
    }
}

#[test]
fn obsolete_options_of_the_driver_are_in_the_table() {
    let table = include_str!("../../../../docs/compat.md");
    assert!(OBSOLETE.iter().all(|option| names(table, option)));
}

fn info(path: &Path) -> Value {
    let run = dwarfsck().args(["--json", "-d3"]).arg(path);
    json::parse(&stdout(&run.succeed())).unwrap()
}

fn checksums(path: &Path) -> String {
    stdout(&dwarfsck().arg("--checksum=sha256").arg(path).succeed())
}

#[test]
fn what_is_recorded_of_categories_can_be_left_out() {
    let place = Place::new();
    fs::write(place.tree().join("noise"), Random::new(3).bytes(300_000)).unwrap();
    let build = |name: &str, options: &[&str]| {
        let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
        run.arg(place.path(name))
            .args(["-l3"])
            .args(options)
            .succeed();
        info(&place.path(name))
    };
    let full = build("full", &[]);
    assert!(full["categories"]["incompressible"].is_object(), "{full}");
    let bare = build("bare", &["--no-category-names"]);
    assert!(bare["categories"].is_null(), "{bare}");
    let named = build("named", &["--no-category-metadata"]);
    assert!(named["categories"]["incompressible"].is_object());
    assert_eq!(
        checksums(&place.path("full")),
        checksums(&place.path("bare"))
    );

    let rebuilt = |name: &str, options: &[&str]| {
        let run = mkdwarfs().arg("-i").arg(place.path("full")).arg("-o");
        let run = run.arg(place.path(name)).arg("--rebuild-metadata");
        run.args(options).succeed();
        info(&place.path(name))
    };
    let key = "previous_metadata_versions";
    assert_eq!(rebuilt("new", &[])[key].as_array().map(Vec::len), Some(1));
    let forgetful = rebuilt("forgetful", &["--no-metadata-version-history"]);
    assert!(forgetful[key].is_null(), "{forgetful}");
}

#[test]
fn room_for_the_search_changes_nothing_that_is_read() {
    let place = Place::new();
    let text = Random::new(4).text(400_000);
    fs::write(place.tree().join("a"), &text).unwrap();
    fs::write(place.tree().join("b"), [&text[1..], b"end"].concat()).unwrap();
    let mut seen = Vec::new();
    for size in ["0", "4", "10"] {
        let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
        let run = run
            .arg(place.path(size))
            .args(["-l3", "--bloom-filter-size"]);
        run.arg(size).succeed();
        seen.push(checksums(&place.path(size)));
    }
    assert!(seen.iter().all(|sums| *sums == seen[0]));
    let run = place.build("image").arg("--bloom-filter-size=11");
    fails_with(run, "--bloom-filter-size");
}

#[test]
fn checksums_of_blocks_need_not_be_verified() {
    let place = Place::new();
    let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
    run.arg(place.path("image")).arg("-l0").succeed();
    let mut bytes = fs::read(place.path("image")).unwrap();
    let at = bytes.windows(5).position(|part| part == b"hello").unwrap();
    bytes[at] = b'H';
    fs::write(place.path("image"), bytes).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    let extract = || {
        let run = dwarfsextract().arg("-i").arg(place.path("image"));
        run.arg("-o").arg(place.path("out"))
    };
    fails_with(extract(), "mismatch");
    extract().arg("--disable-integrity-check").succeed();
    assert_eq!(fs::read(place.path("out/hello")).unwrap(), b"Hello\n");
}

#[test]
fn messages_have_their_place_where_that_is_asked_for() {
    let place = Place::new();
    let has_place = |options: &[&str]| {
        let run = place.build("image").arg("-f").args(options);
        run.succeed().stderr.contains(" [mkdwarfs/summary.rs:")
    };
    assert!(has_place(&["--log-with-context"]));
    assert!(has_place(&["--log-level=verbose"]));
    assert!(!has_place(&[
        "--log-level=verbose",
        "--log-with-context=false"
    ]));
    assert!(!has_place(&[]));

    // A library's message, too: nothing is built with so little memory.
    let run = place
        .build("image")
        .args(["-f", "-L1", "--log-with-context"]);
    let messages = run.succeed().stderr;
    assert!(messages.contains(" [writer/memory/mod.rs:"), "{messages}");
}

#[test]
fn processors_are_counted_as_the_environment_says() {
    let place = Place::new();
    let run = place.build("image").arg("--progress=json");
    let run = run.env("DWARFS_OVERRIDE_HARDWARE_CONCURRENCY", "7");
    let outcome = run.succeed();
    let start = json::parse(outcome.stderr.lines().next().unwrap()).unwrap();
    assert_eq!(start["workers"], 7, "{start}");
    let warning = |value: &str| {
        let run = place.build("image").args(["-f", "--log-level=warn"]);
        let run = run.env("DWARFS_OVERRIDE_HARDWARE_CONCURRENCY", value);
        run.succeed().stderr
    };
    for bad in ["abc", "0", "1025", "-1"] {
        let expect =
            format!("DWARFS_OVERRIDE_HARDWARE_CONCURRENCY is '{bad}', which is no number from 1");
        let warned = warning(bad);
        assert!(warned.contains(&expect), "{bad}: {warned}");
    }
    for good in ["", "1", "1024"] {
        assert_eq!(warning(good), "", "{good}");
    }

    for (options, threads) in [(&[][..], 7), (&["--num-disk-writers=3"], 3)] {
        let run = dwarfsextract().arg("-i").arg(place.path("image"));
        let run = run.args(["-f", "pax", "--progress=json", "-o", "/dev/null"]);
        let run = run.args(options);
        let run = run.env("DWARFS_OVERRIDE_HARDWARE_CONCURRENCY", "7");
        let outcome = run.succeed();
        let start = json::parse(outcome.stderr.lines().next().unwrap()).unwrap();
        assert_eq!(start["disk_writers"], threads, "{start}");
    }
}

#[test]
fn messages_say_what_to_do() {
    let place = Place::new();
    place.build("image").succeed();
    let image = place.path("image");
    let build = mkdwarfs().arg("-i").arg(&image).arg("-o");
    fails_with(build.arg(place.path("new")), "rewritten with --recompress");
    let extract = dwarfsextract().arg("-i").arg(&image).arg("-o");
    fails_with(extract.arg(place.path("nowhere")), "which must exist");
    let cat = crate::support::durin().arg("cat").arg(&image).arg(".");
    fails_with(cat, "/: Is a directory");
}
