//! The commands of `durin` that look into images.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use durin_testkit::run::{Outcome, Run};
use serde_json::Value;

use crate::support::{Place, TIME, durin, fails_with, mkdwarfs, stdout};

/// A command on the image of a place.
pub(crate) fn command(place: &Place, name: &str, arguments: &[&str]) -> Run {
    durin()
        .current_dir(&place.path(""))
        .arg(name)
        .args(arguments)
}

fn shown(place: &Place, name: &str, arguments: &[&str]) -> String {
    stdout(&command(place, name, arguments).succeed())
}

pub(crate) fn records(outcome: &Outcome) -> Vec<Value> {
    let text = stdout(outcome);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn with_image() -> Place {
    let place = Place::new();
    place.image();
    place
}

#[test]
fn ls_lists_as_ls_does() {
    let place = with_image();
    assert_eq!(shown(&place, "ls", &["image.dwarfs"]), "hello\nsub\n");
    let names = "copy\nempty\nhard\nodd\\nname\nsoft\n";
    for path in ["sub", "/sub/", "./sub/empty/.."] {
        assert_eq!(shown(&place, "ls", &["image.dwarfs", path]), names);
    }
    let reversed = shown(&place, "ls", &["-r", "image.dwarfs"]);
    assert_eq!(reversed, "sub\nhello\n");
    let all = shown(&place, "ls", &["-R", "image.dwarfs"]);
    assert_eq!(
        all,
        format!(".:\nhello\nsub\n\nsub:\n{names}\nsub/empty:\n")
    );
    assert_eq!(shown(&place, "ls", &["-d", "image.dwarfs", "sub"]), "sub\n");
    let long = shown(&place, "ls", &["-l", "image.dwarfs"]);
    let first = long.lines().next().unwrap();
    assert_eq!(first, "-rw-r----- 2 1000 100 6 2020-01-01 00:00:00 hello");
    let soft = shown(&place, "ls", &["-l", "image.dwarfs", "sub/soft"]);
    assert!(soft.ends_with("sub/soft -> ../hello\n"), "{soft}");
    // A link to a file is followed.
    let by_link = shown(&place, "ls", &["--json", "image.dwarfs", "sub/soft"]);
    assert!(by_link.contains(r#""path":"hello""#), "{by_link}");
}

#[test]
fn what_is_not_there_is_reported_and_the_rest_done() {
    let place = with_image();
    for name in ["ls", "tree", "cat", "stat", "du", "find"] {
        let run = command(&place, name, &["image.dwarfs", "nowhere", "hello"]);
        let outcome = run.expect_code(1);
        assert!(
            outcome.stderr.contains("nowhere: No such file"),
            "{name}: {}",
            outcome.stderr
        );
        assert!(!outcome.stdout.is_empty(), "{name}");
    }
    // As in a mounted image.
    for path in ["hello/x", "hello/.", "hello/..", "sub/copy/../../hello"] {
        let run = command(&place, "stat", &["image.dwarfs", path]);
        fails_with(run, &format!("{path}: Not a directory"));
    }
    fails_with(command(&place, "ls", &["absent"]), "cannot open 'absent'");
    fails_with(command(&place, "ls", &[]), "IMAGE");
}

#[test]
fn cat_gives_the_bytes() {
    let place = with_image();
    let both = shown(
        &place,
        "cat",
        &["image.dwarfs", "sub/soft", "sub/odd\nname"],
    );
    assert_eq!(both, "hello\nodd");
    let part = shown(
        &place,
        "cat",
        &["--skip=1", "--bytes=3", "image.dwarfs", "hello"],
    );
    assert_eq!(part, "ell");
    fails_with(
        command(&place, "cat", &["image.dwarfs", "sub"]),
        "Is a directory",
    );
    fails_with(command(&place, "cat", &["image.dwarfs"]), "which file?");
}

#[test]
fn tree_draws() {
    let place = with_image();
    let expect = ".\n|-- hello\n`-- sub\n    |-- copy\n    |-- empty\n    |-- hard\n    |-- odd\\nname\n    `-- soft -> ../hello\n\n2 directories, 5 files\n";
    let run = command(&place, "tree", &["image.dwarfs"]).env("LC_ALL", "C");
    assert_eq!(stdout(&run.succeed()), expect);
    let run = command(&place, "tree", &["-L1", "image.dwarfs"]).env("LC_ALL", "C.UTF-8");
    assert_eq!(
        stdout(&run.succeed()),
        ".\n\u{251c}\u{2500}\u{2500} hello\n\u{2514}\u{2500}\u{2500} sub\n\n1 directory, 1 file\n"
    );
    let dirs = command(&place, "tree", &["-d", "image.dwarfs", "sub"]).env("LC_ALL", "C");
    assert_eq!(stdout(&dirs.succeed()), "sub\n`-- empty\n\n1 directory\n");
}

#[test]
fn find_by_conditions() {
    let place = with_image();
    let check = |arguments: &[&str], expect: &str| {
        let all = [&["image.dwarfs"], arguments].concat();
        assert_eq!(shown(&place, "find", &all), expect, "{arguments:?}");
    };
    check(&["--name", "h*"], "hello\nsub/hard\n");
    check(&["-name", "h*", "-type", "f"], "hello\nsub/hard\n");
    check(&["--iname", "HELLO"], "hello\n");
    check(&["--type", "d"], ".\nsub\nsub/empty\n");
    check(
        &["--type", "l,d", "--min-depth", "2"],
        "sub/empty\nsub/soft\n",
    );
    check(&["--empty"], "sub/empty\n");
    check(&["--size", "-4"], "sub/odd\\nname\n");
    check(&["--size", "+3", "--links", "1"], "sub/copy\n");
    check(&["--links", "2"], "hello\nsub/hard\n");
    check(&["-maxdepth", "1"], ".\nhello\nsub\n");
    check(
        &["--path", "sub/**", "--type", "f", "--perm", "/040"],
        "sub/copy\nsub/hard\nsub/odd\\nname\n",
    );
    check(&["--newer-than", TIME], "");
    check(&["--older-than", TIME], "");
    check(&["--count"], "8\n");
    check(&["sub/empty"], "sub/empty\n");
    check(&["--name", "odd*", "-print0"], "sub/odd\nname\0");
    fails_with(
        command(&place, "find", &["image.dwarfs", "--type", "x"]),
        "'x' is not one of",
    );
    fails_with(
        command(&place, "find", &["image.dwarfs", "--name", "["]),
        "bad pattern",
    );
}

#[test]
fn fractions_of_a_second_make_newer() {
    let place = Place::new();
    let file = fs::File::open(place.tree().join("hello")).unwrap();
    let seconds = TIME.parse::<u64>().unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 987);
    file.set_modified(time).unwrap();
    let run = mkdwarfs().current_dir(&place.path(""));
    run.args(["-i", "tree", "-o", "image.dwarfs", "-l1"])
        .arg("--time-resolution=1ns")
        .succeed();
    let newer = |time: u64| {
        let time = time.to_string();
        let arguments = ["image.dwarfs", "hello", "--newer-than", &time];
        shown(&place, "find", &arguments)
    };
    assert_eq!(newer(seconds), "hello\n");
    assert_eq!(newer(seconds + 1), "");
}

#[test]
fn find_agrees_with_find() {
    let place = with_image();
    let ours = shown(&place, "find", &["image.dwarfs", "-print0"]);
    let theirs = Run::new("find").arg(place.tree()).arg("-print0").succeed();
    let top = place.tree();
    let mut expect: Vec<String> = stdout(&theirs)
        .split_terminator('\0')
        .map(
            |path| match path.strip_prefix(top.to_str().unwrap()).unwrap() {
                "" => ".".to_owned(),
                path => path[1..].to_owned(),
            },
        )
        .collect();
    let mut found: Vec<String> = ours.split_terminator('\0').map(str::to_owned).collect();
    expect.sort();
    found.sort();
    assert_eq!(found, expect);
}

#[test]
fn stat_tells_where_data_is() {
    let place = with_image();
    let text = shown(&place, "stat", &["image.dwarfs", "hello"]);
    for part in [
        "  File: hello\n  Size: 6  file\n",
        "Links: 2\nAccess: 0640/-rw-r-----  Uid: 1000  Gid: 100\n",
        "Modify: 2020-01-01 00:00:00\n",
        "1 chunks in 1 blocks\n  0+6: block 0 at ",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    let outcome = command(&place, "stat", &["--json", "image.dwarfs", "hello"]).succeed();
    let record = &records(&outcome)[0];
    assert_eq!(record["chunks"][0]["size"], 6);
    assert_eq!(record["mtime"], 1_577_836_800);
}

#[test]
fn du_adds_up_to_the_blocks() {
    let place = with_image();
    let outcome = command(&place, "du", &["--json", "image.dwarfs"]).succeed();
    let records = records(&outcome);
    let paths: Vec<&str> = records.iter().filter_map(|r| r["path"].as_str()).collect();
    assert_eq!(paths, ["sub/empty", "sub", ""]);
    // hello and its copy, whose hard link counts once, and "odd".
    assert_eq!(records[2]["size"], 6 + 6 + 3);
    assert_eq!(records[2]["files"], 3);
    let info = shown(&place, "info", &["--json", "image.dwarfs"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(records[2]["stored"], info["compressed_block_size"]);
    let bytes = shown(&place, "du", &["-sb", "image.dwarfs", "sub"]);
    assert!(
        bytes.starts_with("15\t") && bytes.ends_with("\tsub\n"),
        "{bytes}"
    );
}

#[test]
fn grep_finds_lines() {
    let place = Place::new();
    fs::write(place.tree().join("text"), "one\nTwo\nthree\nfour two\n").unwrap();
    fs::write(place.tree().join("binary"), "two\0two\n").unwrap();
    place.image();
    let lines = |arguments: &[&str]| {
        let all = [arguments, &["image.dwarfs"]].concat();
        let text = shown(&place, "grep", &all);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        lines(&["two"]),
        ["binary file binary matches", "text:four two"]
    );
    assert_eq!(
        lines(&["-in", "two", "--include", "t*"]),
        ["text:2:Two", "text:4:four two"]
    );
    assert_eq!(lines(&["-l", "hello"]), ["hello", "sub/copy", "sub/hard"]);
    assert_eq!(
        lines(&["-F", "-c", "-i", "two", "--include=text"]),
        ["text:2"]
    );
    let dot = command(&place, "grep", &["-F", "o.e", "image.dwarfs"]);
    assert_eq!(stdout(&dot.expect_code(1)), "");
    assert_eq!(
        lines(&["-o", "t[hw]\\w+", "--include=text"]),
        ["text:three", "text:two"]
    );
    let context = shown(
        &place,
        "grep",
        &["-n", "-A1", "one", "image.dwarfs", "text"],
    );
    assert_eq!(context, "text:1:one\ntext-2-Two\n");
    let none = command(&place, "grep", &["nothing has this", "image.dwarfs"]);
    assert_eq!(stdout(&none.expect_code(1)), "");
    let bad = command(&place, "grep", &["(", "image.dwarfs"]).expect_code(2);
    assert!(bad.stderr.contains("bad pattern"), "{}", bad.stderr);
    let json = command(&place, "grep", &["--json", "three", "image.dwarfs"]).succeed();
    assert_eq!(records(&json)[0]["line"], 3);
}

#[test]
fn grep_is_the_same_with_any_number_of_threads() {
    let place = Place::new();
    for number in 0..300 {
        fs::write(
            place.tree().join(format!("f{number}")),
            format!("line {number}\n"),
        )
        .unwrap();
    }
    place.image();
    let with = |workers: &str| {
        shown(
            &place,
            "grep",
            &["--num-workers", workers, "line", "image.dwarfs"],
        )
    };
    let one = with("1");
    assert_eq!(one.lines().count(), 300);
    assert_eq!(one, with("5"));
}

#[test]
fn info_is_short() {
    let place = with_image();
    let text = shown(&place, "info", &["image.dwarfs"]);
    assert!(text.lines().count() < 12, "{text}");
    for part in [
        "DwarFS 2.",
        "libdurin v",
        "3 directories, 1 link, 3 files",
        "1 stored 9 B",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

/// Changes in the tree of a place, and what `diff` says about them.
#[test]
fn diff_tells_what_changed() {
    let place = with_image();
    let same = command(&place, "diff", &["image.dwarfs", "image.dwarfs"]).succeed();
    assert_eq!(stdout(&same), "");
    let tree = place.tree();
    let against_tree = ["--no-owners", "--no-times", "image.dwarfs", "tree"];
    assert_eq!(shown(&place, "diff", &against_tree), "");
    fs::write(tree.join("sub/copy"), "HELLO\n").unwrap();
    fs::write(tree.join("sub/odd\nname"), "longer").unwrap();
    fs::write(tree.join("sub/new"), "").unwrap();
    fs::remove_dir(tree.join("sub/empty")).unwrap();
    fs::remove_file(tree.join("sub/soft")).unwrap();
    std::os::unix::fs::symlink("elsewhere", tree.join("sub/soft")).unwrap();
    fs::set_permissions(tree.join("sub"), fs::Permissions::from_mode(0o700)).unwrap();
    let mode = |bits: &str| format!("M sub (mode {bits} -> 0700)");
    let rest = "M sub/copy (content)\nD sub/empty\nA sub/new\nM sub/odd\\nname (content, size 3 -> 6)\nM sub/soft (target ../hello -> elsewhere)\n";
    let text = stdout(&command(&place, "diff", &against_tree).expect_code(1));
    assert!(
        text.starts_with(&mode("0755")) && text.ends_with(rest),
        "{text}"
    );
    place.build("new.dwarfs").succeed();
    for options in [&[][..], &["--read-all"], &["-n1"]] {
        let arguments = [options, &["--no-times", "image.dwarfs", "new.dwarfs"]].concat();
        let text = stdout(&command(&place, "diff", &arguments).expect_code(1));
        assert!(text.ends_with(rest), "{options:?}: {text}");
    }
    let only = command(
        &place,
        "diff",
        &["-c", "--json", "image.dwarfs", "new.dwarfs"],
    );
    let records = records(&only.expect_code(1));
    assert_eq!(records[0]["change"], "changed");
    assert_eq!(records[1]["change"], "removed");
    let quiet = command(&place, "diff", &["-q", "image.dwarfs", "new.dwarfs"]).expect_code(1);
    assert_eq!(stdout(&quiet), "");
    command(&place, "diff", &["image.dwarfs", "absent"]).expect_code(2);
}
