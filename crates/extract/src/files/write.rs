//! What a worker does with a file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durin_format::{Error, Result};
use durin_reader::{Attr, Extent};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::End;
use super::order::Files;
use crate::attributes;
use crate::content::{self, BUFFER_LEN, Fault, Written};
use crate::job::{Job, add};
use crate::make;
use crate::plan::Entry;

/// A file that several workers write.
pub(super) struct LargeFile {
    /// Its place among the files.
    group: usize,
    attr: Attr,
    file: OwnedFd,
    /// The pieces not yet written, and one for the sender while it has not sent them all.
    pieces: AtomicUsize,
    is_given_up: AtomicBool,
    /// What it will be; known when all pieces are sent.
    written: OnceLock<Written>,
}

impl LargeFile {
    pub(super) fn new(group: usize, attr: Attr, file: OwnedFd) -> Self {
        Self {
            group,
            attr,
            file,
            pieces: AtomicUsize::new(1),
            is_given_up: AtomicBool::new(false),
            written: OnceLock::new(),
        }
    }

    pub(super) fn add_piece(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn all_sent(&self, written: Written) {
        // Only the sender calls this, and once.
        self.written.get_or_init(|| written);
    }

    /// The file will be removed; what is still to be written is not.
    /// Returns whether it had been given up before.
    pub(super) fn give_up(&self) -> bool {
        self.is_given_up.swap(true, Ordering::Relaxed)
    }

    /// Writes a piece.
    pub(super) fn write_piece(
        &self,
        job: &Job<'_>,
        files: &Files,
        end: &End,
        extents: Vec<Extent>,
        buffer: &mut [u8],
    ) -> Result<()> {
        let entries = files.entries(self.group);
        if end.is_reached() {
            self.give_up();
        }
        if self.is_given_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        let extents = extents.into_iter().map(Ok);
        match content::write(job, self.file.as_fd(), extents, buffer) {
            Ok(_) => Ok(()),
            // Of many bad pieces of one file the first is reported.
            Err(fault) if !self.give_up() => fail(job, entries, fault),
            Err(_) => Ok(()),
        }
    }

    /// Counts a piece as done; whoever does the last one finishes the file.
    pub(super) fn end_piece(&self, job: &Job<'_>, files: &Files) -> Result<()> {
        // What the other workers wrote must be seen by the one who finishes.
        if self.pieces.fetch_sub(1, Ordering::AcqRel) != 1 {
            return Ok(());
        }
        let Some((entry, links)) = files.entries(self.group).split_first() else {
            return Ok(());
        };
        match self.written.get() {
            Some(&written) if !self.is_given_up.load(Ordering::Relaxed) => {
                let file = self.file.as_fd();
                match finish(job, entry, links, &self.attr, file, written)? {
                    [] => Ok(()),
                    rest => whole(job, rest, &mut vec![0; BUFFER_LEN]),
                }
            }
            _ => {
                remove(job, entry);
                give_up(job);
                Ok(())
            }
        }
    }
}

/// Writes a file and makes the links to it. `buffer` is scratch space of [`BUFFER_LEN`].
pub(super) fn whole(job: &Job<'_>, entries: &[Entry], buffer: &mut [u8]) -> Result<()> {
    let mut rest = entries;
    while let Some((entry, links)) = rest.split_first() {
        rest = match write(job, entry, rest, buffer) {
            Ok((attr, file, written)) => finish(job, entry, links, &attr, file.as_fd(), written)?,
            Err(error) => {
                give_up(job);
                error?;
                &[]
            }
        };
    }
    Ok(())
}

/// Writes the content of a file, whose names are `names`, under that of `entry`. The error is what to make of its failing: nothing, or to end the extraction.
fn write(
    job: &Job<'_>,
    entry: &Entry,
    names: &[Entry],
    buffer: &mut [u8],
) -> std::result::Result<(Attr, OwnedFd, Written), Result<()>> {
    let attr = job.image.attr(entry.entry).map_err(|error| {
        let error = error.context(job.plan.shown_all(names));
        job.skip(error)
    })?;
    let file = create(job, entry).map_err(|error| job.skip(error))?;
    let written = job
        .image
        .chunks(entry.entry.inode)
        .map_err(Fault::from)
        .and_then(|extents| content::write(job, file.as_fd(), extents, buffer))
        .map_err(|fault| {
            remove(job, entry);
            fail(job, names, fault)
        })?;
    Ok((attr, file, written))
}

/// Gives a written file its size, attributes and links.
/// Returns the links that the file system refuses to make, and which must be written as files of their own.
fn finish<'a>(
    job: &Job<'_>,
    entry: &Entry,
    links: &'a [Entry],
    attr: &Attr,
    file: BorrowedFd<'_>,
    written: Written,
) -> Result<&'a [Entry]> {
    // A hole at the end is not written.
    if written.has_holes
        && let Err(errno) = rustix::fs::ftruncate(file, written.end)
    {
        remove(job, entry);
        give_up(job);
        let text = format!("cannot make {} so large", job.plan.shown(entry));
        job.skip(Error::io(text, errno.into()))?;
        return Ok(&[]);
    }
    attributes::restore(job, file, attr, &|| job.plan.shown(entry));
    add(&job.counts.files);
    add(&job.stats.files_done);
    for (place, other) in links.iter().enumerate() {
        job.check_cancel()?;
        match link(job, entry, other) {
            Ok(()) => add(&job.counts.links),
            // The file has as many links as the file system can count, or it knows no links.
            Err(Fault::Target(Errno::MLINK | Errno::PERM | Errno::OPNOTSUPP)) => {
                return Ok(links.get(place..).unwrap_or_default());
            }
            Err(Fault::Image(error)) => job.skip(error)?,
            Err(Fault::Target(errno)) => {
                let text = format!("cannot make the link {}", job.plan.shown(other));
                job.skip(Error::io(text, errno.into()))?;
            }
        }
    }
    Ok(&[])
}

fn link(job: &Job<'_>, entry: &Entry, other: &Entry) -> std::result::Result<(), Fault> {
    let from = job.dirs.open(entry.dir)?;
    let to = job.dirs.open(other.dir)?;
    let (old, new) = (job.plan.name(entry), job.plan.name(other));
    make::replacing(to.as_fd(), new, || {
        rustix::fs::linkat(&from, old, &to, new, AtFlags::empty())
    })
    .map_err(Fault::Target)
}

/// Creates the file of an entry, empty.
pub(super) fn create(job: &Job<'_>, entry: &Entry) -> Result<OwnedFd> {
    let dir = job.dirs.open(entry.dir)?;
    make::file(dir.as_fd(), job.plan.name(entry)).map_err(|errno| {
        let text = format!("cannot make the file {}", job.plan.shown(entry));
        Error::io(text, errno.into())
    })
}

/// Removes a partial file: it must not be taken for a whole one.
fn remove(job: &Job<'_>, entry: &Entry) {
    // The error that brought us here says more than one about the removal would.
    if let Ok(dir) = job.dirs.open(entry.dir) {
        rustix::fs::unlinkat(dir.as_fd(), job.plan.name(entry), AtFlags::empty()).ok();
    }
}

/// Counts a file as done that there will not be.
pub(super) fn give_up(job: &Job<'_>) {
    add(&job.stats.files_done);
}

/// Damage in the image may be skipped; a target that cannot be written ends the extraction.
fn fail(job: &Job<'_>, entries: &[Entry], fault: Fault) -> Result<()> {
    let path = job.plan.shown_all(entries);
    match fault {
        Fault::Image(error) => job.skip(error.context(path)),
        Fault::Target(errno) => Err(Error::io(format!("cannot write {path}"), errno.into())),
    }
}
