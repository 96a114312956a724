//! Extraction over what is there: whose it is, and who may use it meanwhile.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use durin_testkit::run::Run;
use durin_testkit::skip::skipped;

use crate::support::{Place, dwarfsextract, fails_with, mkdwarfs};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// An image of the tree with its owners.
fn image(place: &Place) {
    let run = mkdwarfs().current_dir(&place.path(""));
    run.args(["-i", "tree", "-o", "image", "-l1", "--force"])
        .succeed();
}

fn extract(place: &Place) -> Run {
    let run = dwarfsextract().current_dir(&place.path(""));
    run.args(["-i", "image", "-o", "out"])
}

#[test]
fn nobody_is_locked_out_by_a_failure() {
    let place = Place::new();
    for dir in ["tree/aa", "tree/zz", "out/aa", "out/zz"] {
        fs::create_dir_all(place.path(dir)).unwrap();
    }
    fs::write(place.path("out/zz/other"), "").unwrap();
    set_mode(&place.path("out/aa"), 0o755);
    set_mode(&place.path("out/zz"), 0o777);
    fs::remove_dir_all(place.tree().join("sub")).unwrap();
    fs::create_dir(place.tree().join("sub")).unwrap();
    symlink("aa", place.path("out/sub")).unwrap();
    image(&place);
    fails_with(extract(&place), "refused to follow a symlink");
    assert_eq!(mode(&place.path("out/aa")), 0o755);
    assert_eq!(mode(&place.path("out/zz")), 0o777);
}

#[test]
fn setgid_stays_where_the_group_is_right_before() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can give files away");
    }
    let place = Place::new();
    let (dir, file) = (place.tree().join("sub"), place.tree().join("hello"));
    for (path, mode) in [(&dir, 0o2775), (&file, 0o2755)] {
        chown(path, None, Some(2)).unwrap();
        set_mode(path, mode);
    }
    image(&place);
    // What is made in it has the group already.
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/other"), "").unwrap();
    chown(place.path("out"), None, Some(2)).unwrap();
    set_mode(&place.path("out"), 0o2755);
    for _ in 0..2 {
        extract(&place).succeed();
        assert_eq!(mode(&place.path("out/sub")), 0o2775);
        assert_eq!(mode(&place.path("out/hello")), 0o2755);
    }
}

/// dwarfsextract as a user whom permissions bind, of group 65534 and also of 50.
fn as_ordinary_user(place: &Place) -> Run {
    let copy = place.path("dwarfsextract");
    fs::copy(env!("CARGO_BIN_EXE_dwarfsextract"), &copy).unwrap();
    let run = Run::new("setpriv").current_dir(&place.path(""));
    run.args(["--reuid=65534", "--regid=65534", "--groups=50"])
        .arg(copy)
        .args(["-i", "image", "-o", "out"])
}

#[test]
fn setgid_lends_no_other_group() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    let place = Place::new();
    for (name, group) in [("foreign", 65534), ("same", 50)] {
        let path = place.tree().join(name);
        fs::write(&path, name).unwrap();
        chown(&path, Some(65534), Some(group)).unwrap();
        set_mode(&path, 0o2755);
    }
    image(&place);
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/other"), "").unwrap();
    chown(place.path("out"), Some(65534), Some(50)).unwrap();
    set_mode(&place.path("out"), 0o2775);
    set_mode(&place.path(""), 0o755);
    as_ordinary_user(&place).succeed();
    // The directory makes group 50 own both.
    assert_eq!(mode(&place.path("out/foreign")), 0o755);
    assert_eq!(mode(&place.path("out/same")), 0o2755);
}

#[test]
fn others_directories_are_filled_and_own_ones_opened_up() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    let place = Place::new();
    set_mode(&place.tree().join("hello"), 0o644);
    let private = place.tree().join("private");
    fs::create_dir_all(private.join("inner")).unwrap();
    fs::write(private.join("inner/file"), "inner").unwrap();
    set_mode(&private, 0o111);
    image(&place);
    fs::create_dir_all(place.path("out/sub")).unwrap();
    chown(place.path("out"), Some(65534), Some(65534)).unwrap();
    set_mode(&place.path("out/sub"), 0o777);
    set_mode(&place.path(""), 0o755);
    // That directory cannot get the attributes, which is said, and all that is in it is there.
    for _ in 0..2 {
        let outcome = as_ordinary_user(&place).expect_code(2);
        assert!(outcome.stderr.contains("sub: cannot restore"), "{outcome}");
        assert_eq!(fs::read(place.path("out/sub/copy")).unwrap(), b"hello\n");
        let inner = place.path("out/private/inner/file");
        assert_eq!(fs::read(inner).unwrap(), b"inner");
        assert_eq!(mode(&place.path("out/private")), 0o111);
    }
    assert_eq!(mode(&place.path("out/sub")), 0o777);
}
