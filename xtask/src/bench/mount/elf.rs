//! What an executable needs to be started: enough of its header to know.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Headers of programs are at the beginning; loaders are named soon after.
const HEAD_BYTES: u64 = 4096;
const LOADER_SEGMENT: u32 = 3;
const EXECUTABLE: u16 = 2;

/// What must be in the tree of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// The program at this path, and then most likely libraries.
    Loader(Vec<u8>),
}

/// Reads what a program of this machine's kind needs; nothing if it is none.
pub(super) fn needs(path: &Path) -> Option<Needs> {
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    parse(&head)
}

fn parse(head: &[u8]) -> Option<Needs> {
    let machine: u16 = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return None,
    };
    // Little-endian, of 64 bits.
    if !head.starts_with(b"\x7fELF\x02\x01") || u16_at(head, 18)? != machine {
        return None;
    }
    let (table, size) = (u64_at(head, 32)?, u16_at(head, 54)?);
    for index in 0..u16_at(head, 56)? {
        let at = usize::try_from(table).ok()? + usize::from(index) * usize::from(size);
        if u32_at(head, at)? == LOADER_SEGMENT {
            let start = usize::try_from(u64_at(head, at + 8)?).ok()?;
            let name = head.get(start..)?.split(|byte| *byte == 0).next()?;
            return Some(Needs::Loader(name.to_owned()));
        }
    }
    // Without a loader the others are libraries.
    (u16_at(head, 16)? == EXECUTABLE).then_some(Needs::Nothing)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_program_and_a_text_is_none() {
        let own = needs(&std::env::current_exe().unwrap());
        assert!(own.is_some());
        assert_eq!(parse(b"#!/bin/sh\n"), None);
        assert_eq!(parse(b"\x7fELF\x02\x01"), None);
    }
}
