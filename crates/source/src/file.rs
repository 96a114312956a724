//! A file or block device, read with `pread`.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Advice, SeekFrom as RawSeek};

use crate::Source;

/// A file or block device, read with positioned reads.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    name: String,
}

impl FileSource {
    /// Opens the file or block device at `path`.
    ///
    /// # Errors
    /// When it cannot be opened, is a directory, or has no length, as a pipe.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // Opening a pipe would wait for somebody who writes to it.
        if std::fs::metadata(path)?.file_type().is_fifo() {
            return Err(not_seekable());
        }
        let mut file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // The length in the inode of a block device is 0; its end tells the truth for both.
        let len = file
            .seek(SeekFrom::End(0))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotSeekable => not_seekable(),
                _ => error,
            })?;
        Ok(Self {
            file,
            len,
            name: path.display().to_string(),
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

fn not_seekable() -> io::Error {
    let text = "it is a pipe or the like; an image has to be a file or a block device, which can be read at any place";
    io::Error::new(io::ErrorKind::NotSeekable, text)
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buf, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn advise(&self, offset: u64, len: u64) {
        // Without the hint the bytes only come a little later.
        if let Some(len) = std::num::NonZeroU64::new(len) {
            rustix::fs::fadvise(&self.file, offset, Some(len), Advice::WillNeed).ok();
        }
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = self.file.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    fn next_data(&self, offset: u64) -> Option<u64> {
        if offset >= self.len {
            return None;
        }
        // The seek position is shared by all users of the file, and none of them reads at it.
        match rustix::fs::seek(&self.file, RawSeek::Data(offset)) {
            Ok(data) => (data < self.len).then_some(data),
            Err(rustix::io::Errno::NXIO) => None,
            // The file system or the kernel does not know; everything may be data.
            Err(_) => Some(offset),
        }
    }
}
