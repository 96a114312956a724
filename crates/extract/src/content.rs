//! From the extents of a file to bytes on disk.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use durin_format::{Error, Result};
use durin_reader::{Extent, Place};
use rustix::io::Errno;

use crate::job::Job;

/// Bytes read and written at a time: enough that neither system calls nor locks of the block cache count, and small
/// enough to stay in a processor's cache between reading and writing.
pub(crate) const BUFFER_LEN: usize = 256 * 1024;

/// Why a file could not be written.
pub(crate) enum Fault {
    /// The image is at fault; other files may be fine.
    Image(Error),
    /// The target is at fault; others will fare no better.
    Target(Errno),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Image(error)
    }
}

/// What has been written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// The end of the last extent, bytes from the start of the file.
    pub(crate) end: u64,
    /// Whether there were holes, so that the file may still be shorter.
    pub(crate) has_holes: bool,
}

/// Writes extents to an open file; holes are left out.
///
/// `buffer` is scratch space of [`BUFFER_LEN`].
pub(crate) fn write(
    job: &Job<'_>,
    file: BorrowedFd<'_>,
    extents: impl Iterator<Item = Result<Extent>>,
    buffer: &mut [u8],
) -> std::result::Result<Written, Fault> {
    let mut pending = Pending {
        job,
        file,
        buffer,
        len: 0,
        offset: 0,
        has_holes: false,
    };
    for extent in extents {
        pending.push(&extent?)?;
    }
    pending.flush()?;
    Ok(Written {
        end: pending.offset,
        has_holes: pending.has_holes,
    })
}

/// Bytes gathered for one write: many files consist of small pieces.
struct Pending<'a> {
    job: &'a Job<'a>,
    file: BorrowedFd<'a>,
    buffer: &'a mut [u8],
    len: usize,
    /// Where in the file the gathered bytes belong.
    offset: u64,
    has_holes: bool,
}

impl Pending<'_> {
    fn push(&mut self, extent: &Extent) -> std::result::Result<(), Fault> {
        if extent.offset != self.offset + self.len as u64 {
            self.flush()?;
            self.offset = extent.offset;
        }
        let Place::Data { block, offset } = extent.place else {
            self.flush()?;
            self.has_holes = true;
            self.offset += extent.len;
            return Ok(());
        };
        let mut place = offset;
        let mut rest = extent.len;
        while rest > 0 {
            let free = self.buffer.get_mut(self.len..).unwrap_or_default();
            let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(free.len());
            let part = free.get_mut(..wanted).unwrap_or_default();
            self.job.image.cache().read(block, place, part)?;
            self.len += wanted;
            rest -= wanted as u64;
            if self.len == self.buffer.len() {
                self.flush()?;
            }
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
            place = place
                .checked_add(wanted)
                .ok_or_else(|| Error::corrupt(format!("chunk beyond the end of block {block}")))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> std::result::Result<(), Fault> {
        self.job.check_cancel()?;
        let mut rest = self.buffer.get(..self.len).unwrap_or_default();
        while !rest.is_empty() {
            match rustix::io::pwrite(self.file, rest, self.offset) {
                Ok(0) => return Err(Fault::Target(Errno::IO)),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    self.offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::Target(errno)),
            }
        }
        let done = &self.job.stats.bytes_done;
        done.fetch_add(self.len as u64, Ordering::Relaxed);
        self.len = 0;
        Ok(())
    }
}
