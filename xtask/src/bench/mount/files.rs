//! Files that are made here: large ones of several kinds of data, and many small ones.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use durin_testkit::random::Random;
use durin_testkit::tree::{Digest, Kind, TreeOptions, snapshot};

use crate::bench::session::Corpus;
use crate::say::say;
use crate::{corpora, workspace};

/// Large files are made in pieces of this.
const PIECE: usize = 1 << 20;
const SEED: u64 = 4711;
const SMALL_FILES: u32 = 1024;
const SMALL_BYTES: usize = 4096;

/// What the large files hold.
pub(super) const LARGE: [&str; 4] = ["null", "random", "polygon", "source"];

/// Makes the large files below `dir`, unless they are there.
pub(super) fn large(dir: &Path, bytes: u64) -> Result<Vec<Corpus>> {
    let mut corpora = Vec::new();
    for name in LARGE {
        let label = format!("file-{name}-{}m", bytes >> 20);
        let dir = dir.join(&label);
        let path = dir.join("data");
        std::fs::create_dir_all(&dir)?;
        if !path.is_file() {
            say!("making {} ...", path.display());
            let partial = dir.with_extension("partial");
            make(&partial, name, bytes).with_context(|| path.display().to_string())?;
            std::fs::rename(&partial, &path)?;
        }
        corpora.push(Corpus::new(label, dir));
    }
    Ok(corpora)
}

/// Makes directories of small files below `dir`, unless they are there: of zeros and of random bytes.
pub(super) fn small(dir: &Path) -> Result<Vec<Corpus>> {
    let mut corpora = Vec::new();
    for name in ["null", "random"] {
        let label = format!("files-{name}");
        let dir = dir.join(&label);
        if !dir.is_dir() {
            let partial = dir.with_extension("partial");
            std::fs::create_dir_all(&partial)?;
            let mut random = Random::new(SEED);
            for index in 0..SMALL_FILES {
                let content = match name {
                    "null" => vec![0; SMALL_BYTES],
                    _ => random.bytes(SMALL_BYTES),
                };
                std::fs::write(partial.join(format!("{index:04}")), content)?;
            }
            std::fs::rename(&partial, &dir)?;
        }
        corpora.push(Corpus::new(label, dir));
    }
    Ok(corpora)
}

fn make(path: &Path, name: &str, bytes: u64) -> Result<()> {
    let mut file = BufWriter::with_capacity(PIECE, File::create(path)?);
    if name == "source" {
        source(&mut file, bytes)?;
        return Ok(file.flush()?);
    }
    let (mut random, mut side) = (Random::new(SEED), 0);
    let mut left = bytes;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let mut piece = match name {
            "random" => random.bytes(len),
            "polygon" => polygon(&mut random, &mut side, len),
            // Written, not left out: a hole is another matter.
            _ => vec![0; len],
        };
        piece.truncate(len);
        file.write_all(&piece)?;
        left -= len as u64;
    }
    Ok(file.flush()?)
}

/// Source text, file by file: of the kernel if that corpus is there, else of this workspace, as much as there is.
fn source(file: &mut impl Write, bytes: u64) -> Result<()> {
    let linux = corpora::dir().join("linux");
    let top = if linux.is_dir() {
        std::fs::canonicalize(linux)?
    } else {
        workspace::root().join("crates")
    };
    let options = TreeOptions {
        digest: Digest::None,
    };
    let mut left = bytes;
    for node in snapshot(&top, &options)?.nodes {
        if node.kind != Kind::File || left == 0 {
            continue;
        }
        let path = top.join(std::ffi::OsStr::new(&*String::from_utf8_lossy(&node.path)));
        // What cannot be read, or has another name in Unicode, is left out.
        let Ok(mut content) = std::fs::read(&path) else {
            continue;
        };
        content.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&content)?;
        left -= content.len() as u64;
    }
    Ok(())
}

/// Vertices of a polygon as debug text: three a side, in random colours, with the same centre.
fn polygon(random: &mut Random, side: &mut u32, len: usize) -> Vec<u8> {
    let mut text = String::with_capacity(len + 1024);
    // More than fit into the largest file that is asked for.
    let sides = 1e7;
    while text.len() < len {
        let colour =
            [(); 3].map(|()| f64::from(u32::try_from(random.below(1000)).unwrap_or(0)) / 1000.0);
        for corner in 0..2_u32 {
            let angle = f64::from(*side + corner) * std::f64::consts::TAU / sides;
            let (sin, cos) = angle.sin_cos();
            // Writing to a string cannot fail.
            let _ok = writeln!(
                text,
                "Vertex {{ position: [{cos:?}, {sin:?}, 0.0], color: {colour:?} }},"
            );
        }
        text.push_str("Vertex { position: [0.0, 0.0, 0.0], color: [1.0, 1.0, 1.0] },\n");
        *side += 1;
    }
    text.into_bytes()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_once() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            for corpus in large(dir.path(), 100_000).unwrap() {
                let len = corpus.dir.join("data").metadata().unwrap().len();
                assert!(len == 100_000, "{}: {len}", corpus.name);
            }
            for corpus in small(dir.path()).unwrap() {
                assert_eq!(corpus.dir.read_dir().unwrap().count(), 1024);
            }
        }
        let polygon = dir.path().join("file-polygon-0m/data");
        assert!(
            std::fs::read_to_string(polygon)
                .unwrap()
                .starts_with("Vertex")
        );
    }
}
