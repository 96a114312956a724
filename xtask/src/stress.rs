//! `cargo xtask stress`: trees that take much memory, built in a control group that kills above a limit.
//!
//! Each image must have found the repetitions of its tree, and is unpacked and compared.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use durin_testkit::programs::Programs;
use durin_testkit::stress::{Case, Scale, Trial};

use crate::bench::definition::levels;
use crate::report::size;
use crate::say::say;
use crate::workspace;

/// One of each codec family.
const LEVELS: &str = "1,3,7";
/// Lower levels only look for equal files.
const SEARCH_LEVEL_MIN: u8 = 1;
const LIMIT_MIB: u64 = 512;
const KILL_MIB: u64 = 700;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(
        arguments,
        &[
            "case", "quick", "levels", "limit", "kill", "profile", "programs",
        ],
    )?;
    let option = |name| workspace::option(arguments, name);
    let scale = if arguments.iter().any(|argument| argument == "--quick") {
        Scale::Quick
    } else {
        Scale::Full
    };
    let number = |name, default| option(name).map_or(Ok(default), str::parse);
    let (limit_mib, kill_mib) = (number("limit", LIMIT_MIB)?, number("kill", KILL_MIB)?);
    let names = option("case").unwrap_or("million,sparse,near,images");
    let case_of = |name: &str| {
        let found = Case::ALL.into_iter().find(|case| case.name() == name);
        found.with_context(|| format!("unknown case {name}"))
    };
    let cases = names.split(',').map(case_of).collect::<Result<Vec<_>>>()?;
    let programs = match option("programs") {
        Some(dir) => PathBuf::from(dir),
        None => workspace::programs(option("profile").unwrap_or("release"))?,
    };
    let programs = Programs::in_dir(&programs);
    let scratch = workspace::scratch_dir()?;
    let mut failures = 0;
    for level in levels(option("levels").unwrap_or(LEVELS))? {
        for case in &cases {
            let trial = Trial {
                programs: &programs,
                work: scratch.path(),
                case: *case,
                scale,
                build_args: &[&format!("-l{level}")],
                finds_repetitions: level >= SEARCH_LEVEL_MIN,
                limit_mib,
                kill_mib,
            };
            failures += usize::from(!one(&trial, level)?);
        }
    }
    ensure!(failures == 0, "{failures} trials failed");
    Ok(())
}

/// Runs a trial and says how it went.
fn one(trial: &Trial<'_>, level: u8) -> Result<bool> {
    let report = trial.run()?;
    let watch = match &report.without_group {
        None => "control group".to_owned(),
        Some(why) => format!("sampled: {why}"),
    };
    say!(
        "{} level {level}: {} in an image of {}, peak {} MiB of {} (killed above {}, {watch}), {:.0} s wall, {:.0} s CPU",
        trial.case.name(),
        size(report.made.data_bytes),
        size(report.image_bytes),
        report.build.peak_bytes >> 20,
        trial.limit_mib,
        trial.kill_mib,
        report.build.wall.as_secs_f64(),
        report.build.cpu.as_secs_f64(),
    );
    for problem in &report.problems {
        say!("  {problem}");
    }
    Ok(report.problems.is_empty())
}
