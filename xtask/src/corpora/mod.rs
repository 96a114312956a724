//! `cargo xtask corpora`: makes the trees of the benchmarks on a machine that has none of them.
//!
//! Definitions are data (`benchmarks/corpora.toml`). What is made is counted and compared with what it should be, so that
//! figures of two machines are figures of the same tree. An interrupted task goes on where it was.

mod fetch;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use serde::Deserialize;

use crate::report::{Census, census, count};
use crate::say::say;
use crate::{install, workspace};

/// A tree that can be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    name: String,
    kind: String,
    about: String,
    /// A list of packages in `benchmarks/corpora`.
    packages: Option<String>,
    /// A command line of `sh`, run in `benchmarks/corpora`.
    script: Option<String>,
    /// Programs it needs, each with Debian's package of it.
    #[serde(default)]
    programs: Vec<[String; 2]>,
    /// Debian packages it needs that have no program.
    #[serde(default)]
    debian: Vec<String>,
    files: u64,
    bytes: u64,
    #[serde(default = "tolerance_percent")]
    tolerance_percent: u64,
    mib: u64,
}

/// What comes from a registry at a version does not change; this is for what file systems count differently.
const fn tolerance_percent() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusFile {
    corpus: Vec<Corpus>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let corpora = read()?;
    let (name, dest) = match arguments {
        [] => {
            list(&corpora);
            return Ok(());
        }
        [.., last] if last.starts_with('-') => bail!("cargo xtask corpora NAME [DEST]"),
        [name] => (name, None),
        [name, dest] => (name, Some(PathBuf::from(dest))),
        _ => bail!("cargo xtask corpora NAME [DEST]"),
    };
    if name == "all" {
        let top = dest.unwrap_or_else(dir);
        for corpus in &corpora {
            make(corpus, &top.join(&corpus.name))?;
        }
        return Ok(());
    }
    let found = corpora.iter().find(|corpus| corpus.name == *name);
    let Some(corpus) = found else {
        list(&corpora);
        bail!("no corpus {name}");
    };
    make(corpus, &dest.unwrap_or_else(|| dir().join(name)))
}

/// Where corpora are made and looked for.
pub(crate) fn dir() -> PathBuf {
    std::env::var_os("DURIN_CORPORA")
        .map_or_else(|| workspace::target_dir().join("corpora"), PathBuf::from)
}

/// Returns the kind of a corpus; one that is not ours is `other`.
pub(crate) fn kind(name: &str) -> Result<String> {
    let corpora = read()?;
    let corpus = corpora.into_iter().find(|corpus| corpus.name == name);
    Ok(corpus.map_or("other".to_owned(), |corpus| corpus.kind))
}

/// Returns the bytes of a corpus of ours.
pub(crate) fn bytes(name: &str) -> Result<u64> {
    let corpora = read()?;
    let corpus = corpora.iter().find(|corpus| corpus.name == name);
    Ok(corpus.with_context(|| format!("no corpus {name}"))?.bytes)
}

fn read() -> Result<Vec<Corpus>> {
    let path = workspace::benchmarks().join("corpora.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: CorpusFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(file.corpus)
}

fn list(corpora: &[Corpus]) {
    say!("cargo xtask corpora NAME|all [DEST]\n");
    for corpus in corpora {
        say!(
            "  {:<17} {:>9} files {:>13} bytes, {:>4} MiB of disk: {}",
            corpus.name,
            count(corpus.files),
            count(corpus.bytes),
            corpus.mib,
            corpus.about
        );
    }
}

fn make(corpus: &Corpus, dest: &Path) -> Result<()> {
    if !dest.exists() {
        say!("{}: making {} ...", corpus.name, dest.display());
        let mut name = dest.file_name().context("not a directory name")?.to_owned();
        name.push(".partial");
        let partial = dest.with_file_name(name);
        corpus.install()?;
        corpus.make(&partial)?;
        std::fs::rename(&partial, dest)?;
    }
    let tree = snapshot(
        // The top may be reached through a link.
        &std::fs::canonicalize(dest)?,
        &TreeOptions {
            digest: Digest::None,
        },
    )?;
    let found = census(&tree);
    corpus.check(&found)?;
    let bytes = count(found.bytes);
    say!(
        "{}: {found}, {bytes} bytes in {}",
        corpus.name,
        dest.display()
    );
    Ok(())
}

impl Corpus {
    fn install(&self) -> Result<()> {
        for [program, package] in &self.programs {
            install::program(program, package)?;
        }
        for package in &self.debian {
            let mut query = Command::new("dpkg");
            let is_there = query.args(["-s", package]).output();
            if !is_there.is_ok_and(|output| output.status.success()) {
                install::package(package)?;
            }
        }
        Ok(())
    }

    fn make(&self, partial: &Path) -> Result<()> {
        let recipes = workspace::benchmarks().join("corpora");
        if let Some(packages) = &self.packages {
            return fetch::all(&recipes.join(packages), partial);
        }
        let script = self
            .script
            .as_ref()
            .context("neither packages nor script")?;
        // A script starts from nothing: what it had made before is not known to be whole.
        if partial.exists() {
            durin_testkit::roundtrip::remove_tree(partial)?;
        }
        std::fs::create_dir_all(partial)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .env("DEST", std::fs::canonicalize(partial)?)
            .current_dir(recipes);
        workspace::succeed(&mut command)
    }

    /// Refuses a tree that is not what the figures were measured with.
    fn check(&self, found: &Census) -> Result<()> {
        for (what, found, expected) in [
            ("files", found.files, self.files),
            ("bytes", found.bytes, self.bytes),
        ] {
            let allowed = expected * self.tolerance_percent / 100;
            ensure!(
                found.abs_diff(expected) <= allowed,
                "{}: {} {what}, expected {} within {} %",
                self.name,
                count(found),
                count(expected),
                self.tolerance_percent
            );
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_valid() {
        for corpus in read().unwrap() {
            assert_eq!(
                usize::from(corpus.packages.is_some()) + usize::from(corpus.script.is_some()),
                1,
                "{}",
                corpus.name
            );
            if let Some(packages) = &corpus.packages {
                let path = workspace::benchmarks().join("corpora").join(packages);
                assert!(!fetch::read(&path).unwrap().is_empty());
            }
        }
        assert_eq!(kind("multiver").unwrap(), "versions");
        assert_eq!(kind("mine").unwrap(), "other");
    }

    #[test]
    fn another_tree_is_refused() {
        let corpora = read().unwrap();
        let corpus = corpora.iter().find(|c| c.name == "multiver-small").unwrap();
        let check = |files, bytes| {
            let census = Census {
                files,
                directories: 1,
                others: 0,
                bytes,
            };
            corpus.check(&census).is_ok()
        };
        assert!(check(corpus.files, corpus.bytes + 1000));
        assert!(!check(corpus.files / 2, corpus.bytes));
        assert!(!check(corpus.files, corpus.bytes * 2));
    }

    #[test]
    fn a_script_makes_a_tree_once() {
        let dir = tempfile::tempdir().unwrap();
        let corpus = Corpus {
            name: "made".to_owned(),
            kind: "other".to_owned(),
            about: String::new(),
            packages: None,
            script: Some("printf 12345 > \"$DEST/file\"".to_owned()),
            programs: Vec::new(),
            debian: Vec::new(),
            files: 1,
            bytes: 5,
            tolerance_percent: 0,
            mib: 0,
        };
        let dest = dir.path().join("made");
        make(&corpus, &dest).unwrap();
        std::fs::write(dest.join("file"), "54321").unwrap();
        make(&corpus, &dest).unwrap();
        assert_eq!(std::fs::read(dest.join("file")).unwrap(), b"54321");
        std::fs::write(dest.join("more"), "1").unwrap();
        assert!(make(&corpus, &dest).is_err());
    }
}
