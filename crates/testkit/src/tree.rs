//! A directory tree as the kernel shows it: every attribute, the content as a digest, holes as they are.
//!
//! In goes a directory, out comes a list of nodes in the order of their paths.
//! Nothing here knows images. Memory is one node a path; contents are streamed; of a sparse file only its data is read.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A regular file.
    File,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl Kind {
    /// Returns the kind that the type bits of `st_mode` name.
    #[must_use]
    pub const fn of_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o100_000 => Self::File,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            _ => return None,
        })
    }

    /// Returns the name that manifests use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::File => "file",
            Self::CharDevice => "chardev",
            Self::BlockDevice => "blockdev",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
        }
    }
}

/// A point in time: seconds since 1970 (negative before), and nanoseconds after that second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970.
    pub sec: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nsec: u32,
}

impl Time {
    /// Returns the time rounded down to a multiple of `resolution_ns`.
    #[must_use]
    pub fn floor(self, resolution_ns: u64) -> Self {
        let total = i128::from(self.sec) * 1_000_000_000 + i128::from(self.nsec);
        let floor = total - total.rem_euclid(i128::from(resolution_ns.max(1)));
        Self {
            sec: i64::try_from(floor.div_euclid(1_000_000_000)).unwrap_or(i64::MIN),
            nsec: u32::try_from(floor.rem_euclid(1_000_000_000)).unwrap_or(0),
        }
    }
}

/// How contents are digested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Not at all: a tree of a million files is listed, not read.
    None,
    /// SHA-256 of every aligned 4 KiB that is not all zero, with its position.
    /// Equal contents give equal digests wherever the holes are, and a file of 1 TiB with three bytes is cheap.
    Positions,
    /// Plain SHA-256 of the content, holes as zeros: what manifests hold.
    Full,
}

/// What [`snapshot`] shall read.
#[derive(Debug, Clone, Copy)]
pub struct TreeOptions {
    /// How contents are digested.
    pub digest: Digest,
}

/// One path of a tree.
#[derive(Debug, Clone)]
pub struct Node {
    /// Path from the top without a leading slash; empty for the top itself.
    pub path: Vec<u8>,
    /// File type.
    pub kind: Kind,
    /// Type and permissions (`st_mode`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Access time, taken before anything was read.
    pub atime: Time,
    /// Modification time.
    pub mtime: Time,
    /// Change time.
    pub ctime: Time,
    /// `st_size`.
    pub size: u64,
    /// Bytes that `st_blocks` says are allocated.
    pub allocated: u64,
    /// `st_nlink`.
    pub nlink: u64,
    /// `st_rdev`, 0 unless a device.
    pub rdev: u64,
    /// `st_ino`.
    pub ino: u64,
    /// Index in [`Tree::nodes`] of the first path of the same inode; its own index when it is alone or the first.
    pub link_leader: usize,
    /// Target of a symlink.
    pub target: Vec<u8>,
    /// Digest of the content of a regular file, unless [`Digest::None`].
    pub digest: Option<[u8; 32]>,
    /// Ranges of a regular file that are not holes (`SEEK_DATA`, `SEEK_HOLE`), unless [`Digest::None`].
    pub data: Vec<Range<u64>>,
}

impl Node {
    /// Bytes outside holes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data.iter().map(|range| range.end - range.start).sum()
    }
}

/// A whole tree, its nodes in the order of their paths' bytes.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// All nodes; the first is the top.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Finds a node by its path.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<&Node> {
        let found = self
            .nodes
            .binary_search_by(|node| node.path.as_slice().cmp(path));
        found.ok().and_then(|index| self.nodes.get(index))
    }
}

/// Reads the tree below `top`, which must be a directory.
///
/// Directories are entered by descriptor and symlinks never followed, so that paths longer than `PATH_MAX` work too.
///
/// # Errors
///
/// The first thing that could not be read, with its path.
pub fn snapshot(top: &Path, options: &TreeOptions) -> io::Result<Tree> {
    let top_fd = rustix::fs::open(top, dir_flags(), Mode::empty())
        .map_err(|error| failed(top.as_os_str().as_encoded_bytes(), error))?;
    let stat = rustix::fs::fstat(&top_fd)?;
    let mut nodes = vec![node_of(Vec::new(), &stat)?];
    let mut devs = vec![stat.st_dev];
    let mut open = vec![OpenDir::enter(top_fd, Vec::new())?];
    while let Some(dir) = open.last_mut() {
        let Some(name) = dir.names.pop() else {
            open.pop();
            continue;
        };
        let path = joined(&dir.path, name.as_bytes());
        let stat = rustix::fs::statat(&dir.fd, &name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| failed(&path, error))?;
        let mut node = node_of(path.clone(), &stat).map_err(|error| named(&path, &error))?;
        let subdir = read_content(dir, &name, &mut node, options.digest)
            .map_err(|error| named(&path, &error))?;
        nodes.push(node);
        devs.push(stat.st_dev);
        if let Some(fd) = subdir {
            open.push(OpenDir::enter(fd, path)?);
        }
    }
    let mut sorted: Vec<_> = nodes.into_iter().zip(devs).collect();
    sorted.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    let (mut nodes, devs): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
    find_link_leaders(&mut nodes, &devs);
    Ok(Tree { nodes })
}

/// A directory being walked: the names not visited yet, last first.
struct OpenDir {
    fd: OwnedFd,
    path: Vec<u8>,
    names: Vec<CString>,
}

impl OpenDir {
    fn enter(fd: OwnedFd, path: Vec<u8>) -> io::Result<Self> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&fd).map_err(|error| failed(&path, error))? {
            let entry = entry.map_err(|error| failed(&path, error))?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry.file_name().to_owned());
            }
        }
        Ok(Self { fd, path, names })
    }
}

/// Reads what is inside a node; gives the descriptor of a directory to enter.
fn read_content(
    dir: &OpenDir,
    name: &CString,
    node: &mut Node,
    digest: Digest,
) -> io::Result<Option<OwnedFd>> {
    match node.kind {
        Kind::Directory => Ok(Some(open_quietly(&dir.fd, name, dir_flags())?)),
        Kind::Symlink => {
            node.target = rustix::fs::readlinkat(&dir.fd, name, Vec::new())?.into_bytes();
            Ok(None)
        }
        Kind::File if digest != Digest::None => {
            let file = open_quietly(&dir.fd, name, OFlags::RDONLY | OFlags::NOFOLLOW)?;
            node.data = data_ranges(&file, node.size)?;
            node.digest = Some(match digest {
                Digest::Full => full_digest(&file, node)?,
                _ => positions_digest(&file, node)?,
            });
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens without touching the access time where the kernel allows it: the next snapshot shall see the same tree.
fn open_quietly(dir: &OwnedFd, name: &CString, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::openat(dir, name, flags, Mode::empty()),
        other => other,
    }
}

/// Lists the ranges of a file that are not holes.
fn data_ranges(file: &OwnedFd, size: u64) -> io::Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    while offset < size {
        let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        if end <= start {
            return Err(io::Error::other(format!("SEEK_HOLE at {start} gave {end}")));
        }
        ranges.push(start..end.min(size));
        offset = end;
    }
    Ok(ranges)
}

const READ_LEN: usize = 1 << 20;
const POSITION_LEN: usize = 4096;

fn full_digest(file: &OwnedFd, node: &Node) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_LEN];
    let zeros = vec![0; READ_LEN];
    let mut done = 0;
    for range in &node.data {
        hash_zeros(&mut hasher, &zeros, range.start - done);
        let mut offset = range.start;
        while offset < range.end {
            let want = buffer
                .len()
                .min(usize::try_from(range.end - offset).unwrap_or(READ_LEN));
            let read = read_some(file, &mut buffer[..want], offset)?;
            hasher.update(&buffer[..read]);
            offset += read as u64;
        }
        done = range.end;
    }
    hash_zeros(&mut hasher, &zeros, node.size - done);
    Ok(hasher.finalize().into())
}

fn hash_zeros(hasher: &mut Sha256, zeros: &[u8], mut len: u64) {
    while len > 0 {
        let step = zeros.len().min(usize::try_from(len).unwrap_or(zeros.len()));
        hasher.update(&zeros[..step]);
        len -= step as u64;
    }
}

fn positions_digest(file: &OwnedFd, node: &Node) -> io::Result<[u8; 32]> {
    const STEP: u64 = POSITION_LEN as u64;
    let mut hasher = Sha256::new();
    hasher.update(node.size.to_le_bytes());
    let mut buffer = vec![0; READ_LEN];
    let mut done = 0;
    for range in &node.data {
        let mut offset = done.max(range.start / STEP * STEP);
        let end = range.end.div_ceil(STEP).saturating_mul(STEP).min(node.size);
        while offset < end {
            let want = buffer
                .len()
                .min(usize::try_from(end - offset).unwrap_or(READ_LEN));
            read_whole(file, &mut buffer[..want], offset)?;
            for piece in buffer[..want].chunks(POSITION_LEN) {
                if piece.iter().any(|&byte| byte != 0) {
                    hasher.update(offset.to_le_bytes());
                    hasher.update(piece);
                }
                offset += piece.len() as u64;
            }
        }
        done = offset;
    }
    Ok(hasher.finalize().into())
}

fn read_some(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset))?;
    if read == 0 {
        return Err(io::Error::other(format!(
            "the content ends at {offset}, before its size"
        )));
    }
    Ok(read)
}

fn read_whole(file: &OwnedFd, buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let read = read_some(file, &mut buffer[filled..], offset)?;
        filled += read;
        offset += read as u64;
    }
    Ok(())
}

#[allow(
    clippy::useless_conversion,
    reason = "the link count is narrower on other machines"
)]
fn node_of(path: Vec<u8>, stat: &Stat) -> io::Result<Node> {
    let mode = stat.st_mode;
    let kind = Kind::of_mode(mode)
        .ok_or_else(|| io::Error::other(format!("mode {mode:o} has no known file type")))?;
    let is_device = matches!(kind, Kind::CharDevice | Kind::BlockDevice);
    let time = |sec: i64, nsec: u64| Time {
        sec,
        nsec: u32::try_from(nsec).unwrap_or(u32::MAX),
    };
    Ok(Node {
        path,
        kind,
        mode,
        uid: stat.st_uid,
        gid: stat.st_gid,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        size: u64::try_from(stat.st_size).map_err(io::Error::other)?,
        allocated: u64::try_from(stat.st_blocks).map_err(io::Error::other)? * 512,
        nlink: u64::from(stat.st_nlink),
        rdev: if is_device { stat.st_rdev } else { 0 },
        ino: stat.st_ino,
        link_leader: 0,
        target: Vec::new(),
        digest: None,
        data: Vec::new(),
    })
}

fn find_link_leaders(nodes: &mut [Node], devs: &[u64]) {
    let mut leaders: HashMap<(u64, u64), usize> = HashMap::new();
    for (index, (node, &dev)) in nodes.iter_mut().zip(devs).enumerate() {
        node.link_leader = if node.kind == Kind::Directory {
            index
        } else {
            *leaders.entry((dev, node.ino)).or_insert(index)
        };
    }
}

fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if !dir.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

fn failed(path: &[u8], error: Errno) -> io::Error {
    named(path, &error.into())
}

fn named(path: &[u8], error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.escape_ascii()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn times_round_down_also_before_1970() {
        let check = |sec, nsec, resolution, expect: (i64, u32)| {
            let time = Time { sec, nsec }.floor(resolution);
            assert_eq!(
                (time.sec, time.nsec),
                expect,
                "{sec}.{nsec} by {resolution}"
            );
        };
        check(10, 999, 1, (10, 999));
        check(10, 999, 1_000_000_000, (10, 0));
        check(-1, 5, 1_000_000_000, (-1, 0));
        check(-1, 5, 300_000_000_000, (-300, 0));
        check(
            5_000_000_000,
            123_456_789,
            1000,
            (5_000_000_000, 123_456_000),
        );
    }

    #[test]
    fn digests_see_contents_and_not_holes() {
        let dir = tempfile::tempdir().unwrap();
        let sparse = std::fs::File::create(dir.path().join("sparse")).unwrap();
        sparse.write_all_at(b"middle", 70_000).unwrap();
        sparse.set_len(200_000).unwrap();
        let mut bytes = vec![0; 200_000];
        bytes[70_000..70_006].copy_from_slice(b"middle");
        std::fs::write(dir.path().join("dense"), &bytes).unwrap();
        bytes[199_999] = 1;
        std::fs::write(dir.path().join("other"), &bytes).unwrap();
        for digest in [Digest::Positions, Digest::Full] {
            let tree = snapshot(dir.path(), &TreeOptions { digest }).unwrap();
            let of = |name: &[u8]| tree.find(name).unwrap().digest.unwrap();
            assert_eq!(of(b"sparse"), of(b"dense"), "{digest:?}");
            assert_ne!(of(b"sparse"), of(b"other"), "{digest:?}");
        }
        let tree = snapshot(
            dir.path(),
            &TreeOptions {
                digest: Digest::Full,
            },
        )
        .unwrap();
        let expect: [u8; 32] =
            Sha256::digest(std::fs::read(dir.path().join("dense")).unwrap()).into();
        assert_eq!(tree.find(b"sparse").unwrap().digest, Some(expect));
        assert!(tree.find(b"sparse").unwrap().data_len() < 200_000);
    }

    #[test]
    fn links_share_their_leader() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/first"), b"x").unwrap();
        std::fs::hard_link(dir.path().join("sub/first"), dir.path().join("later")).unwrap();
        let tree = snapshot(
            dir.path(),
            &TreeOptions {
                digest: Digest::None,
            },
        )
        .unwrap();
        let (later, first) = (
            tree.find(b"later").unwrap(),
            tree.find(b"sub/first").unwrap(),
        );
        assert_eq!((later.nlink, later.link_leader), (2, first.link_leader));
    }
}
