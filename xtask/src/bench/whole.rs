//! Several suites, one after the other: what `--quick` and `--full` have in common.
//!
//! A suite that fails does not hold up the next. Where the time is bounded, a suite has its part of it, and what the one
//! before did not need; what does not fit is skipped by name.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::report;
use crate::say::say;

/// A suite, as it is run among others.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) run: fn(&[String]) -> Result<()>,
    /// Names of what is run, with the options that it is run with.
    pub(super) names: fn(&[String]) -> Result<Vec<String>>,
    /// Its options, which come before those of all.
    pub(super) options: &'static [&'static str],
    /// Its part of the time, in percent.
    pub(super) percent: u32,
}

impl Suite {
    /// Its options with `CORPUS` replaced.
    pub(super) fn arguments(&self, corpus: &str) -> Vec<String> {
        let options = self.options.iter();
        options.map(|text| text.replace("CORPUS", corpus)).collect()
    }
}

/// Those of the arguments that all suites get, too; `names` are as far as the equals sign.
pub(super) fn handed_on<'a>(
    arguments: &'a [String],
    names: &'a [&str],
) -> impl Iterator<Item = String> + 'a {
    let is_handed_on = |argument: &&String| names.iter().any(|name| argument.starts_with(name));
    arguments.iter().filter(is_handed_on).cloned()
}

/// A suite with its options.
pub(super) type Job = (&'static Suite, Vec<String>);

/// Runs suites, until `end` if there is one; gives the names of those that failed.
pub(super) fn all(
    jobs: Vec<Job>,
    shared: &[String],
    start: Instant,
    end: Option<Instant>,
) -> Vec<&'static str> {
    let begin = Instant::now();
    let suites: Vec<&Suite> = jobs.iter().map(|(suite, _)| *suite).collect();
    let ends = end.map(|end| ends(&suites, begin, end));
    let mut failed = Vec::new();
    for (place, (suite, mut arguments)) in jobs.into_iter().enumerate() {
        let (name, after) = (suite.name, report::seconds(start.elapsed()));
        match ends.as_ref().and_then(|ends| ends.get(place)) {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                say!(
                    "\n== {name} (after {after}, for at most {})",
                    report::seconds(left)
                );
                arguments.push(format!("--seconds-all={}", left.as_secs()));
            }
            None => say!("\n== {name} (after {after})"),
        }
        arguments.extend_from_slice(shared);
        if let Err(error) = (suite.run)(&arguments) {
            say!("{name}: {error:#}");
            failed.push(name);
        }
    }
    failed
}

/// When each suite must have ended.
pub(super) fn ends(suites: &[&Suite], begin: Instant, end: Instant) -> Vec<Instant> {
    let time = end.saturating_duration_since(begin);
    let whole: u32 = suites.iter().map(|suite| suite.percent).sum();
    let mut percent = 0;
    let until = suites.iter().map(|suite| {
        percent += suite.percent;
        begin + time * percent / whole.max(1)
    });
    until.collect()
}

/// Says what would be run.
pub(super) fn plan(jobs: &[Job], seconds_max: &str, time: Option<Duration>) -> Result<()> {
    let suites: Vec<&Suite> = jobs.iter().map(|(suite, _)| *suite).collect();
    let begin = Instant::now();
    let ends = time.map(|time| ends(&suites, begin, begin + time));
    let mut before = begin;
    for (place, (suite, arguments)) in jobs.iter().enumerate() {
        let until = ends.as_ref().and_then(|ends| ends.get(place));
        let limit = crate::workspace::option(arguments, "seconds-max").unwrap_or(seconds_max);
        match until {
            Some(until) => say!(
                "\n{}: at most {}, a run {limit} s",
                suite.name,
                report::seconds(*until - before)
            ),
            None => say!("\n{}", suite.name),
        }
        for name in (suite.names)(arguments)? {
            say!("  {name}");
        }
        before = until.copied().unwrap_or(before);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{full, quick};

    #[test]
    fn suites_have_names_of_their_own_and_part_the_time() {
        for suites in [&quick::SUITES[..], &full::SUITES[..]] {
            for (index, suite) in suites.iter().enumerate() {
                assert!(suites[..index].iter().all(|other| other.name != suite.name));
                assert!(suite.options[0].starts_with("--suite="));
                let names = (suite.names)(&suite.arguments(quick::CORPUS));
                assert!(names.is_ok_and(|names| !names.is_empty()), "{}", suite.name);
            }
            let suites: Vec<&Suite> = suites.iter().collect();
            let begin = Instant::now();
            let end = begin + Duration::from_secs(100);
            let until = ends(&suites, begin, end);
            assert!(until.is_sorted() && until.last() == Some(&end));
            // Nothing is left, but nothing goes wrong either.
            let over = ends(&suites, end, begin);
            assert!(over.iter().all(|until| *until == end));
        }
    }
}
