//! Bytes that are in memory already.

use std::io;

use crate::Source;

/// Bytes in memory.
pub struct MemorySource {
    bytes: Vec<u8>,
}

impl MemorySource {
    /// Takes over `bytes`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

impl std::fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemorySource({} bytes)", self.bytes.len())
    }
}

impl Source for MemorySource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let tail = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or(&[]);
        let count = tail.len().min(buf.len());
        let (tail, buf) = (&tail[..count], &mut buf[..count]);
        buf.copy_from_slice(tail);
        Ok(count)
    }

    fn mapping(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}
