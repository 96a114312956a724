//! What is measured, as data: the tools (`benchmarks/tools.toml`), and our own programs at each level.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::measure;
use crate::{install, workspace};

/// A program at settings that makes one file from a directory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    /// Its name in records and on the command line. `$VALUE` stands for each of `values`.
    pub(crate) name: String,
    /// Makes as many tools, with each in place of `$VALUE` wherever that is: its levels.
    #[serde(default)]
    pub(crate) values: Vec<String>,
    /// A variable of the environment that names the folder of its programs; on PATH unless this is given.
    pub(crate) folder: Option<String>,
    /// Its name for people.
    pub(crate) label: String,
    /// Programs without which it is skipped.
    pub(crate) needs: Vec<String>,
    /// Debian's package of them.
    pub(crate) package: String,
    /// Prints a version; a command line of `sh`, as are the next two.
    pub(crate) version: String,
    /// Makes `$OUTPUT` from `$SOURCE`.
    pub(crate) build: String,
    /// Makes `$TARGET` from `$OUTPUT`.
    pub(crate) unpack: String,
    /// Writes an archive of all to standard output without unpacking it to disk, where that is possible.
    pub(crate) tar: Option<String>,
    pub(crate) keeps: Keeps,
    /// A command that fails where its programs are too old, which `package` then says.
    pub(crate) probe: Option<String>,
    /// Left out of quick runs.
    #[serde(default)]
    pub(crate) full_only: bool,
    /// Time limit of a build.
    #[serde(default = "minutes_max")]
    pub(crate) minutes_max: u64,
    /// The level, if it is ours.
    #[serde(skip)]
    pub(crate) level: Option<u8>,
}

/// How much of a tree a format can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Keeps {
    All,
    Contents,
}

/// An hour is enough for all but the slowest, on two processors and a gigabyte.
const fn minutes_max() -> u64 {
    60
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFile {
    tool: Vec<Tool>,
}

impl Tool {
    pub(crate) const fn time_max(&self) -> Duration {
        Duration::from_secs(self.minutes_max * 60)
    }

    /// What it lacks here.
    pub(crate) fn missing(&self) -> Option<String> {
        if let Some(variable) = &self.folder {
            let program = install::missing_in_folder(variable, &self.needs)?;
            return Some(format!("{variable} names no folder with {program}"));
        }
        if let Some(program) = self.needs.iter().find(|program| !install::has(program)) {
            return Some(format!("{program} is not there ({})", self.package));
        }
        let is_too_old = self
            .probe
            .as_ref()
            .is_some_and(|probe| !measure::succeeds(probe));
        is_too_old.then(|| format!("its programs cannot do this ({})", self.package))
    }

    /// A tool for each of its values.
    fn expanded(self) -> Vec<Self> {
        let with = |value: &String| {
            let put = |text: &String| text.replace("$VALUE", value);
            Self {
                name: put(&self.name),
                label: put(&self.label),
                build: put(&self.build),
                unpack: put(&self.unpack),
                ..self.clone()
            }
        };
        if self.values.is_empty() {
            return vec![self];
        }
        self.values.iter().map(with).collect()
    }

    /// Our own program at a level.
    pub(crate) fn ours(level: u8) -> Self {
        let build = format!(
            "\"$PROGRAMS/mkdwarfs\" -i \"$SOURCE\" -o \"$OUTPUT\" -l {level} -N \"$THREADS\" \
             --with-devices --with-specials --progress=none --log-level=warn --json=\"$OUTPUT.json\""
        );
        Self {
            name: format!("durin-l{level}"),
            label: format!("durin mkdwarfs -l{level}"),
            values: Vec::new(),
            folder: None,
            needs: Vec::new(),
            package: String::new(),
            version: "\"$PROGRAMS/mkdwarfs\" --version".to_owned(),
            build,
            unpack: "\"$PROGRAMS/dwarfsextract\" -i \"$OUTPUT\" -o \"$TARGET\"".to_owned(),
            tar: Some("\"$PROGRAMS/dwarfsextract\" -i \"$OUTPUT\" -f pax -o -".to_owned()),
            keeps: Keeps::All,
            probe: None,
            full_only: false,
            minutes_max: minutes_max(),
            level: Some(level),
        }
    }
}

/// Reads the tools; the first is the yardstick.
pub(crate) fn tools() -> Result<Vec<Tool>> {
    let path = workspace::benchmarks().join("tools.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse_tools(&text).with_context(|| path.display().to_string())
}

fn parse_tools(text: &str) -> Result<Vec<Tool>> {
    let tools = toml::from_str::<ToolFile>(text)?.tool;
    let tools: Vec<Tool> = tools.into_iter().flat_map(Tool::expanded).collect();
    ensure!(!tools.is_empty(), "no tools");
    for (index, tool) in tools.iter().enumerate() {
        ensure!(
            !tools[..index].iter().any(|other| other.name == tool.name),
            "two tools are named {}",
            tool.name
        );
    }
    Ok(tools)
}

/// Chooses tools by `--peers=all|quick|none|NAME,...`. The yardstick is always among them.
pub(crate) fn chosen(tools: Vec<Tool>, peers: &str) -> Result<Vec<Tool>> {
    let names: Vec<&str> = peers
        .split(',')
        .filter(|name| !matches!(*name, "" | "all" | "quick" | "none"))
        .collect();
    for name in &names {
        ensure!(
            tools.iter().any(|tool| tool.name == *name),
            "no tool {name} in tools.toml"
        );
    }
    let is_chosen = |(index, tool): &(usize, Tool)| {
        let is_of_all = peers == "all" || (peers == "quick" && !tool.full_only);
        *index == 0 || is_of_all || names.contains(&tool.name.as_str())
    };
    let tools = tools.into_iter().enumerate().filter(is_chosen);
    Ok(tools.map(|(_, tool)| tool).collect())
}

/// Reads a list of levels such as `1,3-5`.
pub(crate) fn levels(text: &str) -> Result<Vec<u8>> {
    let mut levels = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let parse = |text: &str| {
            let level = text.parse::<u8>().ok().filter(|level| *level <= 9);
            level.with_context(|| format!("{part}: levels are 0 to 9"))
        };
        levels.extend(parse(first)?..=parse(last)?);
    }
    Ok(levels)
}

/// The name of a corpus and its directory: `NAME=DIR`, a directory, or a name below the folder of the corpora.
pub(crate) fn corpus(text: &str, corpora: &Path) -> Result<(String, std::path::PathBuf)> {
    let (name, dir) = match text.split_once('=') {
        Some((name, dir)) => (Some(name), Path::new(dir).to_owned()),
        None if text.contains('/') => (None, Path::new(text).to_owned()),
        None => (Some(text), corpora.join(text)),
    };
    let dir = std::fs::canonicalize(&dir)
        .with_context(|| format!("no corpus {} (cargo xtask corpora {text})", dir.display()))?;
    let last = dir.file_name().unwrap_or_default().to_string_lossy();
    let name = name.map_or_else(|| last.into_owned(), str::to_owned);
    Ok((name, dir))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_tools_of_the_tree_are_valid() {
        let tools = tools().unwrap();
        assert!(tools[0].label.contains("yardstick"));
        assert!(tools.iter().all(|tool| !tool.name.contains('$')));
        for tool in &tools {
            assert!(tool.build.contains("$SOURCE") && tool.build.contains("$OUTPUT"));
            assert!(tool.unpack.contains("$TARGET") && tool.unpack.contains("$OUTPUT"));
        }
    }

    #[test]
    fn tools_are_chosen_by_name() {
        let names = |peers: &str| -> Vec<String> {
            let tools = chosen(tools().unwrap(), peers).unwrap();
            tools.into_iter().map(|tool| tool.name).collect()
        };
        let yardstick = names("none");
        assert_eq!(yardstick.len(), 1);
        assert_eq!(names("zpaq-m5"), [yardstick[0].as_str(), "zpaq-m5"]);
        assert!(names("all").len() > 10);
        assert!(chosen(tools().unwrap(), "no-such-tool").is_err());
    }

    #[test]
    fn programs_are_looked_for_where_a_variable_says() {
        let mut tool = Tool::ours(1);
        assert_eq!(tool.missing(), None);
        tool.needs = vec!["no-such-program".to_owned()];
        assert!(tool.missing().unwrap().contains("no-such-program"));
        tool.folder = Some("DURIN_BENCH_NO_SUCH_VARIABLE".to_owned());
        assert!(tool.missing().unwrap().contains("NO_SUCH_VARIABLE"));
    }

    #[test]
    fn level_lists() {
        let check = |text, expect: &[u8]| assert_eq!(levels(text).unwrap(), expect, "{text}");
        check("", &[]);
        check("1,3-5,9", &[1, 3, 4, 5, 9]);
        check("0-2", &[0, 1, 2]);
        assert!(levels("10").is_err() && levels("x").is_err());
    }

    #[test]
    fn corpora_have_names() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let check = |text: &str, expect: &str| {
            let (name, path) = corpus(text, dir.path()).unwrap();
            assert_eq!(name, expect);
            assert_eq!(path, std::fs::canonicalize(&tree).unwrap());
        };
        check("tree", "tree");
        check(&tree.display().to_string(), "tree");
        check(&format!("other={}", tree.display()), "other");
        assert!(corpus("absent", dir.path()).is_err());
    }
}
