//! Making files: creating them, giving them their attributes and links, and what becomes of them when that fails.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use durin_format::{Error, Result};
use durin_reader::Attr;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::attributes;
use crate::content::{self, BUFFER_LEN, Fault, Written};
use crate::job::{Job, add};
use crate::make;
use crate::plan::Entry;

/// Makes a file and the links to it in one go; `content` writes it. `names` are its paths.
pub(super) fn whole(
    job: &Job<'_>,
    names: &[Entry],
    written: Written,
    content: impl FnOnce(BorrowedFd<'_>) -> std::result::Result<(), Fault>,
) -> Result<()> {
    let Some(entry) = names.first() else {
        return Ok(());
    };
    let attr = match attr(job, entry, names) {
        Ok(attr) => attr,
        Err(skipped) => return skipped,
    };
    let file = create(job, entry, attributes::first_mode(job, &attr))?;
    if let Err(fault) = content(file.as_fd()) {
        remove(job, entry);
        give_up(job);
        return fail(job, names, fault);
    }
    finish(job, names, &attr, file.as_fd(), written)
}

/// Gives a file its size and attributes when all of it is written, and makes the links to it.
pub(super) fn finish_all(
    job: &Job<'_>,
    names: &[Entry],
    file: BorrowedFd<'_>,
    written: Written,
) -> Result<()> {
    let Some(entry) = names.first() else {
        return Ok(());
    };
    match attr(job, entry, names) {
        Ok(attr) => finish(job, names, &attr, file, written),
        Err(skipped) => {
            remove(job, entry);
            skipped
        }
    }
}

/// The attributes of a file, or what to make of there being none.
fn attr(job: &Job<'_>, entry: &Entry, names: &[Entry]) -> std::result::Result<Attr, Result<()>> {
    job.image.attr(entry.entry).map_err(|error| {
        give_up(job);
        job.skip(error.context(job.plan.shown_all(names)))
    })
}

fn finish(
    job: &Job<'_>,
    names: &[Entry],
    attr: &Attr,
    file: BorrowedFd<'_>,
    written: Written,
) -> Result<()> {
    let Some((entry, links)) = names.split_first() else {
        return Ok(());
    };
    match finish_one(job, entry, links, attr, file, written)? {
        [] => Ok(()),
        rest => copies(job, rest),
    }
}

/// Makes files of their own of what cannot be links. So rare that their contents come through the cache of blocks.
fn copies(job: &Job<'_>, names: &[Entry]) -> Result<()> {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut rest = names;
    while let Some((entry, links)) = rest.split_first() {
        let attr = match attr(job, entry, rest) {
            Ok(attr) => attr,
            Err(skipped) => return skipped,
        };
        let file = create(job, entry, make::PRIVATE)?;
        let written = job
            .image
            .chunks(entry.entry.inode)
            .map_err(Fault::from)
            .and_then(|extents| content::write(job, file.as_fd(), extents, &mut buffer));
        rest = match written {
            Ok(written) => finish_one(job, entry, links, &attr, file.as_fd(), written)?,
            Err(fault) => {
                remove(job, entry);
                give_up(job);
                return fail(job, rest, fault);
            }
        };
    }
    Ok(())
}

/// Gives a written file its size, attributes and links.
/// Returns the links that the file system refuses to make, and which must be written as files of their own.
fn finish_one<'a>(
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
        let text = format!("cannot make {} so large", job.plan.shown(entry));
        return Err(Error::io(text, errno.into()));
    }
    attributes::restore(job, file, attr, &|| job.plan.shown(entry));
    add(&job.counts.files);
    add(&job.stats.files_done);
    for (place, other) in links.iter().enumerate() {
        job.check_cancel()?;
        match link(job, entry, other)? {
            Ok(()) => add(&job.counts.links),
            // The file has as many links as the file system can count, or it knows no links.
            Err(Errno::MLINK | Errno::PERM | Errno::OPNOTSUPP) => {
                return Ok(links.get(place..).unwrap_or_default());
            }
            Err(errno) => {
                let what = format!("make the link {}", job.plan.shown(other));
                return Err(make::cannot(what, errno));
            }
        }
    }
    Ok(&[])
}

/// Makes a link; an error of its own is that a directory cannot be opened.
fn link(job: &Job<'_>, entry: &Entry, other: &Entry) -> Result<rustix::io::Result<()>> {
    let from = job.dirs.open(entry.dir)?;
    let to = job.dirs.open(other.dir)?;
    let (old, new) = (job.plan.name(entry), job.plan.name(other));
    Ok(make::replacing(to.as_fd(), new, job.spared, || {
        rustix::fs::linkat(&from, old, &to, new, AtFlags::empty())
    }))
}

/// Creates the file of an entry, empty.
pub(super) fn create(job: &Job<'_>, entry: &Entry, mode: Mode) -> Result<OwnedFd> {
    let dir = job.dirs.open(entry.dir)?;
    make::file(dir.as_fd(), job.plan.name(entry), job.spared, mode)
        .map_err(|errno| make::cannot(format!("make the file {}", job.plan.shown(entry)), errno))
}

/// Removes a partial file: it must not be taken for a whole one.
pub(super) fn remove(job: &Job<'_>, entry: &Entry) {
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
pub(super) fn fail(job: &Job<'_>, entries: &[Entry], fault: Fault) -> Result<()> {
    let path = job.plan.shown_all(entries);
    match fault {
        Fault::Image(error) => job.skip(error.context(path)),
        Fault::Target(errno) => Err(Error::io(format!("cannot write {path}"), errno.into())),
    }
}
