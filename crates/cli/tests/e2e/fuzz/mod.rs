//! Real images damaged at random, behind checksums that are right, and everything asked of them.
//!
//! `cargo xtask fuzz --seconds=N --seed=N` runs it for longer; the seed is printed, and gives the same images again.
//! The work is done by a child process, so that a stack overflow or an allocation out of all proportion is seen too.

mod damage;
mod seeds;
mod uses;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use durin_testkit::random::Random;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Child, programs, work_dir};
use seeds::Seed;

const TEST: &str = "fuzz::damaged_images_are_survived";
const SECONDS: u64 = 3;
const SECONDS_CI: u64 = 30;
/// The images of the formats come to some kilobytes; what is larger takes long and has nothing else in it.
const SEED_LEN_MAX: usize = 128 << 10;
/// All that a process may ask for: no single allocation is larger, whether it is touched or not.
const ADDRESS_BYTES_MAX: u64 = 2 << 30;
const RESIDENT_BYTES_MAX: u64 = 512 << 20;
/// No image may take longer, on a machine that does other work too.
const CASE_TIME_MAX: Duration = Duration::from_secs(20);
/// The programs themselves are asked about one in so many images: starting one takes as long as ten images.
const PROGRAMS_EVERY: u64 = 128;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// One damaged image: a function of the seed of the run and its number.
fn damaged(seeds: &[Seed], seed: u64, case: u64) -> (String, Vec<u8>, Random) {
    let mut random = Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ case);
    // Neighbours in the sequence of the generator begin alike.
    let mut random = Random::new(random.next());
    let pick = usize::try_from(random.below(seeds.len() as u64)).unwrap();
    let bytes = damage::damage(&seeds[pick], &mut random);
    (seeds[pick].name.clone(), bytes, random)
}

#[test]
#[expect(clippy::print_stdout, reason = "the seed repeats a run")]
fn damaged_images_are_survived() {
    let vectors = require!(Vectors::find());
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let default = if is_ci { SECONDS_CI } else { SECONDS };
    let time = Duration::from_secs(number("DURIN_FUZZ_SECONDS").unwrap_or(default));
    let seed = number("DURIN_FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let work = work_dir();
    let state = work.path().join("case");
    let child = Child::of(TEST)
        .env("DURIN_FUZZ_SEED", &seed.to_string())
        .env("DURIN_FUZZ_STATE", &state.display().to_string())
        .time_max(time * 2 + Duration::from_secs(300))
        .memory_max(RESIDENT_BYTES_MAX);
    let Some(outcome) = child.run(|| sweep(&vectors, seed, time)) else {
        return;
    };
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let count = said.lines().find(|line| line.starts_with("fuzz:"));
    if let (Some(0), Some(count)) = (outcome.code, count) {
        println!("{count}");
        return;
    }
    let case = std::fs::read(&state).unwrap_or_default();
    let case = case
        .first_chunk()
        .map_or(0, |case| u64::from_le_bytes(*case));
    let (name, bytes, _) = damaged(&seeds::load(&vectors, SEED_LEN_MAX), seed, case);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{seed}-{case}.dwarfs"));
    std::fs::write(&kept, bytes).unwrap();
    let kept = kept.display();
    panic!("seed {seed}, image {case} (of {name}), kept as {kept}: {outcome}\n{said}");
}

/// What the child does: image after image until the time is up, the number of each noted before it is tried.
#[expect(
    clippy::print_stdout,
    reason = "the count is the only sign that work was done"
)]
fn sweep(vectors: &Vectors, seed: u64, time: Duration) {
    let address = getrlimit(Resource::As);
    let limit = Rlimit {
        current: Some(ADDRESS_BYTES_MAX),
        ..address
    };
    setrlimit(Resource::As, limit).unwrap();
    let seeds = seeds::load(vectors, SEED_LEN_MAX);
    let programs = programs();
    let work = work_dir();
    let state = std::env::var_os("DURIN_FUZZ_STATE").unwrap();
    let state = std::fs::File::create(state).unwrap();
    // One image of a run that has failed, again.
    let only = number("DURIN_FUZZ_CASE");
    let start = Instant::now();
    let mut case = only.unwrap_or(0);
    let mut opened = 0_u64;
    while start.elapsed() < time {
        state.write_all_at(&case.to_le_bytes(), 0).unwrap();
        let (name, bytes, mut random) = damaged(&seeds, seed, case);
        let begun = Instant::now();
        let what = format!("seed {seed}, image {case} (of {name})");
        let used = uses::use_all(&what, &bytes, &mut random, work.path());
        opened += u64::from(used.is_open);
        if used.is_small && case.is_multiple_of(PROGRAMS_EVERY) {
            uses::run_program(&what, &bytes, &programs, &mut random, work.path());
        }
        let needed = begun.elapsed();
        assert!(needed < CASE_TIME_MAX, "{what}: {needed:?}");
        case += 1;
        if only.is_some() {
            break;
        }
    }
    println!("fuzz: seed {seed}: {case} images, of which {opened} could be opened");
    assert!(only.is_some() || opened > 0, "every image was refused");
}
