//! Owner, mode and times of what has been made.
//!
//! The order matters: changing the owner clears setuid and setgid, so the mode comes second; and both are changes that a
//! file system may note in the times, so these come last. Whatever fails here leaves a usable file behind, so it is
//! reported and not fatal.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use durin_format::{Error, Result};
use durin_reader::{Attr, Time};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use crate::job::{Job, add};

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// How something is opened that is only named, and neither read nor followed.
const NAMED_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Times up to here fit every file system there is; beyond, it is worth looking what became of them.
const SAFE_TIMES: std::ops::RangeInclusive<i64> = 0..=0x7fff_ffff;

/// The mode to make a file with that is written and finished in one go: the final one saves changing it, as far as the
/// user's mask lets it be. What will belong to somebody else is private until then.
pub(crate) fn first_mode(job: &Job<'_>, attr: &Attr) -> Mode {
    if job.owners && (attr.uid, attr.gid) != job.own {
        return Mode::RUSR | Mode::WUSR;
    }
    Mode::from_raw_mode(attr.mode & 0o777)
}

/// Restores the attributes of an open file or directory.
pub(crate) fn restore(job: &Job<'_>, fd: BorrowedFd<'_>, attr: &Attr, path: &dyn Fn() -> String) {
    let mut kept = attr.mode & 0o7777;
    // Looking takes a tenth of the time of a change that changes nothing, which file systems write to their journal.
    let stat = rustix::fs::fstat(fd).ok();
    let is_owner = |stat: &rustix::fs::Stat| stat.st_uid == attr.uid && stat.st_gid == attr.gid;
    let is_owner_right = stat.as_ref().is_some_and(is_owner);
    let mut belongs = is_owner_right;
    if job.owners && !is_owner_right {
        let owner = owner(attr).and_then(|(uid, gid)| rustix::fs::fchown(fd, uid, gid));
        belongs = owner.is_ok();
        if let Err(errno) = owner {
            job.imperfect(&failed("owner", path, errno));
        }
    }
    if !belongs {
        kept &= !foreign_bits(stat.as_ref(), attr);
    }
    // Changing the owner clears bits of the mode.
    let is_mode = |stat: &rustix::fs::Stat| stat.st_mode & 0o7777 == kept;
    let is_mode_right = (is_owner_right || !job.owners) && stat.as_ref().is_some_and(is_mode);
    if !is_mode_right && let Err(errno) = rustix::fs::fchmod(fd, Mode::from_raw_mode(kept)) {
        job.imperfect(&failed("mode", path, errno));
    }
    match rustix::fs::futimens(fd, &times(attr)) {
        Ok(()) => note_clamped(job, attr, || rustix::fs::fstat(fd)),
        Err(errno) => job.imperfect(&failed("times", path, errno)),
    }
}

/// Restores the attributes of a symlink: owner and times, as its mode means nothing.
pub(crate) fn restore_symlink(
    job: &Job<'_>,
    dir: BorrowedFd<'_>,
    name: &[u8],
    attr: &Attr,
    path: &dyn Fn() -> String,
) {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    if job.owners {
        let owner = owner(attr).and_then(|(uid, gid)| {
            // Whoever may write to the directory, which may have been there before, could put another file in its place.
            let link = rustix::fs::openat(dir, name, NAMED_FLAGS, Mode::empty())?;
            let mode = rustix::fs::fstat(&link)?.st_mode;
            if FileType::from_raw_mode(mode) != FileType::Symlink {
                return Err(Errno::EXIST);
            }
            rustix::fs::chownat(&link, "", uid, gid, AtFlags::EMPTY_PATH)
        });
        if let Err(errno) = owner {
            job.imperfect(&failed("owner", path, errno));
        }
    }
    match rustix::fs::utimensat(dir, name, &times(attr), flags) {
        Ok(()) => note_clamped(job, attr, || rustix::fs::statat(dir, name, flags)),
        Err(errno) => job.imperfect(&failed("times", path, errno)),
    }
}

/// Restores the attributes of a device, fifo or socket.
///
/// They cannot be opened like a file, for that would wake a driver or wait for a writer. A descriptor that only names the
/// node makes sure that it is the one just made; the changes go through the process's table of descriptors.
pub(crate) fn restore_node(
    job: &Job<'_>,
    dir: BorrowedFd<'_>,
    name: &[u8],
    attr: &Attr,
    path: &dyn Fn() -> String,
) -> Result<()> {
    let node = rustix::fs::openat(dir, name, NAMED_FLAGS, Mode::empty())
        .map_err(|errno| failed("attributes", path, errno))?;
    let is_same = rustix::fs::fstat(&node)
        .is_ok_and(|stat| stat.st_mode & 0o170_000 == attr.mode & 0o170_000);
    if !is_same {
        return Err(failed("attributes", path, Errno::EXIST));
    }
    if job.owners {
        let owner = owner(attr).and_then(|(uid, gid)| {
            rustix::fs::chownat(node.as_fd(), "", uid, gid, AtFlags::EMPTY_PATH)
        });
        if let Err(errno) = owner {
            job.imperfect(&failed("owner", path, errno));
        }
    }
    if let Err(errno) = change_mode(&node, Mode::from_raw_mode(attr.mode & 0o7777)) {
        job.imperfect(&failed("mode", path, errno));
    }
    match rustix::fs::utimensat(CWD, through(&node), &times(attr), AtFlags::empty()) {
        Ok(()) => note_clamped(job, attr, || rustix::fs::fstat(&node)),
        Err(errno) => job.imperfect(&failed("times", path, errno)),
    }
    Ok(())
}

/// Changes the mode of what a descriptor only names.
pub(crate) fn change_mode(named: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmodat(CWD, through(named), mode, AtFlags::empty())
}

/// The path of a descriptor in the process's table of them.
fn through(named: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", named.as_raw_fd())
}

/// All ones means "unchanged" to the kernel, so that no file can have it.
fn owner(attr: &Attr) -> std::result::Result<(Option<Uid>, Option<Gid>), Errno> {
    if attr.uid == u32::MAX || attr.gid == u32::MAX {
        return Err(Errno::INVAL);
    }
    Ok((Some(Uid::from_raw(attr.uid)), Some(Gid::from_raw(attr.gid))))
}

/// The bits that would lend the rights of whom `stat` says it belongs to, where that is not the owner in the image.
fn foreign_bits(stat: Option<&rustix::fs::Stat>, attr: &Attr) -> u32 {
    let Some(stat) = stat else {
        return SETUID | SETGID;
    };
    let mut bits = 0;
    if attr.uid != stat.st_uid {
        bits |= SETUID;
    }
    if attr.gid != stat.st_gid {
        bits |= SETGID;
    }
    bits
}

fn times(attr: &Attr) -> Timestamps {
    Timestamps {
        last_access: timespec(attr.atime),
        last_modification: timespec(attr.mtime),
    }
}

fn timespec(time: Time) -> Timespec {
    Timespec {
        tv_sec: time.sec,
        // Beyond this there are values with a meaning of their own.
        tv_nsec: time.nsec.min(999_999_999).into(),
    }
}

/// Counts a time that the file system has silently moved to the nearest one it can hold.
fn note_clamped(
    job: &Job<'_>,
    attr: &Attr,
    stat: impl FnOnce() -> rustix::io::Result<rustix::fs::Stat>,
) {
    if SAFE_TIMES.contains(&attr.mtime.sec) && SAFE_TIMES.contains(&attr.atime.sec) {
        return;
    }
    if stat().is_ok_and(|stat| i128::from(stat.st_mtime) != i128::from(attr.mtime.sec)) {
        add(&job.counts.clamped_times);
    }
}

fn failed(what: &str, path: &dyn Fn() -> String, errno: Errno) -> Error {
    Error::io(format!("{}: cannot restore {what}", path()), errno.into())
}
