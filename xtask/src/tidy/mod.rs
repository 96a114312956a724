//! `cargo xtask tidy`: the rules of this workspace that no other tool knows.
//!
//! Each rule is a function from texts to complaints, so that it can be tested without a workspace.

mod arrows;
mod shown;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::say::say;
use crate::workspace;

/// Packages in the lock file, ours and those of tests included: each further one is built, audited and replaced some
/// day. Raised on purpose only.
const LOCK_PACKAGES_MAX: usize = 195;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(arguments, &[])?;
    let root = workspace::root();
    let tracked = tracked_files(&root)?;
    let mut complaints = arrows::check(&metadata()?);
    for path in &tracked {
        // Only text matters; images in a corpus are not.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            complaints.extend(sources::check(path, &text));
        }
    }
    let read = |path: &Path| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    complaints.extend(sources::undeclared_tests(&tracked, read));
    complaints.extend(unnamed_crates(
        &tracked,
        &read(Path::new("ARCHITECTURE.md")),
    ));
    let compat = Path::new("docs/compat.md");
    complaints.extend(shown::check(compat, &read(compat), read));
    let packages = read(Path::new("Cargo.lock")).matches("[[package]]").count();
    if packages > LOCK_PACKAGES_MAX {
        complaints.push(format!(
            "Cargo.lock: {packages} packages, the limit is {LOCK_PACKAGES_MAX}"
        ));
    }
    say!(
        "{} files, {packages} packages in the lock file (limit {LOCK_PACKAGES_MAX})",
        tracked.len()
    );
    for complaint in &complaints {
        say!("{complaint}");
    }
    ensure!(
        complaints.is_empty(),
        "tidy: {} complaints",
        complaints.len()
    );
    Ok(())
}

/// Lists the files that git knows or would add.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = command
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = output
        .stdout
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty());
    let paths = names.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()));
    // A deleted file stays listed until that is committed.
    Ok(paths.filter(|path| root.join(path).is_file()).collect())
}

/// Returns what cargo knows about the packages of the workspace.
fn metadata() -> Result<serde_json::Value> {
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--locked"];
    let output = workspace::cargo(&arguments)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Complains about crates that the map of the code does not name.
fn unnamed_crates(tracked: &[PathBuf], architecture: &str) -> Vec<String> {
    let manifests = tracked.iter().filter(|path| path.ends_with("Cargo.toml"));
    let dirs = manifests.filter_map(|path| path.strip_prefix("crates").ok()?.parent());
    let is_named = |dir: &Path| {
        let name = dir.display();
        [
            format!("`{name}`"),
            format!("crates/{name}"),
            format!("{name}/"),
        ]
        .iter()
        .any(|spelling| architecture.contains(spelling))
    };
    dirs.filter(|dir| !is_named(dir))
        .map(|dir| format!("ARCHITECTURE.md: does not name the crate {}", dir.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_must_be_on_the_map() {
        let tracked = [
            "Cargo.toml",
            "crates/reader/Cargo.toml",
            "crates/fuse/Cargo.toml",
        ];
        let complaints = unnamed_crates(&tracked.map(PathBuf::from), "- `reader`: reads\n");
        assert_eq!(
            complaints,
            ["ARCHITECTURE.md: does not name the crate fuse"]
        );
    }
}
