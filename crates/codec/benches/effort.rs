//! What an encoder setting costs and saves on real blocks: `cargo xtask codecs DIR [OPTIONS] SPEC...`.
//!
//! The files below DIR are put one after the other in the order of their paths, equal ones once, and cut into blocks as
//! an image does. Some blocks, spread evenly, are compressed and decompressed with each specification in turn, so that
//! what else the machine does falls on all of them. A specification may start with `BITS/`, its own block size:
//! `26/lzma:level=9`. It gets the same bytes then, in larger or smaller blocks.
//!
//! Times are processor seconds of the thread. Sizes repeat exactly.

#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a table for the terminal, of rounded figures"
)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use durin_codec::{Decoder, Spec, encode_section};
use durin_format::section::CompressionType;
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
codecs DIR [OPTIONS] [BITS/]SPEC...

  --bits=24      log2 of the block size of specifications without one, and of the pieces that are taken
  --pieces=4     how many pieces, spread evenly over all data
  --rounds=1     how often each piece is compressed; the least time counts
  --no-decode    do not measure decompression
";

struct Options {
    dir: PathBuf,
    bits: u32,
    pieces: usize,
    rounds: usize,
    decodes: bool,
    candidates: Vec<Candidate>,
}

struct Candidate {
    text: String,
    bits: u32,
    spec: Spec,
    stored: usize,
    payload: u64,
    encode_seconds: f64,
    decode_seconds: f64,
}

impl Candidate {
    fn add(&mut self, cost: Option<Cost>) {
        let Some(cost) = cost else { return };
        self.stored += cost.stored;
        self.payload += cost.payload;
        self.encode_seconds += cost.encode_seconds;
        self.decode_seconds += cost.decode_seconds;
    }
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            dir: PathBuf::new(),
            bits: 24,
            pieces: 4,
            rounds: 1,
            decodes: true,
            candidates: Vec::new(),
        };
        let mut specs = Vec::new();
        for argument in arguments {
            match argument.split_once('=') {
                Some(("--bits", value)) => options.bits = value.parse()?,
                Some(("--pieces", value)) => options.pieces = value.parse()?,
                Some(("--rounds", value)) => options.rounds = value.parse()?,
                _ if argument == "--no-decode" => options.decodes = false,
                _ if argument.starts_with("--") => {
                    return Err(format!("unknown option {argument}\n{HELP}").into());
                }
                _ if options.dir.as_os_str().is_empty() => options.dir = argument.into(),
                _ => specs.push(argument),
            }
        }
        if specs.is_empty() {
            return Err(HELP.into());
        }
        for text in specs {
            let (bits, spec) = match text.split_once('/') {
                Some((bits, spec)) => (bits.parse()?, spec),
                None => (options.bits, &*text),
            };
            options.candidates.push(Candidate {
                spec: Spec::parse(spec)?,
                bits,
                text,
                stored: 0,
                payload: 0,
                encode_seconds: 0.0,
                decode_seconds: 0.0,
            });
        }
        Ok(options)
    }
}

/// Files in the order of their paths, with their sizes; equal names of equal sizes are looked at when they are read.
fn list(dir: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(dir)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push((entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(())
}

/// Returns about `count` pieces of `len` bytes, spread evenly over all files.
fn pieces(dir: &Path, len: usize, count: usize) -> std::io::Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    list(dir, &mut files)?;
    let total: u64 = files.iter().map(|(_, len)| len).sum();
    let mut seen = HashSet::new();
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut piece = Vec::new();
    let count = count.max(1) as u64;
    for (path, file_len) in files {
        // The piece in the middle of each share; files before its start are passed over.
        let share = total / count;
        let start = share * pieces.len() as u64 + share.saturating_sub(len as u64) / 2;
        at += file_len;
        if at < start || pieces.len() as u64 == count {
            continue;
        }
        let Ok(data) = std::fs::read(path) else {
            continue;
        };
        let hash = std::hash::BuildHasher::hash_one(
            &std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default(),
            &data,
        );
        if !seen.insert((data.len(), hash)) {
            continue;
        }
        let room = len - piece.len();
        piece.extend_from_slice(data.get(..room).unwrap_or(&data));
        if piece.len() == len {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    Ok(pieces)
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What one way through a piece took.
#[derive(Clone, Copy)]
struct Cost {
    stored: usize,
    payload: u64,
    encode_seconds: f64,
    decode_seconds: f64,
}

fn measure(candidate: &Candidate, piece: &[u8], decodes: bool) -> Result<Cost, Failure> {
    let block_len = 1_usize << candidate.bits;
    let mut cost = Cost {
        stored: 0,
        payload: 0,
        encode_seconds: 0.0,
        decode_seconds: 0.0,
    };
    let mut encoder = candidate.spec.encoder(block_len.min(piece.len()), None)?;
    for block in piece.chunks(block_len) {
        let kind = candidate.spec.compression_type();
        let data = block.to_vec();
        let start = thread_seconds();
        let encoded = encode_section(encoder.as_mut(), kind, data)?;
        cost.encode_seconds += thread_seconds() - start;
        cost.payload += encoded.payload.len() as u64;
        if encoded.compression == CompressionType::None {
            cost.stored += 1;
        } else if decodes {
            let start = thread_seconds();
            let mut out = Vec::new();
            let payload = &encoded.payload;
            Decoder::new(encoded.compression, payload, block.len() as u64)?.decode_to(
                payload,
                &mut out,
                block.len(),
            )?;
            cost.decode_seconds += thread_seconds() - start;
            if out != block {
                return Err(format!("{}: decodes to something else", candidate.text).into());
            }
        }
    }
    Ok(cost)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--test") {
        // `cargo test --benches` comes here.
        println!("{HELP}");
        return Ok(());
    }
    let mut options = Options::parse(arguments.into_iter())?;
    let pieces = pieces(&options.dir, 1 << options.bits, options.pieces)?;
    let total: usize = pieces.iter().map(Vec::len).sum();
    println!("{} pieces, {total} bytes", pieces.len());
    for piece in &pieces {
        let mut best: Vec<Option<Cost>> = vec![None; options.candidates.len()];
        for _ in 0..options.rounds {
            for (candidate, best) in options.candidates.iter().zip(&mut best) {
                let cost = measure(candidate, piece, options.decodes)?;
                let before = best.get_or_insert(cost);
                before.encode_seconds = before.encode_seconds.min(cost.encode_seconds);
                before.decode_seconds = before.decode_seconds.min(cost.decode_seconds);
            }
        }
        for (candidate, best) in options.candidates.iter_mut().zip(best) {
            candidate.add(best);
        }
    }
    println!("| settings | bytes | to the first | CPU s | to the first | decode MB/s | stored |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let Some(first) = options.candidates.first() else {
        return Ok(());
    };
    for candidate in &options.candidates {
        println!(
            "| {} | {} | {:.4} | {:.2} | {:.3} | {:.0} | {} |",
            candidate.text,
            candidate.payload,
            candidate.payload as f64 / first.payload as f64,
            candidate.encode_seconds,
            candidate.encode_seconds / first.encode_seconds,
            total as f64 / 1e6 / candidate.decode_seconds,
            candidate.stored,
        );
    }
    Ok(())
}
