//! `cargo xtask bench --docs`: renews every table and plot of README.md and docs/comparison.md from `benchmarks/record`.
//!
//! `--keep=FILE` adds a record's runs to those first, without the reports of the programs, which are long.
//! With `--check` nothing is written, and what would change is an error: so that no figure there is typed by hand.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::plot::{Plot, plots};
use super::record::{Record, Sample, medians};
use super::{document, losses, mount, needs, notes, peers, readme, size, steps, threads};
use crate::say::say;
use crate::workspace::{self, check_options, option};

/// The documents with places for figures.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "docs/archives.md",
    "docs/comparison.md",
    "docs/format.md",
    "docs/levels.md",
    "docs/mounting.md",
    "docs/ordering.md",
    "docs/segmentation.md",
];
const PLOTS: &str = "docs/plots";

pub(super) fn run(arguments: &[String]) -> Result<()> {
    check_options(arguments, &["docs", "check", "keep"])?;
    if let Some(record) = option(arguments, "keep") {
        keep(Path::new(record), &record_dir())?;
    }
    let is_check = arguments.iter().any(|argument| argument == "--check");
    let root = workspace::root();
    let files = files(&root, &samples()?)?;
    let is_new = |(path, text): &&(PathBuf, String)| {
        std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)
    };
    let changed: Vec<&(PathBuf, String)> = files.iter().filter(is_new).collect();
    for (path, text) in &changed {
        say!("{}", path.display());
        if !is_check {
            let path = root.join(path);
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
    }
    ensure!(
        !is_check || changed.is_empty(),
        "{} files are not what benchmarks/record gives: cargo xtask bench --docs",
        changed.len()
    );
    Ok(())
}

fn record_dir() -> PathBuf {
    workspace::benchmarks().join("record")
}

/// Adds the runs of a record that are not there yet, each suite's to its own file, in place of those of another tree that
/// had the same name.
fn keep(record: &Path, dir: &Path) -> Result<()> {
    ensure!(record.is_file(), "no record {}", record.display());
    for sample in Record::open(record)?.samples() {
        let mut sample = sample.clone();
        sample.report = Value::Null;
        let mut kept = Record::open(&dir.join(format!("{}.jsonl", sample.suite)))?;
        kept.forget_other_trees(&sample)?;
        if !kept.samples().contains(&sample) {
            kept.append(sample)?;
        }
    }
    Ok(())
}

/// The samples of all files in `benchmarks/record`, in the order of their names.
fn samples() -> Result<Vec<Sample>> {
    let dir = record_dir();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
    files.sort();
    let mut samples = Vec::new();
    for file in files {
        samples.extend_from_slice(Record::open(&file)?.samples());
    }
    Ok(samples)
}

/// Every file with its text.
fn files(root: &Path, samples: &[Sample]) -> Result<Vec<(PathBuf, String)>> {
    let plots = plots(samples)?;
    let mut sections = sections(samples)?;
    let mut files = Vec::new();
    for document in DOCUMENTS {
        let folder = if document.contains('/') {
            "plots"
        } else {
            PLOTS
        };
        let shown =
            |is: &dyn Fn(&Plot) -> bool| embedded(plots.iter().filter(|plot| is(plot)), folder);
        sections.retain(|(name, _)| !name.starts_with("plots"));
        for kind in ["size", "cpu", "pareto", "threads", "latency"] {
            let of_kind = shown(&|plot: &Plot| plot.file.split('-').next() == Some(kind));
            sections.push((format!("plots-{kind}"), of_kind));
        }
        let first = shown(&|plot: &Plot| readme::PLOTS.contains(&plot.file.as_str()));
        sections.push(("plots-readme".to_owned(), first));
        let path = root.join(document);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let text = document::renewed(&text, &sections).with_context(|| document.to_owned())?;
        files.push((PathBuf::from(document), text));
    }
    let drawn = plots.into_iter();
    files.extend(drawn.map(|plot| (Path::new(PLOTS).join(plot.file), plot.svg)));
    Ok(files)
}

fn embedded<'a>(plots: impl Iterator<Item = &'a Plot>, folder: &str) -> String {
    let images = plots.map(|plot| format!("![{}]({folder}/{})", plot.title, plot.file));
    images.collect::<Vec<_>>().join("\n\n")
}

/// All tables by the names of their places.
fn sections(samples: &[Sample]) -> Result<Vec<(String, String)>> {
    let of = |suite: &str| medians(samples, suite);
    let mut sections = size::sections(&of(size::SUITE))?;
    sections.extend(threads::sections(&of(threads::SUITE)));
    sections.extend(mount::sections(&of(mount::SUITE))?);
    sections.extend(steps::sections(&of(steps::SUITE))?);
    sections.extend(readme::sections(samples)?);
    sections.extend(losses::sections(samples)?);
    sections.extend(needs::sections(samples)?);
    sections.push(("peers".to_owned(), vec![peers::table()?]));
    let mut rendered = document::rendered(sections);
    rendered.extend(notes::sections()?);
    Ok(rendered)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn runs_are_kept_once_and_without_reports() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.jsonl");
        let mut one = sample("a", "durin-l1", 1, 1.0);
        one.report = serde_json::json!({"long": 1});
        Record::open(&path).unwrap().append(one).unwrap();
        for _ in 0..2 {
            keep(&path, dir.path()).unwrap();
        }
        let kept = Record::open(&dir.path().join("size.jsonl")).unwrap();
        assert_eq!(kept.samples(), [sample("a", "durin-l1", 1, 1.0)]);

        let path = dir.path().join("newer.jsonl");
        let mut other = sample("a", "durin-l3", 1, 1.0);
        other.corpus_bytes += 1;
        let mut record = Record::open(&path).unwrap();
        record.append(other.clone()).unwrap();
        record.append(sample("b", "durin-l1", 1, 1.0)).unwrap();
        keep(&path, dir.path()).unwrap();
        let kept = Record::open(&dir.path().join("size.jsonl")).unwrap();
        assert_eq!(kept.samples(), [other, sample("b", "durin-l1", 1, 1.0)]);
    }

    #[test]
    fn no_figure_of_the_documents_is_typed_by_hand() {
        run(&["--docs".to_owned(), "--check".to_owned()]).unwrap();
    }
}
