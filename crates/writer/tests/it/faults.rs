//! What cannot be read is reported and left out; what cannot be written ends the build at once.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use durin_codec::Spec;
use durin_format::ErrorKind;
use durin_format::events::{Events, Message, Quiet, Severity};
use durin_writer::{BuildOptions, Input, Stats};

use crate::harness::{Recorder, build, options, put};

/// Passes the image on to nowhere, and does something harmful at the first write, when the scan is over.
struct AtFirstWrite<'a> {
    act: Option<Box<dyn FnOnce() + 'a>>,
    bytes: Vec<u8>,
}

impl Write for AtFirstWrite<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if let Some(act) = self.act.take() {
            act();
        }
        self.bytes.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Builds an image and harms the input when nothing but the header of the image has been written.
fn build_while(options: &mut BuildOptions, act: impl FnOnce()) -> (Vec<u8>, u64, Vec<String>) {
    options.header = b"header".to_vec();
    let recorder = Recorder::default();
    let mut output = AtFirstWrite {
        act: Some(Box::new(act)),
        bytes: Vec::new(),
    };
    let never = AtomicBool::new(false);
    let report =
        durin_writer::build(options, &mut output, &Stats::default(), &recorder, &never).unwrap();
    (output.bytes, report.errors, recorder.messages())
}

fn files_of(bytes: Vec<u8>) -> std::collections::BTreeMap<String, Vec<u8>> {
    let built = crate::harness::Built {
        report: durin_writer::Report::default(),
        messages: Vec::new(),
        bytes,
    };
    built.files()
}

#[test]
fn files_that_change_or_vanish_are_empty() {
    let dir = tempfile::tempdir().unwrap();
    let large = vec![1; 5 << 20];
    put(
        dir.path(),
        &[
            ("good", b"good"),
            ("gone", b"gone away"),
            ("grown", b"grown"),
            ("large", &large),
            ("replaced", b"replaced!"),
            ("shorter", b"shorter..."),
            ("touched", b"touched....."),
        ],
    );
    let at = |name: &str| dir.path().join(name);
    let mut options = options(dir.path());
    let (bytes, errors, messages) = build_while(&mut options, || {
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("grown"), "grown and grown").unwrap();
        fs::write(at("shorter"), "short").unwrap();
        fs::write(at("large"), vec![2; 4 << 20]).unwrap();
        fs::remove_file(at("replaced")).unwrap();
        std::os::unix::fs::symlink("good", at("replaced")).unwrap();
        fs::write(at("touched"), "TOUCHED.....").unwrap();
    });
    assert_eq!(errors, 5, "{messages:?}");
    for name in ["gone", "grown", "shorter", "large", "replaced"] {
        assert!(
            messages
                .iter()
                .any(|text| text.contains(&format!("'{name}'"))),
            "{messages:?}"
        );
    }
    let files = files_of(bytes);
    for (name, content) in &files {
        match name.as_str() {
            "good" => assert_eq!(content, b"good"),
            // It has the size that the scan has found, and nothing depends on what it held then.
            "touched" => assert_eq!(content, b"TOUCHED....."),
            other => assert!(content.is_empty(), "{other}"),
        }
    }
    assert_eq!(files.len(), 7);
}

#[test]
fn a_copy_takes_the_place_of_a_lost_file() {
    let dir = tempfile::tempdir().unwrap();
    let large = vec![5; 3 << 20];
    put(
        dir.path(),
        &[
            ("a", &large),
            ("b", &large),
            ("c", b"tiny"),
            ("d", b"tiny"),
            ("e", b"tiny"),
        ],
    );
    let at = |name: &str| dir.path().join(name);
    let (bytes, errors, _) = build_while(&mut options(dir.path()), || {
        fs::remove_file(at("a")).unwrap();
        // The same size, but no longer what was hashed. The kernel's clock for files ticks some 100 times a second.
        thread::sleep(Duration::from_millis(50));
        fs::write(at("c"), "TINY").unwrap();
    });
    let files = files_of(bytes);
    assert_eq!(errors, 2);
    assert!(files["a"].is_empty() && files["b"] == large);
    assert!(files["c"].is_empty());
    assert_eq!(
        (&files["d"][..], &files["e"][..]),
        (&b"tiny"[..], &b"tiny"[..])
    );
}

#[test]
fn a_hard_linked_file_is_read_by_any_of_its_names() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[
            ("a", b"removed"),
            ("c", b"replaced"),
            ("e/x", b"moved"),
            ("g", b"without a name"),
            ("i", b"others"),
        ],
    );
    let at = |name: &str| dir.path().join(name);
    for (first, other) in [
        ("a", "b"),
        ("c", "sub/d"),
        ("e/x", "f"),
        ("g", "h"),
        ("i", "j"),
    ] {
        fs::create_dir_all(at(other).parent().unwrap()).unwrap();
        fs::hard_link(at(first), at(other)).unwrap();
    }
    let (bytes, errors, messages) = build_while(&mut options(dir.path()), || {
        fs::remove_file(at("a")).unwrap();
        fs::write(at("new"), "REPLACED").unwrap();
        fs::rename(at("new"), at("c")).unwrap();
        fs::rename(at("e"), at("E")).unwrap();
        std::os::unix::fs::symlink("E", at("e")).unwrap();
        // Not the file that the two names had in common, nor one that has got its inode number.
        fs::write(at("new i"), "OTHERS").unwrap();
        fs::write(at("new j"), "others").unwrap();
        fs::rename(at("new i"), at("i")).unwrap();
        fs::rename(at("new j"), at("j")).unwrap();
        fs::remove_file(at("g")).unwrap();
        fs::remove_file(at("h")).unwrap();
    });
    assert_eq!(errors, 2, "{messages:?}");
    for names in ["'g', 'h'", "'i', 'j'"] {
        let is_named = messages.iter().any(|text| text.contains(names));
        assert!(is_named, "{messages:?}");
    }
    let files = files_of(bytes);
    let expect: [(&str, &[u8]); 10] = [
        ("a", b"removed"),
        ("b", b"removed"),
        ("c", b"replaced"),
        ("e/x", b"moved"),
        ("f", b"moved"),
        ("g", b""),
        ("h", b""),
        ("i", b""),
        ("j", b""),
        ("sub/d", b"replaced"),
    ];
    let found: Vec<(&str, &[u8])> = files.iter().map(|(n, c)| (&n[..], &c[..])).collect();
    assert_eq!(found, expect);
}

/// Only means something for a user whom permissions hold back.
#[test]
fn unreadable_files_and_directories() {
    use std::os::unix::fs::PermissionsExt;

    if durin_testkit::skip::is_root() {
        return as_nobody("faults::unreadable_files_and_directories");
    }
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[("file", b"secret"), ("closed/x", b"x"), ("good", b"good")],
    );
    fs::set_permissions(dir.path().join("file"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let built = build(&options(dir.path()));
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(built.report.errors, 2);
    assert_eq!(built.paths(), ["closed/", "file", "good"]);
}

#[test]
fn listed_files_below_directories_that_can_only_be_searched() {
    use std::os::unix::fs::PermissionsExt;

    if durin_testkit::skip::is_root() {
        return as_nobody("faults::listed_files_below_directories_that_can_only_be_searched");
    }
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("x/file", b"data"), ("x/y/deeper", b"more")]);
    let set_mode = |name: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(dir.path().join(name), permissions).unwrap();
    };
    let input = Input::List {
        root: Some(dir.path().to_owned()),
        paths: vec!["x/file".into(), "x/y/deeper".into()],
    };
    for name in ["x/y", "x", "."] {
        set_mode(name, 0o311);
    }
    let built = build(&BuildOptions {
        input,
        ..options(dir.path())
    });
    for name in [".", "x", "x/y"] {
        set_mode(name, 0o755);
    }
    let files: Vec<(String, Vec<u8>)> = built.files().into_iter().collect();
    let expect = [("x/file", "data"), ("x/y/deeper", "more")];
    assert_eq!(files, expect.map(|(n, c)| (n.to_owned(), c.into())));
    assert_eq!(built.report.errors, 0);
}

/// Root may read everything: run a test again as somebody else.
fn as_nobody(test_name: &str) {
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let test = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("test");
    fs::copy(&test, &copy).unwrap();
    fs::set_permissions(
        dir.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let run = || {
        std::process::Command::new(&copy)
            .args(["--exact", test_name])
            .uid(NOBODY)
            .gid(NOBODY)
            .env("TMPDIR", "/tmp")
            .status()
    };
    let mut status = run();
    // Another test that starts a program at this moment may still have the copy open for writing.
    while matches!(&status, Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy) {
        thread::sleep(Duration::from_millis(10));
        status = run();
    }
    assert!(status.unwrap().success());
}

/// A disk with room for some bytes only.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = data.len().min(self.0);
        self.0 -= len;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn incompressible(dir: &Path, bytes: usize) {
    let mut random = durin_testkit::random::Random::new(3);
    put(dir, &[("data", &random.bytes(bytes))]);
}

#[test]
fn a_full_disk_ends_the_build_wherever_it_happens() {
    let dir = tempfile::tempdir().unwrap();
    incompressible(dir.path(), 100_000);
    put(dir.path(), &[("more/small", b"small")]);
    let options = BuildOptions {
        header: b"header".to_vec(),
        memory_limit: Some(1),
        ..options(dir.path())
    };
    let whole = build(&options).bytes.len();
    for room in (0..whole).step_by(997).chain([whole - 1]) {
        let never = AtomicBool::new(false);
        let result =
            durin_writer::build(&options, &mut Full(room), &Stats::default(), &Quiet, &never);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(
            error.to_string().starts_with("cannot write the image"),
            "{error}"
        );
    }
}

#[test]
fn cancelling_does_not_wait_for_a_slow_block() {
    let dir = tempfile::tempdir().unwrap();
    incompressible(dir.path(), 40 << 20);
    let options = BuildOptions {
        compression: Spec::parse("lzma:level=9:extreme").unwrap().into(),
        block_size_bits: 25,
        ..options(dir.path())
    };
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let build =
            scope.spawn(|| durin_writer::build(&options, &mut io::sink(), &stats, &Quiet, &cancel));
        while stats.blocks_made.get() == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        cancel.store(true, Ordering::Relaxed);
        let error = build.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        // The promise is a tenth of a second; the machine may be busy with other tests.
        assert!(
            asked.elapsed() < Duration::from_secs(2),
            "{:?}",
            asked.elapsed()
        );
    });
}

/// Stops the build at its first warning.
struct StopAtOnce<'a>(&'a AtomicBool);

impl Events for StopAtOnce<'_> {
    fn message(&self, message: &Message<'_>) {
        if message.severity != Severity::Info {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn cancelled_at_any_stage() {
    let dir = tempfile::tempdir().unwrap();
    incompressible(dir.path(), 100_000);
    let cancelled = |events: &dyn Events, cancel: &AtomicBool, options: &BuildOptions| {
        let result =
            durin_writer::build(options, &mut io::sink(), &Stats::default(), events, cancel);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    };
    let options = options(dir.path());
    cancelled(&Quiet, &AtomicBool::new(true), &options);
    // The warning about the limit comes when the blocks begin.
    let cancel = AtomicBool::new(false);
    let low = BuildOptions {
        memory_limit: Some(1),
        ..options
    };
    cancelled(&StopAtOnce(&cancel), &cancel, &low);
}

#[test]
fn options_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let check = |options: BuildOptions, expect: &str| {
        let never = AtomicBool::new(false);
        let result =
            durin_writer::build(&options, &mut io::sink(), &Stats::default(), &Quiet, &never);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expect), "{error}");
    };
    let with_bits = |bits| BuildOptions {
        block_size_bits: bits,
        ..options(dir.path())
    };
    check(with_bits(9), "between 2^10 and 2^30");
    check(with_bits(31), "between 2^10 and 2^30");
    let flac = BuildOptions {
        compression: Spec::parse("flac").unwrap().into(),
        ..options(dir.path())
    };
    check(flac, "flac");
}
