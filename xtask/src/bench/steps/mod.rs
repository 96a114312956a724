//! `--suite=steps`: what several systems take for the same work in several steps, such as writing and reading back.
//!
//! A system is set up, takes its steps with empty caches before each (unless the table is warm), and shows what it then has, which is compared with
//! the source; only then do its figures count. Processor time is that of all processes of a step and, named apart, of the
//! kernel's threads for file systems meanwhile (somebody else's can be among them).

mod definition;
mod input;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::roundtrip::remove_tree;
use serde_json::Value;

use self::definition::{Extent, System, Table};
pub(super) use self::table::sections;
use super::measure::{self, Cost, End, Limit, Places};
use super::mount;
use super::mount::stand::{KernelThreads, drop_caches};
use super::record::{Key, Sample, Status, medians};
use super::session::{Corpus, OPTIONS, Session, now};
use super::table::Format;
use super::{clean, verify};
use crate::say::say;
use crate::workspace::{check_options, option};

pub(super) const SUITE: &str = "steps";
/// Differences that are shown and recorded of a wrong result.
const DIFFERENCES_SHOWN: usize = 5;
/// How often the corpus was in what was written and read: a figure of each sample.
pub(super) const VOLUME: &str = "volume";
/// What is not measured must end, too.
const OTHER_TIME_MAX: Duration = Duration::from_secs(3600);

pub(super) fn run(arguments: &[String]) -> Result<()> {
    check_options(
        arguments,
        &[
            OPTIONS.as_slice(),
            &["tables", "systems", "quick", "images"],
        ]
        .concat(),
    )?;
    let images = mount::images(arguments);
    let mut session = Session::open(arguments)?;
    let chosen = option(arguments, "tables").unwrap_or("all");
    let systems = option(arguments, "systems").unwrap_or("all");
    let mut tables = definition::read(extent(arguments))?;
    tables.retain(|table| is_named(&table.name, chosen));
    ensure!(!tables.is_empty(), "no table {chosen} in steps.toml");
    let mut failures = 0;
    if !session.is_tables_only {
        let end = session.end();
        for (count, table) in (1..=tables.len()).rev().zip(&tables) {
            session.share(end, count);
            let corpus = format!(
                "--corpus={}",
                option(arguments, "corpus").unwrap_or(&table.corpus)
            );
            for mut corpus in session.corpora(&[corpus])? {
                failures += measure_table(&mut session, table, systems, &mut corpus, &images)?;
            }
        }
    }
    let format = Format::parse(option(arguments, "format").unwrap_or("text"))?;
    for (_, tables) in sections(&medians(session.record.samples(), SUITE))? {
        for table in tables {
            say!("{}", table.render(format));
        }
    }
    ensure!(
        failures == 0,
        "{failures} systems failed or gave a wrong result"
    );
    Ok(())
}

/// Tables of full runs, with their corpora and how often these are in what is written and read.
pub(super) fn inputs() -> Result<Vec<(String, String, u32)>> {
    let tables = definition::read(Extent::Full)?.into_iter();
    Ok(tables
        .map(|table| (table.name, table.corpus, table.volume))
        .collect())
}

/// Names of what `run` runs with these options.
pub(super) fn names(arguments: &[String]) -> Result<Vec<String>> {
    let names = definition::read(extent(arguments))?
        .into_iter()
        .map(|table| {
            let systems: Vec<String> = table.systems.into_iter().map(|one| one.name).collect();
            format!("{}: {}", table.name, systems.join(", "))
        });
    Ok(names.collect())
}

fn extent(arguments: &[String]) -> Extent {
    if arguments.iter().any(|argument| argument == "--quick") {
        Extent::Quick
    } else {
        Extent::Full
    }
}

fn is_named(name: &str, names: &str) -> bool {
    names
        .split(',')
        .any(|named| named == "all" || named == name)
}

/// Runs all systems of a table; gives how many failed.
fn measure_table(
    session: &mut Session,
    table: &Table,
    systems: &str,
    corpus: &mut Corpus,
    images: &Path,
) -> Result<usize> {
    let work = session.scratch.path().join("steps");
    std::fs::create_dir_all(&work)?;
    let mut failures = 0;
    let mut is_prepared = false;
    for system in table
        .systems
        .iter()
        .filter(|system| is_named(&system.name, systems))
    {
        if let Some(why) = system.missing() {
            say!("{} {}: skipped, {why}", table.name, system.name);
            continue;
        }
        let mut one = One::new(session, table, system, corpus, &work);
        for _ in one.recorded(session)..session.runs {
            if session.is_over() {
                say!("{} {}: skipped, the time is over", table.name, system.name);
                break;
            }
            corpus.read()?;
            if let Some(prepare) = table.prepare.as_ref().filter(|_| !is_prepared) {
                let make = || one.must(session, corpus, prepare).context("prepare");
                let made = input::ready(table, corpus, prepare, &work, images, make);
                if made.is_err() && session.is_over() {
                    say!("{}: not prepared, the time is over", table.name);
                    break;
                }
                made?;
                is_prepared = true;
            }
            let turn = session.turn()?;
            let samples = one.measure(session, corpus);
            one.clean(session, corpus)?;
            drop(turn);
            let is_whole = |samples: &Vec<Sample>| samples.iter().all(|s| s.status == Status::Ok);
            if session.is_over() && !samples.as_ref().is_ok_and(is_whole) {
                let name = &system.name;
                say!("{} {name}: not finished, the time is over", table.name);
                break;
            }
            one.is_compared = table.keeps_input;
            let mut is_right = true;
            for sample in samples? {
                say!("{}", one_line(&sample));
                is_right &= matches!(sample.status, Status::Ok | Status::Timeout);
                session.record.append(sample)?;
            }
            if !is_right {
                failures += 1;
                break;
            }
        }
    }
    corpus.forget();
    input::let_go(&work)?;
    clean::remove(&work)?;
    Ok(failures)
}

/// One system of one table.
struct One<'a> {
    table: &'a Table,
    system: &'a System,
    corpus: String,
    version: String,
    work: &'a Path,
    output: PathBuf,
    target: PathBuf,
    threads: usize,
    /// Whether what it shows is known to be right.
    is_compared: bool,
}

impl<'a> One<'a> {
    fn new(
        session: &Session,
        table: &'a Table,
        system: &'a System,
        corpus: &Corpus,
        work: &'a Path,
    ) -> Self {
        let mut one = Self {
            table,
            system,
            corpus: corpus.name.clone(),
            version: session.commit.clone(),
            work,
            output: work.join("output"),
            target: work.join("target"),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            is_compared: false,
        };
        if !system.is_ours {
            one.version = measure::version(&system.version, &one.places(session, corpus));
        }
        one
    }

    fn places<'b>(&'b self, session: &'b Session, corpus: &'b Corpus) -> Places<'b> {
        Places {
            source: &corpus.dir,
            output: &self.output,
            target: &self.target,
            programs: &session.programs,
            threads: self.threads,
            work: self.work,
        }
    }

    fn tool(&self, step: &str) -> String {
        format!("{}/{}/{step}", self.table.name, self.system.name)
    }

    /// How often all steps are recorded.
    fn recorded(&self, session: &Session) -> usize {
        let counts = self
            .table
            .steps
            .iter()
            .zip(&self.system.run)
            .map(|([step, _], command)| {
                session.record.count(&Key {
                    suite: SUITE,
                    corpus: &self.corpus,
                    tool: &self.tool(step),
                    version: &self.version,
                    command,
                    threads: self.threads,
                })
            });
        counts.min().unwrap_or(0)
    }

    /// Runs what is not measured.
    fn must(&self, session: &Session, corpus: &Corpus, script: &str) -> Result<()> {
        let limit = session.limit(OTHER_TIME_MAX);
        let cost = measure::run(script, &self.places(session, corpus), limit)?;
        let name = &self.system.name;
        ensure!(cost.end != End::TimeLimit, "{name}: it takes too long");
        ensure!(cost.end == End::Success, "{name}: {}", cost.message);
        Ok(())
    }

    /// Takes all steps, and gives a sample for each once the result is known to be right.
    fn measure(&self, session: &Session, corpus: &Corpus) -> Result<Vec<Sample>> {
        std::fs::create_dir_all(&self.target)?;
        let mut samples = Vec::new();
        if let Some(setup) = &self.system.setup
            && let Err(error) = self.must(session, corpus, setup)
        {
            let mut failed = self.sample(session, corpus, 0);
            (failed.status, failed.message) = (Status::Failed, format!("setup: {error:#}"));
            return Ok(vec![failed]);
        }
        for (index, command) in self.system.run.iter().enumerate() {
            if !self.table.is_warm {
                drop_caches()?;
            }
            let mut sample = self.sample(session, corpus, index);
            let threads = KernelThreads::now();
            let limit = session.limit(self.system.time_max());
            let cost = measure::run(command, &self.places(session, corpus), limit)?;
            let threads = KernelThreads::now().since(&threads);
            fill(&mut sample, &cost, threads);
            let is_ok = sample.status == Status::Ok;
            samples.push(sample);
            if !is_ok {
                // What follows has nothing to work on, and is told as what became of this.
                return Ok(self.rest(session, corpus, samples));
            }
        }
        let bytes = self.bytes(session, corpus)?;
        let wrong = self.differences(session, corpus)?;
        for sample in &mut samples {
            sample.bytes = bytes;
            if let Some(wrong) = &wrong {
                (sample.status, sample.message) = (Status::Wrong, wrong.clone());
            }
        }
        Ok(samples)
    }

    fn rest(&self, session: &Session, corpus: &Corpus, mut samples: Vec<Sample>) -> Vec<Sample> {
        let status = samples.last().map_or(Status::Failed, |last| last.status);
        for index in samples.len()..self.system.run.len() {
            let mut sample = self.sample(session, corpus, index);
            (sample.status, sample.message) = (status, "an earlier step".to_owned());
            samples.push(sample);
        }
        samples
    }

    fn sample(&self, session: &Session, corpus: &Corpus, index: usize) -> Sample {
        let [step, _] = &self.table.steps[index];
        Sample {
            suite: SUITE.to_owned(),
            corpus: corpus.name.clone(),
            corpus_files: corpus.files,
            corpus_bytes: corpus.bytes,
            tool: self.tool(step),
            version: self.version.clone(),
            command: self.system.run[index].clone(),
            threads: self.threads,
            status: Status::Ok,
            bytes: 0,
            wall_s: 0.0,
            user_s: 0.0,
            sys_s: 0.0,
            peak_bytes: 0,
            time: now(),
            machine: session.machine.clone(),
            message: String::new(),
            report: Value::Null,
            figures: BTreeMap::from([(VOLUME.to_owned(), f64::from(self.table.volume))]),
        }
    }

    fn bytes(&self, session: &Session, corpus: &Corpus) -> Result<u64> {
        let text = measure::first_line(&self.system.size, &self.places(session, corpus));
        let context = || format!("{}: size: {text:?} is no number", self.system.name);
        text.trim().parse().with_context(context)
    }

    fn differences(&self, session: &Session, corpus: &Corpus) -> Result<Option<String>> {
        if self.is_compared {
            return Ok(None);
        }
        if let Some(show) = &self.system.show {
            self.must(session, corpus, show).context("show")?;
        }
        let tree = corpus.tree.as_ref().context("the corpus was not read")?;
        let shown = self.work.join(&self.system.shown);
        let differences = verify::differences(tree, &shown, self.system.keeps)?;
        let first = differences.len().min(DIFFERENCES_SHOWN);
        let message = || {
            format!(
                "{} differences: {}",
                differences.len(),
                differences[..first].join("; ")
            )
        };
        Ok((!differences.is_empty()).then(message))
    }

    /// Leaves nothing but what was prepared.
    fn clean(&self, session: &Session, corpus: &Corpus) -> Result<()> {
        if let Some(cleanup) = &self.system.cleanup {
            let limit = Limit {
                time_max: OTHER_TIME_MAX,
                end: None,
            };
            measure::run(cleanup, &self.places(session, corpus), limit)?;
        }
        // A step that was ended may have left more.
        clean::unmount_below(self.work);
        for entry in std::fs::read_dir(self.work)? {
            let entry = entry?;
            if entry.file_name() == input::NAME {
                continue;
            }
            if entry.file_type()?.is_dir() {
                remove_tree(&entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn fill(sample: &mut Sample, cost: &Cost, threads: Duration) {
    sample.status = match cost.end {
        End::Success => Status::Ok,
        End::Failure => Status::Failed,
        End::TimeLimit => Status::Timeout,
    };
    if sample.status == Status::Failed {
        sample.message.clone_from(&cost.message);
    }
    sample.wall_s = cost.wall.as_secs_f64();
    sample.user_s = cost.user.as_secs_f64();
    sample.sys_s = cost.sys.as_secs_f64();
    sample.peak_bytes = cost.peak_bytes;
    sample
        .figures
        .insert("kernel_s".to_owned(), threads.as_secs_f64());
}

fn one_line(sample: &Sample) -> String {
    format!(
        "{} {}: {:.2} s wall, {:.2} s CPU, {:.2} s kernel threads: {} {}",
        sample.corpus,
        sample.tool,
        sample.wall_s,
        sample.cpu_s(),
        sample.figures.get("kernel_s").copied().unwrap_or(0.0),
        sample.status.name(),
        sample.message,
    )
}
