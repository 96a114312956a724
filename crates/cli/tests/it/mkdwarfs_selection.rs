//! What of a tree mkdwarfs packs: filters and lists.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{Place, dwarfsck, fails_with, listing, mkdwarfs, stdout};

/// Builds an image of the place's tree from what comes through a pipe.
fn build_with_stdin(place: &Place, arguments: &[&str], text: &[u8]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mkdwarfs"))
        .args(arguments)
        .args(["-l1", "-i"])
        .arg(place.tree())
        .arg("-o")
        .arg(place.path("image"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn filters() {
    let place = Place::new();
    let filtered = |rules: &[&str]| {
        place.build("image").arg("-f").args(rules).succeed();
        listing(&place, "image")
    };
    assert_eq!(filtered(&["-F", "- sub/"]), ["hello"]);
    assert_eq!(
        filtered(&["-F", "+ copy", "--filter=- /**", "--remove-empty-dirs"]),
        ["sub", "sub/copy"]
    );
    fails_with(place.build("bad").args(["-F", "* x"]), "* x");
}

#[test]
fn filter_rules_from_a_pipe() {
    let place = Place::new();
    build_with_stdin(&place, &["-F", ". /dev/stdin"], b"# all but\n- sub/\n");
    assert_eq!(listing(&place, "image"), ["hello"]);
}

#[test]
fn debug_filter_prints_and_builds_nothing() {
    let place = Place::new();
    let printed = |mode: &str| {
        let run = mkdwarfs()
            .arg("-i")
            .arg(place.tree())
            .args(["-F", "- copy", mode]);
        stdout(&run.succeed())
    };
    assert_eq!(printed("--debug-filter=excluded"), "/sub/copy\n");
    let all = printed("--debug-filter");
    assert!(
        all.contains("- /sub/copy\n") && all.contains("+ /sub/\n"),
        "{all}"
    );
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn input_lists() {
    let place = Place::new();
    fs::write(place.path("list"), "hello\nsub/soft\n").unwrap();
    let run = mkdwarfs()
        .current_dir(&place.tree())
        .arg("--input-list")
        .arg(place.path("list"))
        .args(["-i", ".", "-l0", "-o"])
        .arg(place.path("image"));
    run.succeed();
    assert_eq!(listing(&place, "image"), ["hello", "sub", "sub/soft"]);
}

#[test]
fn level_0_keeps_the_order_of_a_list() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        fs::write(place.tree().join(name), name).unwrap();
    }
    fs::write(place.path("list"), "c\nsub/copy\na\nb\nhello\n").unwrap();
    let stored = |level: &str| {
        let run = mkdwarfs().current_dir(&place.path(""));
        run.args([
            "--input-list=list",
            "-i",
            "tree",
            "-f",
            "-o",
            "image",
            level,
        ])
        .succeed();
        let sums = dwarfsck()
            .arg(place.path("image"))
            .args(["--checksum=md5"])
            .succeed();
        let sums = stdout(&sums);
        let paths = sums.lines().filter_map(|line| line.split_once("  "));
        let paths: Vec<_> = paths.map(|(_, path)| path.to_owned()).collect();
        paths
    };
    assert_eq!(stored("-l0"), ["c", "hello", "sub/copy", "a", "b"]);
    assert_eq!(stored("-l1"), ["a", "b", "c", "hello", "sub/copy"]);
}

#[test]
fn input_list_from_standard_input() {
    let place = Place::new();
    build_with_stdin(&place, &["--input-list=-"], b"hello\n");
    assert_eq!(listing(&place, "image"), ["hello"]);
}

#[test]
fn absolute_paths_below_a_link_to_the_input() {
    let place = Place::new();
    let tree = fs::canonicalize(place.tree()).unwrap();
    std::os::unix::fs::symlink(&tree, place.path("link")).unwrap();
    let list = [place.path("link/hello"), tree.join("sub/copy")];
    let list = list.map(|path| format!("{}\n", path.display())).concat();
    fs::write(place.path("list"), list).unwrap();
    for (name, image) in [("link", "one"), ("./link/", "two")] {
        mkdwarfs()
            .current_dir(&place.path(""))
            .args(["--input-list=list", "-l0", "-i", name, "-o", image])
            .succeed();
        assert_eq!(listing(&place, image), ["hello", "sub", "sub/copy"]);
    }
}
