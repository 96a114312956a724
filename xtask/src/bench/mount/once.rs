//! One job over one system, once: run, judged, and recorded.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::definition::{Job, System};
use super::run::{Outcome, Ready};
use super::subject::Measured;
use super::{JOB_TIME_MAX, Plan, SUITE, shell};
use crate::bench::record::{Key, Sample, Status};
use crate::bench::session::{Session, now};
use crate::say::say;

/// The name in records: that of the system and that of the job.
pub(super) fn tool(system: &System, job: &Job) -> String {
    format!("{}:{}", system.name, job.name)
}

pub(super) fn key<'a>(
    tool: &'a str,
    one: &'a Ready<'_>,
    job: &'a Job,
    measured: &'a Measured,
) -> Key<'a> {
    Key {
        suite: SUITE,
        corpus: &measured.corpus.name,
        tool,
        version: &one.version,
        command: &job.run,
        threads: 1,
    }
}

/// What became of a job.
pub(super) enum Done {
    Right,
    Failed,
    TimeOver,
}

/// Runs a job once, unless that is recorded. What the directory itself printed is what all others must print.
pub(super) fn once(
    session: &mut Session,
    plan: &Plan,
    measured: &Measured,
    one: &Ready<'_>,
    job: &Job,
    round: usize,
    expected: &mut BTreeMap<String, Vec<Vec<u8>>>,
) -> Result<Done> {
    let tool = tool(one.system, job);
    let key = key(&tool, one, job, measured);
    if session.record.count(&key) > round {
        return Ok(Done::Right);
    }
    if session.is_over() {
        return Ok(Done::TimeOver);
    }
    if let Some(like) = &job.like
        && was_late(session, measured, one, like)
    {
        let outcome = Outcome::default();
        let told = (Status::Timeout, format!("not run: {like} took too long"));
        let sample = sample(session, measured, one, job, outcome, told);
        say!("{}", one_line(&sample));
        session.record.append(sample)?;
        return Ok(Done::Right);
    }
    if job.compares && !expected.contains_key(&job.name) {
        let variables = one.variables.with("POINT", &one.source);
        let taken = shell::run(&job.run, &variables, session.bounded(JOB_TIME_MAX))?;
        expected.insert(job.name.clone(), shell::sorted_lines(taken.stdout)?);
    }
    let turn = session.turn()?;
    let idle = plan.idle.filter(|_| job.idle && round == 0);
    let outcome = one.run(job, idle, session.bounded(JOB_TIME_MAX));
    drop(turn);
    if session.is_over() && !outcome.as_ref().is_ok_and(|done| done.failure.is_none()) {
        return Ok(Done::TimeOver);
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            say!("{} {tool}: failed, {error:#}", measured.corpus.name);
            return Ok(Done::Failed);
        }
    };
    let is_same = outcome
        .printed
        .as_ref()
        .is_none_or(|printed| expected.get(&job.name) == Some(printed));
    let (status, message) = match &outcome.failure {
        Some(failure) if outcome.is_late => (Status::Timeout, failure.clone()),
        Some(failure) => (Status::Failed, failure.clone()),
        None if is_same => (Status::Ok, String::new()),
        None => (Status::Wrong, "it prints something else".to_owned()),
    };
    let sample = sample(session, measured, one, job, outcome, (status, message));
    say!("{}", one_line(&sample));
    session.record.append(sample)?;
    Ok(match status {
        Status::Ok | Status::Timeout => Done::Right,
        Status::Failed | Status::Wrong => Done::Failed,
    })
}

/// Whether a system took too long for a job the last time.
fn was_late(session: &Session, measured: &Measured, one: &Ready<'_>, job: &str) -> bool {
    let tool = format!("{}:{job}", one.system.name);
    let is_same = |sample: &&Sample| {
        sample.suite == SUITE
            && sample.corpus == measured.corpus.name
            && sample.tool == tool
            && sample.version == one.version
    };
    let last = session.record.samples().iter().rev().find(is_same);
    last.is_some_and(|sample| sample.status == Status::Timeout)
}

fn sample(
    session: &Session,
    measured: &Measured,
    one: &Ready<'_>,
    job: &Job,
    outcome: Outcome,
    (status, message): (Status, String),
) -> Sample {
    Sample {
        suite: SUITE.to_owned(),
        corpus: measured.corpus.name.clone(),
        corpus_files: measured.corpus.files,
        corpus_bytes: measured.corpus.bytes,
        tool: tool(one.system, job),
        version: one.version.clone(),
        command: job.run.clone(),
        threads: 1,
        status,
        bytes: one.image_bytes,
        wall_s: outcome.wall.as_secs_f64(),
        user_s: outcome.user.as_secs_f64(),
        sys_s: outcome.sys.as_secs_f64(),
        peak_bytes: outcome.peak_bytes,
        time: now(),
        machine: session.machine.clone(),
        message,
        report: Value::Null,
        figures: outcome.figures,
    }
}

fn one_line(sample: &Sample) -> String {
    let figure = |name: &str| sample.figures.get(name).copied().unwrap_or(0.0);
    format!(
        "{} {}: {:.3} s wall, CPU {:.3} s client, {:.3} s driver, {:.3} s kernel threads, {} MiB: {} {}",
        sample.corpus,
        sample.tool,
        sample.wall_s,
        sample.cpu_s(),
        figure("driver_s"),
        figure("kernel_s"),
        sample.peak_bytes >> 20,
        sample.status.name(),
        sample.message,
    )
}
