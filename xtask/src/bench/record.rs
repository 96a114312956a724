//! Records: one JSON object a line for every run, appended as soon as the run has ended.
//!
//! A record file is what tables are made from and what lets a run that was interrupted go on: a run whose
//! [key](Sample::key) is there as often as asked for is not repeated.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::size::YARDSTICK;

/// One run of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Which suite it belongs to.
    pub(crate) suite: String,
    /// Name of the corpus.
    pub(crate) corpus: String,
    /// Files and bytes of the corpus, so that another tree of the same name is not taken for it; 0 when not known.
    #[serde(default)]
    pub(crate) corpus_files: u64,
    #[serde(default)]
    pub(crate) corpus_bytes: u64,
    /// Name of the tool.
    pub(crate) tool: String,
    /// What the tool says about itself; for our programs the commit.
    pub(crate) version: String,
    /// The command line of `sh`.
    pub(crate) command: String,
    pub(crate) threads: usize,
    pub(crate) status: Status,
    /// Size of what it made.
    pub(crate) bytes: u64,
    pub(crate) wall_s: f64,
    pub(crate) user_s: f64,
    pub(crate) sys_s: f64,
    pub(crate) peak_bytes: u64,
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// Processors, kernel and so on.
    #[serde(default)]
    pub(crate) machine: String,
    /// Why it is no result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// What the tool itself reports (`mkdwarfs --json`).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) report: Value,
    /// Further figures of a suite, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) figures: BTreeMap<String, f64>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It made what it should, and everything came back out of it.
    Ok,
    /// The program failed.
    Failed,
    /// What came back is not what went in.
    Wrong,
    /// It took longer than its time limit.
    Timeout,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Wrong => "wrong",
            Self::Timeout => "timeout",
        }
    }
}

/// What makes two runs comparable as repetitions of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) suite: &'a str,
    pub(crate) corpus: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) version: &'a str,
    pub(crate) command: &'a str,
    pub(crate) threads: usize,
}

impl Sample {
    pub(crate) fn key(&self) -> Key<'_> {
        Key {
            suite: &self.suite,
            corpus: &self.corpus,
            tool: &self.tool,
            version: &self.version,
            command: &self.command,
            threads: self.threads,
        }
    }

    /// User and system time.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }
}

/// An open record file.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    samples: Vec<Sample>,
}

impl Record {
    /// Reads a record file, which need not be there yet. A last line that was cut off is left out.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut text = String::new();
        if path.is_file() {
            std::fs::File::open(path)
                .and_then(|mut file| file.read_to_string(&mut text))
                .with_context(|| format!("cannot read {}", path.display()))?;
        }
        let samples = parse(&text).with_context(|| path.display().to_string())?;
        Ok(Self {
            path: path.to_owned(),
            samples,
        })
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How often a run is recorded that need not be repeated: with a result, or so slow that a second try is in vain.
    pub(crate) fn count(&self, key: &Key<'_>) -> usize {
        let is_settled = |sample: &&Sample| {
            matches!(sample.status, Status::Ok | Status::Timeout) && sample.key() == *key
        };
        self.samples.iter().filter(is_settled).count()
    }

    /// Takes out runs of another tree that had the same name.
    pub(crate) fn forget_other_trees(&mut self, sample: &Sample) -> Result<()> {
        let is_other = |old: &Sample| {
            old.corpus == sample.corpus
                && (old.corpus_files, old.corpus_bytes)
                    != (sample.corpus_files, sample.corpus_bytes)
        };
        if !self.samples.iter().any(is_other) {
            return Ok(());
        }
        self.samples.retain(|old| !is_other(old));
        let mut text = String::new();
        for sample in &self.samples {
            text.push_str(&serde_json::to_string(sample)?);
            text.push('\n');
        }
        let context = || format!("cannot write {}", self.path.display());
        std::fs::write(&self.path, text).with_context(context)
    }

    /// Adds a run, on disk first.
    pub(crate) fn append(&mut self, sample: Sample) -> Result<()> {
        let context = || format!("cannot write {}", self.path.display());
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir).with_context(context)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&self.path)
            .with_context(context)?;
        let mut line = serde_json::to_string(&sample)?;
        line.push('\n');
        if !ends_with_newline(&self.path) {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes()).with_context(context)?;
        self.samples.push(sample);
        Ok(())
    }
}

fn ends_with_newline(path: &Path) -> bool {
    std::fs::read(path).map_or(true, |bytes| bytes.last().is_none_or(|last| *last == b'\n'))
}

fn parse(text: &str) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(sample) => samples.push(sample),
            // A run was interrupted while it wrote this line; an append after it has ended the line.
            Err(error) if error.is_eof() => {}
            Err(error) => return Err(error).with_context(|| format!("line {}", index + 1)),
        }
    }
    Ok(samples)
}

/// Medians of the runs of one key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Median<'a> {
    /// The latest of the runs, for all that has no median.
    pub(crate) sample: &'a Sample,
    pub(crate) runs: usize,
    pub(crate) bytes: u64,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// CPU time as a multiple of the yardstick's, each run by the run of the yardstick next to it in time: machines are
    /// not as fast every day. Nothing where there is no yardstick.
    pub(crate) yardsticks: Option<f64>,
    /// Largest less smallest CPU time.
    pub(crate) cpu_spread_s: f64,
    pub(crate) peak_bytes: u64,
    /// Medians of the further figures, each of the runs that have it.
    pub(crate) figures: BTreeMap<String, f64>,
}

/// Takes together the runs of each tool on each corpus: those with the key of the latest one and, where seconds count because
/// there is no yardstick, on its machine, as the others in its table may have no runs on an earlier one.
/// Results are in the order of their first appearance.
pub(crate) fn medians<'a>(samples: &'a [Sample], suite: &str) -> Vec<Median<'a>> {
    let mut latest: Vec<&Sample> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.suite == suite) {
        let same = |other: &&mut &Sample| {
            (&other.corpus, &other.tool, other.threads)
                == (&sample.corpus, &sample.tool, sample.threads)
        };
        match latest.iter_mut().find(same) {
            Some(place) => *place = sample,
            None => latest.push(sample),
        }
    }
    let median_of = |last: &&'a Sample| {
        let mut runs: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.key() == last.key() && sample.status == last.status)
            .collect();
        let yardsticks = yardsticks(samples, &runs);
        if yardsticks.is_none() {
            runs.retain(|sample| sample.machine == last.machine);
        }
        let cpu = sorted(&runs, Sample::cpu_s);
        Median {
            sample: last,
            runs: runs.len(),
            bytes: last.bytes,
            wall_s: middle(&sorted(&runs, |sample| sample.wall_s)),
            cpu_s: middle(&cpu),
            yardsticks,
            cpu_spread_s: cpu.last().unwrap_or(&0.0) - cpu.first().unwrap_or(&0.0),
            peak_bytes: runs
                .iter()
                .map(|sample| sample.peak_bytes)
                .max()
                .unwrap_or(0),
            figures: figures(&runs),
        }
    };
    latest.iter().map(median_of).collect()
}

impl Median<'_> {
    /// What is compared with others on the same corpus: multiples of the yardstick, or else seconds.
    pub(crate) fn cost(&self) -> f64 {
        self.yardsticks.unwrap_or(self.cpu_s)
    }
}

fn yardsticks(samples: &[Sample], runs: &[&Sample]) -> Option<f64> {
    let beside = |run: &Sample| {
        let of_yardstick = samples.iter().filter(|sample| {
            (&sample.suite, &sample.corpus, sample.threads)
                == (&run.suite, &run.corpus, run.threads)
                && sample.tool == YARDSTICK
                && sample.status == Status::Ok
        });
        of_yardstick.min_by_key(|sample| sample.time.abs_diff(run.time))
    };
    let of_runs = runs
        .iter()
        .map(|run| Some(run.cpu_s() / beside(run)?.cpu_s()));
    let mut ratios = of_runs.collect::<Option<Vec<f64>>>()?;
    ratios.sort_by(f64::total_cmp);
    Some(middle(&ratios))
}

fn sorted(runs: &[&Sample], of: impl Fn(&Sample) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = runs.iter().map(|sample| of(sample)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn figures(runs: &[&Sample]) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.figures) {
        all.entry(name).or_default().push(*value);
    }
    let median = |(name, mut values): (&str, Vec<f64>)| {
        values.sort_by(f64::total_cmp);
        (name.to_owned(), middle(&values))
    };
    all.into_iter().map(median).collect()
}

fn middle(values: &[f64]) -> f64 {
    let upper = values.get(values.len() / 2).copied().unwrap_or(0.0);
    let lower = values.get(values.len().saturating_sub(1) / 2);
    f64::midpoint(lower.copied().unwrap_or(0.0), upper)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(corpus: &str, tool: &str, bytes: u64, cpu_s: f64) -> Sample {
        Sample {
            suite: "size".to_owned(),
            corpus: corpus.to_owned(),
            corpus_files: 1,
            corpus_bytes: 2,
            tool: tool.to_owned(),
            version: "1.0".to_owned(),
            command: "true".to_owned(),
            threads: 2,
            status: Status::Ok,
            bytes,
            wall_s: cpu_s / 2.0,
            user_s: cpu_s,
            sys_s: 0.0,
            peak_bytes: 1 << 20,
            time: 0,
            machine: String::new(),
            message: String::new(),
            report: Value::Null,
            figures: BTreeMap::new(),
        }
    }

    #[test]
    fn an_interrupted_run_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/record.jsonl");
        let first = sample("corpus", "tool", 10, 1.0);
        let mut record = Record::open(&path).unwrap();
        record.append(first.clone()).unwrap();
        let mut failed = first.clone();
        failed.status = Status::Failed;
        record.append(failed).unwrap();
        // The machine went down in the middle of a line.
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(b"{\"suite\":\"si").unwrap();

        let mut record = Record::open(&path).unwrap();
        assert_eq!(record.samples().len(), 2);
        assert_eq!(record.count(&first.key()), 1);
        let mut other = first.clone();
        other.threads = 4;
        assert_eq!(record.count(&other.key()), 0);
        record.append(other.clone()).unwrap();
        let record = Record::open(&path).unwrap();
        assert_eq!((record.samples().len(), record.count(&other.key())), (3, 1));
    }

    #[test]
    fn lines_of_something_else_are_an_error() {
        assert!(parse("{\"suite\": 3}\n").is_err());
        assert!(parse("\n").unwrap().is_empty());
    }

    #[test]
    fn costs_are_multiples_of_the_yardstick_of_the_day() {
        let at = |time, tool, cpu_s| Sample {
            time,
            ..sample("a", tool, 10, cpu_s)
        };
        let samples = [
            at(10, YARDSTICK, 100.0),
            at(20, "x", 50.0),
            at(1000, YARDSTICK, 200.0),
            at(1010, "x", 120.0),
            at(1020, "x", 140.0),
        ];
        let medians = medians(&samples, "size");
        let costs: Vec<f64> = medians.iter().map(Median::cost).collect();
        assert_eq!(costs, [1.0, 0.6]);
    }

    #[test]
    fn seconds_of_several_machines_are_not_taken_together() {
        let on = |machine: &str, cpu_s| Sample {
            machine: machine.to_owned(),
            ..sample("a", "x", 10, cpu_s)
        };
        let mut samples = vec![on("fast", 1.0), on("slow", 4.0), on("slow", 6.0)];
        let seen = |samples: &[Sample]| {
            let medians = medians(samples, "size");
            (medians[0].runs, medians[0].cpu_s)
        };
        assert_eq!(seen(&samples), (2, 5.0));
        samples.push(sample("a", YARDSTICK, 10, 10.0));
        assert_eq!(seen(&samples), (3, 4.0));
    }

    #[test]
    fn medians_are_of_the_latest_version() {
        let mut samples = vec![
            sample("a", "x", 100, 9.0),
            sample("a", "y", 50, 3.0),
            sample("a", "y", 50, 1.0),
            sample("a", "y", 50, 2.0),
        ];
        samples[0].version = "0.9".to_owned();
        samples.push(sample("a", "x", 90, 8.0));
        let medians = medians(&samples, "size");
        assert!(medians.iter().all(|median| median.yardsticks.is_none()));
        let seen: Vec<_> = medians
            .iter()
            .map(|m| {
                (
                    m.sample.tool.as_str(),
                    m.bytes,
                    m.runs,
                    m.cpu_s,
                    m.cpu_spread_s,
                )
            })
            .collect();
        assert_eq!(seen, [("x", 90, 1, 8.0, 0.0), ("y", 50, 3, 2.0, 2.0)]);
        assert_eq!(middle(&[1.0, 2.0]), 1.5);
    }
}
