//! dwarfsextract.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Place, dwarfsextract, fails_with, mkdwarfs, stdout};
use durin_testkit::run::Run;
use durin_testkit::skip::skipped;

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
fn filters_need_a_format() {
    let place = Place::new();
    let run = extract(&place).args(["--format-filters", "zstd"]);
    fails_with(run, "needs --format");
}

fn archive(place: &Place) -> Run {
    dwarfsextract().arg("-i").arg(place.image())
}

#[test]
fn archives_to_a_file_and_to_standard_output() {
    let place = Place::new();
    let tar = place.path("a.tar");
    archive(&place)
        .args(["-f", "pax", "-o"])
        .arg(&tar)
        .succeed();
    let bytes = fs::read(&tar).unwrap();
    assert!(bytes.len().is_multiple_of(10240));
    for output in [&["-o", "-"][..], &[]] {
        let outcome = archive(&place).args(["-f", "pax"]).args(output).succeed();
        assert!(outcome.stdout == bytes);
    }
    fails_with(archive(&place).args(["-f", "tarball"]), "newc");
    let run = archive(&place).args(["-f", "pax", "--stdout-progress"]);
    fails_with(run, "standard output");
}

#[test]
fn failed_archives_leave_nothing() {
    let place = Place::new();
    let image = place.image();
    let mut bytes = fs::read(&image).unwrap();
    bytes[70] ^= 1;
    fs::write(&image, bytes).unwrap();
    let tar = place.path("a.tar");
    let run = || {
        let run = dwarfsextract().arg("-i").arg(&image);
        run.args(["-f", "pax", "-o"]).arg(&tar)
    };
    run().expect_code(1);
    assert_eq!(place.names(), ["image.dwarfs"]);
    fs::write(&tar, "old").unwrap();
    run().expect_code(1);
    assert_eq!(fs::read(&tar).unwrap(), b"old");
    run().arg("--continue-on-error").expect_code(2);
    assert!(fs::read(&tar).unwrap().starts_with(b"sub/"));
}

#[test]
fn what_it_does_is_measured() {
    let place = Place::new();
    let trace = place.path("trace.json");
    let outcome = extract(&place)
        .args(["--perfmon", "filesystem_v2,block_cache"])
        .arg("--perfmon-trace")
        .arg(&trace)
        .succeed();
    assert!(
        outcome.stderr.contains("[filesystem_v2.getattr]"),
        "{outcome}"
    );
    assert!(outcome.stderr.contains("p99 latency:"), "{outcome}");
    let trace = fs::read_to_string(trace).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    assert!(!trace["traceEvents"].as_array().unwrap().is_empty());
    fails_with(extract(&place).args(["--perfmon", "x"]), "no component 'x'");
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
    let is_warning = |line: &str| line.starts_with("W ") && line.contains("block 0");
    assert!(outcome.stderr.lines().any(is_warning), "{outcome}");
    assert!(place.path("out/sub/empty").is_dir());

    // The target is no part of it.
    fs::remove_dir(place.path("out/sub/empty")).unwrap();
    symlink("/", place.path("out/sub/empty")).unwrap();
    let outcome = run().arg("--continue-on-error").expect_code(1);
    let said = "sub/empty: refused to follow a symlink";
    assert!(outcome.stderr.contains(said), "{outcome}");
}

#[test]
fn events_for_programs() {
    let place = Place::new();
    let outcome = extract(&place).arg("--progress=json").succeed();
    let events: Vec<serde_json::Value> = outcome
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"start"));
    assert_eq!(names.last(), Some(&"end"));
    let last = events
        .iter()
        .rfind(|event| event["event"] == "progress")
        .unwrap();
    assert_eq!(last["files_done"], last["files_total"]);
    let report = events
        .iter()
        .find(|event| event["event"] == "report")
        .unwrap();
    assert_eq!(report["errors"], 0);
    assert_eq!(report["symlinks"], 1);
}

#[test]
fn an_archive_that_nobody_reads_to_its_end_is_an_error() {
    let place = Place::new();
    fs::write(place.tree().join("large"), vec![7; 4 << 20]).unwrap();
    let command = format!(
        "{} -i {} -f pax | head -c 10 >/dev/null; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_dwarfsextract"),
        place.image().display()
    );
    fails_with(Run::new("bash").args(["-c", &command]), "not complete");
}

#[test]
fn the_name_of_the_output_chooses() {
    let place = Place::new();
    for (name, magic) in [
        ("a.tar.gz", &[0x1f, 0x8b][..]),
        ("a.tar.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("a.tar.xz", b"\xfd7zXZ"),
        ("a.zip", b"PK"),
        ("a.mtree", b"#mtree"),
        ("a.cpio", b"070701"),
    ] {
        let file = place.path(name);
        archive(&place)
            .args(["-f", "auto", "-o"])
            .arg(&file)
            .succeed();
        assert!(fs::read(&file).unwrap().starts_with(magic), "{name}");
    }
    fails_with(archive(&place).args(["-f", "auto"]), "--output");
}

fn salvage(place: &Place, image: &std::path::Path) -> Run {
    fs::create_dir_all(place.path("out")).unwrap();
    let run = dwarfsextract().arg("-i").arg(image).arg("-o");
    run.arg(place.path("out")).arg("--salvage")
}

#[test]
fn what_is_lost_is_told() {
    let place = Place::new();
    let image = place.image();
    let outcome = salvage(&place, &image).succeed();
    assert!(outcome.stderr.contains("nothing is lost"), "{outcome}");
    let mut bytes = fs::read(&image).unwrap();
    bytes[70] ^= 1;
    fs::write(&image, bytes).unwrap();
    fs::remove_dir_all(place.path("out")).unwrap();
    let run = salvage(&place, &image);
    let outcome = run
        .args(["--salvage-partial", "--salvage-report=-"])
        .expect_code(2);
    let report: serde_json::Value = serde_json::from_str(&stdout(&outcome)).unwrap();
    assert_eq!(report["sections"][0]["state"], "damaged");
    let lost = report["lost_files"].as_array().unwrap();
    let paths: Vec<_> = lost
        .iter()
        .flat_map(|file| file["paths"].as_array().unwrap())
        .collect();
    for name in ["hello", "sub/hard", "sub/copy"] {
        assert!(paths.iter().any(|path| *path == name), "{report}");
    }
    assert_eq!(fs::read(place.path("out/hello.partial")).unwrap(), [0; 6]);
    assert!(!place.path("out/hello").exists());
    assert!(place.path("out/sub/soft").is_symlink());
}

#[test]
fn an_index_is_repaired() {
    use crate::support::durin;
    let place = Place::new();
    let image = place.image();
    let good = fs::read(&image).unwrap();
    durin().arg("verify").arg(&image).succeed();
    fs::write(&image, &good[..good.len() - 1]).unwrap();
    fails_with(
        durin().args(["verify", "--repair-index"]).arg(&image),
        "--output",
    );
    let copy = place.path("copy");
    let repair = || durin().args(["verify", "--repair-index"]).arg(&image);
    repair().arg("-o").arg(&copy).succeed();
    assert!(fs::read(&copy).unwrap() == good);
    assert!(fs::read(&image).unwrap().len() < good.len(), "not in place");
    repair().arg("--in-place").succeed();
    assert!(fs::read(&image).unwrap() == good);

    // An index makes no whole image of one with a damaged block.
    let mut damaged = good.clone();
    damaged[70] ^= 1;
    fs::write(&image, &damaged[..damaged.len() - 1]).unwrap();
    for (way, repaired) in [
        (&["-o", "again"][..], "again"),
        (&["--in-place"], "image.dwarfs"),
    ] {
        let run = repair().current_dir(&place.path("")).args(way);
        fails_with(run, "section 0 is damaged");
        assert!(fs::read(place.path(repaired)).unwrap() == damaged);
    }
}

#[test]
fn a_file_that_is_left_out_is_not_read_to_its_end() {
    let place = Place::new();
    let file = fs::File::create(place.tree().join("endless")).unwrap();
    if file.set_len(15 << 40).is_err() {
        skipped("the file system has no files of terabytes");
        return;
    }
    for format in ["newc", "odc", "ustar", "v7"] {
        let said = archive_as_it_is(&place, format, 2);
        assert!(said.contains("endless: "), "{format}: {said}");
        let archive = fs::read(place.path("archive")).unwrap();
        assert!(!archive.windows(7).any(|part| part == b"endless"));
        assert!(archive.windows(5).any(|part| part == b"hello"));
    }
}

/// Writes an archive of the tree as it is, as far as the format can; returns what is said.
fn archive_as_it_is(place: &Place, format: &str, code: i32) -> String {
    let run = mkdwarfs().current_dir(&place.path(""));
    run.args(["-i", "tree", "-o", "image", "-l1", "-f"])
        .succeed();
    let run = dwarfsextract().current_dir(&place.path(""));
    let run = run.args(["-i", "image", "-o", "archive", "--continue-on-error"]);
    run.args(["-f", format]).expect_code(code).stderr
}

#[test]
fn a_file_that_is_too_large_leaves_none_of_its_names() {
    let place = Place::new();
    let large = place.tree().join("large");
    let file = fs::File::create(&large).unwrap();
    file.set_len(5 << 30).unwrap();
    fs::hard_link(&large, place.tree().join("large2")).unwrap();
    let said = archive_as_it_is(&place, "newc", 2);
    assert!(said.contains("large, large2: "), "{said}");
    let archive = fs::read(place.path("archive")).unwrap();
    let has = |name: &[u8]| archive.windows(name.len()).any(|part| part == name);
    assert!(has(b"sub/copy\0") && !has(b"large\0") && !has(b"large2\0"));
}

#[test]
fn a_path_that_is_too_long_costs_no_other_name() {
    let place = Place::new();
    // Sorted before all others.
    let long = "a".repeat(150);
    fs::hard_link(place.tree().join("hello"), place.tree().join(&long)).unwrap();
    let said = archive_as_it_is(&place, "ustar", 2);
    assert!(said.contains(&long) && !said.contains("hello"), "{said}");
    let list = Run::new("tar").arg("-tf").arg(place.path("archive"));
    let names = stdout(&list.succeed());
    assert!(
        names.contains("hello") && names.contains("sub/hard"),
        "{names}"
    );
    assert!(!names.contains(&long), "{names}");
}

#[test]
fn digests_of_mtree_have_the_names_that_libarchive_reads() {
    let place = Place::new();
    let run = dwarfsextract().arg("-i").arg(place.image());
    let run = run.args(["-f", "mtree", "--format-options=rmd160,sha1"]);
    let list = stdout(&run.succeed());
    assert!(
        list.contains(" rmd160digest=") && list.contains(" sha1digest="),
        "{list}"
    );
}

#[test]
fn partial_files_have_names_of_their_own() {
    let place = Place::new();
    let noise = |seed: u32| -> Vec<u8> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        std::iter::repeat_n((), 5000)
            .scan(seed, |state, ()| next(state))
            .collect()
    };
    let long = "n".repeat(250);
    let mut names = vec!["f".to_owned(), "f.partial".to_owned(), long];
    // Of these nothing is left but what they have in common.
    names.extend((10..30).map(|number| format!("{}{number}", "m".repeat(250))));
    for (seed, name) in (1..).zip(&names) {
        fs::write(place.tree().join(name), noise(seed)).unwrap();
    }
    let run = mkdwarfs().current_dir(&place.path(""));
    run.args(["-i", "tree", "-o", "image", "-l0"]).succeed();
    let mut bytes = fs::read(place.path("image")).unwrap();
    bytes[200] ^= 1;
    fs::write(place.path("image"), bytes).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    let run = dwarfsextract().current_dir(&place.path(""));
    run.args(["-i", "image", "-o", "out", "--salvage", "--salvage-partial"])
        .args(["--salvage-report", "report"])
        .expect_code(2);
    let report = fs::read_to_string(place.path("report")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let lost = report["lost_files"].as_array().unwrap();
    let mut written: Vec<&str> = lost
        .iter()
        .map(|file| file["written_as"].as_str().unwrap())
        .collect();
    for name in &written {
        let path = place.path("out").join(name.replace("\\n", "\n"));
        assert!(path.is_file(), "{name}");
    }
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), lost.len());
    assert!(lost.len() >= names.len(), "{report}");
}
