//! The file system without a kernel: every answer by node number, from [`durin_reader::Image`].
//!
//! Nothing here knows the FUSE protocol; [`crate::adapter`] translates. All calls may come from any thread at once.
//! What goes wrong with the image is reported once to [`Events`], and to the reader as an error number.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use durin_format::{Error, ErrorKind};
use durin_reader::perfmon::{Operation, Perfmon};
use durin_reader::{Attr, EntryRef, FileKind, Image, ReadTarget};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::access_log::Writer;
use crate::folding::FoldedDirs;
use crate::options::FsOptions;
use crate::{errno, node, xattr};
use durin_format::events::Events;

/// The longest path, and what `statvfs` reports as the longest name, as the reference does.
const NAME_MAX: u32 = 4096;

/// How many different failures are reported; a damaged disk can produce one for each block.
const REPORTED_MAX: usize = 1000;

/// The flags of `open(2)` that mean a change, whatever the access mode says.
const WRITE_FLAGS: OFlags = OFlags::APPEND.union(OFlags::TRUNC).union(OFlags::CREATE);

/// The tree of one image, answering by node number.
pub struct Fs {
    image: Arc<Image>,
    options: FsOptions,
    events: Arc<dyn Events>,
    /// Messages already reported, so that a bad block is reported once and not once a read.
    reported: Mutex<BTreeSet<String>>,
    /// Used with `case_insensitive` only.
    folded: FoldedDirs,
    /// Writes the list of files that are used, if there is one.
    _access_writer: Option<Writer>,
}

/// An inode as the kernel sees it.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The kernel's number of it, also `st_ino`.
    pub number: u64,
    /// Attributes with the options applied.
    pub attr: Attr,
}

/// One line of a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirItem<'a> {
    /// The kernel's number of the node.
    pub number: u64,
    /// What the name stands for; use [`Fs::node_of`] for all attributes.
    pub entry: EntryRef,
    /// The name, `.` and `..` included.
    pub name: &'a [u8],
    /// The offset at which reading goes on behind this line.
    pub next_offset: u64,
}

/// What `statvfs` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// Size of all files, in units of one byte.
    pub blocks: u64,
    /// Number of inodes.
    pub files: u64,
    /// The longest name.
    pub name_max: u32,
}

/// How the kernel shall treat an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Pages stay valid for as long as the file system is mounted.
    Keep,
    /// No pages: each read comes to the driver.
    Direct,
}

/// What a `lseek` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The next byte that is stored.
    Data,
    /// The next hole, the end of the file being one.
    Hole,
}

impl Fs {
    /// Shows `image` as `options` say.
    pub fn new(image: Arc<Image>, options: FsOptions, events: Arc<dyn Events>) -> Self {
        let log = options.access_log.as_ref();
        let access_writer = log.map(|log| log.start(&image, &events));
        Self {
            _access_writer: access_writer,
            folded: FoldedDirs::default(),
            image,
            options,
            events,
            reported: Mutex::new(BTreeSet::new()),
        }
    }

    /// The image behind it.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &FsOptions {
        &self.options
    }

    /// Whether every file may be opened without asking, its pages staying in the kernel's cache.
    #[must_use]
    pub fn caches_everything(&self) -> bool {
        // A list of files is made of what is opened.
        let sees_none = self.options.access_log.is_none();
        sees_none && self.options.cache_files && (self.options.cache_sparse || !self.has_holes())
    }

    /// Whether any file can have holes.
    #[must_use]
    pub fn has_holes(&self) -> bool {
        self.image.tables().0.hole_block_index.is_some()
    }

    /// Finds `name` in the directory `parent`; `None` if there is no such entry.
    ///
    /// # Errors
    /// `ENOENT` for a number never handed out, `ENOTDIR`, `EIO`.
    pub fn lookup(&self, parent: u64, name: &[u8]) -> Result<Option<Node>, Errno> {
        let _timer = self.timer(Operation::FuseLookup);
        // The kernel asks for this when somebody comes with a file handle, and not only of directories.
        if name == b"." {
            return self.node(parent).map(Some);
        }
        let dir = self.directory(parent)?;
        let found = if name == b".." {
            Some(self.parent(dir)?)
        } else {
            self.ok(self.find(dir, name))?
        };
        found.map(|entry| self.node_of(entry)).transpose()
    }

    /// Returns the attributes of a node.
    ///
    /// # Errors
    /// `ENOENT` for a number never handed out, `EIO`.
    pub fn node(&self, number: u64) -> Result<Node, Errno> {
        let _timer = self.timer(Operation::FuseGetattr);
        self.node_of(node::entry(&self.image, number)?)
    }

    /// Returns number and attributes of what an entry stands for.
    ///
    /// # Errors
    /// `EIO`.
    pub fn node_of(&self, entry: EntryRef) -> Result<Node, Errno> {
        let mut attr = self.ok(self.image.attr(entry))?;
        if self.options.readonly {
            attr.mode &= !0o222;
        }
        attr.uid = self.options.uid.unwrap_or(attr.uid);
        attr.gid = self.options.gid.unwrap_or(attr.gid);
        Ok(Node {
            number: node::number(&self.image, entry),
            attr,
        })
    }

    /// Returns the target of a symlink.
    ///
    /// # Errors
    /// `ENOENT` for a number never handed out, `EINVAL` for anything but a symlink, `EIO`.
    pub fn read_link(&self, number: u64) -> Result<Vec<u8>, Errno> {
        let _timer = self.timer(Operation::FuseReadlink);
        let entry = node::entry(&self.image, number)?;
        match self.kind(entry)? {
            FileKind::Symlink => self.ok(self.image.read_link(entry.inode)),
            _ => Err(Errno::INVAL),
        }
    }

    /// Says whether and how a file may be opened with these flags of `open(2)`.
    ///
    /// # Errors
    /// `EACCES` for anything but reading, `EISDIR`, `ENOENT` for a number never handed out, `EIO`.
    pub fn open(&self, number: u64, flags: OFlags) -> Result<Caching, Errno> {
        let _timer = self.timer(Operation::FuseOpen);
        let entry = node::entry(&self.image, number)?;
        if self.kind(entry)? == FileKind::Directory {
            return Err(Errno::ISDIR);
        }
        if flags.intersection(OFlags::RWMODE) != OFlags::RDONLY || flags.intersects(WRITE_FLAGS) {
            return Err(Errno::ACCESS);
        }
        self.note_access(entry);
        if !self.options.cache_files {
            return Ok(Caching::Direct);
        }
        if !self.options.cache_sparse && self.has_holes() {
            let attr = self.ok(self.image.attr(entry))?;
            if attr.allocated < attr.size {
                return Ok(Caching::Direct);
            }
        }
        Ok(Caching::Keep)
    }

    /// Says whether a directory may be opened.
    ///
    /// # Errors
    /// `ENOTDIR`, `ENOENT` for a number never handed out, `EIO`.
    pub fn open_dir(&self, number: u64) -> Result<(), Errno> {
        self.directory(number).map(|_| ())
    }

    /// Reads `len` bytes from `offset` on into `target`; less than asked for only at the end of the file.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what has no content, `ENOENT` for a number never handed out, `EIO`.
    pub fn read(
        &self,
        number: u64,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<usize, Errno> {
        let _timer = self.timer(Operation::FuseRead);
        let entry = self.regular(number)?;
        self.note_access(entry);
        self.ok(self.image.read_to(entry.inode, offset, len, target))
    }

    /// As [`Self::read`] if that takes no decoding and no reading of the image; `None` if it does, whatever has got to
    /// the target by then.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_ready(
        &self,
        number: u64,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Option<usize>, Errno> {
        let timer = self.timer(Operation::FuseRead);
        let entry = self.regular(number)?;
        self.note_access(entry);
        let read = self.image.read_ready(entry.inode, offset, len, target);
        let read = self.ok(read)?;
        if read.is_none() {
            timer.discard();
        }
        Ok(read)
    }

    /// Finds the next data or hole from `offset` on.
    ///
    /// # Errors
    /// `ENXIO` at or behind the end, or if no data follows; those of [`Self::read`].
    pub fn seek(&self, number: u64, offset: i64, seek: Seek) -> Result<u64, Errno> {
        let _timer = self.timer(Operation::FuseLseek);
        let inode = self.regular(number)?.inode;
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let found = match seek {
            Seek::Data => self.image.seek_data(inode, offset),
            Seek::Hole => self.image.seek_hole(inode, offset),
        };
        self.ok(found)?.ok_or(Errno::NXIO)
    }

    /// Hands out a directory from `offset` on until `take` says that it is full.
    ///
    /// Offsets: 0 is `.`, 1 is `..`, `i + 2` the i-th entry.
    ///
    /// # Errors
    /// `ENOTDIR`, `ENOENT` for a number never handed out, `EIO`, what `take` returns.
    pub fn read_dir(
        &self,
        number: u64,
        offset: u64,
        take: &mut dyn FnMut(&DirItem<'_>) -> Result<Full, Errno>,
    ) -> Result<(), Errno> {
        let _timer = self.timer(Operation::FuseReaddir);
        let dir = self.directory(number)?;
        let len = u64::from(self.ok(self.image.dir_len(dir.inode))?);
        let mut name = Vec::new();
        for place in offset..len.saturating_add(2) {
            let entry = match place {
                0 | 1 => {
                    name.clear();
                    name.extend_from_slice(if place == 0 { b"." } else { b".." });
                    if place == 0 { dir } else { self.parent(dir)? }
                }
                _ => {
                    let index = u32::try_from(place - 2).map_err(|_| Errno::IO)?;
                    self.ok(self.image.dir_entry(dir.inode, index, &mut name))?
                }
            };
            let item = DirItem {
                number: node::number(&self.image, entry),
                entry,
                name: &name,
                next_offset: place + 1,
            };
            if take(&item)? == Full::Yes {
                break;
            }
        }
        Ok(())
    }

    /// Returns what `statvfs` reports; sizes are in bytes, as the reference has it.
    #[must_use]
    pub fn stat_fs(&self) -> FsStat {
        let _timer = self.timer(Operation::FuseStatfs);
        let stat = self.image.statfs();
        FsStat {
            blocks: stat.allocated_size,
            files: u64::from(self.image.inode_count()),
            name_max: NAME_MAX,
        }
    }

    /// Returns the value of an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` for a name that the node does not have, `ENOENT` for a number never handed out, `EIO`.
    pub fn xattr(&self, number: u64, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let _timer = self.timer(Operation::FuseGetxattr);
        // Nearly all requests are the kernel's for `security.capability`: they need no look at the image.
        if !xattr::is_ours(name) {
            return Err(Errno::NODATA);
        }
        let node = self.node(number)?;
        self.ok(xattr::value(&self.image, &node, name))?
            .ok_or(Errno::NODATA)
    }

    /// Returns the names of the extended attributes, each with a NUL behind it.
    ///
    /// # Errors
    /// `ENOENT` for a number never handed out, `EIO`.
    pub fn xattr_names(&self, number: u64) -> Result<Vec<u8>, Errno> {
        let node = self.node(number)?;
        Ok(xattr::names(&self.image, number, node.attr.kind))
    }

    /// What an entry is.
    ///
    /// # Errors
    /// `EIO`.
    pub fn kind(&self, entry: EntryRef) -> Result<FileKind, Errno> {
        self.ok(self.image.kind(entry))
    }

    fn timer(&self, operation: Operation) -> durin_reader::perfmon::Timer<'_> {
        Perfmon::start(self.image.perfmon(), operation)
    }

    fn note_access(&self, entry: EntryRef) {
        if let Some(log) = &self.options.access_log {
            log.note(entry.inode);
        }
    }

    fn find(&self, dir: EntryRef, name: &[u8]) -> durin_format::Result<Option<EntryRef>> {
        let found = self.image.lookup(dir.inode, name)?;
        if found.is_some() || !self.options.case_insensitive {
            return Ok(found);
        }
        let events = self.events.as_ref();
        self.folded.lookup(&self.image, dir.inode, name, events)
    }

    fn directory(&self, number: u64) -> Result<EntryRef, Errno> {
        let entry = node::entry(&self.image, number)?;
        match self.kind(entry)? {
            FileKind::Directory => Ok(entry),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn regular(&self, number: u64) -> Result<EntryRef, Errno> {
        let entry = node::entry(&self.image, number)?;
        match self.kind(entry)? {
            FileKind::Regular => Ok(entry),
            FileKind::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    fn parent(&self, dir: EntryRef) -> Result<EntryRef, Errno> {
        let parent = self.ok(self.image.parent(dir.inode))?;
        self.ok(self.image.canonical_entry(parent))
    }

    /// Turns a failure into its number, and reports it if it has not been reported yet.
    fn ok<T>(&self, result: durin_format::Result<T>) -> Result<T, Errno> {
        result.map_err(|error| {
            if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) {
                self.report(&error);
            }
            errno::from_error(&error)
        })
    }

    #[track_caller]
    fn report(&self, error: &Error) {
        let message = error.to_string();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < REPORTED_MAX && reported.insert(message.clone()) {
            self.events.error(&message);
        }
    }
}

/// Whether the taker of directory lines has room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It took the line and may take more.
    No,
    /// It did not take the line.
    Yes,
}
