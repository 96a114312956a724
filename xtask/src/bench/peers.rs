//! Who durin is compared with (`benchmarks/peers.toml`): installs what is missing, where that is possible.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::table::{self, Table};
use super::{measure, newer_debian};
use crate::say::say;
use crate::workspace::succeed_within;
use crate::{install, workspace};

/// Neither downloads nor builds may hold up everything.
const INSTALL_MAX: Duration = Duration::from_secs(120);
const BUILD_MAX: Duration = Duration::from_secs(1200);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerFile {
    peer: Vec<Peer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    name: String,
    #[serde(default)]
    programs: Vec<String>,
    folder: Option<String>,
    debian: Option<String>,
    release: Option<String>,
    probe: Option<String>,
    #[serde(default)]
    renamed: Vec<[String; 2]>,
    pip: Option<String>,
    cargo: Option<String>,
    #[serde(default)]
    build_needs: Vec<[String; 2]>,
    #[serde(default)]
    build_with: Vec<[String; 2]>,
    absent: Option<String>,
}

/// How long installing may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Packages that are there to be unpacked.
    Packages,
    /// What must be built, too.
    Everything,
}

/// Says of each peer that it is there, or installs it, or says why not.
pub(super) fn install(effort: Effort) -> Result<()> {
    for peer in read()? {
        match peer.prepare(effort) {
            Ok(()) => say!("{}: there", peer.name),
            Err(error) => say!("{}: skipped, {error:#}", peer.name),
        }
    }
    Ok(())
}

fn read() -> Result<Vec<Peer>> {
    let path = workspace::benchmarks().join("peers.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: PeerFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(file.peer)
}

/// Whom durin is compared with, and where they come from.
pub(super) fn table() -> Result<Table> {
    let rows = read()?.into_iter().map(|peer| {
        let from = match (
            &peer.debian,
            &peer.pip,
            &peer.cargo,
            &peer.folder,
            &peer.absent,
        ) {
            (Some(package), ..) => match &peer.release {
                Some(release) => format!("Debian, {release}'s if need be: {package}"),
                None => format!("Debian: {package}"),
            },
            (_, Some(package), ..) => format!("PyPI: {package}"),
            (_, _, Some(package), ..) => format!("crates.io: {package}"),
            (_, _, _, Some(variable), _) => format!("the folder that {variable} names"),
            (.., absent) => absent.clone().unwrap_or_default(),
        };
        vec![peer.name, from, peer.programs.join(", ")]
    });
    Ok(Table {
        title: "Whom durin is compared with".to_owned(),
        columns: table::columns(&["name", "from", "programs"]),
        rows: rows.collect(),
    })
}

impl Peer {
    fn prepare(&self, effort: Effort) -> Result<()> {
        if let Some(absent) = &self.absent {
            bail!("{absent}");
        }
        if let Some(variable) = &self.folder {
            let folder = std::env::var_os(variable).map(PathBuf::from);
            let folder = folder.with_context(|| format!("{variable} names no folder"))?;
            return self.check(|program| folder.join(program).is_file());
        }
        if self.is_there() {
            return Ok(());
        }
        if let Some(package) = &self.debian {
            self.install_package(package)?;
        } else if let Some(package) = &self.pip {
            from_pypi(package)?;
        } else if let Some(package) = &self.cargo {
            ensure!(
                effort == Effort::Everything,
                "it takes minutes to build: cargo xtask bench --install"
            );
            for [program, package] in &self.build_needs {
                install::program(program, package)?;
            }
            let tools = install::tools_dir();
            say!("building {package} ...");
            let mut cargo =
                workspace::cargo(&["install", "--locked", "--quiet", package, "--root"]);
            cargo.envs(self.build_with.iter().map(|[name, value]| (name, value)));
            succeed_within(cargo.arg(tools), BUILD_MAX)?;
        }
        self.check(install::has)
    }

    /// Whether all is there, and can what it must.
    fn is_there(&self) -> bool {
        let can = |probe: &String| measure::succeeds(probe);
        self.check(install::has).is_ok() && self.probe.as_ref().is_none_or(can)
    }

    /// Installs a package, or takes it from a newer release where this one's will not do.
    fn install_package(&self, package: &str) -> Result<()> {
        let has_programs = self.check(install::has).is_ok();
        if !has_programs && self.renamed.is_empty() {
            let why = || format!("the package {package} cannot be installed");
            install::package_beside_others(package).with_context(why)?;
        }
        let Some(release) = self.release.as_ref().filter(|_| !self.is_there()) else {
            return Ok(());
        };
        let programs: Vec<(&str, &str)> = if self.renamed.is_empty() {
            let names = self.programs.iter().map(String::as_str);
            names.map(|name| (name, name)).collect()
        } else {
            let names = self.renamed.iter();
            names
                .map(|[from, to]| (from.as_str(), to.as_str()))
                .collect()
        };
        let fetched = newer_debian::fetch(release, package, &programs);
        if has_programs && let Err(error) = fetched {
            // Each tool looks whether it can be run with what is there.
            say!("{}: an early version, {error:#}", self.name);
            return Ok(());
        }
        fetched
    }

    fn check(&self, has: impl Fn(&str) -> bool) -> Result<()> {
        let missing = self.programs.iter().find(|program| !has(program));
        missing.map_or(Ok(()), |program| bail!("{program} is not there"))
    }
}

/// Installs a package of PyPI into an environment of its own, and links what it has that is a program.
fn from_pypi(package: &str) -> Result<()> {
    let tools = install::tools_dir();
    let environment = tools.join("python");
    say!("installing {package} ...");
    if !environment.is_dir() {
        let mut venv = Command::new("python3");
        succeed_within(venv.args(["-m", "venv"]).arg(&environment), INSTALL_MAX)?;
    }
    let mut pip = Command::new(environment.join("bin/pip"));
    let options = ["install", "--quiet", "--disable-pip-version-check"];
    succeed_within(pip.args(options).arg(package), INSTALL_MAX)?;
    let bin = tools.join("bin");
    std::fs::create_dir_all(&bin)?;
    let program = environment.join("bin").join(package);
    ensure!(
        program.is_file(),
        "PyPI's {package} has no program of that name"
    );
    link(&program, &bin.join(package))
}

fn link(program: &Path, place: &Path) -> Result<()> {
    if place.symlink_metadata().is_ok() {
        std::fs::remove_file(place)?;
    }
    std::os::unix::fs::symlink(program, place).with_context(|| place.display().to_string())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn each_peer_comes_from_one_place_or_none() {
        for peer in read().unwrap() {
            let places = [
                &peer.folder,
                &peer.debian,
                &peer.pip,
                &peer.cargo,
                &peer.absent,
            ];
            assert_eq!(places.into_iter().flatten().count(), 1, "{}", peer.name);
            assert_eq!(
                peer.programs.is_empty(),
                peer.absent.is_some(),
                "{}",
                peer.name
            );
        }
    }

    #[test]
    fn what_is_not_to_be_had_says_why() {
        let peers = read().unwrap();
        let cromfs = peers.iter().find(|peer| peer.name == "Cromfs").unwrap();
        let why = cromfs.prepare(Effort::Everything).unwrap_err().to_string();
        assert!(why.contains("not obtainable"));
    }
}
