//! What is in the target already.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use durin_extract::ExtractOptions;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::{extract, lenient};

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn files_are_unlinked_and_directories_filled() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("good", "compat-v0.4.1");
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("bench.sh");
    let link = target.path().join("link");
    let dir = target.path().join("foo");
    fs::write(&file, "old").unwrap();
    fs::hard_link(&file, &link).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("stays"), "old").unwrap();
    let (old_file, old_dir) = (inode(&file), inode(&dir));

    extract(&image, target.path(), &ExtractOptions::default())
        .result
        .unwrap();
    assert_ne!(inode(&file), old_file);
    assert_eq!(fs::read(&file).unwrap().len(), 1517);
    assert_eq!(
        fs::read(&link).unwrap(),
        b"old",
        "the other link is untouched"
    );
    assert_eq!(inode(&dir), old_dir);
    assert_eq!(fs::read(dir.join("stays")).unwrap(), b"old");
}

#[test]
fn a_second_time_gives_the_same() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("generated", "default-l7-S16");
    let target = tempfile::tempdir().unwrap();
    let first = extract(&image, target.path(), &ExtractOptions::default())
        .result
        .unwrap();
    let second = extract(&image, target.path(), &ExtractOptions::default())
        .result
        .unwrap();
    assert_eq!(first, second);
}

#[test]
fn a_file_makes_room_for_a_directory_but_not_the_other_way_round() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("good", "compat-v0.4.1");
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("foo"), "old").unwrap();
    fs::create_dir(target.path().join("bench.sh")).unwrap();
    fs::write(target.path().join("bench.sh/precious"), "old").unwrap();
    // The image is fine, so that there is nothing to go on after.
    for options in [ExtractOptions::default(), lenient()] {
        let error = extract(&image, target.path(), &options).result.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot make the file bench.sh: Is a directory (os error 21)"
        );
        assert!(target.path().join("foo").is_dir());
        assert!(target.path().join("bench.sh/precious").is_file());
    }
}

#[test]
fn the_target_keeps_its_own_attributes_unless_it_was_empty() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("good", "compat-v0.4.1");
    for (is_empty, mode) in [(true, 0o755), (false, 0o1777)] {
        let target = tempfile::tempdir().unwrap();
        fs::set_permissions(target.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        if !is_empty {
            fs::write(target.path().join("other"), "").unwrap();
        }
        extract(&image, target.path(), &ExtractOptions::default())
            .result
            .unwrap();
        let found = fs::metadata(target.path()).unwrap();
        assert_eq!(found.mode() & 0o7777, mode, "empty: {is_empty}");
    }
}
