//! The same tree, options and version give the same bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use durin_testkit::made_tree::{self, MadeTreeOptions};
use durin_testkit::run::Run;

use crate::support::{programs, subdir, work_dir};

const EPOCH: &str = "1700000000";
const SMALL: MadeTreeOptions = MadeTreeOptions {
    wide: 500,
    sparse_len: 1 << 30,
};

fn build(source: &Path, image: &Path, arguments: &[&str]) -> Run {
    let run = programs()
        .build(source, image)
        .args(arguments)
        .arg("--force");
    run.env("SOURCE_DATE_EPOCH", EPOCH)
}

fn bytes_of(source: &Path, image: &Path, arguments: &[&str]) -> Vec<u8> {
    build(source, image, arguments).succeed();
    std::fs::read(image).unwrap()
}

#[test]
fn threads_do_not_show_in_the_bytes() {
    let work = work_dir();
    let source = subdir(&work, "source");
    made_tree::make(&source, &SMALL).unwrap();
    let image = work.path().join("image.dwarfs");
    for level in ["-l1", "-l4", "-l6", "-l7"] {
        let with = |workers: &[&str]| {
            let common = [
                level,
                "-S16",
                "--with-devices",
                "--with-specials",
                "--no-history",
            ];
            bytes_of(&source, &image, &[&common, workers].concat())
        };
        let one = with(&["-N1"]);
        for workers in [&["-N4"][..], &["-N3", "--num-scanner-workers=7"], &["-N1"]] {
            assert!(one == with(workers), "{level} {workers:?}");
        }
    }
}

#[test]
fn the_clock_shows_only_where_asked() {
    let work = work_dir();
    let source = subdir(&work, "source");
    std::fs::write(source.join("file"), b"content").unwrap();
    let image = work.path().join("image.dwarfs");
    let first = bytes_of(&source, &image, &["-l1"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(
        first == bytes_of(&source, &image, &["-l1"]),
        "a second later"
    );
    let epoch = |value| build(&source, &image, &["-l1"]).env("SOURCE_DATE_EPOCH", value);
    epoch("1234567890").succeed();
    assert!(
        first != std::fs::read(&image).unwrap(),
        "SOURCE_DATE_EPOCH is kept in the image"
    );
}

#[test]
fn the_order_of_creation_does_not_show() {
    let work = work_dir();
    let (forward, backward) = (subdir(&work, "forward"), subdir(&work, "backward"));
    for index in 0..500 {
        put(&forward, index);
        put(&backward, 499 - index);
    }
    for dir in [&forward, &backward] {
        made_tree::set_times(dir, 1_600_000_000, 0).unwrap();
    }
    let image = work.path().join("image.dwarfs");
    let arguments = ["-l4", "--no-history"];
    let first = bytes_of(&forward, &image, &arguments);
    assert!(first == bytes_of(&backward, &image, &arguments));
}

fn put(dir: &Path, index: u32) {
    let name = format!("{:03}-{index}", index.wrapping_mul(7919) % 500);
    let path = dir.join(OsStr::from_bytes(name.as_bytes()));
    std::fs::write(&path, format!("content {}", index % 50)).unwrap();
    made_tree::set_times(&path, 1_500_000_000 + i64::from(index), 0).unwrap();
}

#[test]
fn a_pipe_gets_the_same_bytes() {
    let work = work_dir();
    let source = subdir(&work, "source");
    made_tree::make(&source, &SMALL).unwrap();
    let image = work.path().join("image.dwarfs");
    let arguments = ["-l1", "-S16", "--no-history"];
    let file = bytes_of(&source, &image, &arguments);
    let script = "\"$@\" | cat";
    let piped = Run::new("sh")
        .args(["-c", script, "sh"])
        .arg(programs().path("mkdwarfs"));
    let piped = piped
        .arg("-i")
        .arg(&source)
        .args(["-o", "-"])
        .args(arguments);
    let piped = piped.env("SOURCE_DATE_EPOCH", EPOCH).succeed();
    assert!(
        file == piped.stdout,
        "-o - gave {} bytes, a file {}",
        piped.stdout.len(),
        file.len()
    );
}
