//! mkdwarfs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use durin_testkit::json;
use durin_testkit::random::Random;

use crate::support::{Place, durin, dwarfsck, fails_with, listing, mkdwarfs, program, stdout};

#[test]
fn packs_a_tree() {
    let place = Place::new();
    let outcome = place.build("image").succeed();
    assert!(outcome.stdout.is_empty());
    assert!(
        outcome.stderr.contains("created without errors"),
        "{}",
        outcome.stderr
    );
    assert_eq!(place.names(), ["image"]);
    assert_eq!(
        listing(&place, "image"),
        [
            "hello",
            "sub",
            "sub/copy",
            "sub/empty",
            "sub/hard",
            "sub/odd\\nname",
            "sub/soft"
        ]
    );
}

#[test]
fn same_bytes_whatever_cannot_change_them() {
    let place = Place::new();
    place.build("one").args(["-N", "1"]).succeed();
    place
        .build("two")
        .args([
            "--num-workers=3",
            "--log-level=error",
            "--progress=simple",
            "-L",
            "64m",
        ])
        .succeed();
    let read = |name| fs::read(place.path(name)).unwrap();
    assert!(read("one") == read("two"));
}

#[test]
fn time_of_creation() {
    let place = Place::new();
    let created = |image: &str| {
        let info = dwarfsck().arg(place.path(image)).arg("--json").succeed();
        json::parse(&stdout(&info)).unwrap()["created_on"].as_u64()
    };
    place.build("epoch").succeed();
    assert_eq!(created("epoch"), Some(1_577_836_800));
    place.build("none").arg("--no-create-timestamp").succeed();
    assert_eq!(created("none"), None);
    let run = mkdwarfs().current_dir(&place.path("")).args([
        "-i",
        "tree",
        "-o",
        "epoch",
        "-f",
        "--set-time=now",
    ]);
    run.env("SOURCE_DATE_EPOCH", "1000").succeed();
    let listed = durin()
        .args(["stat", "--json"])
        .arg(place.path("epoch"))
        .arg("hello")
        .succeed();
    let listed = stdout(&listed);
    assert!(listed.contains("\"mtime\":1000,"), "{listed}");
    let run = place.build("bad").env("SOURCE_DATE_EPOCH", "yesterday");
    fails_with(run, "SOURCE_DATE_EPOCH is 'yesterday'");
    assert_eq!(place.names(), ["epoch", "none"]);
}

#[test]
fn history_can_be_left_out_in_parts() {
    let place = Place::new();
    let history = |flags: &[&str]| {
        place.build("image").arg("-f").args(flags).succeed();
        let info = dwarfsck().arg(place.path("image")).arg("--json").succeed();
        json::parse(&stdout(&info)).unwrap()["history"].clone()
    };
    let full = history(&[]);
    assert_eq!(full[0]["timestamp"]["epoch"], 1_577_836_800);
    let arguments = full[0]["arguments"].to_string();
    assert!(
        arguments.contains("--compress-level=1") && !arguments.contains("output"),
        "{arguments}"
    );
    assert!(history(&["--no-history-timestamps"])[0]["timestamp"].is_null());
    assert!(history(&["--no-history-command-line"])[0]["arguments"].is_null());
    assert_eq!(history(&["--no-history"]).as_array().map(Vec::len), Some(0));
}

#[test]
fn existing_images_stay_unless_forced() {
    let place = Place::new();
    fs::write(place.path("image"), "precious").unwrap();
    fails_with(place.build("image"), "already exists; --force replaces it");
    assert_eq!(fs::read(place.path("image")).unwrap(), b"precious");
    place.build("image").arg("--force").succeed();
    assert!(
        fs::read(place.path("image"))
            .unwrap()
            .starts_with(b"DWARFS")
    );
    assert_eq!(place.names(), ["image"]);
}

#[test]
fn image_on_standard_output() {
    let place = Place::new();
    place.build("file").succeed();
    let piped = place.build("-").succeed();
    assert!(piped.stdout == fs::read(place.path("file")).unwrap());
    assert_eq!(place.names(), ["file"]);
}

#[test]
fn summary_as_json() {
    let place = Place::new();
    let summary = |text: &str| json::parse(text).unwrap();
    let on_stdout = summary(&stdout(&place.build("image").arg("--json").succeed()));
    assert_eq!(on_stdout["errors"], 0);
    assert_eq!(on_stdout["entries"]["files"], 3);
    assert_eq!(on_stdout["entries"]["hardlinks"], 1);
    assert_eq!(on_stdout["duplicate_files"], 1);
    let len = fs::metadata(place.path("image")).unwrap().len();
    assert_eq!(on_stdout["image_bytes"].as_u64(), Some(len));

    place.build("other").arg("--json=summary").succeed();
    let in_file = summary(&fs::read_to_string(place.path("summary")).unwrap());
    assert_eq!(in_file["image_bytes"].as_u64(), Some(len));

    let piped = place
        .build("-")
        .args(["--json", "--log-level=error"])
        .succeed();
    assert!(piped.stdout.starts_with(b"DWARFS"));
    assert_eq!(summary(&piped.stderr)["errors"], 0);
}

#[test]
fn owners_times_and_modes() {
    let place = Place::new();
    mkdwarfs()
        .args([
            "-l1",
            "--chmod=ug=rwX,o=",
            "--set-owner=70000",
            "--set-group=5",
            "--set-time=2020-01-01T00:00",
        ])
        .arg("-i")
        .arg(place.tree())
        .arg("-o")
        .arg(place.path("image"))
        .succeed();
    let outcome = dwarfsck()
        .arg(place.path("image"))
        .args(["--list", "--verbose"])
        .succeed();
    let list = stdout(&outcome);
    let line = list.lines().find(|line| line.ends_with(" hello")).unwrap();
    assert_eq!(line, "-rw-rw---- 70000/5 6 2020-01-01 00:00:00 hello");
}

#[test]
fn a_header_that_is_found_first_is_warned_about() {
    let place = Place::new();
    let len = fs::metadata(place.image()).unwrap().len();
    let outcome = place.build("new").arg("--header=image.dwarfs").succeed();
    assert!(
        outcome.stderr.contains(&format!("begins at {len} ")),
        "{outcome}"
    );
    let check = dwarfsck().current_dir(&place.path(""));
    check
        .args(["-i", "new", &format!("--image-offset={len}")])
        .succeed();
}

#[test]
fn header_goes_in_front() {
    let place = Place::new();
    fs::write(place.path("header"), "#!/bin/sh\n").unwrap();
    place
        .build("image")
        .arg("--header")
        .arg(place.path("header"))
        .succeed();
    let header = dwarfsck()
        .arg(place.path("image"))
        .arg("--print-header")
        .succeed();
    assert_eq!(header.stdout, b"#!/bin/sh\n");
}

#[test]
fn compression_and_blocks() {
    let place = Place::new();
    for spec in [
        "null",
        "lz4",
        "lz4hc:level=3",
        "zstd:level=3",
        "lzma:level=1",
        "brotli:quality=2",
    ] {
        place
            .build("image")
            .args(["-f", "-C", spec, "-S", "12"])
            .succeed();
        dwarfsck()
            .arg(place.path("image"))
            .args(["-q", "--check-integrity"])
            .succeed();
    }
    fails_with(place.build("bad").args(["-C", "zstd:level=99"]), "level");
    fails_with(place.build("bad").args(["-C", "gzip"]), "gzip");
    fails_with(place.build("bad").args(["-C", "flac"]), "flac");
    fails_with(place.build("bad").args(["-S", "31"]), "31");
    assert_eq!(place.names(), ["image"]);
}

/// At the default level programs end blocks of 1 MiB, other data those of 4, and nothing does if a size was asked for.
#[test]
fn programs_are_in_smaller_blocks_unless_a_size_was_asked_for() {
    let blocks = |header: &[u8], options: &[&str]| {
        let place = Place::new();
        let mut random = Random::new(9);
        for number in 0..5 {
            let text = random.bytes(300_000);
            let text = text.iter().map(|byte| format!("{byte:02x}"));
            let content = [header, text.collect::<String>().as_bytes()].concat();
            fs::write(place.tree().join(format!("file{number}")), content).unwrap();
        }
        mkdwarfs()
            .current_dir(&place.path("."))
            .args(["-i", "tree", "-o", "image", "-C", "zstd:level=1"])
            .args(options)
            .succeed();
        let info = dwarfsck().arg(place.path("image")).succeed();
        let info = stdout(&info);
        let count = info
            .lines()
            .find_map(|line| line.strip_prefix("block count: "))
            .unwrap_or_else(|| panic!("{info}"));
        count.parse::<u32>().unwrap()
    };
    let program = b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0";
    let with_small_files = 1;
    assert_eq!(blocks(b"text", &[]), 1);
    assert_eq!(blocks(program, &[]), 3 + with_small_files);
    assert_eq!(blocks(program, &["-S", "24"]), 1 + with_small_files);
}

#[test]
fn what_moves_within_a_file_is_stored_once_from_level_1_on() {
    let place = Place::new();
    let old = Random::new(3).bytes(300_000);
    let new = [b"a line", &old[..100_000], b"another", &old[100_500..]].concat();
    fs::write(place.tree().join("old"), &old).unwrap();
    fs::write(place.tree().join("new"), &new).unwrap();
    let size_at = |level: u8| {
        let name = format!("image{level}");
        mkdwarfs()
            .current_dir(&place.path("."))
            .args(["-i", "tree", "-o", &name, &format!("-l{level}")])
            .succeed();
        fs::metadata(place.path(&name)).unwrap().len()
    };
    assert!(size_at(0) > 600_000);
    for level in 1..=9 {
        let size = size_at(level);
        assert!(size < 330_000, "level {level}: {size}");
    }
}

#[test]
fn orders_that_look_at_contents() {
    let place = Place::new();
    for (name, arguments) in [
        ("similar", ["--order=similarity"].as_slice()),
        ("digests", &["--order=nilsimsa:max-children=1k"]),
        ("large", &["--order=similarity", "--max-similarity-size=1k"]),
    ] {
        place.build(name).args(arguments).succeed();
    }
    fails_with(
        place.build("bad").args(["--order=nilsimsa:max-children=0"]),
        "at least 1",
    );
    fails_with(
        place.build("bad").args(["--max-similarity-size=big"]),
        "a size is a number",
    );
}

#[test]
fn options_of_categories() {
    let place = Place::new();
    for arguments in [
        ["-C", "incompressible,binary/elf::null"],
        ["-W", "pcmaudio/waveform::12"],
        ["--order", "fits/image::revpath"],
    ] {
        let image = format!("image{}", arguments[0]);
        place.build(&image).args(arguments).succeed();
    }
    let place = Place::new();
    for (arguments, message) in [
        (["-C", "x::null"], "unknown category 'x'"),
        (["-B", "x,hotness::2"], "unknown category 'x'"),
        (["--order", ",hotness::path"], "name of a category"),
        (["-C", "binary/elf::flac"], "cannot compress category"),
        (["-W", "25"], "not a number from 0 to 24"),
        (["-w", "hotness::9"], "not a number from 0 to 8"),
    ] {
        fails_with(place.build("image").args(arguments), message);
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn parts_of_files_are_stored_from_level_7_up() {
    let place = Place::new();
    let mut half_noise = "lines of text\n".repeat(80_000).into_bytes();
    half_noise.truncate(1 << 20);
    half_noise.extend(Random::new(7).bytes(1 << 20));
    fs::write(place.tree().join("archive"), &half_noise).unwrap();
    let stored = |arguments: &[&str]| {
        let run = mkdwarfs().arg("-i").arg(place.tree()).args(arguments);
        run.arg("-fo").arg(place.path("image")).succeed();
        let run = dwarfsck().arg(place.path("image"));
        let report = stdout(&run.args(["-j", "-d0", "--space=1"]).succeed());
        let space = json::parse(&report).unwrap()["space"].clone();
        let rows = space["categories"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == "incompressible");
        row.map_or(0, |row| row["size"].as_u64().unwrap())
    };
    let fragments = "--incompressible-fragments";
    assert_eq!(stored(&["-l6"]), 0);
    assert_eq!(stored(&["-l6", fragments]), 1 << 20);
    assert_eq!(stored(&["-l7"]), 1 << 20);
    assert_eq!(stored(&["-l7", &format!("{fragments}=false")]), 0);
    assert_eq!(stored(&["-l9", &format!("{fragments}=true")]), 1 << 20);
    fails_with(
        place.build("image").args([&format!("{fragments}=1")]),
        "invalid value '1'",
    );
}

#[test]
fn unusable_inputs() {
    let place = Place::new();
    let with_input = |input: &str| {
        let run = mkdwarfs().current_dir(&place.path(""));
        run.args(["-i", input, "-o", "image"])
    };
    fails_with(with_input("nowhere"), "cannot use input 'nowhere'");
    fails_with(with_input("tree/hello"), "is not a directory");
    fails_with(place.build("no/such/dir/image"), "no/such/dir/image");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn what_cannot_be_packed_is_counted() {
    let place = Place::new();
    fs::write(place.path("list"), "hello\nmissing\n").unwrap();
    let outcome = mkdwarfs()
        .arg("-i")
        .arg(place.tree())
        .arg("--input-list")
        .arg(place.path("list"))
        .arg("-o")
        .arg(place.path("image"))
        .expect_code(2);
    assert!(outcome.stderr.contains("missing"), "{outcome}");
    assert!(outcome.stderr.contains("created with 1 error"), "{outcome}");
    assert_eq!(listing(&place, "image"), ["hello"]);
}

#[test]
fn log_level_and_progress() {
    let place = Place::new();
    let outcome = place.build("image").args(["--log-level=warn"]).succeed();
    assert_eq!(outcome.stderr, "");
    let outcome = place
        .build("image")
        .args(["-f", "--log-level=error", "--no-progress"])
        .succeed();
    assert_eq!(outcome.stderr, "");
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    let place = Place::new();
    let big = fs::File::create(place.tree().join("big")).unwrap();
    // Hard to compress, but not in vain: that keeps the slowest level busy until the signal comes.
    let mut noise = durin_testkit::random::Random::new(7);
    for _ in 0..64 {
        let mut bytes = noise.bytes(1 << 20);
        bytes.iter_mut().for_each(|byte| *byte &= 0x3F);
        (&big).write_all(&bytes).unwrap();
    }
    let script = format!(
        "{} -i tree -o image -l9 --log-level=error & child=$!; \
         sleep 1; kill -TERM $child; wait $child",
        env!("CARGO_BIN_EXE_mkdwarfs")
    );
    let outcome = program("/bin/bash")
        .current_dir(&place.path(""))
        .args(["-c", &script])
        .output();
    assert_eq!(outcome.code, Some(128 + 15), "{outcome}");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_system_without_threads_to_give_is_a_clean_error() {
    let place = Place::new();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    // No limit holds for root. The other user needs a number that nobody has, whose processes would count.
    let limited = |threads: u32| {
        let run = program("prlimit")
            .current_dir(&place.path(""))
            .arg(format!("--nproc={threads}"));
        let run = if durin_testkit::skip::is_root() {
            run.args(["setpriv", "--reuid=1954321", "--clear-groups"])
        } else {
            run
        };
        run.arg(env!("CARGO_BIN_EXE_mkdwarfs"))
    };
    let probe = limited(64).arg("--version").output();
    if probe.code != Some(0) {
        durin_testkit::skip::skipped(&format!("no program runs with a limit of threads: {probe}"));
        return;
    }
    let mut codes = std::collections::BTreeSet::new();
    for threads in (1..8).chain([64]) {
        let image = format!("image{threads}");
        let outcome = limited(threads)
            .args(["-i", "tree", "-l1", "-N8", "--no-progress", "-o", &image])
            .output();
        let is_built = outcome.code == Some(0);
        let is_clean = outcome.code == Some(1) && outcome.stderr.contains("cannot start a thread");
        assert!(
            is_built || is_clean || outcome.code == Some(2),
            "{threads} threads: {outcome}"
        );
        assert_eq!(place.path(&image).exists(), !is_clean);
        codes.extend(outcome.code);
    }
    assert!(codes.contains(&1) && codes.len() > 1, "{codes:?}");
    assert!(place.names().iter().all(|name| !name.contains("partial")));
}

#[test]
fn hollow_images_have_sizes_and_no_contents() {
    let place = Place::new();
    let unreadable = place.tree().join("sub/unreadable");
    fs::write(&unreadable, vec![7; 100_000]).unwrap();
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o000)).unwrap();
    let outcome = place.build("image").args(["--hollow", "--json"]).succeed();
    assert!(outcome.stderr.contains("no contents"), "{outcome}");
    let report = json::parse(&stdout(&outcome)).unwrap();
    assert_eq!(
        (&report["blocks"], &report["allocated_bytes"]),
        (&0.into(), &0.into())
    );
    let list = dwarfsck()
        .arg(place.path("image"))
        .args(["--list", "--verbose"])
        .succeed();
    let list = stdout(&list);
    let size_of = |name: &str| {
        let line = list.lines().find(|line| line.ends_with(name)).unwrap();
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(size_of(" sub/unreadable"), "100000");
    assert_eq!(size_of(" hello"), "6");
    fs::create_dir(place.path("out")).unwrap();
    crate::support::dwarfsextract()
        .arg("-i")
        .arg(place.path("image"))
        .arg("-o")
        .arg(place.path("out"))
        .succeed();
    assert_eq!(fs::read(place.path("out/hello")).unwrap(), [0; 6]);
    let run = place.build("other").args(["--hollow", "--no-sparse-files"]);
    fails_with(run, "--no-sparse-files");
}

#[test]
fn owners_by_name() {
    let place = Place::new();
    let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
    run.arg(place.path("image"))
        .args(["-l1", "--set-owner=root", "--set-group=0"])
        .succeed();
    let list = dwarfsck()
        .arg(place.path("image"))
        .args(["--list", "--verbose"])
        .succeed();
    let list = stdout(&list);
    assert!(list.lines().all(|line| line.contains(" 0/0 ")), "{list}");
    let run = mkdwarfs().arg("-i").arg(place.tree()).args(["-o", "x"]);
    fails_with(
        run.arg("--set-group=no-such-group-here"),
        "there is no group 'no-such-group-here'",
    );
}

#[test]
fn times_coarser_than_asked_for_are_told() {
    let place = Place::new();
    let run = |resolution: &str| {
        let run = mkdwarfs().arg("-i").arg(place.tree()).arg("-o");
        let run = run.arg(place.path("image")).args(["-l1", "-f"]);
        let run = run.arg(format!("--time-resolution={resolution}"));
        run.succeed().stderr
    };
    let touched = program("find").arg(place.tree());
    touched
        .args(["-exec", "touch", "-hd", "2020-01-01 00:00:00", "{}", "+"])
        .succeed();
    assert!(run("1ms").contains("multiples of 1000000000 ns"));
    assert!(!run("1s").contains("multiples of"));
}

#[test]
fn memory_is_logged_where_the_environment_asks() {
    let place = Place::new();
    for accurate in ["0", "1"] {
        let run = place.build("image").arg("-f");
        run.env("DWARFS_LOG_MEMORY_USAGE", place.path("log"))
            .env("DWARFS_ACCURATE_MEMORY_USAGE", accurate)
            .succeed();
        let log = fs::read_to_string(place.path("log")).unwrap();
        let mut lines = log.lines().map(|line| line.split('\t'));
        let names: Vec<_> = lines.next().unwrap().collect();
        assert_eq!(names, ["time", "total", "anon", "file", "allocated"]);
        let last: Vec<_> = lines.next_back().unwrap().collect();
        assert!(last[1].parse::<u64>().unwrap() > 1 << 20, "{log}");
        assert_eq!(last.len(), names.len());
    }
    let run = place.build("image").arg("-f");
    let outcome = run.env("DWARFS_LOG_MEMORY_USAGE", "no/such/dir").succeed();
    assert!(outcome.stderr.contains("DWARFS_LOG_MEMORY_USAGE"));
}

/// With more data than fits into the limit, all of it is used: blocks are kept to compare with as long as there is room.
#[test]
fn memory_keeps_to_the_limit() {
    const FILES: u64 = 250;
    const LIMIT: u64 = 128 << 20;
    let place = Place::new();
    let mut random = Random::new(1);
    let text = random.text(4_001 * usize::from(u8::MAX));
    for number in 0..FILES {
        // Blocks that shrink more and less, so that memory of all sizes is taken and given back.
        let number = u8::try_from(number).unwrap();
        let text_len = 4_001 * usize::from(u8::MAX - number);
        let mut content: Vec<u8> = text[..text_len]
            .iter()
            .map(|byte| byte.wrapping_add(number))
            .collect();
        content.extend(random.bytes(4_001 * usize::from(number)));
        fs::write(place.tree().join(format!("f{number}")), content).unwrap();
    }
    mkdwarfs()
        .current_dir(&place.path("."))
        .args(["-i", "tree", "-o", "image", "-l1", "-L128m"])
        .env("DWARFS_LOG_MEMORY_USAGE", place.path("log"))
        .succeed();
    let log = fs::read_to_string(place.path("log")).unwrap();
    let anonymous = |line: &str| line.split('\t').nth(2)?.parse::<u64>().ok();
    let peak = log.lines().filter_map(anonymous).max().unwrap();
    assert!(peak > LIMIT * 3 / 4, "{peak}: the limit was not reached");
    assert!(peak < LIMIT * 11 / 10, "{peak}");
}
