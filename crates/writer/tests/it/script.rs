//! Scripts, as the writer sees them: here they are closures.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use durin_format::events::Quiet;
use durin_format::{Error, Result};
use durin_writer::filter::{Filter, Verdict};
use durin_writer::script::{Attributes, Hooks, Script, ScriptEntry, ScriptInodes, Time};
use durin_writer::{BuildOptions, Input, Order, Stats};

use crate::harness::{build, options, put};

type FilterFn = fn(&ScriptEntry<'_>) -> Result<bool>;
type TransformFn = fn(&ScriptEntry<'_>) -> Result<Attributes>;
type OrderFn = fn(&dyn ScriptInodes) -> Result<Option<Vec<u32>>>;

#[derive(Debug, Default)]
struct Closures {
    filter: Option<FilterFn>,
    transform: Option<TransformFn>,
    order: Option<OrderFn>,
    similarity: bool,
    /// Paths in the order in which they were asked about.
    asked: Mutex<Vec<String>>,
}

impl Closures {
    fn note(&self, path: &[u8]) {
        let path = String::from_utf8_lossy(path).into_owned();
        self.asked.lock().unwrap().push(path);
    }

    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Script for Closures {
    fn hooks(&self) -> Hooks {
        Hooks {
            filter: self.filter.is_some(),
            transform: self.transform.is_some(),
            order: self.order.is_some(),
            similarity: self.similarity,
        }
    }

    fn filter(&self, entry: &ScriptEntry<'_>) -> Result<bool> {
        self.note(entry.path);
        self.filter.unwrap()(entry)
    }

    fn transform(&self, entry: &ScriptEntry<'_>) -> Result<Attributes> {
        self.note(entry.path);
        self.transform.unwrap()(entry)
    }

    fn order(&self, inodes: &dyn ScriptInodes) -> Result<Option<Vec<u32>>> {
        for number in 0..inodes.count() {
            let paths = inodes.paths(number);
            assert_eq!(inodes.path(number), paths[0]);
            self.note(&paths.join(&b'='));
        }
        self.order.unwrap()(inodes)
    }
}

fn with(options: &BuildOptions, script: &Arc<Closures>) -> BuildOptions {
    BuildOptions {
        script: Some(Arc::clone(script) as Arc<dyn Script>),
        ..options.clone()
    }
}

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 5] = [
        ("a.o", b"object"),
        ("b/x.c", b"source"),
        ("b/y.o", b"other object"),
        ("skip/deep/z.c", b"unwanted"),
        ("z", b"last"),
    ];
    put(dir.path(), &files);
    fs::hard_link(dir.path().join("z"), dir.path().join("b/hard")).unwrap();
    symlink("z", dir.path().join("link")).unwrap();
    dir
}

#[test]
fn a_filter_prunes_and_is_asked_in_order() {
    let dir = tree();
    let script = Arc::new(Closures {
        filter: Some(|entry| Ok(entry.name() != b"skip" && !entry.path.ends_with(b".o"))),
        ..Closures::default()
    });
    let built = build(&with(&options(dir.path()), &script));
    assert_eq!(built.paths(), ["b/", "b/hard", "b/x.c", "link", "z"]);
    assert_eq!(
        script.take_asked(),
        ["a.o", "b", "link", "skip", "z", "b/hard", "b/x.c", "b/y.o"]
    );
    assert_eq!(built.report.files, 2);
    assert_eq!(built.report.dirs, 2);
    assert_eq!(built.report.original_bytes, 10);
}

#[test]
fn rules_come_before_the_script_and_empty_directories_after() {
    let dir = tree();
    let script = Arc::new(Closures {
        filter: Some(|entry| Ok(!entry.path.starts_with(b"b/"))),
        ..Closures::default()
    });
    let mut options = options(dir.path());
    options.filter = Filter::parse(&["- *.o", "- skip/"]).unwrap();
    options.remove_empty_dirs = true;
    let built = build(&with(&options, &script));
    assert_eq!(built.paths(), ["link", "z"]);
    assert_eq!(built.report.dirs, 1);
    assert_eq!(script.take_asked(), ["b", "link", "z", "b/hard", "b/x.c"]);
    let decisions = durin_writer::decide(
        &with(&options, &script),
        &Stats::default(),
        &Quiet,
        &AtomicBool::new(false),
    );
    let excluded: Vec<String> = decisions
        .unwrap()
        .into_iter()
        .filter(|decision| decision.verdict == Verdict::Exclude)
        .map(|decision| String::from_utf8(decision.path).unwrap())
        .collect();
    assert_eq!(excluded, ["a.o", "b/hard", "b/x.c", "b/y.o", "skip"]);
}

#[test]
fn lists_are_filtered_too() {
    let dir = tree();
    let script = Arc::new(Closures {
        filter: Some(|entry| Ok(entry.name() != b"skip")),
        ..Closures::default()
    });
    let paths = ["z", "skip/deep/z.c", "b/x.c"].map(PathBuf::from).to_vec();
    let mut options = options(dir.path());
    options.input = Input::List {
        root: Some(dir.path().to_owned()),
        paths,
    };
    let built = build(&with(&options, &script));
    assert_eq!(built.paths(), ["b/", "b/x.c", "z"]);
    assert_eq!(script.take_asked(), ["b", "skip", "z", "b/x.c"]);
    assert_eq!((built.report.files, built.report.dirs), (2, 2));
    assert_eq!(built.report.original_bytes, 10);
}

#[test]
fn a_transform_has_the_last_word() {
    let dir = tree();
    let script = Arc::new(Closures {
        transform: Some(|entry| {
            assert_eq!((entry.attributes.uid, entry.attributes.mtime.sec), (7, 99));
            assert_eq!(
                entry.nlink,
                if entry.path == b"b/hard" || entry.path == b"z" {
                    2
                } else {
                    1
                }
            );
            let mut attributes = entry.attributes;
            if entry.path == b"b/x.c" {
                attributes.permissions = 0o4711;
                attributes.uid = 1 << 31;
                attributes.gid += 1;
                attributes.mtime = Time { sec: -5, nsec: 0 };
            }
            if entry.path == b"link" {
                attributes.permissions = 0;
            }
            Ok(attributes)
        }),
        ..Closures::default()
    });
    let mut options = options(dir.path());
    options.set_owner = Some(7);
    options.set_group = Some(8);
    options.set_time = Some(99);
    options.chmod = durin_writer::mode::ChmodRule::parse("F=r", 0).unwrap();
    let built = build(&with(&options, &script));
    let image = built.image();
    let attr = |path: &[u8]| {
        let step = image.walk().map(Result::unwrap);
        step.into_iter()
            .find(|step| step.path == path)
            .unwrap()
            .attr
    };
    let changed = attr(b"b/x.c");
    assert_eq!(changed.mode & 0o7777, 0o4711);
    assert_eq!(
        (changed.uid, changed.gid, changed.mtime.sec),
        (1 << 31, 9, -5)
    );
    let kept = attr(b"b/hard");
    assert_eq!((kept.uid, kept.gid, kept.mtime.sec), (7, 8, 99));
    assert_eq!(kept.mode & 0o7777, 0o444);
    assert_eq!(attr(b"link").mode & 0o7777, 0o777);
    // The root is asked too, a hard link only by its first name.
    let asked = script.take_asked();
    assert_eq!(asked.first().map(String::as_str), Some(""));
    assert_eq!(
        asked
            .iter()
            .filter(|path| path.ends_with("hard") || *path == "z")
            .count(),
        1
    );
}

#[test]
fn a_transform_sees_all_times_but_stores_those_asked_for() {
    let dir = tree();
    let script = Arc::new(Closures {
        transform: Some(|entry| {
            let mut attributes = entry.attributes;
            attributes.atime = Time { sec: 1, nsec: 0 };
            Ok(attributes)
        }),
        ..Closures::default()
    });
    let plain = build(&options(dir.path()));
    assert!(plain.bytes == build(&with(&options(dir.path()), &script)).bytes);
    let mut all = options(dir.path());
    all.keep_all_times = true;
    let built = build(&with(&all, &script));
    let times: Vec<i64> = built
        .image()
        .walk()
        .map(|step| step.unwrap().attr.atime.sec)
        .collect();
    assert!(times.iter().all(|sec| *sec == 1), "{times:?}");
}

#[test]
fn an_order_is_of_distinct_contents() {
    let dir = tree();
    put(dir.path(), &[("copy", b"source"), ("empty", b"")]);
    let script = Arc::new(Closures {
        order: Some(|inodes| Ok(Some((0..inodes.count()).rev().collect()))),
        ..Closures::default()
    });
    let mut options = options(dir.path());
    options.order = Order::Path.into();
    let built = build(&with(&options, &script));
    assert_eq!(
        script.take_asked(),
        ["a.o", "b/x.c=copy", "b/y.o", "skip/deep/z.c", "b/hard=z"]
    );
    let data = String::from_utf8_lossy(&built.bytes).into_owned();
    assert!(data.contains("lastunwantedother objectsourceobject"));
    assert_eq!(built.files()["copy"], b"source");
}

#[test]
fn an_order_may_look_at_similarity() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..5000).map(|line| format!("line {line}\n")).collect();
    let other: String = (0..5000).map(|line| format!("{}\n", line * line)).collect();
    let changed = text.replace("line 77\n", "line of another kind\n");
    put(
        dir.path(),
        &[
            ("a", text.as_bytes()),
            ("b", other.as_bytes()),
            ("c", changed.as_bytes()),
        ],
    );
    for similarity in [true, false] {
        let script = Arc::new(Closures {
            similarity,
            order: Some(|inodes| {
                let hashes = |number| inodes.similarity(number);
                let (Some(a), Some(b), Some(c)) = (hashes(0), hashes(1), hashes(2)) else {
                    return Ok(None);
                };
                let shared = |other: &[u32]| a.iter().filter(|hash| other.contains(hash)).count();
                assert!(shared(&c) >= 12 && shared(&b) < 4, "{a:?} {b:?} {c:?}");
                Ok(Some(vec![1]))
            }),
            ..Closures::default()
        });
        let built = build(&with(&options(dir.path()), &script));
        let starts_with_b = built
            .bytes
            .windows(9)
            .position(|part| part == b"0\n1\n4\n9\n1")
            < built.bytes.windows(7).position(|part| part == b"line 0\n");
        assert_eq!(starts_with_b, similarity);
    }
}

#[test]
fn an_order_is_asked_for_once_for_each_category() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = vec![0; 1 << 16];
    let mut state = 1_u64;
    for byte in &mut noise {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    put(dir.path(), &[("noise", &noise), ("text", b"a text")]);
    let script = Arc::new(Closures {
        order: Some(|inodes| {
            let is_noise = inodes.path(0) == b"noise";
            assert_eq!(inodes.count(), 1);
            assert_eq!(inodes.size(0), if is_noise { 1 << 16 } else { 6 });
            assert_eq!(inodes.category(0), is_noise.then_some("incompressible"));
            Ok(None)
        }),
        ..Closures::default()
    });
    let mut options = options(dir.path());
    options.categorize.categorizers = vec![durin_writer::Categorizer::Incompressible];
    build(&with(&options, &script));
    assert_eq!(script.take_asked(), ["text", "noise"]);
}

#[test]
fn errors_end_the_build() {
    let dir = tree();
    let scripts = [
        Closures {
            filter: Some(|_| Err(Error::invalid_input("broken hook"))),
            ..Closures::default()
        },
        Closures {
            transform: Some(|_| Err(Error::invalid_input("broken hook"))),
            ..Closures::default()
        },
        Closures {
            order: Some(|_| Err(Error::invalid_input("broken hook"))),
            ..Closures::default()
        },
    ];
    for script in scripts {
        let options = with(&options(dir.path()), &Arc::new(script));
        let mut bytes = Vec::new();
        let never = AtomicBool::new(false);
        let result = durin_writer::build(&options, &mut bytes, &Stats::default(), &Quiet, &never);
        assert_eq!(result.unwrap_err().to_string(), "broken hook");
        assert!(bytes.is_empty());
    }
}
