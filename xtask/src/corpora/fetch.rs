//! Packages of public registries, each version unpacked into `DIR/VERSION`, through the registries' ordinary clients.
//!
//! Downloads are kept (`$DURIN_DOWNLOADS`, else below the target folder) and a version is unpacked beside its place and
//! then renamed, so that a fetch that was interrupted goes on where it was.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::say::say;
use crate::{install, workspace};

/// Registries have bad moments.
const ATTEMPTS: u32 = 4;
/// What the wheels of shared objects may ask of the C library.
const WHEEL_PLATFORMS: [&str; 6] = [
    "manylinux2014_x86_64",
    "manylinux_2_12_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_28_x86_64",
    "any",
];

/// Versions of one package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    kind: Kind,
    name: String,
    dir: String,
    versions: Vec<String>,
}

/// A registry, and what is done with what comes from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// npm, unpacked.
    Npm,
    /// PyPI: the wheel for Linux, unpacked.
    Pypi,
    /// PyPI: the wheel as it is.
    Whl,
    /// crates.io, unpacked.
    Crate,
    /// A Go module.
    Go,
    /// A release of Go itself, which is a module too.
    GoToolchain,
    /// Maven: the jar as it is.
    Maven,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageFile {
    package: Vec<Package>,
}

pub(super) fn read(path: &Path) -> Result<Vec<Package>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file: PackageFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(file.package)
}

/// Fetches all packages of a list to `dest`.
pub(super) fn all(list: &Path, dest: &Path) -> Result<()> {
    let packages = read(list)?;
    for package in &packages {
        for (program, debian) in package.kind.programs() {
            install::program(program, debian)?;
        }
    }
    let downloads = std::env::var_os("DURIN_DOWNLOADS")
        .map_or_else(|| workspace::target_dir().join("downloads"), PathBuf::from);
    for package in &packages {
        for version in &package.versions {
            let place = dest.join(&package.dir).join(version);
            if place.exists() {
                continue;
            }
            let partial = place.with_file_name(format!("{version}.partial"));
            if partial.exists() {
                durin_testkit::roundtrip::remove_tree(&partial)?;
            }
            std::fs::create_dir_all(&partial)?;
            say!("  {} {version}", package.name);
            package
                .fetch(version, &downloads, &partial)
                .with_context(|| format!("{} {version}", package.name))?;
            std::fs::rename(&partial, &place)?;
        }
    }
    Ok(())
}

impl Kind {
    /// Programs it needs, with Debian's packages of them.
    const fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Npm => &[("npm", "npm"), ("tar", "tar")],
            Self::Pypi => &[("pip", "python3-pip"), ("unzip", "unzip")],
            Self::Whl => &[("pip", "python3-pip")],
            Self::Crate => &[("cargo", "cargo"), ("tar", "tar")],
            Self::Go | Self::GoToolchain => &[("go", "golang-go")],
            Self::Maven => &[("mvn", "maven")],
        }
    }
}

impl Package {
    fn fetch(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        match self.kind {
            Kind::Npm => self.npm(version, &downloads.join("npm"), dest),
            Kind::Pypi | Kind::Whl => self.wheel(version, &downloads.join("pypi"), dest),
            Kind::Crate => self.krate(version, downloads, dest),
            Kind::Go | Kind::GoToolchain => self.go(version, &downloads.join("gomod"), dest),
            Kind::Maven => self.maven(version, downloads, dest),
        }
    }

    fn npm(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        std::fs::create_dir_all(downloads)?;
        let name = self.name.trim_start_matches('@').replace('/', "-");
        let archive = downloads.join(format!("{name}-{version}.tgz"));
        if !archive.is_file() {
            let wanted = format!("{}@{version}", self.name);
            let mut npm = Command::new("npm");
            npm.args(["pack", "--silent", &wanted])
                .current_dir(downloads);
            output(&mut npm)?;
        }
        untar(&archive, dest)
    }

    fn wheel(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        let dir = downloads.join(format!("{}-{version}", self.name));
        std::fs::create_dir_all(&dir)?;
        if only_file(&dir).is_err() {
            let mut pip = Command::new("pip");
            pip.args(["download", "-q", "--no-deps", "--only-binary=:all:"])
                .args(["--python-version", "311"]);
            for platform in WHEEL_PLATFORMS {
                pip.args(["--platform", platform]);
            }
            pip.arg("-d")
                .arg(&dir)
                .arg(format!("{}=={version}", self.name));
            output(&mut pip)?;
        }
        let wheel = only_file(&dir)?;
        if self.kind == Kind::Whl {
            return copy_into(&wheel, dest);
        }
        let mut unzip = Command::new("unzip");
        unzip.args(["-qq", "-o"]).arg(&wheel).arg("-d").arg(dest);
        output(&mut unzip).map(drop)
    }

    fn krate(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        let home = downloads.join("cargo");
        let name = format!("{}-{version}", self.name);
        let find = || -> Result<PathBuf> {
            let registries = std::fs::read_dir(home.join("registry/cache"))?;
            let mut archives = registries
                .flatten()
                .map(|registry| registry.path().join(format!("{name}.crate")));
            archives
                .find(|archive| archive.is_file())
                .context("not fetched")
        };
        if find().is_err() {
            // Cargo fetches what a project asks for, so there is one that asks for this.
            let project = downloads.join("cargo-proj").join(&name);
            std::fs::create_dir_all(project.join("src"))?;
            std::fs::write(project.join("src/lib.rs"), "")?;
            let manifest = format!(
                "[package]\nname = \"asks\"\nversion = \"0.0.1\"\nedition = \"2021\"\n[workspace]\n\
                 [dependencies]\n{} = {{ version = \"={version}\", default-features = false }}\n",
                self.name
            );
            std::fs::write(project.join("Cargo.toml"), manifest)?;
            let mut cargo = Command::new("cargo");
            cargo.args(["fetch", "-q"]).current_dir(&project);
            output(cargo.env(
                "CARGO_HOME",
                std::fs::canonicalize(downloads)?.join("cargo"),
            ))?;
        }
        untar(&find()?, dest)
    }

    fn go(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        std::fs::create_dir_all(downloads)?;
        let downloads = std::fs::canonicalize(downloads)?;
        let wanted = match self.kind {
            Kind::GoToolchain => format!("{}@v0.0.1-go{version}.linux-amd64", self.name),
            _ => format!("{}@{version}", self.name),
        };
        let mut go = Command::new("go");
        go.args(["mod", "download", "-json", &wanted])
            .env("GOMODCACHE", &downloads)
            .env("GOFLAGS", "-modcacherw")
            .env("GONOSUMDB", "*")
            .env("GOTOOLCHAIN", "local")
            .current_dir(&downloads);
        let told: serde_json::Value = serde_json::from_slice(&output(&mut go)?)?;
        let dir = told["Dir"].as_str().context("go does not say where")?;
        let mut copy = Command::new("cp");
        output(copy.arg("-a").arg(format!("{dir}/.")).arg(dest))?;
        let mut chmod = Command::new("chmod");
        output(chmod.args(["-R", "u+w"]).arg(dest))?;
        if self.kind == Kind::GoToolchain {
            // The archive carries no permissions to execute: the go command sets them when it uses a release.
            for dir in ["bin", "pkg/tool"].map(|dir| dest.join(dir)) {
                if dir.is_dir() {
                    output(Command::new("chmod").args(["-R", "a+rx"]).arg(dir))?;
                }
            }
        }
        Ok(())
    }

    fn maven(&self, version: &str, downloads: &Path, dest: &Path) -> Result<()> {
        let (_, artifact) = self.name.split_once(':').context("GROUP:ARTIFACT")?;
        let dir = downloads
            .join("maven-out")
            .join(format!("{artifact}-{version}"));
        std::fs::create_dir_all(&dir)?;
        let downloads = std::fs::canonicalize(downloads)?;
        if only_file(&dir).is_err() {
            let mut mvn = Command::new("mvn");
            mvn.args(["-q", "-B", "dependency:copy", "-Dmdep.useBaseVersion=true"])
                .arg(format!(
                    "-Dmaven.repo.local={}",
                    downloads.join("m2").display()
                ))
                .arg(format!("-Dartifact={}:{version}:jar", self.name))
                .arg(format!(
                    "-DoutputDirectory={}",
                    std::fs::canonicalize(&dir)?.display()
                ))
                .current_dir(&downloads);
            output(&mut mvn)?;
        }
        copy_into(&only_file(&dir)?, dest)
    }
}

fn untar(archive: &Path, dest: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["-x", "--strip-components=1", "--no-same-owner", "-f"])
        .arg(archive)
        .arg("-C")
        .arg(dest);
    output(&mut tar).map(drop)
}

/// Copies a file with its times.
fn copy_into(file: &Path, dest: &Path) -> Result<()> {
    output(Command::new("cp").arg("-p").arg(file).arg(dest)).map(drop)
}

fn only_file(dir: &Path) -> Result<PathBuf> {
    let files: Vec<_> = std::fs::read_dir(dir)?.flatten().collect();
    ensure!(files.len() == 1, "{}: {} files", dir.display(), files.len());
    Ok(files[0].path())
}

/// Runs a client until it succeeds, and returns what it prints.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    attempt(command, ATTEMPTS)
}

fn attempt(command: &mut Command, attempts: u32) -> Result<Vec<u8>> {
    let mut message = String::new();
    for attempt in 1..=attempts {
        let output = command
            .output()
            .with_context(|| format!("cannot run {command:?}"))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if attempt < attempts {
            std::thread::sleep(std::time::Duration::from_secs(u64::from(attempt)));
        }
    }
    bail!("{command:?}: {message}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_in_lists() {
        let check = |name: &str, expect| {
            let text = format!(
                "[[package]]\nkind = \"{name}\"\nname = \"n\"\ndir = \"d\"\nversions = [\"1\"]\n"
            );
            let file: PackageFile = toml::from_str(&text).unwrap();
            assert_eq!(file.package[0].kind, expect);
        };
        check("npm", Kind::Npm);
        check("pypi", Kind::Pypi);
        check("whl", Kind::Whl);
        check("crate", Kind::Crate);
        check("go", Kind::Go);
        check("gotoolchain", Kind::GoToolchain);
        check("maven", Kind::Maven);
    }

    #[test]
    fn a_client_that_fails_is_named_with_its_message() {
        let mut fails = Command::new("sh");
        let error = attempt(fails.args(["-c", "echo why >&2; exit 1"]), 1).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
    }
}
