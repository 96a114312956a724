//! Where others win: found in the record, so that it is told whether we like it or not.

use anyhow::Result;

use super::mount;
use super::record::{Median, Sample, Status, medians};
use super::size;
use super::table::{self, Table};
use crate::report::count;

/// Our system in the tables of mounts of trees, and those of files.
const OURS: [&str; 2] = ["durin", "durin-16m"];

/// Differences up to this are no difference: seconds of a job that hardly takes any.
const NOISE_S: f64 = 0.02;

/// The tables, by the names of their places.
pub(super) fn sections(samples: &[Sample]) -> Result<Vec<(String, Vec<Table>)>> {
    let sizes = medians(samples, size::SUITE);
    let mounts = medians(samples, mount::SUITE);
    let tables = [of_sizes(&sizes), of_mounts(&mounts)?];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    Ok(vec![("losses".to_owned(), tables.collect())])
}

fn is_ours(median: &Median<'_>) -> bool {
    median.sample.tool.starts_with("durin-l")
}

/// Programs that none of our levels beats in both size and time.
fn of_sizes(medians: &[Median<'_>]) -> Table {
    let results = || medians.iter().filter(|m| m.sample.status == Status::Ok);
    let is_beaten = |other: &Median<'_>| {
        results().any(|ours| {
            is_ours(ours)
                && ours.sample.corpus == other.sample.corpus
                && ours.bytes <= other.bytes
                && ours.cost() <= other.cost()
        })
    };
    let ahead = results().filter(|m| !is_ours(m) && !is_beaten(m));
    let rows = ahead.map(|other| {
        let of_corpus = results().filter(|m| is_ours(m) && m.sample.corpus == other.sample.corpus);
        // The cheapest of ours that is as small, or the smallest.
        let as_small = of_corpus.clone().filter(|ours| ours.bytes <= other.bytes);
        let ours = as_small
            .min_by(|a, b| a.cost().total_cmp(&b.cost()))
            .or_else(|| of_corpus.min_by_key(|ours| ours.bytes));
        let shown =
            |median: &Median<'_>| format!("{} in {:.1} s", count(median.bytes), median.cpu_s);
        vec![
            format!("{}: {}", other.sample.corpus, other.sample.tool),
            shown(other),
            ours.map_or("-".to_owned(), |ours| {
                format!("{} with {}", shown(ours), ours.sample.tool)
            }),
        ]
    });
    Table {
        title: "Building: no level of ours is both as small and as cheap".to_owned(),
        columns: table::columns(&["tree and program", "its bytes and CPU", "nearest of ours"]),
        rows: rows.collect(),
    }
}

/// Jobs over mounts that cost less elsewhere.
fn of_mounts(medians: &[Median<'_>]) -> Result<Table> {
    let labels = mount::labels()?;
    let label = |list: &[(String, String)], name: &str| {
        let found = list.iter().find(|(known, _)| known == name);
        found.map_or_else(|| name.to_owned(), |(_, label)| label.clone())
    };
    let mut rows = Vec::new();
    let results = || medians.iter().filter(|m| m.sample.status == Status::Ok);
    for ours in results() {
        let Some((system, job)) = ours.sample.tool.split_once(':') else {
            continue;
        };
        if !OURS.contains(&system) {
            continue;
        }
        let own = mount::cpu_s(ours);
        let mut ahead: Vec<(f64, &str)> = results()
            .filter(|m| m.sample.corpus == ours.sample.corpus && mount::cpu_s(m) < own - NOISE_S)
            .filter_map(|m| Some((mount::cpu_s(m), m.sample.tool.split_once(':')?)))
            .filter(|(_, (other, other_job))| {
                *other_job == job && !other.starts_with("durin") && *other != "directory"
            })
            .map(|(cpu_s, (other, _))| (cpu_s, other))
            .collect();
        ahead.sort_by(|a, b| a.0.total_cmp(&b.0));
        if ahead.is_empty() {
            continue;
        }
        let others = ahead
            .iter()
            .map(|(cpu_s, other)| format!("{} {cpu_s:.2}", label(&labels.systems, other)));
        rows.push(vec![
            format!("{}: {}", ours.sample.corpus, label(&labels.jobs, job)),
            format!("{own:.2}"),
            others.collect::<Vec<_>>().join(", "),
        ]);
    }
    Ok(Table {
        title: "Mounted: less CPU time elsewhere (the plain directory left out)".to_owned(),
        columns: table::columns(&["tree and job", "durin, CPU s", "others, CPU s"]),
        rows,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn who_is_ahead_is_told() {
        let mut samples = vec![
            sample("a", "durin-l1", 300, 1.0),
            sample("a", "durin-l9", 100, 50.0),
            sample("a", "beaten", 301, 1.5),
            sample("a", "smaller", 90, 900.0),
            sample("a", "cheaper", 200, 10.0),
        ];
        for (tool, cpu_s) in [
            ("durin:find", 1.0),
            ("squashfs:find", 0.5),
            ("wimmount:find", 2.0),
        ] {
            let mut one = sample("a", tool, 1, cpu_s);
            one.suite = mount::SUITE.to_owned();
            samples.push(one);
        }
        let sections = sections(&samples).unwrap();
        let [sizes, mounts] = sections[0].1.as_slice() else {
            panic!("two tables");
        };
        let names: Vec<&str> = sizes.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["a: smaller", "a: cheaper"]);
        assert_eq!(sizes.rows[1][2], "100 in 50.0 s with durin-l9");
        assert_eq!(mounts.rows.len(), 1);
        assert!(mounts.rows[0][2].contains("0.50"));
    }
}
