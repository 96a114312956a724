//! `--suite=threads`: whether a build uses the processors that it is given.
//!
//! For each level and number of threads: wall time, CPU time, and how much faster it is than with one thread. The CPU
//! time should not grow with the threads. The build's own report tells the phases, which follow each other, and which stage
//! held each of them up: together the critical path.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::definition::{Tool, levels};
use super::record::{Median, Status, medians};
use super::session::{OPTIONS, Session};
use super::table::{self, Format, Table};
use crate::say::say;
use crate::workspace::{check_options, option};

pub(super) const SUITE: &str = "threads";
/// Where compressing does not hide everything else.
const LEVELS: &str = "1-3";
const THREADS: &str = "1,2,4,8";

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
    say!("{}", table_of(&medians).render(format));
    for median in &medians {
        if let Some(stages) = stages(median) {
            say!("{}", stages.render(format));
        }
    }
    ensure!(
        failures == 0,
        "{failures} runs failed or gave a wrong result"
    );
    Ok(())
}

/// Names of what `run` runs with these options.
pub(super) fn names(arguments: &[String]) -> Result<Vec<String>> {
    let threads = option(arguments, "threads").unwrap_or(THREADS);
    let levels = levels(option(arguments, "levels").unwrap_or(LEVELS))?;
    let name = |level: u8| format!("{} with {threads} threads", Tool::ours(level).name);
    Ok(levels.into_iter().map(name).collect())
}

/// The table of a record, by the name of its place in documents.
pub(super) fn sections(medians: &[Median<'_>]) -> Vec<(String, Vec<Table>)> {
    let tables = if medians.is_empty() {
        Vec::new()
    } else {
        vec![table_of(medians)]
    };
    vec![("threads".to_owned(), tables)]
}

fn table_of(medians: &[Median<'_>]) -> Table {
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
            critical_path(&sample.report),
        ]);
    }
    Table {
        title: "Build time by number of threads".to_owned(),
        columns: table::columns(&[
            "corpus and level",
            "threads",
            "wall s",
            "user s",
            "sys s",
            "speed-up",
            "CPUs busy",
            "critical path (phase s: stage, occupied s)",
        ]),
        rows,
    }
}

/// Shows the phases of a build, which follow each other, each with the stage that held it up and how much of the
/// phase that stage was occupied.
fn critical_path(report: &Value) -> String {
    let Value::Array(path) = &report["times"]["critical_path"] else {
        return "-".to_owned();
    };
    let step = |step: &Value| {
        let name = |key: &str| step[key].as_str().unwrap_or("?").to_owned();
        let seconds = |key: &str| step[key].as_f64().unwrap_or(0.0);
        format!(
            "{} {:.2}: {} {:.2}",
            name("phase"),
            seconds("wall_seconds"),
            name("stage"),
            seconds("occupied_seconds")
        )
    };
    path.iter().map(step).collect::<Vec<_>>().join(", ")
}

/// One row a stage of a run: how long it took, how long its threads computed and waited.
fn stages(median: &Median<'_>) -> Option<Table> {
    let sample = median.sample;
    let Value::Array(stages) = &sample.report["times"]["stages"] else {
        return None;
    };
    let rows = stages.iter().map(|stage| {
        let seconds = |key: &str| format!("{:.2}", stage[key].as_f64().unwrap_or(0.0));
        vec![
            stage["name"].as_str().unwrap_or("?").to_owned(),
            stage["threads"].to_string(),
            seconds("begin_seconds"),
            seconds("wall_seconds"),
            seconds("busy_seconds"),
            seconds("input_wait_seconds"),
            seconds("output_wait_seconds"),
            seconds("other_seconds"),
        ]
    });
    Some(Table {
        title: format!(
            "Stages of {} {} with {} threads",
            sample.corpus, sample.tool, sample.threads
        ),
        columns: table::columns(&[
            "stage",
            "threads",
            "begins s",
            "wall s",
            "busy s",
            "waits for input s",
            "waits for output s",
            "other s",
        ]),
        rows: rows.collect(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
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
        let table = table_of(&medians);
        assert_eq!(
            table.rows[1][1..7],
            ["4", "2.00", "6.00", "0.00", "4.00", "3.00"]
        );
    }

    #[test]
    fn the_critical_path_is_shown() {
        let report = json!({"times": {
            "critical_path": [
                {"phase": "scan", "wall_seconds": 0.5, "stage": "scan", "occupied_seconds": 0.4},
                {"phase": "write", "wall_seconds": 2.0, "stage": "segment", "occupied_seconds": 1.9},
            ],
            "stages": [{"name": "segment", "threads": 1, "wall_seconds": 2.0, "busy_seconds": 1.9}],
        }});
        assert_eq!(
            critical_path(&report),
            "scan 0.50: scan 0.40, write 2.00: segment 1.90"
        );
        assert_eq!(critical_path(&Value::Null), "-");
        let mut sample = sample("a", "durin-l1", 1, 8.0);
        sample.suite = SUITE.to_owned();
        sample.report = report;
        let samples = [sample];
        let table = stages(&medians(&samples, SUITE)[0]).unwrap();
        assert_eq!(
            table.rows,
            [[
                "segment", "1", "0.00", "2.00", "1.90", "0.00", "0.00", "0.00"
            ]]
        );
    }
}
