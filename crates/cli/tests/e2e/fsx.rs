//! Random reads of a mounted image and of its source, in every way that a program can read: what differs is a fault.
//!
//! `cargo xtask fsx --seconds=N --seed=N` runs it for longer; the seed is printed, and gives the same operations again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use durin_source::OpenMode;
use durin_testkit::io_uring::Offer;
use durin_testkit::mount::{self, Mount};
use durin_testkit::random::Random;
use durin_testkit::require;
use rustix::fs::{OFlags, SeekFrom};

use crate::support::{programs, subdir, work_dir};

const THREADS: u64 = 4;
/// The longest read; larger than what the kernel asks for at once.
const READ_MAX: u64 = 3 << 20;
const SECONDS: u64 = 3;
const SECONDS_CI: u64 = 60;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Text, random bytes, zeros, holes, repetitions and small files.
fn make_tree(top: &Path) -> Vec<PathBuf> {
    let mut random = Random::new(99);
    let mut names = Vec::new();
    let mut add = |name: String, content: Vec<u8>| {
        fs::write(top.join(&name), content).unwrap();
        names.push(PathBuf::from(name));
    };
    add("text".to_owned(), random.text(5_000_000));
    add("random".to_owned(), random.bytes(5_000_000));
    add("zeros".to_owned(), vec![0; 2_000_000]);
    let piece = random.bytes(70_000);
    add("repeats".to_owned(), piece.repeat(40));
    for number in 0..40 {
        let len = usize::try_from(random.below(20_000)).unwrap();
        add(format!("small{number}"), random.text(len));
    }
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.set_len(20 << 20).unwrap();
    for place in [0, 4_000_000, 4_100_000, 13_000_001] {
        sparse.write_all_at(&random.text(100_000), place).unwrap();
    }
    names.push("sparse".into());
    names
}

/// One file on both sides.
struct Pair {
    name: String,
    source: File,
    mounted: PathBuf,
    len: u64,
}

impl Pair {
    fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = i32::try_from(flags.bits()).unwrap();
        fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.mounted)
    }

    fn expected(&self, offset: u64, len: usize) -> Vec<u8> {
        read_at(&self.source, offset, len).unwrap()
    }
}

fn read_at(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match file.read_at(&mut bytes[done..], offset + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// Reads through sendfile into a file of no name.
fn send(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let out = tempfile::tempfile()?;
    let (mut at, mut left) = (offset, len);
    while left > 0 {
        match rustix::fs::sendfile(&out, file, Some(&mut at), left)? {
            0 => break,
            sent => left -= sent,
        }
    }
    read_at(&out, 0, len)
}

/// Reads through a mapping.
fn map(path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let source = durin_source::open(path, OpenMode::Mmap)?;
    let end = source.len().min(offset + len as u64);
    let range = offset.min(end)..end;
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    Ok(source
        .mapping()
        .map_or_else(Vec::new, |bytes| bytes[range].to_vec()))
}

/// Does one operation; says what differs.
fn step(pair: &Pair, random: &mut Random) -> Result<(), String> {
    let offset = random.below(pair.len + 5000);
    let size = random.below(22);
    let len = random.below(1 << size).min(READ_MAX);
    let len = usize::try_from(len).unwrap();
    let way = random.below(6);
    let fault = |error: io::Error| format!("{}: way {way}: {error}", pair.name);
    let found = match way {
        0 | 1 => read_at(&pair.open(OFlags::empty()).map_err(fault)?, offset, len),
        2 => read_at(&pair.open(OFlags::DIRECT).map_err(fault)?, offset, len),
        3 => send(&pair.open(OFlags::empty()).map_err(fault)?, offset, len),
        4 if pair.len > 0 => map(&pair.mounted, offset, len),
        _ => return seek(pair, offset),
    };
    if found.map_err(fault)? == pair.expected(offset, len) {
        return Ok(());
    }
    Err(format!(
        "{}: way {way}: {len} bytes at {offset} differ",
        pair.name
    ))
}

/// Data where we say there is a hole would be lost by copies; a hole that is not told only costs time.
fn seek(pair: &Pair, offset: u64) -> Result<(), String> {
    let file = pair
        .open(OFlags::empty())
        .map_err(|error| error.to_string())?;
    let found = rustix::fs::seek(&file, SeekFrom::Data(offset));
    let end = found.unwrap_or(pair.len).min(pair.len);
    if offset < end {
        let len = usize::try_from(end - offset).unwrap();
        if pair.expected(offset, len).iter().any(|byte| *byte != 0) {
            return Err(format!(
                "{}: data in the hole from {offset} to {end}",
                pair.name
            ));
        }
    }
    match rustix::fs::seek(&file, SeekFrom::Hole(offset)) {
        Ok(hole) if offset < pair.len && hole >= offset && hole <= pair.len => Ok(()),
        Err(_) if offset >= pair.len => Ok(()),
        other => Err(format!("{}: hole from {offset}: {other:?}", pair.name)),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the seed repeats a run")]
fn random_reads_equal_the_source() {
    require!(mount::available());
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let default = if is_ci { SECONDS_CI } else { SECONDS };
    let time = Duration::from_secs(number("DURIN_FSX_SECONDS").unwrap_or(default));
    let seed = number("DURIN_FSX_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("fsx: seed {seed} for {} s", time.as_secs());
    let work = work_dir();
    let tree = subdir(&work, "tree");
    let names = make_tree(&tree);
    let programs = programs();
    let image = work.path().join("image");
    // Blocks that are smaller than most reads, and a cache that holds few of them.
    programs
        .build(&tree, &image)
        .args(["-l3", "-S18"])
        .succeed();
    let _offer = Offer::new();
    let ways = [
        &["cachesize=4m,noio_uring"][..],
        &["cachesize=4m,io_uring"],
        &["no_cache_files"],
    ];
    for options in ways {
        let mounted = Mount::new(&programs.path("dwarfs"), &image, options);
        let pairs: Vec<Pair> = names
            .iter()
            .map(|name| {
                let source = File::open(tree.join(name)).unwrap();
                Pair {
                    name: name.display().to_string(),
                    len: source.metadata().unwrap().len(),
                    source,
                    mounted: mounted.path().join(name),
                }
            })
            .collect();
        let start = Instant::now();
        let run = |thread: u64| -> Result<u64, String> {
            let mut random = Random::new(seed + thread);
            let mut count = 0;
            while start.elapsed() < time / 3 {
                let pick = usize::try_from(random.below(pairs.len() as u64)).unwrap();
                step(&pairs[pick], &mut random)
                    .map_err(|why| format!("seed {seed}, thread {thread}, step {count}: {why}"))?;
                count += 1;
            }
            Ok(count)
        };
        let run = &run;
        let counts: Vec<Result<u64, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || run(n))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let total: u64 = counts.into_iter().map(Result::unwrap).sum();
        println!("fsx: {total} operations with {options:?}");
        assert!(total > 0);
    }
}
