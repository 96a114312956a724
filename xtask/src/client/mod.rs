//! `cargo xtask client`: small programs that the benchmarks run over mounts, as processes of their own.

mod open;
mod passthrough;
mod random;

use anyhow::{Context, Result, bail};

/// Where a client leaves its figures: a line each, name and value.
const FIGURES: &str = "FIGURES";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (which, rest) = arguments
        .split_first()
        .context("client open, random or passthrough")?;
    match which.as_str() {
        "open" => open::run(rest),
        "random" => random::run(rest),
        "passthrough" => passthrough::run(rest),
        _ => bail!("no client {which}: open, random or passthrough"),
    }
}

/// The values of the arguments that are no options.
fn positional<const N: usize>(arguments: &[String], usage: &str) -> Result<[String; N]> {
    let values: Vec<String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .cloned()
        .collect();
    values.try_into().ok().with_context(|| usage.to_owned())
}
