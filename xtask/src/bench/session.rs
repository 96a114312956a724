//! One session of measuring: what is run where, how often, and into which record.
//!
//! A tool that fails, gives a wrong result or takes too long is recorded as that and does not hold up the rest.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::roundtrip::{POSITIONS, remove_tree};
use durin_testkit::tree::{Tree, snapshot};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use super::definition::{Tool, corpus};
use super::measure::{self, Cost, End, Places};
use super::record::{Key, Record, Sample, Status};
use super::{origin, verify};
use crate::corpora;
use crate::report::{census, count, size};
use crate::workspace::{self, Scratch, option};

/// Differences that are shown and recorded of a wrong result.
const DIFFERENCES_SHOWN: usize = 5;

/// The options that every suite with a record has.
pub(crate) const OPTIONS: [&str; 12] = [
    "suite",
    "corpus",
    "corpora",
    "record",
    "runs",
    "profile",
    "programs",
    "format",
    "lock",
    "tables-only",
    "into",
    "seconds-max",
];

pub(crate) struct Session {
    pub(crate) record: Record,
    /// Whether nothing is run, only tables are made of what is recorded.
    pub(crate) is_tables_only: bool,
    corpora: PathBuf,
    pub(crate) runs: usize,
    pub(crate) programs: PathBuf,
    /// Names the state of our source.
    pub(crate) commit: String,
    pub(crate) machine: String,
    pub(crate) scratch: Scratch,
    lock: Option<PathBuf>,
    /// Bounds the time limits of the definitions.
    time_max: Duration,
}

/// A corpus: its tree is read when the first result is to be compared with it.
pub(crate) struct Corpus {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) tree: Option<Tree>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Session {
    pub(crate) fn open(arguments: &[String]) -> Result<Self> {
        let runs = option(arguments, "runs").unwrap_or("1").parse()?;
        ensure!(runs > 0, "--runs=0 measures nothing");
        let is_tables_only = arguments.iter().any(|argument| argument == "--tables-only");
        let record = option(arguments, "record").map_or_else(default_record, PathBuf::from);
        let corpora = option(arguments, "corpora").map_or_else(corpora::dir, PathBuf::from);
        let programs = match option(arguments, "programs") {
            Some(dir) => std::fs::canonicalize(dir).with_context(|| dir.to_owned())?,
            None if is_tables_only => PathBuf::new(),
            None => workspace::programs(option(arguments, "profile").unwrap_or("release"))?,
        };
        Ok(Self {
            record: Record::open(&record)?,
            is_tables_only,
            corpora,
            runs,
            commit: match option(arguments, "programs") {
                Some(_) => origin::build_time(&programs)?,
                None => origin::commit()?,
            },
            programs,
            machine: origin::machine(),
            scratch: workspace::scratch_dir()?,
            lock: option(arguments, "lock").map(PathBuf::from),
            time_max: option(arguments, "seconds-max").map_or(Ok(Duration::MAX), |text| {
                text.parse().map(Duration::from_secs)
            })?,
        })
    }

    /// Opens the corpora of `--corpus`.
    pub(crate) fn corpora(&self, arguments: &[String]) -> Result<Vec<Corpus>> {
        let list = option(arguments, "corpus").context("--corpus=NAME or DIR, ...")?;
        let mut corpora = Vec::new();
        for text in list.split(',') {
            let (name, dir) = corpus(text, &self.corpora)?;
            corpora.push(Corpus::new(name, dir));
        }
        Ok(corpora)
    }

    /// Runs a tool on a corpus as often as is not yet recorded. Gives whether all results were right.
    pub(crate) fn run(
        &mut self,
        suite: &str,
        tool: &Tool,
        corpus: &mut Corpus,
        threads: usize,
    ) -> Result<bool> {
        if let Some(why) = tool.missing() {
            println!("{}: skipped, {why}", tool.name);
            return Ok(true);
        }
        let version = self.version(tool, corpus, threads);
        let key = Key {
            suite,
            corpus: &corpus.name,
            tool: &tool.name,
            version: &version,
            command: &tool.build,
            threads,
        };
        let done = self.record.count(&key);
        let mut is_right = true;
        for _ in done..self.runs {
            corpus.read()?;
            let _turn = self.turn()?;
            let sample = self.sample(suite, tool, corpus, threads, &version)?;
            println!("{}", one_line(&sample));
            let status = sample.status;
            self.record.append(sample)?;
            is_right &= matches!(status, Status::Ok | Status::Timeout);
            if status != Status::Ok {
                break;
            }
        }
        Ok(is_right)
    }

    fn version(&self, tool: &Tool, corpus: &Corpus, threads: usize) -> String {
        if tool.level.is_some() {
            return self.commit.clone();
        }
        measure::version(&tool.version, &self.places(corpus, threads))
    }

    fn output(&self) -> PathBuf {
        self.scratch.path().join("output")
    }

    fn places<'a>(&'a self, corpus: &'a Corpus, threads: usize) -> Places<'a> {
        Places {
            source: &corpus.dir,
            output: Path::new(""),
            target: Path::new(""),
            programs: &self.programs,
            threads,
            work: self.scratch.path(),
        }
    }

    /// The time that something may take whose definition gives it so much.
    pub(crate) fn time_max(&self, defined: Duration) -> Duration {
        defined.min(self.time_max)
    }

    fn sample(
        &self,
        suite: &str,
        tool: &Tool,
        corpus: &Corpus,
        threads: usize,
        version: &str,
    ) -> Result<Sample> {
        let (output, target) = (self.output(), self.scratch.path().join("target"));
        let places = Places {
            output: &output,
            target: &target,
            ..self.places(corpus, threads)
        };
        let time = now();
        let time_max = self.time_max(tool.time_max());
        let cost = measure::run(&tool.build, &places, time_max)?;
        let bytes = bytes_of(&output)?;
        let mut figures = BTreeMap::new();
        let (status, message) = judge(tool, corpus, &places, (&cost, time_max), &mut figures)?;
        let json = output.with_extension("json");
        let report = std::fs::read_to_string(&json).ok();
        let report = report.and_then(|text| serde_json::from_str(&text).ok());
        for made in [&output, &json] {
            if made.is_dir() {
                remove_tree(made)?;
            } else if made.exists() {
                std::fs::remove_file(made)?;
            }
        }
        Ok(Sample {
            suite: suite.to_owned(),
            corpus: corpus.name.clone(),
            corpus_files: corpus.files,
            corpus_bytes: corpus.bytes,
            tool: tool.name.clone(),
            version: version.to_owned(),
            command: tool.build.clone(),
            threads,
            status,
            bytes,
            wall_s: cost.wall.as_secs_f64(),
            user_s: cost.user.as_secs_f64(),
            sys_s: cost.sys.as_secs_f64(),
            peak_bytes: cost.peak_bytes,
            time,
            machine: self.machine.clone(),
            message,
            report: report.unwrap_or(Value::Null),
            figures,
        })
    }

    /// Waits for the turn of this session where several measure on one machine; it ends when the file is dropped.
    pub(crate) fn turn(&self) -> Result<Option<File>> {
        let Some(path) = &self.lock else {
            return Ok(None);
        };
        let mut options = File::options();
        let file = options.create(true).append(true).open(path);
        let file = file.with_context(|| path.display().to_string())?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Some(file))
    }
}

impl Corpus {
    pub(crate) fn new(name: String, dir: PathBuf) -> Self {
        Self {
            name,
            dir,
            tree: None,
            files: 0,
            bytes: 0,
        }
    }

    /// Reads the tree, once.
    pub(crate) fn read(&mut self) -> Result<()> {
        if self.tree.is_none() {
            let tree = snapshot(&self.dir, &POSITIONS)?;
            let found = census(&tree);
            println!("{}: {found}, {}", self.name, size(found.bytes));
            (self.files, self.bytes) = (found.files, found.bytes);
            self.tree = Some(tree);
        }
        Ok(())
    }

    /// Lets go of the tree.
    pub(crate) fn forget(&mut self) {
        self.tree = None;
    }
}

/// Unpacks what a build made and compares it with the source; adds what that took to the figures.
fn judge(
    tool: &Tool,
    corpus: &Corpus,
    places: &Places<'_>,
    (cost, time_max): (&Cost, Duration),
    figures: &mut BTreeMap<String, f64>,
) -> Result<(Status, String)> {
    match cost.end {
        End::TimeLimit => return Ok((Status::Timeout, String::new())),
        End::Failure => return Ok((Status::Failed, cost.message.clone())),
        End::Success => {}
    }
    std::fs::create_dir(places.target)?;
    let unpacked = measure::run(&tool.unpack, places, time_max)?;
    let mut add = |what: &str, cost: &Cost| {
        figures.insert(format!("{what}_wall_s"), cost.wall.as_secs_f64());
        figures.insert(
            format!("{what}_cpu_s"),
            (cost.user + cost.sys).as_secs_f64(),
        );
    };
    let tree = corpus.tree.as_ref().context("the corpus was not read")?;
    let differences = match unpacked.end {
        End::Success => {
            add("unpack", &unpacked);
            verify::differences(tree, places.target, tool.keeps)?
        }
        End::Failure => vec![format!("does not unpack: {}", unpacked.message)],
        End::TimeLimit => {
            remove_tree(places.target)?;
            return Ok((Status::Timeout, "unpacking takes too long".to_owned()));
        }
    };
    remove_tree(places.target)?;
    if let Some(tar) = tool.tar.as_ref().filter(|_| differences.is_empty()) {
        let archived = measure::run(tar, places, time_max)?;
        if archived.end == End::Success {
            add("tar", &archived);
        }
    }
    if differences.is_empty() {
        return Ok((Status::Ok, String::new()));
    }
    let shown = differences.len().min(DIFFERENCES_SHOWN);
    let message = format!(
        "{} differences: {}",
        differences.len(),
        differences[..shown].join("; ")
    );
    Ok((Status::Wrong, message))
}

/// What a tool made: a file, or a directory of files.
fn bytes_of(made: &Path) -> Result<u64> {
    if !made.is_dir() {
        return Ok(made.metadata().map_or(0, |data| data.len()));
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(made)? {
        bytes += bytes_of(&entry?.path())?;
    }
    Ok(bytes)
}

fn one_line(sample: &Sample) -> String {
    format!(
        "{} {} ({} threads): {} bytes, {:.1} s CPU, {:.1} s wall, {} MiB: {} {}",
        sample.corpus,
        sample.tool,
        sample.threads,
        count(sample.bytes),
        sample.cpu_s(),
        sample.wall_s,
        sample.peak_bytes >> 20,
        sample.status.name(),
        sample.message,
    )
}

/// Where records are kept unless `--record` says otherwise: not in the repository, for they are of one machine.
fn default_record() -> PathBuf {
    workspace::target_dir().join("bench").join("record.jsonl")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a record says when it was made; nothing else depends on it"
)]
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
