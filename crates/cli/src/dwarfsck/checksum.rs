//! `--checksum`: a checksum of every regular file, in the format of `sha256sum --check`, in the order of the data.

use durin_format::digest::{Digest, hex};
use durin_format::{InodeNum, Result};
use durin_reader::Image;

use crate::common::contents::{self, Content};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};

/// Bytes read at a time: large enough that the cost of a call does not show.
const BUFFER_LEN: usize = 1 << 20;

/// Prints the checksums; returns how many entries could not be read.
pub(super) fn print(
    image: &Image,
    digest: Digest,
    workers: usize,
    logger: &Logger,
) -> std::result::Result<u64, Failure> {
    let (contents, mut errors) = contents::in_data_order(image, image.walk(), logger)?;
    output::to_stdout(|out| {
        let finish = |content: &Content, sum: Result<String>| {
            for path in &content.paths {
                let path = &path.whole()[..];
                match &sum {
                    Ok(sum) => out.write_all(&line(sum, path)).map_err(write_failed)?,
                    Err(error) => {
                        logger.error(format!("{}: {error}", crate::common::escape::bytes(path)));
                        errors += 1;
                    }
                }
            }
            Ok(())
        };
        let sum =
            |buffer: &mut Vec<u8>, content: &Content| sum(image, content.inode, digest, buffer);
        let buffer = || vec![0; BUFFER_LEN];
        contents::each_content(image, &contents, workers, buffer, sum, finish)
    })?;
    Ok(errors)
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
