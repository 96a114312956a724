//! What is packed and what is left out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use durin_format::events::Quiet;
use durin_writer::filter::{Filter, Verdict};
use durin_writer::{BuildOptions, Input, Order, Stats};

use crate::harness::{build, options, put};

#[test]
fn filter_prunes() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[
            ("keep/a.c", b"1"),
            ("keep/a.o", b"2"),
            ("tmp/x/deep", b"3"),
            ("sub/tmp/y", b"4"),
            ("sub/z.o", b"5"),
        ],
    );
    let mut options = options(dir.path());
    options.filter = Filter::parse(&["+ /sub/z.o", "- tmp/", "- *.o"]).unwrap();
    assert_eq!(
        build(&options).paths(),
        ["keep/", "keep/a.c", "sub/", "sub/z.o"]
    );

    let decisions =
        durin_writer::decide(&options, &Stats::default(), &Quiet, &AtomicBool::new(false));
    let lines: Vec<String> = decisions
        .unwrap()
        .into_iter()
        .map(|decision| {
            let sign = if decision.verdict == Verdict::Include {
                '+'
            } else {
                '-'
            };
            let end = if decision.is_dir { "/" } else { "" };
            format!("{sign} {}{end}", String::from_utf8(decision.path).unwrap())
        })
        .collect();
    assert_eq!(
        lines,
        [
            "+ keep/",
            "+ keep/a.c",
            "- keep/a.o",
            "+ sub/",
            "- sub/tmp/",
            "+ sub/z.o",
            "- tmp/"
        ]
    );

    options.filter = Filter::parse(&["- *.o", "- *.c", "- deep"]).unwrap();
    options.remove_empty_dirs = true;
    assert_eq!(build(&options).paths(), ["sub/", "sub/tmp/", "sub/tmp/y"]);
    options.filter = Filter::parse(&["- *"]).unwrap();
    assert_eq!(build(&options).paths(), [""; 0]);
}

#[test]
fn specials_only_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("file", b"1")]);
    let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    let mut options = options(dir.path());
    assert_eq!(build(&options).paths(), ["file"]);
    options.with_specials = true;
    let built = build(&options);
    assert_eq!(built.paths(), ["file", "socket"]);
    assert_eq!((built.report.specials, built.report.inodes), (1, 3));
}

#[test]
fn the_image_itself_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("file", b"1"), ("image.partial", b"2")]);
    let status = fs::metadata(dir.path().join("image.partial")).unwrap();
    let mut options = options(dir.path());
    options.exclude_ids.push((status.dev(), status.ino()));
    assert_eq!(build(&options).paths(), ["file"]);
}

#[test]
fn lists() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[
            ("a/b/c", b"c"),
            ("a/b/unlisted", b"u"),
            ("a/d", b"d"),
            ("top", b"t"),
            ("z/x", b"x"),
        ],
    );
    let absolute = dir.path().join("top");
    let paths = [
        "z/x",
        "a/b/c",
        "./a//d",
        "z/x",
        "missing",
        "../outside",
        "/etc/passwd",
        "top/x",
    ];
    let mut paths: Vec<PathBuf> = paths.map(PathBuf::from).to_vec();
    paths.push(absolute);
    let built = build(&listed(dir.path(), paths));
    assert_eq!(
        built.paths(),
        ["a/", "a/b/", "a/b/c", "a/d", "top", "z/", "z/x"]
    );
    let errors: Vec<&String> = built
        .messages
        .iter()
        .filter(|text| text.starts_with("error"))
        .collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert!(
        built
            .messages
            .iter()
            .any(|text| text.contains("listed more than once"))
    );

    // The order of the list is the order of the data.
    let image = built.image();
    let block = &built.bytes[64..64 + 4];
    assert_eq!((block, image.block_count()), (&b"xcdt"[..], 1));
}

/// A build of what is listed, in the order of the list.
fn listed(root: &Path, paths: Vec<PathBuf>) -> BuildOptions {
    BuildOptions {
        input: Input::List {
            root: Some(root.to_owned()),
            paths,
        },
        order: Order::None.into(),
        ..options(root)
    }
}

#[test]
fn lists_order_hard_linked_files_by_the_name_listed_first() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a", b"1"), ("b", b"2"), ("c/d", b"3")]);
    fs::hard_link(dir.path().join("a"), dir.path().join("z")).unwrap();
    let paths = ["z", "c/d", "b", "a"].map(PathBuf::from).to_vec();
    let built = build(&listed(dir.path(), paths));
    assert_eq!(built.image().block_count(), 1);
    assert_eq!(&built.bytes[64..64 + 3], b"132");
}

#[test]
fn lists_count_what_is_packed() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("real/f", b"data"), ("real/g", b"more")]);
    std::os::unix::fs::symlink("real", dir.path().join("sl")).unwrap();
    let check = |paths: &[&str], expect: &[&str], [files, symlinks, errors]: [u64; 3]| {
        let input = Input::List {
            root: Some(dir.path().to_owned()),
            paths: paths.iter().map(PathBuf::from).collect(),
        };
        let built = build(&BuildOptions {
            input,
            ..options(dir.path())
        });
        let report = &built.report;
        assert_eq!(built.paths(), expect, "{paths:?}");
        let counts = [report.files, report.symlinks, report.errors];
        assert_eq!(counts, [files, symlinks, errors], "{paths:?}");
        assert_eq!(report.original_bytes, 4 * files, "{paths:?}");
    };
    check(&["sl/f", "sl/g", "sl/f"], &[], [0, 0, 1]);
    check(&["sl/f", "sl", "sl/g"], &["sl"], [0, 1, 1]);
    check(&["real/f/x", "real/f/y"], &["real/"], [0, 0, 1]);
    check(
        &["real/f", "real/f/x", "real/g", "real/f/y/z"],
        &["real/", "real/f", "real/g"],
        [2, 0, 1],
    );
    check(&["none/x", "none/y"], &[], [0, 0, 1]);
}

#[test]
fn lists_take_paths_that_are_too_long_for_the_kernel() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};

    let dir = tempfile::tempdir().unwrap();
    let name = "n".repeat(250);
    let mut fd = std::os::fd::OwnedFd::from(fs::File::open(dir.path()).unwrap());
    for _ in 0..18 {
        mkdirat(&fd, &name, Mode::RWXU).unwrap();
        fd = openat(&fd, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY;
    let file = openat(&fd, "file", flags, Mode::RUSR).unwrap();
    rustix::io::write(&file, b"data").unwrap();

    let path = [name.as_str(); 18].join("/") + "/file";
    let input = Input::List {
        root: Some(dir.path().to_owned()),
        paths: vec![path.clone().into()],
    };
    let built = build(&BuildOptions {
        input,
        ..options(dir.path())
    });
    assert_eq!(built.files(), [(path, b"data".to_vec())].into());
    assert_eq!(built.report.errors, 0);
}

#[test]
fn input_that_is_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("file", b"1")]);
    for (name, expect) in [
        ("file", "is not a directory"),
        ("missing", "cannot open input"),
    ] {
        let options = options(&dir.path().join(name));
        let mut out = Vec::new();
        let never = AtomicBool::new(false);
        let error =
            durin_writer::build(&options, &mut out, &Stats::default(), &Quiet, &never).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
        assert!(out.is_empty());
    }
}
