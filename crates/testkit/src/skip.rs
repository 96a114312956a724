//! Tests that cannot run on a machine say so, and fail where that must not happen.
//!
//! The note goes to standard error behind the back of the test harness, which would swallow it for a passing test.

use std::io::Write;

/// Says that a test did not run, and why.
///
/// # Panics
///
/// When the variable `CI` is set: there every test must run.
pub fn skipped(why: &str) {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "SKIPPED where every test must run (CI is set): {why}");
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    // A closed standard error is no reason to fail a test.
    drop(writeln!(std::io::stderr(), "SKIPPED: {test}: {why}"));
}

/// Gives the value of an `Ok`, or says SKIPPED with the `Err` and returns from the test.
#[macro_export]
macro_rules! require {
    ($available:expr) => {
        match $available {
            Ok(value) => value,
            Err(why) => {
                $crate::skip::skipped(&why.to_string());
                return;
            }
        }
    };
}

/// Whether a program is there; says SKIPPED otherwise.
///
/// # Panics
///
/// As [`skipped`], if it is not there.
#[must_use]
pub fn has_program(name: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()));
    if !found {
        skipped(&format!("{name} is not installed"));
    }
    found
}

/// Whether this process may do what only root may: own files as others, make devices, mount.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process may make device nodes; root in a container often may not.
#[must_use]
pub fn can_make_devices() -> bool {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let probe = || -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("null");
        Ok(mknodat(
            CWD,
            path,
            FileType::CharacterDevice,
            Mode::RUSR,
            makedev(1, 3),
        )?)
    };
    is_root() && probe().is_ok()
}
