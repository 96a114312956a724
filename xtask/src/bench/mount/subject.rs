//! What is mounted: corpora with lists of their files, and large files that are made here.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use durin_testkit::random::Random;
use durin_testkit::tree::{Kind, Node, Tree};

use super::definition::Subject;
use crate::bench::session::Corpus;

/// What counts as a small file.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Programs that run from a mount; more of them show nothing new.
const PROGRAMS_MAX: usize = 300;
/// Large files are made in pieces of this.
const PIECE: usize = 1 << 20;
/// Which order small files are opened in, and what the large files hold.
const SEED: u64 = 4711;

/// A corpus and what it is.
pub(super) struct Measured {
    pub(super) corpus: Corpus,
    pub(super) subject: Subject,
    /// The folder of its lists.
    pub(super) lists: PathBuf,
}

/// Reads a corpus and writes its lists.
pub(super) fn prepare(corpus: &mut Corpus, lists: &Path) -> Result<()> {
    corpus.read()?;
    let tree = corpus.tree.as_ref().context("the corpus was not read")?;
    std::fs::create_dir_all(lists)?;
    let files: Vec<&Node> = tree.nodes.iter().filter(|n| n.kind == Kind::File).collect();
    write_list(
        &lists.join("files"),
        0,
        files.iter().map(|n| n.path.as_slice()),
    )?;
    let mut small: Vec<&[u8]> = files
        .iter()
        .filter(|node| node.size <= SMALL_BYTES_MAX)
        .map(|node| node.path.as_slice())
        .collect();
    shuffle(&mut small);
    write_list(&lists.join("small"), 0, small.into_iter())?;
    let programs = programs(&corpus.dir, tree, &files);
    write_list(&lists.join("programs"), b'\n', programs.into_iter())
}

fn write_list<'a>(path: &Path, end: u8, names: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for name in names {
        file.write_all(name)?;
        file.write_all(&[end])?;
    }
    Ok(file.flush()?)
}

fn shuffle<T>(items: &mut [T]) {
    let mut random = Random::new(SEED);
    for last in (1..items.len()).rev() {
        let other = random.below(last as u64 + 1);
        items.swap(last, usize::try_from(other).unwrap_or(0));
    }
}

/// Programs of this machine's kind that find their loader in the tree, each in a different file, spread over all there are.
fn programs<'a>(top: &Path, tree: &'a Tree, files: &[&'a Node]) -> Vec<&'a [u8]> {
    let is_program = |node: &&&Node| {
        let in_bin = node.path.split(|byte| *byte == b'/').rev().nth(1);
        let in_bin = in_bin.is_some_and(|dir| dir == b"bin" || dir == b"sbin");
        let is_plain = !node.path.iter().any(u8::is_ascii_whitespace);
        in_bin && is_plain && node.mode & 0o111 == 0o111 && node.mode & 0o6000 == 0
    };
    let candidates = files.iter().filter(is_program);
    let path_of = |node: &Node| top.join(std::ffi::OsStr::from_bytes(&node.path));
    let runs: Vec<&[u8]> = candidates
        .filter(|node| loader(&path_of(node)).is_some_and(|loader| has(tree, &loader)))
        .map(|node| node.path.as_slice())
        .collect();
    let step = runs.len().div_ceil(PROGRAMS_MAX).max(1);
    runs.into_iter().step_by(step).collect()
}

/// Whether a path that a chroot would resolve is there; links are followed by the names that Debian has.
fn has(tree: &Tree, path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let merged = [b"usr/".as_slice(), path].concat();
    tree.find(path).is_some() || tree.find(&merged).is_some()
}

/// The loader that an ELF program names, of programs that this processor runs.
fn loader(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(4096)
        .read_to_end(&mut head)
        .ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let name = format!("ld-linux-{}.so", std::env::consts::ARCH.replace('_', "-"));
    let at = head
        .windows(name.len())
        .position(|bytes| bytes == name.as_bytes())?;
    let start = head[..at].iter().rposition(|byte| *byte == 0)? + 1;
    let end = at + head[at..].iter().position(|byte| *byte == 0)?;
    Some(head[start..end].to_vec())
}

/// Makes the large files below `dir` unless they are there: corpora of text, of random bytes and of zeros.
pub(super) fn large_files(dir: &Path, bytes: u64) -> Result<Vec<Corpus>> {
    let mut corpora = Vec::new();
    for name in ["text", "random", "zeros"] {
        let label = format!("file-{name}-{}m", bytes >> 20);
        let dir = dir.join(&label);
        let path = dir.join("data");
        std::fs::create_dir_all(&dir)?;
        if path.metadata().map_or(0, |data| data.len()) != bytes {
            println!("making {} ...", path.display());
            make(&path, name, bytes).with_context(|| path.display().to_string())?;
        }
        corpora.push(Corpus::new(label, dir));
    }
    Ok(corpora)
}

fn make(path: &Path, name: &str, bytes: u64) -> Result<()> {
    let mut file = BufWriter::with_capacity(PIECE, File::create(path)?);
    let mut random = Random::new(SEED);
    let mut left = bytes;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = match name {
            "text" => random.text(len),
            "random" => random.bytes(len),
            // Written, not left out: a hole is another matter.
            _ => vec![0; len],
        };
        file.write_all(&piece)?;
        left -= len as u64;
    }
    Ok(file.flush()?)
}
