//! What several of these tests need: the programs just built, and places to work in.

use std::path::{Path, PathBuf};

use durin_testkit::programs::Programs;
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::tree::{Tree, snapshot};
use tempfile::TempDir;

/// The programs that cargo built for these tests.
pub(crate) fn programs() -> Programs {
    Programs::beside(env!("CARGO_BIN_EXE_mkdwarfs"))
}

/// A directory on the disk of the build: large, and with all attributes that a disk keeps.
pub(crate) fn work_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("e2e-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .unwrap()
}

/// Makes a subdirectory.
pub(crate) fn subdir(parent: &TempDir, name: &str) -> PathBuf {
    let path = parent.path().join(name);
    std::fs::create_dir(&path).unwrap();
    path
}

/// Reads a tree with contents.
pub(crate) fn read_tree(top: &Path) -> Tree {
    snapshot(top, &POSITIONS).unwrap()
}

/// Lists the names in a directory.
pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}
