//! How long a full run will take, told from the runs of any extent that are recorded.

use std::collections::BTreeMap;

use anyhow::Result;

use super::record::{Sample, Status};
use super::table::{self, Table};
use super::{full, mount, steps};
use crate::corpora;
use crate::workspace::option;

/// Bytes of all large files of a full run.
const FILES_BYTES: u64 = mount::FILES_BYTES;

/// What each program has taken for a byte.
#[derive(Default)]
struct Rate {
    wall_s: f64,
    bytes: f64,
}

/// A table with a line for each suite and tree: as long for a byte as each program took on any tree.
pub(super) fn table(samples: &[Sample]) -> Result<Table> {
    let mut rows = Vec::new();
    let mut sum_s = 0.0;
    for suite in &full::SUITES {
        let arguments = suite.arguments("");
        let name = option(&arguments, "suite").unwrap_or_default();
        for tree in trees(name, option(&arguments, "corpus"))? {
            let rates = rates(samples, name, &tree);
            let seconds: f64 = rates.values().map(|rate| rate.wall_s / rate.bytes).sum();
            let seconds = seconds * bytes_of(tree.bytes) * f64::from(full::RUNS);
            sum_s += seconds;
            rows.push(row(&format!("{name}: {}", tree.name), rates.len(), seconds));
        }
    }
    rows.push(row("all of it", 0, sum_s));
    Ok(Table {
        title: "What a full run should take, at what each program took for a byte".to_owned(),
        columns: table::columns(&["suite and tree", "programs and jobs on record", "hours"]),
        rows,
    })
}

fn row(name: &str, count: usize, seconds: f64) -> Vec<String> {
    let count = if count == 0 {
        String::new()
    } else {
        count.to_string()
    };
    vec![name.to_owned(), count, format!("{:.1}", seconds / 3600.0)]
}

/// What a suite runs on.
struct Tree {
    name: String,
    bytes: u64,
    /// How the names of its programs begin.
    tools: String,
    /// How the trees are named whose runs tell about it; any tree but a large file if there is nothing.
    of: Option<&'static str>,
}

fn trees(suite: &str, corpora: Option<&str>) -> Result<Vec<Tree>> {
    if suite == steps::SUITE {
        let tables = steps::inputs()?.into_iter();
        let trees = tables.map(|(table, corpus, volume)| {
            Ok(Tree {
                bytes: corpora::bytes(&corpus)? * u64::from(volume),
                name: format!("{table} ({corpus})"),
                tools: format!("{table}/"),
                of: None,
            })
        });
        return trees.collect();
    }
    let names = corpora.unwrap_or_default().split(',');
    let trees = names.map(|name| {
        let is_files = name == "files";
        Ok(Tree {
            name: name.to_owned(),
            bytes: if is_files {
                FILES_BYTES
            } else {
                corpora::bytes(name)?
            },
            tools: String::new(),
            of: is_files.then_some("file-"),
        })
    });
    trees.collect()
}

fn rates<'a>(samples: &'a [Sample], suite: &str, tree: &Tree) -> BTreeMap<&'a str, Rate> {
    let mut rates: BTreeMap<&str, Rate> = BTreeMap::new();
    for sample in samples {
        let is_file = sample.corpus.starts_with("file");
        let is_of = match tree.of {
            Some(of) => sample.corpus.starts_with(of),
            None => !is_file,
        };
        let is_meant = sample.suite == suite && is_of && sample.tool.starts_with(&tree.tools);
        if !is_meant || sample.status != Status::Ok || sample.corpus_bytes == 0 {
            continue;
        }
        let volume = sample.figures.get(steps::VOLUME).copied().unwrap_or(1.0);
        let rate = rates.entry(&sample.tool).or_default();
        rate.wall_s += sample.wall_s;
        rate.bytes += bytes_of(sample.corpus_bytes) * volume;
    }
    rates
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn bytes_of(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn each_program_takes_as_long_for_a_byte_as_before() {
        let samples = [
            sample("multiver-small", "durin-l1", 1, 60.0),
            sample("rootfs", "durin-l1", 1, 60.0),
        ];
        let table = table(&samples).unwrap();
        let row = table.rows.iter().find(|row| row[0] == "size: rootfs");
        let bytes = bytes_of(corpora::bytes("rootfs").unwrap());
        let a_byte = samples[0].wall_s / bytes_of(samples[0].corpus_bytes);
        let hours = bytes * a_byte * f64::from(full::RUNS) / 3600.0;
        assert_eq!(row.unwrap()[1..], ["1", &format!("{hours:.1}")]);
        assert_eq!(table.rows.last().unwrap()[0], "all of it");
        assert!(table.rows.iter().any(|row| row[0].starts_with("steps: ")));
    }
}
