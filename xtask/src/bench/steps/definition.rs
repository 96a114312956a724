//! Tables of steps, as data: `benchmarks/steps.toml`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::skip::is_root;
use serde::Deserialize;

use super::super::definition::Keeps;
use crate::{install, workspace};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    #[serde(rename = "table")]
    tables: Vec<Table>,
}

/// Steps that several systems take on one corpus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) title: String,
    /// Left out of quick runs.
    #[serde(default)]
    full_only: bool,
    /// The corpus of a full run.
    pub(super) corpus: String,
    /// Makes what all systems begin with, in `$WORK/input`.
    pub(super) prepare: Option<String>,
    /// That is kept beside the images of mounts, for it takes long; systems only read it, and each is compared once.
    #[serde(default)]
    pub(super) keeps_input: bool,
    /// Steps are told in seconds: the tree is not what they go through.
    #[serde(default)]
    pub(super) in_seconds: bool,
    /// Caches are left as they are before each step.
    #[serde(default)]
    pub(super) is_warm: bool,
    /// How often the corpus is in that: rates and ratios are of so many bytes.
    #[serde(default = "one")]
    pub(super) volume: u32,
    /// The same in quick runs, if it is another.
    volume_quick: Option<u32>,
    /// Names of the steps, with what they are for people.
    pub(super) steps: Vec<[String; 2]>,
    #[serde(rename = "system")]
    pub(super) systems: Vec<System>,
}

const fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    /// Its name in records. `$VALUE` stands for each of `values`.
    pub(super) name: String,
    pub(super) label: String,
    /// Makes as many systems, with each in place of `$VALUE` wherever that is.
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    package: String,
    /// The file system that the kernel must have.
    kernel: Option<String>,
    #[serde(default)]
    root: bool,
    #[serde(default)]
    pub(super) is_ours: bool,
    /// Left out of quick runs.
    #[serde(default)]
    full_only: bool,
    /// The values of quick runs, if they are others.
    #[serde(default)]
    values_quick: Vec<String>,
    pub(super) version: String,
    /// Run before the first step, and not measured.
    pub(super) setup: Option<String>,
    /// A command line a step, in the order of the table's.
    pub(super) run: Vec<String>,
    /// Prints bytes: the size of the result.
    pub(super) size: String,
    /// Makes the tree that is compared with the source, and is not measured; what is compared is in `shown`.
    pub(super) show: Option<String>,
    pub(super) shown: String,
    pub(super) keeps: Keeps,
    /// Unmounts and the like; files are removed anyway.
    pub(super) cleanup: Option<String>,
    #[serde(default = "minutes_max")]
    minutes_max: u64,
}

/// Ten copies are written at the pace of the slowest level.
const fn minutes_max() -> u64 {
    60
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Full,
    Quick,
}

/// Reads the tables, with a system for each of its values.
pub(super) fn read(extent: Extent) -> Result<Vec<Table>> {
    let path = workspace::benchmarks().join("steps.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text, extent).with_context(|| path.display().to_string())
}

fn parse(text: &str, extent: Extent) -> Result<Vec<Table>> {
    let mut tables = toml::from_str::<Definitions>(text)?.tables;
    tables.retain(|table| extent == Extent::Full || !table.full_only);
    for table in &mut tables {
        if extent == Extent::Quick {
            table.volume = table.volume_quick.unwrap_or(table.volume);
        }
        let volume = table.volume.to_string();
        table.prepare = table
            .prepare
            .take()
            .map(|text| text.replace("$VOLUME", &volume));
        let systems = std::mem::take(&mut table.systems);
        let is_run = |system: &System| extent == Extent::Full || !system.full_only;
        let systems = systems.into_iter().filter(is_run);
        table.systems = systems.flat_map(|system| system.expanded(extent)).collect();
        for system in &table.systems {
            ensure!(
                system.run.len() == table.steps.len(),
                "{}: {} has {} commands for {} steps",
                table.name,
                system.name,
                system.run.len(),
                table.steps.len()
            );
            ensure!(!system.name.contains('/'), "{}: a slash", system.name);
        }
    }
    Ok(tables)
}

impl System {
    fn expanded(self, extent: Extent) -> Vec<Self> {
        let with = |value: &String| {
            let put = |text: &String| text.replace("$VALUE", value);
            Self {
                name: put(&self.name),
                label: put(&self.label),
                setup: self.setup.as_ref().map(put),
                run: self.run.iter().map(put).collect(),
                ..self.clone()
            }
        };
        if self.values.is_empty() {
            return vec![self];
        }
        let has_own = extent == Extent::Quick && !self.values_quick.is_empty();
        let values = if has_own {
            &self.values_quick
        } else {
            &self.values
        };
        values.iter().map(with).collect()
    }

    pub(super) const fn time_max(&self) -> Duration {
        Duration::from_secs(self.minutes_max * 60)
    }

    /// Why it cannot run here.
    pub(super) fn missing(&self) -> Option<String> {
        if self.root && !is_root() {
            return Some("only root can".to_owned());
        }
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if let Some(kernel) = &self.kernel
            && !known.split_whitespace().any(|word| word == kernel)
        {
            return Some(format!("the kernel has no {kernel}"));
        }
        let program = self.needs.iter().find(|program| !install::has(program))?;
        Some(format!("{program} is not there ({})", self.package))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_tree_are_valid() {
        for table in [Extent::Full, Extent::Quick]
            .into_iter()
            .flat_map(|e| read(e).unwrap())
        {
            assert!(table.systems.iter().any(|system| system.is_ours));
            for (index, system) in table.systems.iter().enumerate() {
                let is_same = |other: &System| other.name == system.name;
                assert!(
                    !table.systems[..index].iter().any(is_same),
                    "{}",
                    system.name
                );
                assert!(!system.name.contains('$'));
            }
        }
    }
}
