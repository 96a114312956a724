//! What several of these tests need: the programs just built, and places to work in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use durin_testkit::programs::Programs;
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::run::{Outcome, Run};
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

/// Says to a test that it is the child which does the work.
const CHILD: &str = "DURIN_SWEEP_CHILD";

/// A test that has its work done by a process of its own, which may die of it.
pub(crate) struct Child(Run);

impl Child {
    /// Prepares a process that runs only the named test.
    pub(crate) fn of(test: &str) -> Self {
        let run = Run::new(std::env::current_exe().unwrap());
        Self(run.args([test, "--exact", "--nocapture"]).env(CHILD, "1"))
    }

    /// Sets a variable.
    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        Self(self.0.env(name, value))
    }

    /// Ends it after so long.
    pub(crate) fn time_max(self, limit: Duration) -> Self {
        Self(self.0.time_max(limit))
    }

    /// Ends it at so many resident bytes.
    pub(crate) fn memory_max(self, bytes: u64) -> Self {
        Self(self.0.memory_max(bytes))
    }

    /// Does the work in the process and returns nothing there, but how that has ended in the one that called.
    pub(crate) fn run(self, work: impl FnOnce()) -> Option<Outcome> {
        if std::env::var_os(CHILD).is_some() {
            work();
            return None;
        }
        Some(self.0.output())
    }
}
