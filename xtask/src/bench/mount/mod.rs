//! `--suite=mount`: what it takes to use a tree that is mounted, against other drivers, the kernel's file systems and the
//! plain directory.
//!
//! Systems take turns, job by job, so that a busy moment of the machine hits all alike. Of each run count the processor
//! time of the client, of the driver's process, and of the kernel threads that work for file systems (which can be
//! somebody else's, so compare runs), wall time, and memory.

mod definition;
mod elf;
mod files;
mod image;
mod once;
mod run;
mod shell;
pub(super) mod stand;
mod subject;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::definition::{Definitions, Extent, Job, Subject, System, check_names};
use self::once::{Done, key, once, tool};
use self::run::Ready;
use self::shell::Variables;
use self::subject::Measured;
pub(super) use self::table::labels;
use super::document;
use super::measure::{self, Places};
use super::record::{Median, medians};
use super::session::{Corpus, OPTIONS, Session, part};
use super::table::{Format, Table};
use crate::say::say;
use crate::workspace::{self, check_options, option};

pub(super) const SUITE: &str = "mount";
/// Large files, in bytes: the order asks for 1 GiB.
const FILE_MIB: u64 = 1024;
/// Bytes of all of them.
pub(super) const FILES_BYTES: u64 = (FILE_MIB << 20) * files::LARGE.len() as u64;
const FILE_MIB_QUICK: u64 = 16;
const JOB_TIME_MAX: Duration = Duration::from_secs(1800);
const BUILD_TIME_MAX: Duration = Duration::from_secs(4 * 3600);
/// What cannot be read once in this time is of no use as a mount.
const COMPARE_TIME_MAX: Duration = Duration::from_secs(3600);
/// How long a driver may take to let go of memory; quick runs do not wait for it.
const IDLE_S: u64 = 30;
const IDLE_S_QUICK: u64 = 0;

/// What the command line asks for.
struct Plan {
    definitions: Definitions,
    systems: String,
    jobs: String,
    extent: Extent,
    file_mib: u64,
    idle: Option<Duration>,
    images: PathBuf,
}

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let own = ["systems", "jobs", "quick", "file-mib", "idle", "images"];
    check_options(arguments, &[OPTIONS.as_slice(), &own].concat())?;
    let plan = Plan::parse(arguments)?;
    let mut session = Session::open(arguments)?;
    let mut failures = 0;
    if !session.is_tables_only {
        stand::adopt_orphans()?;
        let end = session.end();
        let all = subjects(&session, &plan, arguments)?;
        for (count, mut measured) in (1..=all.len()).rev().zip(all) {
            session.share(end, count);
            failures += measure(&mut session, &plan, &mut measured)?;
        }
    }
    let medians = medians(session.record.samples(), SUITE);
    let chosen = option(arguments, "corpus").filter(|_| session.is_tables_only);
    let tables = table::tables(&medians, &plan.definitions, chosen);
    if let Some(file) = option(arguments, "into") {
        let sections = vec![("mount".to_owned(), tables)];
        document::write(Path::new(file), &document::rendered(sections))?;
    } else {
        let format = Format::parse(option(arguments, "format").unwrap_or("text"))?;
        for table in tables {
            say!("{}", table.render(format));
        }
    }
    ensure!(
        failures == 0,
        "{failures} runs failed or gave a wrong result"
    );
    Ok(())
}

/// The tables of a record, by the names of their places in documents.
pub(super) fn sections(medians: &[Median<'_>]) -> Result<Vec<(String, Vec<Table>)>> {
    let tables = table::tables(medians, &Definitions::read()?, None);
    Ok(vec![("mount".to_owned(), tables)])
}

/// What some jobs cost, for a document that has no room for all.
pub(super) fn chosen(medians: &[Median<'_>], jobs: &[&str]) -> Result<Vec<Table>> {
    Ok(table::of_jobs(medians, &Definitions::read()?, jobs))
}

/// Processor time of a run: the client's, and that of what worked for it.
pub(super) fn cpu_s(median: &Median<'_>) -> f64 {
    median.cpu_s + table::behind_s(median)
}

impl Plan {
    fn parse(arguments: &[String]) -> Result<Self> {
        let is_quick = arguments.iter().any(|argument| argument == "--quick");
        let (extent, file_mib, idle_s) = if is_quick {
            (Extent::Quick, FILE_MIB_QUICK, IDLE_S_QUICK)
        } else {
            (Extent::Full, FILE_MIB, IDLE_S)
        };
        let number = |name, default: u64| option(arguments, name).map_or(Ok(default), str::parse);
        let plan = Self {
            definitions: Definitions::read()?,
            systems: option(arguments, "systems").unwrap_or("all").to_owned(),
            jobs: option(arguments, "jobs").unwrap_or("all").to_owned(),
            extent,
            file_mib: number("file-mib", file_mib)?,
            idle: Some(number("idle", idle_s)?)
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            images: images(arguments),
        };
        let known = &plan.definitions;
        check_names(
            &plan.systems,
            known.systems.iter().map(|system| &system.name),
        )?;
        check_names(&plan.jobs, known.jobs.iter().map(|job| &job.name))?;
        Ok(plan)
    }
}

/// Names of what `run` runs with these options: jobs, and the systems that they run over.
pub(super) fn names(arguments: &[String]) -> Result<Vec<String>> {
    let plan = Plan::parse(arguments)?;
    let subjects: &[Subject] = match option(arguments, "corpus") {
        Some("files") => &[Subject::File, Subject::Many],
        _ => &[Subject::Tree],
    };
    let names = subjects.iter().map(|subject| {
        let jobs = plan.definitions.jobs(*subject, &plan.jobs, plan.extent);
        let jobs: Vec<String> = jobs.into_iter().map(|job| job.name).collect();
        let systems = plan
            .definitions
            .systems(*subject, &plan.systems, plan.extent);
        let systems: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
        format!("{} over {}", jobs.join(", "), systems.join(", "))
    });
    Ok(names.collect())
}

/// Where images are built and kept.
pub(super) fn images(arguments: &[String]) -> PathBuf {
    let default = || workspace::target_dir().join("bench").join("images");
    option(arguments, "images").map_or_else(default, PathBuf::from)
}

/// The corpora of `--corpus`, of which `files` means the large files; without it our own source and those.
fn subjects(session: &Session, plan: &Plan, arguments: &[String]) -> Result<Vec<Measured>> {
    std::fs::create_dir_all(&plan.images)?;
    let list = option(arguments, "corpus").unwrap_or("own,files");
    let mut all = Vec::new();
    let mut add = |corpus: Corpus, subject| {
        let lists = session
            .scratch
            .path()
            .join(format!("lists-{}", corpus.name));
        all.push(Measured {
            corpus,
            subject,
            lists,
        });
    };
    for text in list.split(',') {
        if text == "files" {
            for corpus in files::large(&plan.images, plan.file_mib << 20)? {
                add(corpus, Subject::File);
            }
            for corpus in files::small(&plan.images)? {
                add(corpus, Subject::Many);
            }
        } else if text == "own" {
            let dir = workspace::root().join("crates");
            add(Corpus::new("own".to_owned(), dir), Subject::Tree);
        } else {
            let argument = [format!("--corpus={text}")];
            for corpus in session.corpora(&argument)? {
                add(corpus, Subject::Tree);
            }
        }
    }
    Ok(all)
}

/// Runs all jobs over all systems of one corpus; gives how many failed.
fn measure(session: &mut Session, plan: &Plan, measured: &mut Measured) -> Result<usize> {
    subject::prepare(&mut measured.corpus, &measured.lists)?;
    let mut jobs = plan
        .definitions
        .jobs(measured.subject, &plan.jobs, plan.extent);
    let variables = Variables::default().with("SOURCE", &measured.corpus.dir);
    jobs.retain(|job| has_list(job, &measured.lists) && job.applies(&variables));
    let systems = plan
        .definitions
        .systems(measured.subject, &plan.systems, plan.extent);
    // What is mounted without a job is of no use.
    let end = session.end();
    session.share(end, 2);
    let (ready, failures) = prepared(session, plan, measured, &systems, &jobs)?;
    session.share(end, 1);
    let mut tally = Tally {
        failures,
        ..Tally::default()
    };
    let mut later = Vec::new();
    for round in 0..session.runs {
        for (count, job) in (1..=jobs.len()).rev().zip(&jobs) {
            // Each job has its part of the time, and what is begun may go on.
            let until = part(end, count + jobs.len() * (session.runs - 1 - round));
            for one in &ready {
                if until.is_some_and(|until| until <= Instant::now()) {
                    later.push((one, job, round));
                } else {
                    tally.once(session, plan, measured, one, job, round)?;
                }
            }
        }
    }
    // The time that others have not needed.
    for (one, job, round) in later {
        tally.once(session, plan, measured, one, job, round)?;
    }
    for job in &jobs {
        let of_job = tally.left_out.iter().filter(|(name, _)| *name == job.name);
        let systems: Vec<&str> = of_job.map(|(_, system)| *system).collect();
        if !systems.is_empty() {
            let (corpus, systems) = (&measured.corpus.name, systems.join(", "));
            say!(
                "{corpus} {}: skipped, the time is over: {systems}",
                job.name
            );
        }
    }
    measured.corpus.forget();
    Ok(tally.failures)
}

/// What has become of jobs over one corpus.
#[derive(Default)]
struct Tally<'a> {
    failures: usize,
    /// Jobs and systems for which there was no time.
    left_out: Vec<(&'a str, &'a str)>,
    /// What jobs must print.
    expected: BTreeMap<String, Vec<Vec<u8>>>,
}

impl<'a> Tally<'a> {
    fn once(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        measured: &Measured,
        one: &'a Ready<'_>,
        job: &'a Job,
        round: usize,
    ) -> Result<()> {
        let expected = &mut self.expected;
        match once(session, plan, measured, one, job, round, expected)? {
            Done::Right => {}
            Done::Failed => self.failures += 1,
            Done::TimeOver => self
                .left_out
                .push((job.name.as_str(), one.system.name.as_str())),
        }
        Ok(())
    }
}

/// The systems that show what they should, and how many show something else.
fn prepared<'a>(
    session: &Session,
    plan: &Plan,
    measured: &Measured,
    systems: &[&'a System],
    jobs: &[Job],
) -> Result<(Vec<Ready<'a>>, usize)> {
    let name = &measured.corpus.name;
    let (mut ready, mut failures) = (Vec::new(), 0);
    for system in systems {
        if session.is_over() {
            say!("{name} {}: skipped, the time is over", system.name);
            continue;
        }
        let one = match prepare(session, plan, measured, system) {
            Ok(one) => one,
            Err(error) => {
                say!("{name} {}: skipped, {error:#}", system.name);
                continue;
            }
        };
        if is_recorded(session, &one, jobs, measured) {
            ready.push(one);
            continue;
        }
        let _turn = session.turn()?;
        match one.differences(measured, session.bounded(COMPARE_TIME_MAX)) {
            Ok(None) => ready.push(one),
            Ok(Some(why)) => {
                say!("{name} {}: wrong: {why}", system.name);
                failures += 1;
            }
            Err(_) if session.is_over() => {
                say!("{name} {}: skipped, the time is over", system.name);
            }
            Err(error) => say!("{name} {}: skipped, {error:#}", system.name),
        }
    }
    Ok((ready, failures))
}

fn has_list(job: &Job, lists: &Path) -> bool {
    let Some(list) = &job.list else { return true };
    let is_there = std::fs::metadata(lists.join(list)).is_ok_and(|data| data.len() > 0);
    if !is_there {
        say!("{}: skipped, the tree has no {list}", job.name);
    }
    is_there
}

/// Builds the image of a system and collects its variables.
fn prepare<'a>(
    session: &Session,
    plan: &Plan,
    measured: &Measured,
    system: &'a System,
) -> Result<Ready<'a>> {
    let point = session.scratch.path().join("mnt");
    std::fs::create_dir_all(&point)?;
    let figures_file = session.scratch.path().join("figures");
    let threads = std::thread::available_parallelism()?.to_string();
    let source = &measured.corpus.dir;
    let mut variables = Variables::default()
        .with("SOURCE", source)
        .with("POINT", &point)
        .with("LISTS", &measured.lists)
        .with("CLIENT", std::env::current_exe()?)
        .with("PROGRAMS", &session.programs)
        .with("THREADS", threads)
        .with("FIGURES", &figures_file);
    let mut image_bytes = 0;
    if let Some(image) = plan.definitions.image(system) {
        let _turn = session.turn()?;
        let path = image::ready(
            image,
            &measured.corpus,
            &plan.images,
            &variables,
            session.bounded_before(BUILD_TIME_MAX),
        )?;
        image_bytes = image::disk_bytes(&path);
        variables = variables.with("IMAGE", path);
    }
    let nowhere = Places {
        source,
        output: Path::new(""),
        target: Path::new(""),
        programs: &session.programs,
        threads: 1,
        work: Path::new(""),
    };
    let version = if system.is_ours {
        session.commit.clone()
    } else {
        measure::version(&system.version, &nowhere)
    };
    Ok(Ready {
        system,
        version,
        image_bytes,
        source: source.clone(),
        point,
        variables,
        figures_file,
    })
}

fn is_recorded(session: &Session, one: &Ready<'_>, jobs: &[Job], measured: &Measured) -> bool {
    jobs.iter().all(|job| {
        let tool = tool(one.system, job);
        session.record.count(&key(&tool, one, job, measured)) >= session.runs
    })
}
