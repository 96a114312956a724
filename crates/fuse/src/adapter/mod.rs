//! From requests to answers: which of [`crate::fs::Fs`]'s calls it is, and its result in the protocol's words.
//!
//! An image never changes, so everything the kernel learns stays valid for as long as it is mounted: entries, absent
//! names, attributes, link targets, directories and pages. Where the kernel offers it, it is told not to ask for opening at
//! all: that alone saves two of the five requests that reading a small file takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use durin_reader::{Attr, FileKind, Time};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::fs::{Caching, DirItem, Fs, Full, Node, Seek};
use crate::node::ROOT;
use crate::protocol::{
    Attributes, Entry, InitFlags, OpenReply, Reply, Request, StatFs, Validity, opcode,
};
use crate::server::beside::Counts;
use crate::walkers::Walkers;
use crate::xattr::{DRIVER_SESSION, room_to_grow};

use agreement::Agreed;

pub(crate) use agreement::ANSWER_LEN_MAX;

mod agreement;
#[cfg(test)]
mod tests;

/// No request for more can come: the kernel's own ceiling of pages a request is far below.
const READ_MAX: usize = 16 << 20;

/// Operations that are counted apart; what is beyond counts as 0.
const OPCODE_COUNT: usize = 64;

/// `lseek(2)`: the whence that looks for data.
const SEEK_DATA: u32 = 3;

/// `lseek(2)`: the whence that looks for a hole.
const SEEK_HOLE: u32 = 4;

/// Turns requests into answers.
pub(crate) struct Adapter {
    fs: Fs,
    rules: Rules,
    walkers: Walkers,
    agreed: Agreed,
    /// How many requests of each operation came.
    counts: [AtomicU64; OPCODE_COUNT],
    /// How it is served, for [`Self::session`].
    transport: serde_json::Value,
    /// Whether requests come through io_uring.
    io_uring: Mutex<String>,
    /// How often threads sat down beside clients.
    beside: Arc<Counts>,
}

/// What the mount's options mean for requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) opening: Opening,
    pub(crate) access: Access,
    /// Whether the kernel checks modes and owners.
    pub(crate) default_permissions: bool,
}

/// What is left to check when files and directories are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Nothing: the kernel lets in whom it should, and keeps writers out.
    Free,
    /// Writers must be refused.
    ForReading,
    /// Also users must be, or `fusermount3` finds out by opening whether the driver is still there.
    Guarded,
}

/// Whose requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Those of everybody whom the kernel lets in.
    All,
    /// Those of one user, and of root if it says so.
    User { uid: u32, root: bool },
}

/// What to do with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Send,
    /// The kernel waits for none.
    Nothing,
}

impl Adapter {
    /// Serves `fs`.
    pub(crate) fn new(fs: Fs, rules: Rules) -> Self {
        Self {
            fs,
            rules,
            walkers: Walkers::default(),
            agreed: Agreed::default(),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            transport: serde_json::Value::Null,
            io_uring: Mutex::default(),
            beside: Arc::default(),
        }
    }

    /// Where is counted how often threads sit down beside clients.
    pub(crate) fn beside(&self) -> Arc<Counts> {
        Arc::clone(&self.beside)
    }

    /// The threads that decode ahead, of those that have begun.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        self.fs.image().cache().worker_threads()
    }

    /// Starts the threads that decode ahead; see [`durin_reader::BlockCache::start_workers`].
    pub(crate) fn start_workers(&self) {
        self.fs.image().cache().start_workers();
    }

    /// Keeps what is to be told about how requests come.
    pub(crate) fn describe_transport(&mut self, transport: serde_json::Value) {
        self.transport = transport;
    }

    /// Answers a request; `slow` is called before what may take long.
    pub(crate) fn answer(
        &self,
        request: &Request<'_>,
        reply: &mut Reply,
        slow: &mut dyn FnMut(),
    ) -> (Then, Result<(), Errno>) {
        reply.clear();
        let code = usize::try_from(request.opcode).unwrap_or(0);
        if let Some(count) = self.counts.get(code).or(self.counts.first()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let waits = !matches!(
            request.opcode,
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT | opcode::NOTIFY_REPLY
        );
        if !waits {
            // Node numbers are never given anew, so there is nothing to forget; what is being done is not worth stopping.
            return (Then::Nothing, Ok(()));
        }
        let result = if self.is_let_in(request) {
            self.dispatch(request, reply, slow)
        } else {
            Err(Errno::ACCESS)
        };
        (Then::Send, result)
    }

    fn is_let_in(&self, request: &Request<'_>) -> bool {
        let Access::User { uid, root } = self.rules.access else {
            return true;
        };
        // These the kernel sends on its own, or for what has been opened with leave.
        let is_exempt = matches!(
            request.opcode,
            opcode::READ
                | opcode::READDIR
                | opcode::READDIRPLUS
                | opcode::RELEASE
                | opcode::RELEASEDIR
                | opcode::FSYNC
                | opcode::FSYNCDIR
                | opcode::DESTROY
        );
        is_exempt || request.uid == uid || (root && request.uid == 0)
    }

    fn dispatch(
        &self,
        request: &Request<'_>,
        reply: &mut Reply,
        slow: &mut dyn FnMut(),
    ) -> Result<(), Errno> {
        match request.opcode {
            opcode::LOOKUP => self.lookup(request, reply),
            opcode::GETATTR => {
                let node = self.fs.node(request.node)?;
                reply.attributes(&self.attributes(&node));
                Ok(())
            }
            opcode::READLINK => {
                reply.data(&self.fs.read_link(request.node)?);
                Ok(())
            }
            opcode::OPEN => self.open(request, reply),
            opcode::READ => self.read(request, reply, slow),
            opcode::OPENDIR => self.open_dir(request, reply),
            opcode::READDIR => self.read_dir(request, reply),
            opcode::READDIRPLUS => self.read_dir_plus(request, reply),
            opcode::STATFS => {
                let stat = self.fs.stat_fs();
                reply.stat_fs(&StatFs {
                    blocks: stat.blocks,
                    files: stat.files,
                    name_max: stat.name_max,
                });
                Ok(())
            }
            opcode::GETXATTR => self.xattr(request, reply),
            opcode::LISTXATTR => {
                let size = request.fields().u32().ok_or(Errno::INVAL)?;
                xattr(&self.fs.xattr_names(request.node)?, size, 0, reply)
            }
            opcode::LSEEK => self.seek(request, reply),
            opcode::RELEASE | opcode::RELEASEDIR | opcode::DESTROY => Ok(()),
            // Reached only on a mount with `rw`: `ro` ends these in the kernel.
            opcode::SETATTR
            | opcode::SYMLINK
            | opcode::MKNOD
            | opcode::MKDIR
            | opcode::UNLINK
            | opcode::RMDIR
            | opcode::RENAME
            | opcode::RENAME2
            | opcode::LINK
            | opcode::CREATE
            | opcode::TMPFILE
            | opcode::WRITE
            | opcode::FALLOCATE
            | opcode::COPY_FILE_RANGE
            | opcode::SETXATTR
            | opcode::REMOVEXATTR => Err(Errno::ROFS),
            // Flushing, locks, polling and all that is younger: the kernel does without, and mostly does not ask again.
            _ => Err(Errno::NOSYS),
        }
    }

    fn lookup(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let name = request.fields().name().ok_or(Errno::INVAL)?;
        match self.fs.lookup(request.node, name)? {
            Some(node) => {
                if node.attr.kind != FileKind::Directory {
                    self.walkers.looked_up(request.pid);
                }
                reply.entry(&self.attributes(&node));
            }
            None => reply.absent(),
        }
        Ok(())
    }

    fn open(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        if self.agreed.flags.contains(InitFlags::NO_OPEN_SUPPORT) {
            return Err(Errno::NOSYS);
        }
        let flags = request.fields().u32().ok_or(Errno::INVAL)?;
        let how = match self
            .fs
            .open(request.node, OFlags::from_bits_retain(flags))?
        {
            Caching::Keep => OpenReply::KeepCache,
            Caching::Direct => OpenReply::Direct,
        };
        reply.opened(how);
        Ok(())
    }

    fn open_dir(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        if self.agreed.flags.contains(InitFlags::NO_OPENDIR_SUPPORT) {
            return Err(Errno::NOSYS);
        }
        self.fs.open_dir(request.node)?;
        reply.opened(OpenReply::CacheDirectory);
        Ok(())
    }

    fn read(
        &self,
        request: &Request<'_>,
        reply: &mut Reply,
        slow: &mut dyn FnMut(),
    ) -> Result<(), Errno> {
        let Range { offset, len } = Range::parse(request)?;
        let ready = self.fs.read_ready(request.node, offset, len, reply)?;
        if ready.is_none() {
            slow();
            reply.clear();
            self.fs.read(request.node, offset, len, reply)?;
        }
        Ok(())
    }

    fn read_dir(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let range = Range::parse(request)?;
        self.fs.read_dir(request.node, range.offset, &mut |item| {
            let kind = self.fs.kind(item.entry)?;
            Ok(full(!reply.line(&line(item, kind), range.len)))
        })
    }

    fn read_dir_plus(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let range = Range::parse(request)?;
        let all = self.walkers.wants_attributes(request.pid);
        self.fs.read_dir(request.node, range.offset, &mut |item| {
            let kind = self.fs.kind(item.entry)?;
            // The kernel has `.` and `..` already.
            let wanted = (all || kind == FileKind::Directory) && !matches!(item.name, b"." | b"..");
            let attr = if wanted {
                Some(self.attributes(&self.fs.node_of(item.entry)?))
            } else {
                None
            };
            Ok(full(!reply.line_plus(
                &line(item, kind),
                attr.as_ref(),
                range.len,
            )))
        })
    }

    fn xattr(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        let mut fields = request.fields();
        let size = fields.u32().ok_or(Errno::INVAL)?;
        let name = fields
            .u32()
            .and_then(|_| fields.name())
            .ok_or(Errno::INVAL)?;
        let room = room_to_grow(name);
        if request.node == ROOT && name == DRIVER_SESSION.as_bytes() {
            return xattr(self.session().as_bytes(), size, room, reply);
        }
        xattr(&self.fs.xattr(request.node, name)?, size, room, reply)
    }

    fn seek(&self, request: &Request<'_>, reply: &mut Reply) -> Result<(), Errno> {
        // Without holes in the image the kernel can answer from the size alone, and does not ask again.
        if !self.fs.has_holes() {
            return Err(Errno::NOSYS);
        }
        let mut fields = request.fields();
        let offset = fields
            .u64()
            .and_then(|_| fields.u64())
            .ok_or(Errno::INVAL)?;
        let seek = match fields.u32() {
            Some(SEEK_DATA) => Seek::Data,
            Some(SEEK_HOLE) => Seek::Hole,
            _ => return Err(Errno::INVAL),
        };
        let found = self.fs.seek(request.node, offset.cast_signed(), seek)?;
        i64::try_from(found).map_err(|_| Errno::OVERFLOW)?;
        reply.u64(found);
        Ok(())
    }

    fn attributes(&self, node: &Node) -> Attributes {
        let attr = &node.attr;
        Attributes {
            validity: self.validity(),
            node: node.number,
            size: attr.size,
            blocks: attr.allocated.div_ceil(512),
            times: [attr.atime, attr.mtime, attr.ctime].map(|Time { sec, nsec }| (sec, nsec)),
            mode: attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            // The protocol has 32 bits: 12 of the major and 20 of the minor number, all that Linux has.
            rdev: u32::try_from(attr.rdev).unwrap_or(0),
            block_size: self.block_size(attr),
        }
    }

    /// The kernel shows what it keeps to everybody; where not all are let in, it is to ask each time.
    fn validity(&self) -> Validity {
        match self.rules.access {
            Access::All => Validity::Forever,
            Access::User { .. } => Validity::Once,
        }
    }

    /// `st_blksize`, which for a directory is the size of the buffer that the C library lists it with, and of the one that
    /// the kernel makes for each request: 512 KiB took longer to allocate than most directories to list.
    fn block_size(&self, attr: &Attr) -> u32 {
        /// An entry with its attributes and a usual name, in bytes.
        const ENTRY_BYTES: u64 = 256;
        const BYTES_MIN: u32 = 4096;
        let most = self.fs.options().blocksize;
        if attr.kind != FileKind::Directory {
            return most;
        }
        let wanted = attr.size.saturating_mul(ENTRY_BYTES).min(most.into());
        let wanted = u32::try_from(wanted).unwrap_or(most);
        // Programs expect a power of two.
        wanted
            .checked_next_power_of_two()
            .unwrap_or(most)
            .clamp(BYTES_MIN, most.max(BYTES_MIN))
    }
}

/// The part of a file or directory that is asked for.
struct Range {
    offset: u64,
    len: usize,
}

impl Range {
    fn parse(request: &Request<'_>) -> Result<Self, Errno> {
        let mut fields = request.fields();
        let _handle = fields.u64();
        let offset = fields.u64().ok_or(Errno::INVAL)?;
        let len = fields.u32().ok_or(Errno::INVAL)?;
        Ok(Self {
            offset,
            len: usize::try_from(len).unwrap_or(READ_MAX).min(READ_MAX),
        })
    }
}

fn line<'a>(item: &DirItem<'a>, kind: FileKind) -> Entry<'a> {
    Entry {
        node: item.number,
        next_offset: item.next_offset,
        kind: kind.mode_bits() >> 12,
        name: item.name,
    }
}

fn full(is_full: bool) -> Full {
    if is_full { Full::Yes } else { Full::No }
}

/// Answers with a value if there is room for it, or with its size and some more if that is what was asked.
fn xattr(value: &[u8], size: u32, room: u32, reply: &mut Reply) -> Result<(), Errno> {
    let len = u32::try_from(value.len()).map_err(|_| Errno::TOOBIG)?;
    if size == 0 {
        reply.u32(len.saturating_add(room));
        reply.u32(0);
    } else if len <= size {
        reply.data(value);
    } else {
        return Err(Errno::RANGE);
    }
    Ok(())
}
