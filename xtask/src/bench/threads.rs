//! `--suite=threads`: whether a build uses the processors that it is given.
//!
//! For each level and number of threads: wall time, CPU time, and how much faster it is than with one thread. The CPU
//! time should not grow with the threads. Where the build reports times of its stages, the longest one is the critical path.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::definition::{Tool, levels};
use super::record::{Median, Status, medians};
use super::session::{OPTIONS, Session};
use super::table::{Format, Table};
use crate::workspace::{check_options, option};

const SUITE: &str = "threads";
/// Where compressing does not hide everything else.
const LEVELS: &str = "1-3";
const THREADS: &str = "1,2,4,8";
/// Keys under which `mkdwarfs --json` may have the stages.
const STAGES: &str = "stages";

pub(super) fn run(arguments: &[String]) -> Result<()> {
    check_options(
        arguments,
        &[OPTIONS.as_slice(), &["levels", "threads"]].concat(),
    )?;
    let mut session = Session::open(arguments)?;
    let format = Format::parse(option(arguments, "format").unwrap_or("text"))?;
    let mut failures = 0;
    if !session.is_tables_only {
        let threads: Vec<usize> = option(arguments, "threads")
            .unwrap_or(THREADS)
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let levels = levels(option(arguments, "levels").unwrap_or(LEVELS))?;
        for mut corpus in session.corpora(arguments)? {
            for level in &levels {
                for count in &threads {
                    let is_right = session.run(SUITE, &Tool::ours(*level), &mut corpus, *count)?;
                    failures += usize::from(!is_right);
                }
            }
        }
    }
    let medians = medians(session.record.samples(), SUITE);
    println!("{}", table(&medians).render(format));
    ensure!(
        failures == 0,
        "{failures} runs failed or gave a wrong result"
    );
    Ok(())
}

fn table(medians: &[Median<'_>]) -> Table {
    let mut rows = Vec::new();
    let results = medians
        .iter()
        .filter(|median| median.sample.status == Status::Ok);
    for median in results {
        let sample = median.sample;
        let single = medians.iter().find(|other| {
            (
                &other.sample.corpus,
                &other.sample.tool,
                other.sample.threads,
            ) == (&sample.corpus, &sample.tool, 1)
        });
        let ratio = |ours: f64, theirs: Option<f64>| {
            theirs.map_or("-".to_owned(), |theirs| format!("{:.2}", theirs / ours))
        };
        rows.push(vec![
            format!("{} {}", sample.corpus, sample.tool),
            sample.threads.to_string(),
            format!("{:.2}", median.wall_s),
            format!("{:.2}", sample.user_s),
            format!("{:.2}", sample.sys_s),
            ratio(median.wall_s, single.map(|single| single.wall_s)),
            format!("{:.2}", median.cpu_s / median.wall_s.max(f64::MIN_POSITIVE)),
            stages(&sample.report),
        ]);
    }
    Table {
        title: "Build time by number of threads".to_owned(),
        columns: vec![
            "corpus and level",
            "threads",
            "wall s",
            "user s",
            "sys s",
            "speed-up",
            "CPUs busy",
            "stages: busy s / wall s",
        ],
        rows,
    }
}

/// Shows the stages of a build's own report, the longest first: the first is the critical path.
fn stages(report: &Value) -> String {
    let mut stages: Vec<(f64, String)> = Vec::new();
    let named: Vec<(String, &Value)> = match &report[STAGES] {
        Value::Object(map) => map
            .iter()
            .map(|(name, stage)| (name.clone(), stage))
            .collect(),
        Value::Array(list) => list
            .iter()
            .map(|stage| (stage["name"].as_str().unwrap_or("?").to_owned(), stage))
            .collect(),
        _ => return "-".to_owned(),
    };
    for (name, stage) in named {
        let seconds = |key: &str| stage[key].as_f64();
        let Some(wall) = seconds("wall_seconds").or_else(|| stage.as_f64()) else {
            continue;
        };
        let busy = seconds("busy_seconds").map_or(String::new(), |busy| format!("{busy:.2}/"));
        stages.push((wall, format!("{name} {busy}{wall:.2}")));
    }
    stages.sort_by(|a, b| b.0.total_cmp(&a.0));
    stages
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::sample;
    use super::*;
    use serde_json::json;

    #[test]
    fn speed_up_is_against_one_thread() {
        let mut samples = vec![
            sample("a", "durin-l1", 1, 8.0),
            sample("a", "durin-l1", 1, 6.0),
        ];
        samples[0].threads = 1;
        samples[0].wall_s = 8.0;
        samples[1].threads = 4;
        samples[1].wall_s = 2.0;
        for sample in &mut samples {
            sample.suite = SUITE.to_owned();
        }
        let medians = medians(&samples, SUITE);
        let table = table(&medians);
        assert_eq!(
            table.rows[1][1..7],
            ["4", "2.00", "6.00", "0.00", "4.00", "3.00"]
        );
    }

    #[test]
    fn the_longest_stage_is_first() {
        let report = json!({"stages": [
            {"name": "scan", "wall_seconds": 0.5},
            {"name": "segment", "wall_seconds": 2.0, "busy_seconds": 1.5},
        ]});
        assert_eq!(stages(&report), "segment 1.50/2.00, scan 0.50");
        assert_eq!(
            stages(&json!({"stages": {"a": 1.0, "b": 2.0}})),
            "b 2.00, a 1.00"
        );
        assert_eq!(stages(&Value::Null), "-");
    }
}
