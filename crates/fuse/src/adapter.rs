//! The FUSE protocol in front of [`crate::fs::Fs`]: one call each way, no logic of its own.
//!
//! An image never changes, so everything the kernel learns stays valid for as long as it is mounted: entries, absent
//! names, attributes, link targets, directories and pages. Where the kernel offers it, it is told not to ask for opening at
//! all: that alone saves two of the five requests that reading a small file takes.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use durin_reader::{FileKind, Time};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;

use crate::fs::{Caching, Fs, Full, Node, Seek};

/// How long the kernel may believe an answer: for good. (It counts in jiffies and clamps what is larger.)
const FOREVER: Duration = Duration::from_secs(i32::MAX as u64);

/// Requests that the kernel may have under way without a process waiting, read-ahead above all.
/// The default of 16 stalls two sequential readers of large files.
const BACKGROUND_MAX: u16 = 64;

/// No request for more can come: the kernel's own ceiling of pages a request is far below.
const READ_MAX: usize = 16 << 20;

/// `lseek(2)`: the whence that looks for data.
const SEEK_DATA: i32 = 3;

/// `lseek(2)`: the whence that looks for a hole.
const SEEK_HOLE: i32 = 4;

/// What the kernel may do on its own; each is asked for if it is on offer.
const WANTED: [InitFlags; 8] = [
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_EXPORT_SUPPORT,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_MAX_PAGES,
];

thread_local! {
    /// One buffer a server thread, so that a read allocates nothing and clears nothing.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Translates the kernel's requests.
pub struct Adapter {
    fs: Fs,
    opening: Opening,
    /// Whether opening files is answered with "not implemented", which ends such requests.
    no_open: bool,
    /// The same for directories.
    no_open_dir: bool,
}

/// What is left to check when files and directories are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing: the kernel lets in whom it should, and keeps writers out.
    Free,
    /// Writers must be refused.
    ForReading,
    /// Also users must be, or `fusermount3` finds out by opening whether the driver is still there.
    Guarded,
}

impl Adapter {
    /// Serves `fs`.
    #[must_use]
    pub fn new(fs: Fs, opening: Opening) -> Self {
        Self {
            fs,
            opening,
            no_open: false,
            no_open_dir: false,
        }
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let offered = config.capabilities();
        let mut wanted = WANTED
            .into_iter()
            .fold(InitFlags::empty(), |all, one| all | one);
        self.no_open = self.opening == Opening::Free
            && self.fs.caches_everything()
            && offered.contains(InitFlags::FUSE_NO_OPEN_SUPPORT);
        if self.no_open {
            wanted |= InitFlags::FUSE_NO_OPEN_SUPPORT;
        }
        self.no_open_dir = self.opening != Opening::Guarded
            && offered.contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        if self.no_open_dir {
            wanted |= InitFlags::FUSE_NO_OPENDIR_SUPPORT;
        }
        // Limited to what is on offer, this cannot fail; if it did, the defaults would do.
        config.add_capabilities(wanted & offered).ok();
        config.set_max_background(BACKGROUND_MAX).ok();
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.fs.lookup(parent.0, name.as_bytes()) {
            Ok(Some(node)) => reply.entry(&FOREVER, &file_attr(&self.fs, &node), Generation(0)),
            // Node 0 is "no such name", which the kernel remembers; an error it would ask for again.
            Ok(None) => reply.entry(&FOREVER, &absent(), Generation(0)),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.fs.node(ino.0) {
            Ok(node) => reply.attr(&FOREVER, &file_attr(&self.fs, &node)),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.fs.read_link(ino.0) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.no_open {
            return reply.error(Errno::ENOSYS);
        }
        match self.fs.open(ino.0, open_flags(flags)) {
            Ok(Caching::Keep) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Ok(Caching::Direct) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size = usize::try_from(size).unwrap_or(READ_MAX).min(READ_MAX);
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let Some(buf) = buffer.get_mut(..size) else {
                return reply.error(Errno::EIO);
            };
            match self.fs.read(ino.0, offset, buf) {
                Ok(len) => reply.data(buf.get(..len).unwrap_or_default()),
                Err(errno) => reply.error(fail(errno)),
            }
        });
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Nothing is ever unwritten; the kernel does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.no_open_dir {
            return reply.error(Errno::ENOSYS);
        }
        match self.fs.open_dir(ino.0) {
            Ok(()) => reply.opened(
                FileHandle(0),
                FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
            ),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let read = self.fs.read_dir(ino.0, offset, &mut |item| {
            let kind = file_type(self.fs.kind(item.entry)?);
            let name = OsStr::from_bytes(item.name);
            Ok(full(reply.add(
                INodeNo(item.number),
                item.next_offset,
                kind,
                name,
            )))
        });
        match read {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let read = self.fs.read_dir(ino.0, offset, &mut |item| {
            let attr = file_attr(&self.fs, &self.fs.node_of(item.entry)?);
            let name = OsStr::from_bytes(item.name);
            let number = INodeNo(item.number);
            Ok(full(reply.add(
                number,
                item.next_offset,
                name,
                &FOREVER,
                &attr,
                Generation(0),
            )))
        });
        match read {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let stat = self.fs.stat_fs();
        reply.statfs(stat.blocks, 0, 0, stat.files, 0, 1, stat.name_max, 1);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        match self.fs.xattr(ino.0, name.as_bytes()) {
            Ok(value) => reply_xattr(&value, size, reply),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        reply_xattr(&self.fs.xattr_names(ino.0), size, reply);
    }

    fn lseek(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        // Without holes in the image the kernel can answer from the size alone, and does not ask again.
        if !self.fs.has_holes() {
            return reply.error(Errno::ENOSYS);
        }
        let seek = match whence {
            SEEK_DATA => Seek::Data,
            SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        match self.fs.seek(ino.0, offset, seek).map(i64::try_from) {
            Ok(Ok(found)) => reply.offset(found),
            Ok(Err(_)) => reply.error(Errno::EOVERFLOW),
            Err(errno) => reply.error(fail(errno)),
        }
    }

    // What follows would change the tree. It is reached only on a mount with `rw`: `ro` ends it in the kernel.

    fn setattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mknod(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mkdir(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn unlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rmdir(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn symlink(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn rename(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn link(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn create(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EROFS);
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        _data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::EROFS);
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn setxattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn removexattr(&self, _req: &Request, _ino: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }
}

fn fail(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

fn full(is_full: bool) -> Full {
    if is_full { Full::Yes } else { Full::No }
}

fn open_flags(flags: OpenFlags) -> OFlags {
    OFlags::from_bits_retain(flags.0.cast_unsigned())
}

/// Answers with the size if that is what was asked, else with the value if there is room for it.
fn reply_xattr(value: &[u8], size: u32, reply: ReplyXattr) {
    let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
    if size == 0 {
        reply.size(len);
    } else if len <= size {
        reply.data(value);
    } else {
        reply.error(Errno::ERANGE);
    }
}

fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Regular => FileType::RegularFile,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
    }
}

fn file_attr(fs: &Fs, node: &Node) -> FileAttr {
    let attr = &node.attr;
    FileAttr {
        ino: INodeNo(node.number),
        size: attr.size,
        blocks: attr.allocated.div_ceil(512),
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: file_type(attr.kind),
        perm: permissions(attr.mode),
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        // The protocol has 32 bits: 12 of the major and 20 of the minor number, all that Linux has.
        rdev: u32::try_from(attr.rdev).unwrap_or(0),
        blksize: fs.options().blocksize,
        flags: 0,
    }
}

/// The attributes beside node 0, which nobody looks at.
fn absent() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

fn permissions(mode: u32) -> u16 {
    u16::try_from(mode & 0o7777).unwrap_or(0)
}

/// Times that `SystemTime` cannot hold do not exist on a 64-bit Linux; they would show as the epoch.
fn system_time(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.sec.unsigned_abs());
    let seconds = if time.sec < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    seconds
        .and_then(|seconds| seconds.checked_add(Duration::from_nanos(u64::from(time.nsec))))
        .unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_keep_their_nanoseconds() {
        let time = system_time(Time {
            sec: -2,
            nsec: 300_000_000,
        });
        let before = UNIX_EPOCH
            .duration_since(time)
            .map_err(|error| error.duration());
        assert_eq!(before, Ok(Duration::from_millis(1700)));
    }

    #[test]
    fn extreme_times_do_not_panic() {
        for sec in [i64::MIN, i64::MAX] {
            system_time(Time {
                sec,
                nsec: 999_999_999,
            });
        }
    }
}
