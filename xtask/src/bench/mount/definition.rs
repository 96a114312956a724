//! What is mounted and what runs over it, as data: `benchmarks/mount.toml`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::skip::is_root;
use serde::Deserialize;

use super::super::definition::Keeps;
use super::shell::{self, Variables};
use crate::say::say;
use crate::{install, workspace};

/// To look whether something is there.
const WHEN_TIME_MAX: Duration = Duration::from_secs(60);

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definitions {
    #[serde(rename = "image")]
    pub(super) images: Vec<Image>,
    #[serde(rename = "system")]
    pub(super) systems: Vec<System>,
    #[serde(rename = "job")]
    pub(super) jobs: Vec<Job>,
}

/// An image, which several systems can mount.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub(super) name: String,
    /// A variable of the environment that names the folder of what it needs; on PATH unless this is given.
    folder: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    package: String,
    pub(super) build: String,
    #[serde(default)]
    root: bool,
}

/// What shows a tree: a driver or a file system of the kernel over an image, or the directory itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) name: String,
    pub(super) label: String,
    on: Vec<Subject>,
    /// Name of its image; none for what shows $SOURCE.
    pub(super) image: Option<String>,
    /// As that of an image.
    folder: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    package: String,
    /// The file system that the kernel must have.
    pub(super) kernel: Option<String>,
    #[serde(default)]
    root: bool,
    /// Whether it is versioned by our commit.
    #[serde(default)]
    pub(super) is_ours: bool,
    pub(super) version: String,
    /// None for the directory itself.
    pub(super) mount: Option<String>,
    pub(super) unmount: Option<String>,
    pub(super) keeps: Keeps,
    /// Left out of quick runs, unless it is named.
    #[serde(default)]
    full_only: bool,
}

/// What runs over a mount.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) label: String,
    on: Vec<Subject>,
    /// A list that must not be empty.
    pub(super) list: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    root: bool,
    pub(super) before: Option<String>,
    pub(super) run: String,
    #[serde(default)]
    pub(super) with_mount: bool,
    #[serde(default)]
    pub(super) compares: bool,
    #[serde(default)]
    pub(super) idle: bool,
    /// A job that is much the same: a system that took too long for that takes too long for this.
    pub(super) like: Option<String>,
    /// A command that fails where the tree has nothing for this.
    when: Option<String>,
    /// Left out of quick runs, unless it is named.
    #[serde(default)]
    full_only: bool,
    count: Option<u64>,
    count_quick: Option<u64>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Subject {
    /// A corpus.
    Tree,
    /// A large file.
    File,
    /// Many small files of the same size.
    Many,
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Full,
    Quick,
}

impl Definitions {
    pub(super) fn read() -> Result<Self> {
        let path = workspace::benchmarks().join("mount.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let parsed: Self = toml::from_str(text)?;
        for system in &parsed.systems {
            let is_known = |name: &String| parsed.images.iter().any(|image| image.name == *name);
            ensure!(
                system.image.as_ref().is_none_or(is_known),
                "{}: no image {:?}",
                system.name,
                system.image
            );
            ensure!(
                !system.name.contains(':'),
                "{}: a colon parts system and job in records",
                system.name
            );
        }
        for job in &parsed.jobs {
            let is_known = |name: &String| parsed.jobs.iter().any(|other| other.name == *name);
            let name = &job.name;
            ensure!(
                job.like.as_ref().is_none_or(is_known),
                "{name}: like no job"
            );
        }
        Ok(parsed)
    }

    pub(super) fn image(&self, system: &System) -> Option<&Image> {
        let name = system.image.as_ref()?;
        self.images.iter().find(|image| image.name == *name)
    }

    /// The systems for a subject, of those named (`all` names each); what cannot run here is named and left out.
    pub(super) fn systems(&self, subject: Subject, names: &str, extent: Extent) -> Vec<&System> {
        let of_subject = self.systems.iter().filter(|system| {
            system.on.contains(&subject)
                && is_named(&system.name, names)
                && !(extent == Extent::Quick && system.full_only && names == "all")
        });
        let can_run = |system: &&System| match self.missing(system) {
            None => true,
            Some(why) => {
                say!("{}: skipped, {why}", system.name);
                false
            }
        };
        of_subject.filter(can_run).collect()
    }

    /// The jobs for a subject, of those named, with their counts put in.
    pub(super) fn jobs(&self, subject: Subject, names: &str, extent: Extent) -> Vec<Job> {
        let of_subject = self.jobs.iter().filter(|job| {
            job.on.contains(&subject)
                && is_named(&job.name, names)
                && !(extent == Extent::Quick && job.full_only && names == "all")
        });
        let jobs = of_subject.filter_map(|job| {
            if let Some(why) = missing(&Needs::of_job(job), job.root) {
                say!("{}: skipped, {why}", job.name);
                return None;
            }
            let mut job = job.clone();
            let count = match extent {
                Extent::Full => job.count,
                Extent::Quick => job.count_quick.or(job.count),
            };
            let count = count.unwrap_or(0).to_string();
            job.run = job.run.replace("$COUNT", &count);
            job.before = job.before.map(|before| before.replace("$COUNT", &count));
            Some(job)
        });
        jobs.collect()
    }

    /// Why a system cannot run here.
    fn missing(&self, system: &System) -> Option<String> {
        let kernel = system
            .kernel
            .as_ref()
            .filter(|name| !kernel_has(name))
            .map(|name| format!("the kernel has no {name}"));
        let image = self.image(system);
        let of_system = || missing(&Needs::of_system(system), system.root);
        let of_image = || image.and_then(|image| missing(&Needs::of_image(image), image.root));
        kernel.or_else(of_system).or_else(of_image)
    }
}

impl Job {
    /// Whether a tree has something for it.
    pub(super) fn applies(&self, variables: &Variables) -> bool {
        let Some(when) = &self.when else { return true };
        let ran = shell::run(when, variables, WHEN_TIME_MAX);
        let applies = ran.is_ok_and(|taken| taken.failure.is_none());
        if !applies {
            say!("{}: skipped, the tree has nothing for it", self.name);
        }
        applies
    }
}

/// Fails for a name in a list that nothing has.
pub(super) fn check_names<'a>(
    names: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> Result<()> {
    for name in names.split(',').filter(|name| *name != "all") {
        ensure!(
            known.clone().any(|known| known == name),
            "nothing is named {name} in mount.toml"
        );
    }
    Ok(())
}

fn is_named(name: &str, names: &str) -> bool {
    names
        .split(',')
        .any(|named| named == "all" || named == name)
}

/// Programs, and where they come from.
struct Needs<'a> {
    programs: &'a [String],
    folder: Option<&'a str>,
    package: &'a str,
}

impl<'a> Needs<'a> {
    fn of_system(system: &'a System) -> Self {
        Self {
            programs: &system.needs,
            folder: system.folder.as_deref(),
            package: &system.package,
        }
    }

    fn of_image(image: &'a Image) -> Self {
        Self {
            programs: &image.needs,
            folder: image.folder.as_deref(),
            package: &image.package,
        }
    }

    fn of_job(job: &'a Job) -> Self {
        Self {
            programs: &job.needs,
            folder: None,
            package: "",
        }
    }
}

fn missing(needs: &Needs<'_>, root: bool) -> Option<String> {
    if root && !is_root() {
        return Some("only root can".to_owned());
    }
    if let Some(variable) = needs.folder {
        let program = install::missing_in_folder(variable, needs.programs)?;
        return Some(format!("{variable} names no folder with {program}"));
    }
    let program = needs
        .programs
        .iter()
        .find(|program| !install::has(program))?;
    Some(format!("{program} is not there ({})", needs.package))
}

fn kernel_has(name: &str) -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.split_whitespace().any(|word| word == name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_tree_are_valid() {
        let all = Definitions::read().unwrap();
        assert_eq!(all.systems[0].name, "directory");
        for image in &all.images {
            assert!(image.build.contains("$SOURCE") && image.build.contains("$IMAGE"));
        }
        for system in &all.systems {
            let mount = system.mount.as_deref().unwrap_or("$POINT");
            assert!(mount.contains("$POINT"), "{}", system.name);
        }
    }

    #[test]
    fn counts_are_put_in() {
        let all = Definitions::read().unwrap();
        let count = |extent| {
            let jobs = all.jobs(Subject::File, "random-4k", extent);
            jobs[0].run.rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(
            (count(Extent::Full), count(Extent::Quick)),
            ("20000".to_owned(), "2000".to_owned())
        );
    }

    #[test]
    fn names_must_be_known() {
        let all = Definitions::read().unwrap();
        let check = |names| check_names(names, all.systems.iter().map(|system| &system.name));
        assert!(check("all").is_ok() && check("durin,btrfs").is_ok());
        assert!(check("durin,x").is_err());
    }
}
