//! One session of measuring: what is run where, how often, and into which record.
//!
//! A tool that fails, gives a wrong result or takes too long is recorded as that and does not hold up the rest.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use durin_testkit::roundtrip::{POSITIONS, remove_tree};
use durin_testkit::tree::{Tree, snapshot};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use super::definition::{Tool, corpus};
use super::judge::{bytes_of, judge};
use super::measure::{self, End, Limit, Places};
use super::record::{Key, Record, Sample, Status};
use super::{clean, origin};
use crate::corpora;
use crate::report::{census, count, size};
use crate::say::say;
use crate::workspace::{self, Scratch, option};

/// The options that every suite with a record has.
pub(crate) const OPTIONS: [&str; 13] = [
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
    "seconds-all",
];

/// With less time than this left nothing more is begun.
const BEGIN_MIN: Duration = Duration::from_secs(1);

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
    /// When all must have ended.
    end: Option<Instant>,
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
        let seconds = |name: &str| -> Result<Option<Duration>> {
            let number = option(arguments, name).map(str::parse).transpose()?;
            Ok(number.map(Duration::from_secs))
        };
        let end = seconds("seconds-all")?.map(|seconds| Instant::now() + seconds);
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
            time_max: seconds("seconds-max")?.unwrap_or(Duration::MAX),
            end,
        })
    }

    /// When all must have ended.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Bounds what comes next by its part of the time until `end`: one of `count` that are left.
    pub(crate) fn share(&mut self, end: Option<Instant>, count: usize) {
        self.end = part(end, count);
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
            say!("{}: skipped, {why}", tool.name);
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
            if self.is_over() {
                say!("{}: skipped, the time is over", tool.name);
                break;
            }
            corpus.read()?;
            let _turn = self.turn()?;
            let sample = self.sample(suite, tool, corpus, threads, &version)?;
            if sample.status == Status::Timeout && self.is_over() {
                say!("{}: not finished, the time is over", tool.name);
                break;
            }
            say!("{}", one_line(&sample));
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

    /// The same, where the processor time is watched that it gets.
    pub(crate) fn limit(&self, defined: Duration) -> Limit {
        Limit {
            time_max: self.time_max(defined),
            end: self.end,
        }
    }

    /// The time for what is not watched so.
    pub(crate) fn bounded(&self, defined: Duration) -> Duration {
        self.time_max(defined).min(self.left())
    }

    /// The time for what must be there before anything is measured: only a limit of all counts.
    pub(crate) fn bounded_before(&self, defined: Duration) -> Duration {
        defined.min(self.left())
    }

    /// The time that is left for everything.
    pub(crate) fn left(&self) -> Duration {
        self.end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    /// Whether nothing more is to be begun.
    pub(crate) fn is_over(&self) -> bool {
        self.left() < BEGIN_MIN
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
        let limit = self.limit(tool.time_max());
        let cost = measure::run(&tool.build, &places, limit)?;
        let bytes = bytes_of(&output)?;
        let mut figures = BTreeMap::new();
        let (status, message) = judge(tool, corpus, &places, (&cost, limit), &mut figures)?;
        if cost.end != End::Success || status != Status::Ok {
            // A script that was ended may have left a mount.
            clean::unmount_below(self.scratch.path());
        }
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

/// The end of one of `count` parts of the time until `end`.
pub(crate) fn part(end: Option<Instant>, count: usize) -> Option<Instant> {
    let now = Instant::now();
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    end.map(|end| now + end.saturating_duration_since(now) / count)
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
            say!("{}: {found}, {}", self.name, size(found.bytes));
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
