//! Writing what a block has of a file.
//!
//! Most files have all of their data in one block: they are made, written and closed in one go. The others stay open until
//! the last of their pieces is there, but only so many at once; one that was closed is opened again, and must still be the
//! file that it was.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use durin_format::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Resource;

use super::order::Files;
use super::window::{Piece, Target};
use super::write;
use crate::content::Fault;
use crate::job::Job;
use crate::make;
use crate::plan::Entry;

/// Ranges of a block that one call writes.
const SLICES_MAX: usize = 128;

/// Files in the making that stay open: an eighth of what the process may have, within these.
const OPEN: std::ops::RangeInclusive<usize> = 4..=512;

/// How far a file is.
#[derive(Default)]
pub(super) enum FileState {
    /// Nothing has been done.
    #[default]
    New,
    Open(Arc<OwnedFd>),
    /// Closed for others to be open: device and inode number.
    Closed(u64, u64),
    /// It has been removed.
    GivenUp,
}

/// Writes files.
pub(super) struct Parts<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) files: &'a Files,
    /// Files that may be open, the one opened first in front.
    open: Mutex<VecDeque<Arc<Target>>>,
    open_max: usize,
}

impl<'a> Parts<'a> {
    pub(super) fn new(job: &'a Job<'a>, files: &'a Files) -> Self {
        let limit = rustix::process::getrlimit(Resource::Nofile).current;
        let eighth = limit.and_then(|limit| usize::try_from(limit / 8).ok());
        Self {
            job,
            files,
            open: Mutex::default(),
            open_max: eighth
                .unwrap_or(*OPEN.end())
                .clamp(*OPEN.start(), *OPEN.end()),
        }
    }

    /// Writes what `block` has of a file: `pieces`, all of it and in order.
    pub(super) fn write(&self, target: &Arc<Target>, block: &[u8], pieces: &[Piece]) -> Result<()> {
        let names = self.files.entries(target.group);
        let Some(entry) = names.first() else {
            return Ok(());
        };
        // All that is left, and nothing was done: there is nobody else.
        if target.is_last(pieces.len()) && matches!(*target.lock(), FileState::New) {
            target.done(pieces.len());
            let content = |file: BorrowedFd<'_>| self.write_pieces(file, block, pieces);
            return write::whole(self.job, names, target.written(), content);
        }
        let written = match self.file(target, entry) {
            Ok(Some(file)) => self
                .write_pieces(file.as_fd(), block, pieces)
                .or_else(|fault| match target.fail(self.job, names) {
                    true => write::fail(self.job, names, fault),
                    // Of many bad pieces of one file the first is reported.
                    false => Ok(()),
                }),
            Ok(None) => Ok(()),
            Err(error) => {
                target.fail(self.job, names);
                Err(error)
            }
        };
        written.and(self.done(target, pieces.len()))
    }

    /// Counts pieces as done, and finishes the file after the last one.
    fn done(&self, target: &Arc<Target>, count: usize) -> Result<()> {
        if !target.done(count) {
            return Ok(());
        }
        self.finish(target)
    }

    /// Makes a file that has no data, or ends one of which all is written.
    pub(super) fn finish(&self, target: &Arc<Target>) -> Result<()> {
        let names = self.files.entries(target.group);
        let Some(entry) = names.first() else {
            return Ok(());
        };
        if matches!(*target.lock(), FileState::New) {
            return write::whole(self.job, names, target.written(), |_| Ok(()));
        }
        let finished = match self.file(target, entry) {
            Ok(Some(file)) => write::finish_all(self.job, names, file.as_fd(), target.written()),
            Ok(None) => {
                write::give_up(self.job);
                Ok(())
            }
            Err(error) => {
                target.fail(self.job, names);
                Err(error)
            }
        };
        *target.lock() = FileState::GivenUp;
        finished
    }

    /// The block cannot be read: gives up a file that has data there.
    pub(super) fn fail(&self, target: &Arc<Target>, pieces: &[Piece], error: &Error) -> Result<()> {
        let names = self.files.entries(target.group);
        let failed = match target.fail(self.job, names) {
            true => write::fail(self.job, names, Fault::Image(again(error))),
            false => Ok(()),
        };
        failed.and(self.done(target, pieces.len()))
    }

    fn write_pieces(
        &self,
        file: BorrowedFd<'_>,
        block: &[u8],
        pieces: &[Piece],
    ) -> std::result::Result<(), Fault> {
        let mut slices = Vec::with_capacity(pieces.len().min(SLICES_MAX));
        let (mut start, mut end) = (0, 0);
        for piece in pieces {
            if (piece.file_offset != end || slices.len() == SLICES_MAX) && !slices.is_empty() {
                self.write_slices(file, &mut slices, start)?;
                slices.clear();
            }
            if slices.is_empty() {
                start = piece.file_offset;
            }
            slices.push(IoSlice::new(self.bytes(block, piece)?));
            end = piece.file_offset + u64::from(piece.len);
        }
        self.write_slices(file, &mut slices, start)
    }

    fn bytes<'b>(&self, block: &'b [u8], piece: &Piece) -> Result<&'b [u8]> {
        let start = piece.block_offset as usize;
        let end = u64::from(piece.block_offset) + u64::from(piece.len);
        let cache = self.job.image.cache();
        cache.check_end(piece.block, end, block.len() as u64)?;
        let bytes = block.get(start..start + piece.len as usize);
        Ok(bytes.unwrap_or_default())
    }

    fn write_slices(
        &self,
        file: BorrowedFd<'_>,
        mut slices: &mut [IoSlice<'_>],
        mut offset: u64,
    ) -> std::result::Result<(), Fault> {
        self.job.check_cancel()?;
        while !slices.is_empty() {
            match rustix::io::pwritev(file, slices, offset) {
                Ok(0) => return Err(Fault::Target(Errno::IO)),
                Ok(written) => {
                    IoSlice::advance_slices(&mut slices, written);
                    offset += written as u64;
                    let done = &self.job.stats.bytes_done;
                    done.fetch_add(written as u64, Ordering::Relaxed);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::Target(errno)),
            }
        }
        Ok(())
    }

    /// The file of a target, made or opened again if need be; `None` if it has been given up.
    fn file(&self, target: &Arc<Target>, entry: &Entry) -> Result<Option<Arc<OwnedFd>>> {
        let mut state = target.lock();
        let file = match &*state {
            FileState::GivenUp => return Ok(None),
            FileState::Open(file) => return Ok(Some(Arc::clone(file))),
            FileState::New => write::create(self.job, entry, make::PRIVATE)?,
            FileState::Closed(device, inode) => self.open_again(entry, (*device, *inode))?,
        };
        let file = Arc::new(file);
        *state = FileState::Open(Arc::clone(&file));
        drop(state);
        let oldest = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.push_back(Arc::clone(target));
            (open.len() > self.open_max)
                .then(|| open.pop_front())
                .flatten()
        };
        if let Some(oldest) = oldest {
            self.close(&oldest);
        }
        Ok(Some(file))
    }

    /// Closes a file that is to be opened again, unless somebody is writing it.
    fn close(&self, target: &Arc<Target>) {
        let mut state = target.lock();
        let FileState::Open(file) = &*state else {
            return;
        };
        match rustix::fs::fstat(file) {
            Ok(stat) if Arc::strong_count(file) == 1 => {
                *state = FileState::Closed(stat.st_dev, stat.st_ino);
            }
            _ => {
                drop(state);
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.push_back(Arc::clone(target));
            }
        }
    }

    fn open_again(&self, entry: &Entry, expected: (u64, u64)) -> Result<OwnedFd> {
        let failed = |errno: Errno| {
            let text = format!("cannot open {} again", self.job.plan.shown(entry));
            Error::io(text, errno.into())
        };
        let dir = self.job.dirs.open(entry.dir)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let name = self.job.plan.name(entry);
        let file = rustix::fs::openat(&dir, name, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if (stat.st_dev, stat.st_ino) != expected {
            return Err(failed(Errno::STALE));
        }
        Ok(file)
    }
}

impl Target {
    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what there is of the file: it must not be taken for a whole one. Returns false if that was done before.
    pub(super) fn fail(&self, job: &Job<'_>, names: &[Entry]) -> bool {
        let before = std::mem::replace(&mut *self.lock(), FileState::GivenUp);
        match (before, names.first()) {
            (FileState::GivenUp, _) => return false,
            (FileState::Open(_) | FileState::Closed(..), Some(entry)) => write::remove(job, entry),
            _ => {}
        }
        true
    }
}

/// The same error for another file.
fn again(error: &Error) -> Error {
    // The location is kept apart, and an error prints it before its message.
    let shown = error.to_string();
    let prefix = format!("{}: ", error.location());
    let message = shown.strip_prefix(&prefix).unwrap_or(&shown);
    let kind = match error.kind() {
        ErrorKind::Cancelled => return Error::cancelled(),
        kind => kind,
    };
    Error::new(kind, message).at(*error.location())
}
