//! `cargo xtask fsx`, `cycles` and `fuzz`: tests that are short in a test run, for as long as is asked.

use anyhow::{Context, Result};

use crate::workspace::{cargo, check_options, option, succeed};

/// `fsx [--seconds=3600] [--seed=N]`
pub(crate) fn fsx(arguments: &[String]) -> Result<()> {
    check_options(arguments, &["seconds", "seed"])?;
    let seconds = option(arguments, "seconds").unwrap_or("3600");
    let mut variables = vec![("DURIN_FSX_SECONDS", seconds)];
    variables.extend(option(arguments, "seed").map(|seed| ("DURIN_FSX_SEED", seed)));
    run("fast", "durin-cli", "e2e", "fsx::", &variables)
}

/// `fuzz [--seconds=3600] [--seed=N] [--image=N]`
pub(crate) fn fuzz(arguments: &[String]) -> Result<()> {
    check_options(arguments, &["seconds", "seed", "image"])?;
    anyhow::ensure!(
        option(arguments, "image").is_none() || option(arguments, "seed").is_some(),
        "--image is a number within the images of a --seed"
    );
    let seconds = option(arguments, "seconds").unwrap_or("3600");
    let mut variables = vec![("DURIN_FUZZ_SECONDS", seconds)];
    let rest = [("DURIN_FUZZ_SEED", "seed"), ("DURIN_FUZZ_CASE", "image")];
    variables.extend(
        rest.iter()
            .filter_map(|(variable, name)| Some((*variable, option(arguments, name)?))),
    );
    // A profile that looks for overflows, which the others wrap.
    run("dev", "durin-cli", "e2e", "fuzz::", &variables)
}

/// `cycles [--count=10000]`
pub(crate) fn cycles(arguments: &[String]) -> Result<()> {
    check_options(arguments, &["count"])?;
    let count = option(arguments, "count").unwrap_or("10000");
    let variables = [("DURIN_CYCLES", count)];
    run("fast", "durin-fuse", "cycles", "", &variables)?;
    run("fast", "durin-cli", "e2e", "cycles::", &variables)
}

fn run(
    profile: &str,
    package: &str,
    target: &str,
    tests: &str,
    variables: &[(&str, &str)],
) -> Result<()> {
    for (name, value) in variables {
        value
            .parse::<u64>()
            .with_context(|| format!("{name}: {value} is no number"))?;
    }
    let mut command = cargo(&[
        "test",
        "--locked",
        "--profile",
        profile,
        "--package",
        package,
    ]);
    command.args(["--test", target, "--", "--nocapture", tests]);
    succeed(command.envs(variables.iter().copied()))
}
