//! Targets that cannot take the tree.

use std::path::Path;

use durin_extract::ExtractOptions;
use durin_format::ErrorKind;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use rustix::mount::{MountFlags, UnmountFlags};
use tempfile::TempDir;

use crate::{extract, lenient};

/// A file system in memory of a given size; unmounted when it goes.
struct Small(TempDir);

impl Small {
    fn mount(options: &str) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = std::ffi::CString::new(options).map_err(|error| error.to_string())?;
        rustix::mount::mount(
            "tmpfs",
            dir.path(),
            "tmpfs",
            MountFlags::empty(),
            options.as_c_str(),
        )
        .map_err(|errno| format!("cannot mount a tmpfs: {errno}"))?;
        Ok(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.path(), UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_ends_it_and_leaves_no_partial_file() {
    let vectors = require!(Vectors::find());
    let small = require!(Small::mount("size=1m"));
    let image = vectors.image("generated", "null-l0");
    // Going on would only fail again and again.
    let error = extract(&image, small.path(), &lenient())
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let text = error.to_string();
    assert!(
        text.contains("cannot write ") && text.contains("No space left"),
        "{text}"
    );
    let name = text.split("cannot write ").nth(1).unwrap();
    let name = name.split(": ").next().unwrap();
    assert!(!small.path().join(name).exists(), "{name} is removed");
}

#[test]
fn a_read_only_target_is_an_error() {
    let vectors = require!(Vectors::find());
    let small = require!(Small::mount("size=1m"));
    rustix::mount::mount_remount(small.path(), MountFlags::RDONLY, "").unwrap();
    let image = vectors.image("good", "compat-v0.4.1");
    let error = extract(&image, small.path(), &lenient())
        .result
        .unwrap_err();
    assert!(
        error.to_string().contains("Read-only file system"),
        "{error}"
    );
}

#[test]
fn a_target_that_is_no_directory_is_an_error() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("good", "compat-v0.4.1");
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    let error = extract(&image, &absent, &ExtractOptions::default())
        .result
        .unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = extract(&image, &file, &ExtractOptions::default())
        .result
        .unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
}
