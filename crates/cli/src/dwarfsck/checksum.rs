//! `--checksum`: a checksum of every regular file, in the format of `sha256sum --check`.
//!
//! Files are read in the order of their data, so that each block is decompressed once. Several threads read; the lines
//! come out in that same order whatever their number. A content that several files share is read once.
//! Memory: the paths of all files, and the lines of files that were finished before an earlier one.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durin_format::digest::{Digest, hex};
use durin_format::{InodeNum, Result};
use durin_reader::{FileKind, Image};

use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};

/// Bytes read at a time: large enough that the cost of a call does not show.
const BUFFER_LEN: usize = 1 << 20;

/// All files with the same content.
struct Content {
    /// Any inode that has it.
    inode: InodeNum,
    paths: Vec<Vec<u8>>,
}

/// Prints the checksums; returns how many entries could not be read.
pub(super) fn print(
    image: &Image,
    digest: Digest,
    workers: usize,
    logger: &Logger,
) -> std::result::Result<u64, Failure> {
    let (contents, mut errors) = contents_in_data_order(image, logger)?;
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    output::to_stdout(|out| {
        let lines = Mutex::new(Lines {
            out,
            next: 0,
            waiting: BTreeMap::new(),
            errors: 0,
        });
        let work = || -> std::result::Result<(), Failure> {
            let mut buffer = vec![0; BUFFER_LEN];
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(content) = contents.get(index) else {
                    break;
                };
                let sum = sum(image, content.inode, digest, &mut buffer);
                let Ok(mut lines) = lines.lock() else { break };
                lines
                    .finish(index, &contents, sum, logger)
                    .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            }
            Ok(())
        };
        run_threads(workers.min(contents.len()), &work)?;
        errors += lines
            .into_inner()
            .map(|lines| lines.errors)
            .unwrap_or_default();
        Ok(())
    })?;
    Ok(errors)
}

/// Runs `work` on this thread and `count - 1` others.
fn run_threads(
    count: usize,
    work: &(impl Fn() -> std::result::Result<(), Failure> + Sync),
) -> std::result::Result<(), Failure> {
    std::thread::scope(|scope| {
        // A thread that cannot be started leaves its share to the others.
        let others: Vec<_> = (1..count)
            .filter_map(|_| {
                std::thread::Builder::new()
                    .name("checksum".to_owned())
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        let mut result = work();
        for other in others {
            result = result.and(other.join().unwrap_or(Ok(())));
        }
        result
    })
}

/// Finds all paths of each content. Entries that cannot be read are reported and counted.
fn contents_in_data_order(image: &Image, logger: &Logger) -> Result<(Vec<Content>, u64)> {
    let mut paths: HashMap<u32, Content> = HashMap::new();
    let mut errors = 0;
    for entry in image.walk() {
        let entry = entry.and_then(|entry| match entry.attr.kind {
            FileKind::Regular => image
                .content_number(entry.attr.inode)
                .map(|number| Some((number, entry))),
            _ => Ok(None),
        });
        match entry {
            Ok(None) => {}
            Ok(Some((number, entry))) => {
                let content = paths.entry(number).or_insert_with(|| Content {
                    inode: entry.attr.inode,
                    paths: Vec::new(),
                });
                content.paths.push(entry.path);
            }
            Err(error) => {
                logger.error(error.to_string());
                errors += 1;
            }
        }
    }
    let mut contents = Vec::with_capacity(paths.len());
    for inode in image.files_in_data_order()? {
        contents.extend(paths.remove(&image.content_number(inode)?));
    }
    Ok((contents, errors))
}

fn sum(image: &Image, inode: InodeNum, digest: Digest, buffer: &mut [u8]) -> Result<String> {
    let mut hasher = digest.hasher();
    let mut offset = 0;
    loop {
        let len = image.read_at(inode, offset, buffer)?;
        if len == 0 {
            return Ok(hex(&hasher.finish()));
        }
        hasher.update(buffer.get(..len).unwrap_or_default());
        offset += len as u64;
    }
}

/// Puts lines into order.
struct Lines<'a> {
    out: &'a mut (dyn Write + Send),
    /// The content whose lines come next.
    next: usize,
    waiting: BTreeMap<usize, Result<String>>,
    errors: u64,
}

impl Lines<'_> {
    fn finish(
        &mut self,
        index: usize,
        contents: &[Content],
        sum: Result<String>,
        logger: &Logger,
    ) -> std::result::Result<(), Failure> {
        self.waiting.insert(index, sum);
        while let Some(sum) = self.waiting.remove(&self.next) {
            for path in contents
                .get(self.next)
                .into_iter()
                .flat_map(|content| &content.paths)
            {
                match &sum {
                    Ok(sum) => self.out.write_all(&line(sum, path)).map_err(write_failed)?,
                    Err(error) => {
                        logger.error(format!("{}: {error}", crate::common::escape::bytes(path)));
                        self.errors += 1;
                    }
                }
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// A line as sha256sum writes it: a path with a backslash or a line break is escaped, and the line begins with a
/// backslash then. All other bytes stay, so that the file is found again.
fn line(sum: &str, path: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(sum.len() + path.len() + 4);
    let escaped = path
        .iter()
        .any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
    if escaped {
        line.push(b'\\');
    }
    line.extend_from_slice(sum.as_bytes());
    line.extend_from_slice(b"  ");
    for byte in path {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_sha256sum() {
        assert_eq!(line("ab", b"a/b c"), b"ab  a/b c\n");
        assert_eq!(line("ab", b"a\\b\nc"), b"\\ab  a\\\\b\\nc\n");
        assert_eq!(line("ab", b"\xff\x1b"), b"ab  \xff\x1b\n");
    }
}
