//! Reads 4 KiB at random places of one file, and tells how long a read takes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anyhow::{Context, Result};
use durin_testkit::random::Random;

use crate::workspace::option;

const READ: usize = 4096;
const SEED: u64 = 1;

/// `random FILE COUNT [--readers=N]`: each reader does its part.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let usage = "client random FILE COUNT [--readers=N]";
    let [path, count] = super::positional(arguments, usage)?;
    let readers: u64 = option(arguments, "readers").unwrap_or("1").parse()?;
    let count = count.parse::<u64>()? / readers.max(1);
    let file = File::open(&path).context(path)?;
    // As fio does for random reads: no page more than is asked for.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
    let parts = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..readers)
            .map(|reader| {
                let file = &file;
                std::thread::Builder::new().spawn_scoped(scope, move || read(file, count, reader))
            })
            .collect();
        readers
            .into_iter()
            .map(|reader| {
                reader?
                    .join()
                    .map_err(|_| anyhow::anyhow!("a reader died"))?
            })
            .collect::<Result<Vec<_>>>()
    })?;
    let sum = parts.iter().fold(0_u64, |sum, part| sum ^ part.sum);
    let mut micros: Vec<f64> = parts.into_iter().flat_map(|part| part.micros).collect();
    micros.sort_by(f64::total_cmp);
    println!("{} reads, {sum:x}", micros.len());
    if let Some(path) = std::env::var_os(super::FIGURES) {
        let text = format!(
            "p50_us {:.1}\np99_us {:.1}\n",
            percentile(&micros, 50),
            percentile(&micros, 99)
        );
        std::fs::write(path, text)?;
    }
    Ok(())
}

struct Part {
    micros: Vec<f64>,
    sum: u64,
}

fn read(file: &File, count: u64, reader: u64) -> Result<Part> {
    let places = file.metadata()?.len().div_ceil(READ as u64).max(1);
    let mut random = Random::new(SEED + reader);
    let mut part = Part {
        micros: Vec::new(),
        sum: 0,
    };
    let mut buffer = [0; READ];
    for _ in 0..count {
        let offset = random.below(places) * READ as u64;
        let start = Instant::now();
        let len = file.read_at(&mut buffer, offset)?;
        part.micros.push(start.elapsed().as_secs_f64() * 1e6);
        for word in buffer[..len].chunks_exact(512) {
            let first = word.first_chunk::<8>().copied().unwrap_or_default();
            part.sum = part.sum.rotate_left(7) ^ u64::from_le_bytes(first);
        }
    }
    Ok(part)
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_many() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 50), 50.0);
        assert_eq!(percentile(&hundred, 99), 99.0);
        assert_eq!(percentile(&[3.0], 99), 3.0);
        assert_eq!(percentile(&[], 99), 0.0);
    }
}
