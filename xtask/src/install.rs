//! Installs what a task needs from the distribution, if this process may.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use durin_testkit::skip::is_root;

use crate::say::say;
use crate::workspace::{succeed_within, target_dir};

/// A server that does not answer must not hold up everything.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Whether the lists of packages were fetched by this process.
static IS_UPDATED: AtomicBool = AtomicBool::new(false);

/// Whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    dirs().iter().any(|dir| dir.join(program).is_file())
}

/// The first of some programs that is not in the folder which a variable of the environment names.
pub(crate) fn missing_in_folder<'a>(variable: &str, programs: &'a [String]) -> Option<&'a String> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    let has = |program: &&String| folder.as_ref().is_some_and(|f| f.join(program).is_file());
    programs.iter().find(|program| !has(program))
}

/// Where programs are looked for: among those that were fetched because there were none, or none that would do; as `PATH`
/// says; then where an ordinary one does not lead.
fn dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = vec![tools_dir().join("bin")];
    dirs.extend(std::env::split_paths(&path));
    // Programs for the administrator.
    dirs.extend(["/usr/sbin", "/sbin"].map(Into::into));
    dirs
}

/// `PATH` for programs that are started from here.
pub(crate) fn path() -> OsString {
    std::env::join_paths(dirs()).unwrap_or_default()
}

/// The folder for programs that come from no package of the distribution.
pub(crate) fn tools_dir() -> PathBuf {
    target_dir().join("bench").join("tools")
}

/// Installs a package of the distribution; fails where that is not possible.
pub(crate) fn package(name: &str) -> Result<()> {
    apt_install(name, &[])
}

/// The same, but fails where another package would have to go: programs of the FUSE libraries 2 and 3 cannot be installed
/// together everywhere, and the tests need the one of 3.
pub(crate) fn package_beside_others(name: &str) -> Result<()> {
    apt_install(name, &["--no-remove"])
}

fn apt_install(name: &str, options: &[&str]) -> Result<()> {
    if !is_root() || !has("apt-get") {
        bail!(
            "the package {name} is missing, and only root on a Debian-like system can install it"
        );
    }
    say!("installing {name} ...");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(["-qq", "-o", "Dpkg::Use-Pty=0"])
            .args(arguments);
        succeed_within(command.env("DEBIAN_FRONTEND", "noninteractive"), TIME_MAX)
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(options);
    install.push(name);
    // The lists of packages may be old or not there at all, but are new after one time.
    apt(&install).or_else(|error| {
        if IS_UPDATED.swap(true, Ordering::Relaxed) {
            return Err(error);
        }
        apt(&["update"]).and_then(|()| apt(&install))
    })
}

/// Makes sure that a program is there, from a package if need be.
pub(crate) fn program(name: &str, package_name: &str) -> Result<()> {
    if has(name) {
        Ok(())
    } else {
        package(package_name)
    }
}
