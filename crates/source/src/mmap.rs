//! A file mapped into memory.
#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe; see the SAFETY comment"
)]

use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

use crate::{FileSource, Source};

/// A file or block device that is mapped as a whole.
///
/// [`Source::read_at`] still uses `pread`: a file that shrinks under the mapping then gives an input/output error
/// instead of the signal `SIGBUS`. Only what is read in place through [`Source::mapping`] takes that risk.
#[derive(Debug)]
pub struct MappedFile {
    file: FileSource,
    /// `None` for what cannot be mapped: an empty file, one that is larger than the address space, or one of a file
    /// system that knows no mappings.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Opens and maps the file or block device at `path`.
    ///
    /// # Errors
    /// When it cannot be opened, is a directory, or has no length. A file that cannot be mapped is no error: it has no
    /// [`Source::mapping`] then.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = FileSource::open(path)?;
        let len = usize::try_from(file.len()).ok().filter(|len| *len > 0);
        let map = len.and_then(|len| {
            // SAFETY: the mapping is private and read-only, and lives as long as `self`. What remains is that somebody
            // else writes to or truncates the file meanwhile: its readers take every byte as untrusted and check each
            // value when they use it, so changed bytes give an error or other data, and truncation gives SIGBUS, which
            // ends the program and is no memory unsafety.
            let map = unsafe { MmapOptions::new().len(len).map_copy_read_only(file.file()) };
            map.ok()
        });
        Ok(Self { file, map })
    }
}

impl Source for MappedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn name(&self) -> &str {
        self.file.name()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buf)
    }

    fn mapping(&self) -> Option<&[u8]> {
        self.map.as_deref()
    }

    fn advise(&self, offset: u64, len: u64) {
        self.file.advise(offset, len);
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        self.file.file_id()
    }

    fn next_data(&self, offset: u64) -> Option<u64> {
        self.file.next_data(offset)
    }
}
