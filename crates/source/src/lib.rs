//! Positioned reads from files, mappings and memory.
//!
//! A [`Source`] is a byte string of known length that several threads read at any place.
//! This crate knows nothing of the format and speaks [`std::io::Error`].
//!
//! ```
//! use durin_source::{MemorySource, Source};
//!
//! let source = MemorySource::new(b"DWARFS".to_vec());
//! let mut buf = [0; 3];
//! source.read_exact_at(3, &mut buf)?;
//! assert_eq!(&buf, b"RFS");
//! # Ok::<(), std::io::Error>(())
//! ```

mod faulty;
mod file;
mod memory;
mod mmap;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use faulty::{Fault, FaultySource};
pub use file::FileSource;
pub use memory::MemorySource;
pub use mmap::MappedFile;

/// A byte string that is read at any place, by several threads at once.
pub trait Source: Send + Sync + fmt::Debug {
    /// The length in bytes, as it was when the source was opened.
    fn len(&self) -> u64;

    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What to call the source in messages, usually its path.
    fn name(&self) -> &str;

    /// Reads bytes at `offset` into `buf` and returns how many; 0 only at the end or for an empty `buf`.
    ///
    /// # Errors
    /// What the operating system says; interruptions are retried inside.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Fills `buf` with the bytes at `offset`.
    ///
    /// # Errors
    /// As [`Self::read_at`], and `UnexpectedEof` when the source ends before `buf` is full.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset
                .checked_add(done as u64)
                .ok_or(io::ErrorKind::UnexpectedEof)?;
            match self.read_at(at, rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    /// The whole source as memory, when it is there without reading it.
    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    /// Says that `len` bytes at `offset` will be read soon. A hint, which may do nothing.
    fn advise(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Device and inode number of the file, if it is one.
    fn file_id(&self) -> Option<(u64, u64)> {
        None
    }

    /// The first offset not below `offset` that may hold something else than a hole of a sparse file;
    /// `None` when only holes follow. A source that does not know its holes returns `offset`.
    fn next_data(&self, offset: u64) -> Option<u64> {
        (offset < self.len()).then_some(offset)
    }
}

/// How [`open`] gives access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Mapped into memory, so that [`Source::mapping`] works.
    #[default]
    Mmap,
    /// Read with positioned reads only.
    Read,
}

/// Opens the file or block device at `path`.
///
/// # Errors
/// When it cannot be opened, is a directory, or has no length (a pipe, a terminal).
pub fn open(path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Source>> {
    Ok(match mode {
        OpenMode::Mmap => Arc::new(MappedFile::open(path)?),
        OpenMode::Read => Arc::new(FileSource::open(path)?),
    })
}
