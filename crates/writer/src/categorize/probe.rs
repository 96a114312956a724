//! Looking at places of a file.

use std::cell::Cell;

use crate::files::OpenFile;

/// The most times that places behind the start of a file are looked at, so that a chain of tiny chunks ends.
const LOOKS_MAX: u32 = 256;

/// A file whose start has been read, and whose other bytes can be.
pub(crate) struct Probe<'a> {
    head: &'a [u8],
    len: u64,
    file: Option<&'a OpenFile>,
    looks: Cell<u32>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(head: &'a [u8], len: u64, file: Option<&'a OpenFile>) -> Self {
        Self {
            head,
            len,
            file,
            looks: Cell::new(0),
        }
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `offset` on, or nothing if the file ends before or cannot be read there.
    pub(crate) fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(offset, &mut bytes)?;
        Some(bytes)
    }

    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(target.len() as u64)?;
        if end > self.len {
            return None;
        }
        let start = usize::try_from(offset).ok();
        let known = start.and_then(|start| self.head.get(start..start + target.len()));
        if let Some(known) = known {
            target.copy_from_slice(known);
            return Some(());
        }
        let looks = self.looks.get();
        self.looks.set(looks + 1);
        let file = self.file.filter(|_| looks < LOOKS_MAX)?;
        file.read_exact_at(target, offset).ok()
    }

    pub(crate) fn starts_with(&self, magic: &[u8]) -> bool {
        self.head.starts_with(magic)
    }
}

pub(super) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    le16(bytes, at).map(u16::swap_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    le32(bytes, at).map(u32::swap_bytes)
}

pub(super) fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    le64(bytes, at).map(u64::swap_bytes)
}
