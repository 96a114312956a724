//! Files that cannot be read, change or vanish: reported, stored as empty files, exit code 2, and a valid image.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use durin_testkit::random::Random;
use durin_testkit::run::Run;
use durin_testkit::skip::{is_root, skipped};
use durin_testkit::tree::{Kind, Tree};

use crate::support::{programs, read_tree, subdir, work_dir};

/// Unpacks a valid image.
fn unpacked(image: &Path) -> Tree {
    let check = programs().check_integrity(image);
    assert_eq!(check.code, Some(0), "{check}");
    let work = work_dir();
    let target = subdir(&work, "out");
    programs().extract(image, &target).succeed();
    read_tree(&target)
}

#[test]
fn unreadable_files_become_empty() {
    // Not below the build folder, which another user may not be able to reach.
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o777);
    let source = subdir(&dir, "source");
    std::fs::write(source.join("readable"), b"content").unwrap();
    std::fs::write(source.join("secret"), b"secret").unwrap();
    std::fs::create_dir(source.join("closed")).unwrap();
    std::fs::write(source.join("closed/inside"), b"inside").unwrap();
    set_mode(&source.join("secret"), 0);
    set_mode(&source.join("closed"), 0);
    let image = dir.path().join("image.dwarfs");
    let Some(run) = as_ordinary_user(dir.path()) else {
        return skipped("needs setpriv to give up the rights of root");
    };
    let outcome = run
        .arg("-i")
        .arg(&source)
        .arg("-o")
        .arg(&image)
        .expect_code(2);
    set_mode(&source.join("closed"), 0o755);
    for name in ["secret", "closed"] {
        assert!(
            outcome.stderr.contains(name),
            "{name} is not reported: {outcome}"
        );
    }
    let tree = unpacked(&image);
    let paths: Vec<_> = tree
        .nodes
        .iter()
        .map(|node| (node.path.as_slice(), node.size))
        .collect();
    assert_eq!(tree.nodes.len(), 4, "{paths:?}");
    assert_eq!(tree.find(b"readable").map(|node| node.size), Some(7));
    assert_eq!(
        tree.find(b"secret").map(|node| (node.kind, node.size)),
        Some((Kind::File, 0))
    );
    assert_eq!(
        tree.find(b"closed").map(|node| node.kind),
        Some(Kind::Directory)
    );
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Prepares mkdwarfs under a user whom permissions bind.
fn as_ordinary_user(dir: &Path) -> Option<Run> {
    if !is_root() {
        return Some(programs().run("mkdwarfs"));
    }
    let copy: PathBuf = dir.join("mkdwarfs");
    std::fs::copy(programs().path("mkdwarfs"), &copy).unwrap();
    set_mode(&copy, 0o755);
    let flags = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let probe = Command::new("setpriv")
        .args(flags)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    let is_there = probe.is_ok_and(|status| status.success());
    is_there.then(|| Run::new("setpriv").args(flags).arg(copy))
}

#[test]
fn files_that_lie_about_their_size_become_empty() {
    // The kernel's own files there claim 4096 bytes and hold a line.
    let source = Path::new("/sys/devices/system/cpu/vulnerabilities");
    if !source.is_dir() {
        return skipped("no /sys with files that lie about their size");
    }
    let work = work_dir();
    let image = work.path().join("image.dwarfs");
    programs().build(source, &image).expect_code(2);
    for node in unpacked(&image)
        .nodes
        .iter()
        .filter(|node| node.kind == Kind::File)
    {
        assert_eq!(node.size, 0, "{}", node.path.escape_ascii());
    }
}

#[test]
fn vanishing_and_shrinking_files_do_not_stop_a_build() {
    let work = work_dir();
    let image = work.path().join("image.dwarfs");
    let mut random = Random::new(6);
    for round in 0..8 {
        let source = subdir(&work, &format!("source-{round}"));
        for index in 0..60 {
            std::fs::write(
                source.join(format!("file-{index:02}")),
                random.bytes(400_000),
            )
            .unwrap();
        }
        let before = read_tree(&source);
        let mut command = Command::new(programs().path("mkdwarfs"));
        command
            .arg("-i")
            .arg(&source)
            .arg("-o")
            .arg(&image)
            .args(["-l4", "--force"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5 + 20 * round));
        for index in (0..60).rev() {
            let path = source.join(format!("file-{index:02}"));
            match index % 3 {
                0 => std::fs::remove_file(path).unwrap(),
                1 => std::fs::File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_len(1000)
                    .unwrap(),
                _ => {}
            }
        }
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 2)), "round {round}: {code:?}");
        assert_nothing_made_up(&before, &unpacked(&image), code == Some(0));
    }
}

/// Every file is as it was before or as it was after, or empty if that was reported.
fn assert_nothing_made_up(before: &Tree, found: &Tree, is_clean: bool) {
    for node in found.nodes.iter().filter(|node| node.kind == Kind::File) {
        let original = before.find(&node.path).unwrap();
        let is_original = node.digest == original.digest;
        let is_short = node.size == 1000;
        let path = node.path.escape_ascii();
        assert!(
            is_original || is_short || (node.size == 0 && !is_clean),
            "{path}: {}",
            node.size
        );
    }
}
