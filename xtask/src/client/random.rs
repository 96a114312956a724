//! Reads 4 KiB at a time of one file, at random places or one after the other, and tells how long a read takes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use anyhow::{Context, Result};
use durin_testkit::random::Random;

use crate::say::say;
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
    let places = file.metadata()?.len().div_ceil(READ as u64).max(1);
    let parts = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..readers)
            .map(|reader| {
                let file = &file;
                let mut random = Random::new(SEED + reader);
                let offsets = (0..count).map(move |_| random.below(places) * READ as u64);
                std::thread::Builder::new().spawn_scoped(scope, move || read(file, offsets))
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
    tell(parts)
}

/// `sequential FILE COUNT`: from the beginning.
pub(super) fn sequential(arguments: &[String]) -> Result<()> {
    let [path, count] = super::positional(arguments, "client sequential FILE COUNT")?;
    let file = File::open(&path).context(path)?;
    let reads = file
        .metadata()?
        .len()
        .div_ceil(READ as u64)
        .min(count.parse()?);
    tell(vec![read(
        &file,
        (0..reads).map(|index| index * READ as u64),
    )?])
}

fn tell(parts: Vec<Part>) -> Result<()> {
    let sum = parts.iter().fold(0_u64, |sum, part| sum ^ part.sum);
    let micros: Vec<f64> = parts.into_iter().flat_map(|part| part.micros).collect();
    say!("{} reads, {sum:x}", micros.len());
    super::percentiles(micros)
}

struct Part {
    micros: Vec<f64>,
    sum: u64,
}

/// Reads at these places.
fn read(file: &File, offsets: impl Iterator<Item = u64>) -> Result<Part> {
    let mut part = Part {
        micros: Vec::new(),
        sum: 0,
    };
    let mut buffer = [0; READ];
    for offset in offsets {
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
