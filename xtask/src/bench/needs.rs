//! What a full run needs, as far as it has been recorded: time and disk, suite by suite; and which versions ran.

use std::collections::BTreeMap;

use anyhow::Result;

use super::expected;
use super::record::{Sample, Status};
use super::table::{self, Table};
use crate::report::size;

/// The tables, by the names of their places.
pub(super) fn sections(samples: &[Sample]) -> Result<Vec<(String, Vec<Table>)>> {
    let tables = vec![needs(samples), expected::table(samples)?];
    Ok(vec![
        ("needs".to_owned(), tables),
        ("versions".to_owned(), vec![versions(samples)]),
    ])
}

struct Sum {
    runs: u32,
    late: u32,
    wall_s: f64,
    cpu_s: f64,
    bytes: u64,
}

fn needs(samples: &[Sample]) -> Table {
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    for sample in samples {
        let nothing = Sum {
            runs: 0,
            late: 0,
            wall_s: 0.0,
            cpu_s: 0.0,
            bytes: 0,
        };
        let sum = sums
            .entry((&sample.suite, &sample.corpus))
            .or_insert(nothing);
        sum.runs += 1;
        sum.late += u32::from(sample.status == Status::Timeout);
        sum.wall_s += sample.wall_s;
        sum.cpu_s += sample.cpu_s();
        sum.bytes = sum.bytes.max(sample.corpus_bytes);
    }
    let rows = sums.into_iter().map(|((suite, corpus), sum)| {
        vec![
            format!("{suite}: {corpus}"),
            sum.runs.to_string(),
            sum.late.to_string(),
            format!("{:.1}", sum.wall_s / 60.0),
            format!("{:.1}", sum.cpu_s / 60.0),
            size(sum.bytes),
        ]
    });
    Table {
        title: "What the recorded runs took".to_owned(),
        columns: table::columns(&[
            "suite and tree",
            "runs",
            "ended by the time limit",
            "wall minutes",
            "CPU minutes",
            "the tree",
        ]),
        rows: rows.collect(),
    }
}

/// The versions that the latest runs of each program were of.
fn versions(samples: &[Sample]) -> Table {
    let mut versions: BTreeMap<&str, &Sample> = BTreeMap::new();
    for sample in samples {
        let name = sample.tool.split(['-', ':']).next().unwrap_or_default();
        // Tables of steps have their own name in front.
        let name = match sample.tool.split('/').nth(1) {
            Some(system) => system.split('-').next().unwrap_or_default(),
            None => name,
        };
        versions.insert(name, sample);
    }
    Table {
        title: "Versions".to_owned(),
        columns: table::columns(&["program", "version", "machine"]),
        rows: versions
            .into_iter()
            .map(|(name, sample)| {
                vec![
                    name.to_owned(),
                    sample.version.clone(),
                    sample.machine.clone(),
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn runs_are_summed_by_suite_and_tree() {
        let mut late = sample("a", "zpaq-m5", 0, 60.0);
        late.status = Status::Timeout;
        let samples = [sample("a", "durin-l1", 1, 60.0), late];
        let table = needs(&samples);
        assert_eq!(table.rows, [["size: a", "2", "1", "1.0", "2.0", "2 B"]]);
        let names: Vec<_> = versions(&samples)
            .rows
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(names, ["durin", "zpaq"]);
    }
}
