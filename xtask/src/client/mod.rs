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
        .context("client open, random, sequential or passthrough")?;
    match which.as_str() {
        "open" => open::run(rest),
        "random" => random::run(rest),
        "sequential" => random::sequential(rest),
        "passthrough" => passthrough::run(rest),
        _ => bail!("no client {which}: open, random, sequential or passthrough"),
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

/// Leaves percentiles of times where the suite looks for them, if it does.
fn percentiles(mut micros: Vec<f64>) -> Result<()> {
    let Some(path) = std::env::var_os(FIGURES) else {
        return Ok(());
    };
    micros.sort_by(f64::total_cmp);
    let names = [
        ("p50_us", 500),
        ("p90_us", 900),
        ("p99_us", 990),
        ("p999_us", 999),
    ];
    let lines =
        names.map(|(name, per_mille)| format!("{name} {:.1}\n", percentile(&micros, per_mille)));
    std::fs::write(path, lines.concat()).context("figures")
}

fn percentile(sorted: &[f64], per_mille: usize) -> f64 {
    let at = (sorted.len() * per_mille).div_ceil(1000).max(1) - 1;
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_many() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 500), 50.0);
        assert_eq!(percentile(&hundred, 999), 100.0);
        assert_eq!(percentile(&[3.0], 990), 3.0);
        assert_eq!(percentile(&[], 990), 0.0);
    }
}
