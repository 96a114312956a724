//! What is decompressed as a whole and kept, as metadata are.

use std::fmt;
use std::ops::{Deref, DerefMut};

use durin_format::{Error, Result};
use memmap2::{MmapMut, MmapOptions};

use crate::output::zeroed;
use crate::tables::HUGE_PAGE_LEN;

/// All that a payload comes to, in memory of its own; it dereferences to the bytes.
///
/// From half a huge page (1 MiB) on it is in huge pages, where the system gives those to who asks: the system makes one in
/// a tenth to a quarter of the time that as much takes in small pages, which is longer than decoding into them. No more
/// than half a huge page goes unused.
pub struct Decompressed(Memory);

enum Memory {
    Allocated(Vec<u8>),
    Mapped(Mapped),
}

/// Memory that begins at the beginning of a huge page.
struct Mapped {
    map: MmapMut,
    start: usize,
    len: usize,
}

impl Decompressed {
    /// `len` bytes, all zero, whose pages are there.
    ///
    /// # Errors
    /// `Limit` if there is no memory.
    pub(crate) fn zeroed(len: usize) -> Result<Self> {
        let bytes = Self::lazily_zeroed(len)?;
        bytes.prepare(0, len);
        Ok(bytes)
    }

    /// `len` bytes, all zero, which take memory as they are written, if they are many.
    ///
    /// # Errors
    /// `Limit` if there is no memory.
    pub(crate) fn lazily_zeroed(len: usize) -> Result<Self> {
        // To the nearest, as what is left of a huge page is memory that is not used.
        let huge_len = len.saturating_add(HUGE_PAGE_LEN / 2) / HUGE_PAGE_LEN * HUGE_PAGE_LEN;
        if huge_len == 0 {
            let mut bytes = Vec::new();
            zeroed(&mut bytes, len)?;
            return Ok(Self::from(bytes));
        }
        let map = MmapOptions::new()
            .len(len.max(huge_len).saturating_add(HUGE_PAGE_LEN))
            .map_anon()
            .map_err(|error| {
                Error::limit(format!("no memory for {len} bytes")).with_source(error)
            })?;
        let start = map.as_ptr().align_offset(HUGE_PAGE_LEN).min(HUGE_PAGE_LEN);
        // Without them it takes longer, and that is all.
        #[cfg(target_os = "linux")]
        map.advise_range(memmap2::Advice::HugePage, start, huge_len)
            .ok();
        Ok(Self(Memory::Mapped(Mapped { map, start, len })))
    }

    /// Has the system make the pages of `len` bytes from `start` on, as far as there are so many. Nothing depends on that
    /// but time: systems that do not know the request (before Linux 5.14) make pages when they are written.
    pub(crate) fn prepare(&self, start: usize, len: usize) {
        #[cfg(not(target_os = "linux"))]
        let _ = (start, len);
        #[cfg(target_os = "linux")]
        if let Memory::Mapped(mapped) = &self.0
            && let Some(there) = mapped.len.checked_sub(start)
        {
            let (start, len) = (mapped.start + start, len.min(there));
            mapped
                .map
                .advise_range(memmap2::Advice::PopulateWrite, start, len)
                .ok();
        }
    }

    /// Leaves the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Memory::Allocated(bytes) => bytes.truncate(len),
            Memory::Mapped(mapped) => mapped.len = mapped.len.min(len),
        }
    }
}

impl From<Vec<u8>> for Decompressed {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Memory::Allocated(bytes))
    }
}

impl fmt::Debug for Decompressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressed")
            .field("len", &self.len())
            .finish()
    }
}

impl Deref for Decompressed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Allocated(bytes) => bytes,
            Memory::Mapped(Mapped { map, start, len }) => {
                map.get(*start..*start + *len).unwrap_or_default()
            }
        }
    }
}

impl DerefMut for Decompressed {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Allocated(bytes) => bytes,
            Memory::Mapped(Mapped { map, start, len }) => {
                map.get_mut(*start..*start + *len).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_zero_and_can_be_written() {
        let half = HUGE_PAGE_LEN / 2;
        for len in [
            0,
            1,
            half - 1,
            half,
            half + 1,
            HUGE_PAGE_LEN,
            3 * half - 1,
            5 * half + 123,
        ] {
            let mut bytes = Decompressed::zeroed(len).unwrap();
            bytes.prepare(len / 2, usize::MAX);
            bytes.prepare(usize::MAX, 1);
            assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            bytes.truncate(len / 3);
            bytes.truncate(len);
            assert!(bytes.len() == len / 3 && bytes.iter().all(|byte| *byte == 7));
        }
        assert!(Decompressed::zeroed(usize::MAX).is_err());
        assert!(Decompressed::zeroed(usize::MAX / 2).is_err());
    }
}
