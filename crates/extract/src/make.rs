//! Making directories, symlinks and nodes, and making room for them.
//!
//! What is in the way is unlinked, never followed and never opened. Only a directory may be there already.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use durin_format::{Error, Result};
use durin_reader::{Attr, FileKind};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::attributes;
use crate::job::{Job, add};
use crate::plan::{Entry, TOP};

/// Nobody else has a business in what is new while it grows; the final modes are set at the end.
const WORKING_MODE: Mode = Mode::RWXU;

/// The mode of a file that others must not see before it is finished.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// How often something may come back into the way before we give up.
const ATTEMPTS: usize = 4;

/// Makes all directories, parents first; notes in `is_there` which of them are there, also after a failure.
pub(crate) fn directories(job: &Job<'_>, is_there: &mut [bool]) -> Result<()> {
    for (place, dir) in (TOP..).zip(&job.plan.dirs) {
        if place == TOP {
            is_there[place as usize] = true;
            continue;
        }
        job.check_cancel()?;
        // What would be in a directory that is left out is left out with it.
        if !dir.is_wanted
            || !is_there
                .get(dir.parent as usize)
                .is_some_and(|there| *there)
        {
            continue;
        }
        directory(job, place, dir.parent)?;
        is_there[place as usize] = true;
        add(&job.counts.directories);
    }
    Ok(())
}

fn directory(job: &Job<'_>, place: u32, parent: u32) -> Result<()> {
    let failed = |errno: Errno| {
        let path = job.plan.shown_dir(place);
        Error::io(format!("cannot make the directory {path}"), errno.into())
    };
    let name = job.plan.dir_name(place);
    let parent = job.dirs.open(parent)?;
    for _ in 0..ATTEMPTS {
        match rustix::fs::mkdirat(&parent, name, WORKING_MODE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(failed(errno)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                open_up(parent.as_fd(), name);
                return job.dirs.open(place).map(drop);
            }
            FileType::Symlink => {
                let path = job.plan.shown_dir(place);
                let text =
                    format!("{path}: refused to follow a symlink in the place of a directory");
                return Err(Error::invalid_input(text));
            }
            _ => unlink(parent.as_fd(), name).map_err(failed)?,
        }
    }
    Err(failed(Errno::EXIST))
}

/// Lets the owner of a directory that was there before into it. The rights of others stay, who may be at work in it.
///
/// Whether there was a need for that, and the right to do it, shows when the directory is opened: it may belong to somebody
/// else who lets everybody write.
fn open_up(parent: BorrowedFd<'_>, name: &[u8]) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(parent, name, flags, Mode::empty()) else {
        return;
    };
    let Ok(mode) = rustix::fs::fstat(&dir).map(|stat| Mode::from_raw_mode(stat.st_mode & 0o7777))
    else {
        return;
    };
    if !mode.contains(WORKING_MODE) {
        attributes::change_mode(&dir, mode | WORKING_MODE).ok();
    }
}

/// Gives all directories that are there their final attributes, children first; returns the first failure.
pub(crate) fn directory_attributes(job: &Job<'_>, is_there: &[bool], with_top: bool) -> Result<()> {
    let mut done = Ok(());
    let count = u32::try_from(job.plan.dirs.len()).unwrap_or(u32::MAX);
    for (place, dir) in (TOP..count).zip(&job.plan.dirs).rev() {
        if (place == TOP && !with_top) || !is_there.get(place as usize).is_some_and(|there| *there)
        {
            continue;
        }
        let restored = match job.image.attr(dir.entry) {
            Ok(attr) => job.dirs.open(place).map(|fd| {
                attributes::restore(job, fd.as_fd(), &attr, &|| job.plan.shown_dir(place));
            }),
            Err(error) => job.skip(error.context(job.plan.shown_dir(place))),
        };
        // One that is lost leaves the others locked up if nobody goes on.
        done = done.and(restored);
    }
    done
}

/// Makes a symlink.
pub(crate) fn symlink(job: &Job<'_>, entry: &Entry) -> Result<()> {
    let path = || job.plan.shown(entry);
    let attr = job.image.attr(entry.entry);
    let target = job.image.read_link(entry.entry.inode);
    let (attr, target) = match attr.and_then(|attr| Ok((attr, target?))) {
        Ok(read) => read,
        Err(error) => return job.skip(error.context(path())),
    };
    let dir = job.dirs.open(entry.dir)?;
    let name = job.plan.name(entry);
    replacing(dir.as_fd(), name, job.spared, || {
        rustix::fs::symlinkat(target.as_slice(), &dir, name)
    })
    .map_err(|errno| cannot(format!("make the symlink {}", path()), errno))?;
    attributes::restore_symlink(job, dir.as_fd(), name, &attr, &path);
    add(&job.counts.symlinks);
    Ok(())
}

/// Makes a device, fifo or socket.
pub(crate) fn node(job: &Job<'_>, entry: &Entry) -> Result<()> {
    let path = || job.plan.shown(entry);
    let attr = match job.image.attr(entry.entry) {
        Ok(attr) => attr,
        Err(error) => return job.skip(error.context(path())),
    };
    let dir = job.dirs.open(entry.dir)?;
    let name = job.plan.name(entry);
    let kind = node_type(&attr);
    let mode = Mode::RUSR | Mode::WUSR;
    let made = replacing(dir.as_fd(), name, job.spared, || {
        rustix::fs::mknodat(&dir, name, kind, mode, attr.rdev)
    });
    if let Err(errno) = made {
        let hint = match (errno, entry.kind) {
            (Errno::PERM, FileKind::CharDevice | FileKind::BlockDevice) => " (only root can)",
            _ => "",
        };
        let what = format!("make the {} {}{hint}", kind_name(entry.kind), path());
        let error = cannot(what, errno);
        // As with owners, which only root can give away either: what may be done is done.
        return match errno {
            Errno::PERM => job.skip(error),
            _ => Err(error),
        };
    }
    match attributes::restore_node(job, dir.as_fd(), name, &attr, &path) {
        Ok(()) => add(&job.counts.nodes),
        Err(error) => job.skip(error)?,
    }
    Ok(())
}

/// Creates an empty regular file that nobody else has open.
pub(crate) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    spared: Spared,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    replacing(dir, name, spared, || {
        rustix::fs::openat(dir, name, flags, mode)
    })
}

/// Device and inode number of the image, which nothing of its contents may replace.
pub(crate) type Spared = Option<(u64, u64)>;

/// Calls `make`, which must fail with `EEXIST` if something is there; unlinks that and tries again.
///
/// # Errors
/// `ETXTBSY` if what is there is to be spared.
pub(crate) fn replacing<T>(
    dir: BorrowedFd<'_>,
    name: &[u8],
    spared: Spared,
    mut make: impl FnMut() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    for _ in 1..ATTEMPTS {
        match make() {
            Err(Errno::EXIST) if is_file(dir, name, spared) => return Err(Errno::TXTBSY),
            Err(Errno::EXIST) => unlink(dir, name)?,
            done => return done,
        }
    }
    make()
}

/// Says that something cannot be made in the target.
pub(crate) fn cannot(what: String, errno: Errno) -> Error {
    let why = match errno {
        Errno::TXTBSY => ", as it would replace the image that is read",
        _ => "",
    };
    Error::io(format!("cannot {what}{why}"), errno.into())
}

fn is_file(dir: BorrowedFd<'_>, name: &[u8], id: Spared) -> bool {
    id.is_some()
        && rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| id == Some((stat.st_dev, stat.st_ino)))
}

fn unlink(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        // Somebody else has made room.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // What POSIX says instead of EISDIR.
        Err(Errno::PERM) if is_dir(dir, name) => Err(Errno::ISDIR),
        Err(errno) => Err(errno),
    }
}

fn is_dir(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn node_type(attr: &Attr) -> FileType {
    match attr.kind {
        FileKind::CharDevice => FileType::CharacterDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::Socket => FileType::Socket,
        _ => FileType::Fifo,
    }
}

/// What a node is called in messages.
pub(crate) fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::CharDevice | FileKind::BlockDevice => "device",
        FileKind::Socket => "socket",
        FileKind::Symlink => "symlink",
        _ => "fifo",
    }
}
