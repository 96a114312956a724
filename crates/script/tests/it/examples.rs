//! The scripts in `examples/`, on a real tree, in all languages that are built in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durin_format::events::Events;
use durin_reader::{Attr, FileKind, Image, ImageOptions};
use durin_script::{Host, Loaded, Spec, load};
use durin_source::MemorySource;
use durin_writer::{BuildOptions, Input, Order, PerCategory, Stats};
use tempfile::TempDir;

use crate::harness::Recorder;

/// An example in one language, with arguments.
fn examples(name: &str, arguments: &str) -> Vec<(Loaded, Arc<Recorder>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let endings = match cfg!(feature = "python") {
        true => &["lua", "py"][..],
        false => &["lua"],
    };
    let loaded = endings.iter().map(|ending| {
        let mut text = dir.join(format!("{name}.{ending}")).into_os_string();
        text.push(":");
        text.push(arguments);
        let events = Arc::new(Recorder::default());
        let host = Host::new(Arc::clone(&events) as Arc<dyn Events>);
        let loaded = load(&Spec::parse(&text).unwrap(), host).unwrap();
        (loaded, events)
    });
    loaded.collect()
}

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn build(dir: &TempDir, loaded: &Loaded) -> Vec<u8> {
    let mut options = BuildOptions::new(Input::Directory(dir.path().to_owned()));
    options.order = PerCategory::new(Order::Path);
    options.script = Some(Arc::clone(&loaded.script));
    options.keep_all_times = true;
    options.remove_empty_dirs = loaded
        .settings
        .iter()
        .any(|setting| setting.name == "remove_empty_dirs");
    let mut bytes = Vec::new();
    let quiet = Recorder::default();
    let never = AtomicBool::new(false);
    durin_writer::build(&options, &mut bytes, &Stats::default(), &quiet, &never).unwrap();
    bytes
}

/// Opens an image and lists it.
fn entries(bytes: &[u8]) -> Vec<(PathBuf, Attr)> {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    let entries = image.walk().map(|step| {
        let step = step.unwrap();
        (
            PathBuf::from(String::from_utf8(step.path).unwrap()),
            step.attr,
        )
    });
    entries.collect()
}

fn files(bytes: &[u8]) -> Vec<String> {
    let mut files: Vec<String> = entries(bytes)
        .into_iter()
        .map(|(path, attr)| match attr.kind {
            FileKind::Directory => format!("{}/", path.display()),
            _ => path.display().to_string(),
        })
        .collect();
    files.sort();
    files
}

/// Where each text lies in the image, in their order.
fn places(bytes: &[u8], texts: &[&str]) -> Vec<usize> {
    let find = |text: &&str| {
        let mut windows = bytes.windows(text.len());
        windows
            .position(|window| window == text.as_bytes())
            .unwrap()
    };
    texts.iter().map(find).collect()
}

#[test]
fn leave_out_clutter() {
    let dir = tree(&[
        (".git/config", "x"),
        ("src/.git/y", "x"),
        ("src/a.c", "source"),
        ("src/a.o", "object"),
        ("src/a.c~", "backup"),
        ("only/objects/b.o", "object"),
        ("o", "no extension"),
        ("p/__pycache__/m.pyc", "x"),
        ("p/m.py", "x"),
    ]);
    for (loaded, _) in examples("leave_out_clutter", "") {
        assert_eq!(
            files(&build(&dir, &loaded)),
            ["/", "o", "p/", "p/m.py", "src/", "src/a.c"]
        );
    }
    for (loaded, _) in examples("leave_out_clutter", "keep=o,keep_vcs") {
        let files = files(&build(&dir, &loaded));
        assert!(files.contains(&"src/.git/y".to_owned()), "{files:?}");
        assert!(files.contains(&"only/objects/b.o".to_owned()), "{files:?}");
        assert!(!files.contains(&"src/a.c~".to_owned()), "{files:?}");
    }
}

#[test]
fn as_root() {
    let dir = tree(&[("d/program", "#!"), ("d/text", "x"), ("private", "y")]);
    let set = |path: &str, mode| {
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("d/program", 0o4751);
    set("d/text", 0o666);
    set("private", 0o400);
    set("d", 0o1777);
    for (loaded, _) in examples("as_root", "time=1600000000") {
        for (path, attr) in entries(&build(&dir, &loaded)) {
            assert_eq!((attr.uid, attr.gid), (0, 0), "{}", path.display());
            let is_open = attr.kind == FileKind::Directory || path.ends_with("program");
            let mode = if is_open { 0o755 } else { 0o644 };
            assert_eq!(attr.mode & 0o7777, mode, "{}", path.display());
            for time in [attr.mtime, attr.atime, attr.ctime] {
                assert_eq!((time.sec, time.nsec), (1_600_000_000, 0));
            }
        }
    }
}

#[test]
fn by_extension() {
    let dir = tree(&[
        ("1.h", "header one"),
        ("2.c", "code"),
        ("3.H", "header three is larger"),
        ("4.c", "more code"),
        ("5", "plain text"),
        ("6.c", "same"),
    ]);
    for (loaded, _) in examples("by_extension", "") {
        let places = places(
            &build(&dir, &loaded),
            &[
                "plain text",
                "more code",
                "codesame",
                "header three is larger",
                "header one",
            ],
        );
        assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn hot_first() {
    let dir = tree(&[
        ("a/one", "the first"),
        ("a/two", "the second"),
        ("b/three", "the third"),
        ("b/twin", "the second"),
        ("c", "the last"),
    ]);
    let log = tempfile::NamedTempFile::new().unwrap();
    fs::write(
        log.path(),
        "/mnt/t/c\n/mnt/t/b/twin\n/etc/passwd\n/mnt/t/c\n/mnt/t/a/two\n/mnt/t/gone\n",
    )
    .unwrap();
    let arguments = format!("log={},prefix=/mnt/t/", log.path().display());
    for (loaded, events) in examples("hot_first", &arguments) {
        let places = places(
            &build(&dir, &loaded),
            &["the last", "the second", "the first", "the third"],
        );
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(events.take(), ["info: 2 of 4 contents are in the log"]);
    }
}

#[test]
fn both_languages_give_the_same_image() {
    let dir = tree(&[("x.c", "code"), ("y.o", "object"), ("z/.git/a", "b")]);
    for name in ["leave_out_clutter", "as_root", "by_extension"] {
        let images: Vec<_> = examples(name, "")
            .iter()
            .map(|(loaded, _)| build(&dir, loaded))
            .collect();
        assert!(images.windows(2).all(|pair| pair[0] == pair[1]), "{name}");
    }
}
