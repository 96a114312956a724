//! What is mounted: corpora with lists of their files, and large files that are made here.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use durin_testkit::random::Random;
use durin_testkit::tree::{Kind, Node, Tree};

use super::definition::Subject;
use super::elf::{self, Needs};
use crate::bench::session::Corpus;

/// What counts as a small file.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Programs that run from a mount; more of them show nothing new.
const PROGRAMS_MAX: usize = 300;
/// Which order small files are opened in.
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

/// Programs of this machine's kind that run within the tree, each in a different file, spread over all there are.
fn programs<'a>(top: &Path, tree: &'a Tree, files: &[&'a Node]) -> Vec<&'a [u8]> {
    let is_program = |node: &&&Node| {
        let is_plain = !node.path.iter().any(u8::is_ascii_whitespace);
        is_plain && node.mode & 0o111 == 0o111 && node.mode & 0o6000 == 0
    };
    let is_in_bin = |node: &Node| {
        let dir = node.path.split(|byte| *byte == b'/').rev().nth(1);
        dir.is_some_and(|dir| dir == b"bin" || dir == b"sbin")
    };
    let candidates = files.iter().filter(is_program);
    let path_of = |node: &Node| top.join(std::ffi::OsStr::from_bytes(&node.path));
    let runs: Vec<&[u8]> = candidates
        .filter(|node| match elf::needs(&path_of(node)) {
            Some(Needs::Nothing) => true,
            // Others are often parts of a program, which wait for it.
            Some(Needs::Loader(loader)) => is_in_bin(node) && has(tree, &loader),
            None => false,
        })
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
