//! The few figures that the README shows, out of all that there are.

use anyhow::Result;

use super::baseline::Baseline;
use super::mount;
use super::record::{Median, Sample, Status, medians};
use super::size;
use super::table::{self, Table};
use crate::report::count;

/// The plots.
pub(super) const PLOTS: [&str; 4] = [
    "size-multiver-small.svg",
    "pareto-multiver-small.svg",
    "threads-quick.svg",
    "latency-quick-open-small.svg",
];
/// Jobs that say most about a mount.
const JOBS: [&str; 6] = [
    "mount-ls",
    "find",
    "find-ls",
    "tar",
    "sha256-2",
    "open-small",
];

/// Its tables, by the names of their places.
pub(super) fn sections(samples: &[Sample]) -> Result<Vec<(String, Vec<Table>)>> {
    let sizes = medians(samples, size::SUITE);
    let mounts = medians(samples, mount::SUITE);
    Ok(vec![
        (
            "readme-build".to_owned(),
            vec![build(&sizes, &Baseline::read()?)],
        ),
        ("readme-mount".to_owned(), mount::chosen(&mounts, &JOBS)?),
    ])
}

/// Our levels beside the original's.
fn build(medians: &[Median<'_>], baseline: &Baseline) -> Table {
    let mut corpora: Vec<&str> = Vec::new();
    for median in medians {
        if !corpora.contains(&median.sample.corpus.as_str()) {
            corpora.push(&median.sample.corpus);
        }
    }
    let mut rows = Vec::new();
    for corpus in corpora {
        let find = |tool: &str| {
            medians.iter().find(|m| {
                m.sample.corpus == corpus && m.sample.tool == tool && m.sample.status == Status::Ok
            })
        };
        let Some(yardstick) = find(size::YARDSTICK) else {
            continue;
        };
        for level in 0..=9_u8 {
            let Some(ours) = find(&format!("durin-l{level}")) else {
                continue;
            };
            let theirs = baseline.rows(corpus).find(|row| row.level == level);
            let ratio =
                |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            rows.push(vec![
                format!("{corpus} -l{level}"),
                count(ours.bytes),
                format!("{:.1}", ours.cpu_s),
                ratio(ours.yardsticks),
                count(ours.peak_bytes >> 20),
                theirs.map_or("-".to_owned(), |row| count(row.bytes)),
                ratio(theirs.and_then(|row| baseline.cpu_ratio(row))),
            ]);
        }
        let row = [
            format!("{corpus}, the yardstick"),
            count(yardstick.bytes),
            format!("{:.1}", yardstick.cpu_s),
            "1.00".to_owned(),
            count(yardstick.peak_bytes >> 20),
            "-".to_owned(),
            "-".to_owned(),
        ];
        rows.push(row.to_vec());
    }
    Table {
        title: "Building, beside DwarFS 0.15.3".to_owned(),
        columns: table::columns(&[
            "tree and level",
            "bytes",
            "CPU s",
            "yardsticks",
            "peak MiB",
            "DwarFS 0.15.3: bytes",
            "yardsticks",
        ]),
        rows,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn levels_stand_beside_the_originals() {
        let samples = [
            sample("multiver-small", size::YARDSTICK, 188_952_576, 100.0),
            sample("multiver-small", "durin-l9", 61_000_000, 120.0),
        ];
        let table = build(&medians(&samples, size::SUITE), &Baseline::read().unwrap());
        assert_eq!(
            table.rows[0],
            [
                "multiver-small -l9",
                "61,000,000",
                "120.0",
                "1.20",
                "1",
                "72,839,019",
                "2.88"
            ]
        );
    }
}
