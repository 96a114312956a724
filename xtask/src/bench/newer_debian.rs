//! Programs from a newer Debian than this one, for peers whose package here is too old.
//!
//! The packages and the libraries they need are fetched by apt with lists of its own and unpacked below
//! target/bench/tools, where a script starts each program with its own libraries. The system is left as it is.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::say::say;
use crate::workspace::succeed_within;
use crate::{install, workspace};

/// Lists are ten megabytes; a server that does not answer must not hold up everything.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Where apt keeps what it knows of a release.
struct Release {
    name: String,
    dir: PathBuf,
}

/// Fetches a package of a release. `programs` are those of the package with the names that they get here.
pub(super) fn fetch(release: &str, package: &str, programs: &[(&str, &str)]) -> Result<()> {
    ensure!(install::has("apt-get"), "only apt can fetch it");
    say!("fetching {package} of Debian {release} ...");
    let release = Release::open(release)?;
    let unpacked = release.unpacked(package)?;
    let files = files_below(&unpacked)?;
    let bin = install::tools_dir().join("bin");
    std::fs::create_dir_all(&bin)?;
    for (program, name) in programs {
        write_starter(&bin.join(name), program, &files)?;
    }
    Ok(())
}

impl Release {
    fn open(name: &str) -> Result<Self> {
        let dir = workspace::target_dir().join("bench").join("apt").join(name);
        for made in ["lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(dir.join(made))?;
        }
        let sources = format!("deb {} {name} main\n", server()?);
        std::fs::write(dir.join("sources.list"), sources)?;
        // Nothing is installed: what this system has is of no use to programs of the other.
        std::fs::write(dir.join("status"), "")?;
        let release = Self {
            name: name.to_owned(),
            dir,
        };
        let is_listed = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with("_Packages"))
        };
        if !std::fs::read_dir(release.dir.join("lists"))?.any(is_listed) {
            release.run("apt-get", &["-qq", "update"], &release.dir)?;
        }
        Ok(release)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let places = [
            ("Dir::Etc::SourceList", "sources.list"),
            ("Dir::Etc::SourceParts", "none"),
            ("Dir::State::Lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ];
        for (option, place) in places {
            let place = self.dir.join(place);
            command
                .arg("-o")
                .arg(format!("{option}={}", place.display()));
        }
        // Only the list of packages is of use, and the directory is ours alone.
        for option in [
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
            "APT::Sandbox::User=root",
        ] {
            command.args(["-o", option]);
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str], dir: &Path) -> Result<()> {
        let mut command = self.command(program);
        succeed_within(command.args(arguments).current_dir(dir), TIME_MAX)
    }

    /// A package and all that it needs, unpacked into one directory.
    fn unpacked(&self, package: &str) -> Result<PathBuf> {
        let dir = install::tools_dir().join(format!("{}-{package}", self.name));
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        let fetched = self.dir.join("fetched");
        std::fs::create_dir_all(&fetched)?;
        for needed in self.needed(package)? {
            // Others may have needed it before.
            let file = match file_of(&fetched, &needed)? {
                Some(file) => file,
                None => {
                    self.run("apt-get", &["-qq", "download", &needed], &fetched)?;
                    let file = file_of(&fetched, &needed)?;
                    file.with_context(|| format!("apt-get download {needed}: no file"))?
                }
            };
            let mut unpack = Command::new("dpkg-deb");
            succeed_within(unpack.arg("-x").arg(file).arg(&dir), TIME_MAX)?;
        }
        Ok(dir)
    }

    /// A package and those that it depends on.
    fn needed(&self, package: &str) -> Result<Vec<String>> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--recurse", "--important", package]);
        for left_out in ["conflicts", "breaks", "replaces", "enhances"] {
            depends.arg(format!("--no-{left_out}"));
        }
        let output = depends.output().context("apt-cache")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let needed = packages_in(&text);
        ensure!(
            needed.iter().any(|name| name == package),
            "Debian {} has no {package}",
            self.name
        );
        Ok(needed)
    }
}

/// Where this machine has its own release from, which has the others, too.
fn server() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)"]);
    let output = targets.output().context("apt-get indextargets")?;
    let found = server_in(&String::from_utf8_lossy(&output.stdout));
    found.context("apt knows no packages of Debian; see whether apt-get update works")
}

/// The first place of Debian's packages in lines of labels and places.
fn server_in(text: &str) -> Option<String> {
    let mut places = text.lines().filter_map(|line| line.strip_prefix("Debian "));
    places.next().map(str::to_owned)
}

/// The packages in what `apt-cache depends` prints: those at the beginnings of lines, but for virtual ones.
fn packages_in(text: &str) -> Vec<String> {
    let names = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphanumeric()));
    let mut names: Vec<String> = names.map(|line| line.trim().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The file of a package in a directory: its name ends where the version begins.
fn file_of(dir: &Path, package: &str) -> Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.split('_').next() == Some(package) && name.ends_with(".deb") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn files_below(top: &Path) -> Result<Vec<PathBuf>> {
    let (mut dirs, mut files) = (vec![top.to_owned()], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a script that starts a program with the loader and the libraries beside it.
fn write_starter(place: &Path, program: &str, files: &[PathBuf]) -> Result<()> {
    let name_of = |path: &PathBuf| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let find = |what: &str, is: &dyn Fn(&str) -> bool| {
        let found = files.iter().find(|path| is(&name_of(path)));
        found.with_context(|| format!("the package has no {what}"))
    };
    let loader = find("loader", &|name| {
        name.starts_with("ld-linux") || name.starts_with("ld64")
    })?;
    let binary = find(program, &|name| name == program)?;
    let mut dirs: Vec<&Path> = Vec::new();
    for file in files.iter().filter(|path| name_of(path).contains(".so")) {
        let dir = file.parent().unwrap_or(file);
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    let path = std::env::join_paths(dirs).context("a library's folder")?;
    let text = format!(
        "#!/bin/sh\nexec {} --library-path {} {} \"$@\"\n",
        loader.display(),
        path.to_string_lossy(),
        binary.display()
    );
    if place.symlink_metadata().is_ok() {
        std::fs::remove_file(place)?;
    }
    let mut file = std::fs::File::create(place).with_context(|| place.display().to_string())?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn packages_are_at_the_beginnings_of_lines() {
        let text = "b\n  Depends: a\n  Depends: <c>\n    d\n<c>\na\n  Depends: b\n";
        assert_eq!(packages_in(text), ["a", "b"]);
    }

    #[test]
    fn packages_come_from_where_this_machine_has_its_own() {
        let text =
            "\nDebian-Security http://a/security/\nDebian http://a/main/\nDebian http://b/\n";
        assert_eq!(server_in(text).as_deref(), Some("http://a/main/"));
        assert_eq!(server_in("Ubuntu http://c/\n"), None);
    }

    #[test]
    fn a_program_is_started_with_its_own_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["lib/ld-linux-x86-64.so.2", "lib/libx.so.1", "usr/bin/p"];
        let files: Vec<PathBuf> = files.iter().map(|name| dir.path().join(name)).collect();
        let place = dir.path().join("q");
        write_starter(&place, "p", &files).unwrap();
        let text = std::fs::read_to_string(&place).unwrap();
        let top = dir.path().display();
        let line = format!(
            "exec {top}/lib/ld-linux-x86-64.so.2 --library-path {top}/lib {top}/usr/bin/p \"$@\""
        );
        assert_eq!(text.lines().last(), Some(line.as_str()));
        assert!(write_starter(&place, "none", &files).is_err());
    }
}
