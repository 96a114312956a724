//! The regular files of the tree, hard links joined, and opening them.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, openat};

use crate::context::Context;
use crate::open::{is_shortage, open_unnoticed, patiently, will_be_read};
use crate::scan::PASSAGE_FLAGS;
use crate::status::{Kind, Status};
use crate::tree::{Detail, DirIndex, Entry, EntryIndex, Tree, bytes_of, count_of};

/// The place of a file in [`Files::list`].
pub(crate) type FileIndex = u32;

/// Marks an entry that is not a regular file.
const NO_FILE: FileIndex = FileIndex::MAX;

/// How files are opened: not through a symbolic link, and without waiting should a fifo have taken the name.
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A regular file, whatever number of names it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// The first of its entries.
    pub(crate) entry: EntryIndex,
    /// How many entries it has in the tree.
    pub(crate) nlink: u32,
    pub(crate) size: u64,
    pub(crate) maybe_sparse: bool,
}

/// All regular files, in the order of their first entries.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) list: Vec<File>,
    of_entry: Vec<FileIndex>,
    /// All entries but the first of files with several, sorted.
    further: Vec<(FileIndex, EntryIndex)>,
    /// Files whose content could not be read, and which are empty in the image.
    lost: Vec<AtomicBool>,
}

impl Files {
    /// Collects the files of `tree` and joins those with the same device and inode number.
    pub(crate) fn of(tree: &Tree, context: Context<'_>) -> Self {
        let mut list: Vec<File> = Vec::new();
        let mut of_entry = vec![NO_FILE; tree.entries.len()];
        let mut further = Vec::new();
        let mut linked = tree.linked.iter().peekable();
        let mut file_of_id: HashMap<(u64, u64), FileIndex> = HashMap::new();
        for (index, entry) in (0..).zip(&tree.entries) {
            let Detail::Regular { size, maybe_sparse } = entry.detail else {
                continue;
            };
            let next = count_of(list.len());
            let file = match linked.next_if(|link| link.entry == index) {
                None => next,
                Some(link) => match file_of_id.entry(link.id) {
                    MapEntry::Occupied(known) => *known.get(),
                    MapEntry::Vacant(free) => *free.insert(next),
                },
            };
            of_entry[index as usize] = file;
            match list.get_mut(file as usize) {
                Some(known) => {
                    known.nlink += 1;
                    further.push((file, index));
                    context.stats.hardlinks.add(1);
                    context.stats.original_bytes.sub(size);
                }
                None => list.push(File {
                    entry: index,
                    nlink: 1,
                    size,
                    maybe_sparse,
                }),
            }
        }
        let lost = list.iter().map(|_| AtomicBool::new(false)).collect();
        further.sort_unstable();
        Self {
            list,
            of_entry,
            further,
            lost,
        }
    }

    /// Returns the memory that the tables take.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.list)
            + bytes_of(&self.of_entry)
            + bytes_of(&self.further)
            + bytes_of(&self.lost)
    }

    pub(crate) fn file(&self, index: FileIndex) -> &File {
        &self.list[index as usize]
    }

    /// Returns the file that an entry names.
    pub(crate) fn of_entry(&self, entry: EntryIndex) -> Option<FileIndex> {
        let index = *self.of_entry.get(entry as usize)?;
        (index != NO_FILE).then_some(index)
    }

    /// Returns all entries of a file, in the order of entries.
    pub(crate) fn entries(&self, index: FileIndex) -> impl Iterator<Item = EntryIndex> + use<'_> {
        let start = self.further.partition_point(|(file, _)| *file < index);
        let further = self.further[start..].iter();
        let further = further.take_while(move |(file, _)| *file == index);
        std::iter::once(self.file(index).entry).chain(further.map(|(_, entry)| *entry))
    }

    pub(crate) fn is_lost(&self, index: FileIndex) -> bool {
        self.lost[index as usize].load(Ordering::Relaxed)
    }

    /// Gives a file up and reports it, once.
    pub(crate) fn lose(
        &self,
        index: FileIndex,
        tree: &Tree,
        context: Context<'_>,
        error: &io::Error,
    ) {
        if !self.lost[index as usize].swap(true, Ordering::Relaxed) {
            let paths = self.entries(index);
            let paths: Vec<String> = paths
                .map(|entry| format!("'{}'", tree.display(entry)))
                .collect();
            let paths = paths.join(", ");
            context.problem(&format!("cannot read {paths}, stored as empty: {error}"));
        }
    }
}

/// Opens files one after the other, and remembers the directory of the last.
pub(crate) struct Opener<'a> {
    context: Context<'a>,
    tree: &'a Tree,
    files: &'a Files,
    root: BorrowedFd<'a>,
    near: Option<(DirIndex, OwnedFd)>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(
        context: Context<'a>,
        tree: &'a Tree,
        files: &'a Files,
        root: BorrowedFd<'a>,
    ) -> Self {
        Self {
            context,
            tree,
            files,
            root,
            near: None,
        }
    }

    /// Opens a regular file, which must still have the size that the scan has found.
    ///
    /// Of several names the first counts that still leads to the same inode; the error is that of the first name.
    pub(crate) fn open(&mut self, file: &File) -> io::Result<OpenFile> {
        let Some(index) = self.files.of_entry(file.entry).filter(|_| file.nlink > 1) else {
            // Whether it is still the same inode does not matter: what has the only name now is as good.
            return self.open_entry(file, file.entry, None);
        };
        let files = self.files;
        let mut failure = None;
        for entry in files.entries(index) {
            let id = self.tree.linked_id(entry);
            match self.open_entry(file, entry, id) {
                Ok(opened) => return Ok(opened),
                Err(error) => failure.get_or_insert(error),
            };
        }
        Err(failure.unwrap_or_else(changed))
    }

    /// Opens it by one of its names, which must lead to the inode `id` if that is given.
    fn open_entry(
        &mut self,
        file: &File,
        index: EntryIndex,
        id: Option<(u64, u64)>,
    ) -> io::Result<OpenFile> {
        let entry = self.tree.entry(index);
        let fd = patiently(self.context, || {
            let opened = self.open_now(entry);
            if opened.as_ref().is_err_and(is_shortage) {
                // Somebody else may have use for it meanwhile.
                self.near = None;
            }
            opened
        })?;
        let status = Status::of_file(&fd)?;
        let is_other = id.is_some_and(|id| id != status.id);
        let is_regular = Kind::of(status.mode) == Some(Kind::Regular);
        if !is_regular || is_other || status.size != file.size {
            return Err(changed());
        }
        Ok(OpenFile { fd })
    }

    fn open_now(&mut self, entry: &Entry) -> io::Result<OwnedFd> {
        let name = self.tree.name(entry);
        Ok(open_unnoticed(self.dir(entry.dir)?, name, FILE_FLAGS)?)
    }

    /// Opens a directory, starting from the one last used if that lies above it.
    fn dir(&mut self, number: DirIndex) -> io::Result<BorrowedFd<'_>> {
        if number == 0 {
            return Ok(self.root);
        }
        let mut below = Vec::new();
        let mut at = number;
        while at != 0 && self.near.as_ref().is_none_or(|(near, _)| *near != at) {
            below.push(at);
            at = self.tree.parent(at);
        }
        if at == 0 {
            self.near = None;
        }
        for dir in below.into_iter().rev() {
            let name = self
                .tree
                .name(self.tree.entry(self.tree.dir(dir).self_entry));
            let above = self.near.as_ref().map_or(self.root, |(_, fd)| fd.as_fd());
            let fd = openat(above, name, PASSAGE_FLAGS, Mode::empty())?;
            self.near = Some((dir, fd));
        }
        Ok(self.near.as_ref().map_or(self.root, |(_, fd)| fd.as_fd()))
    }
}

/// A file open for reading.
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
}

impl OpenFile {
    /// Fills `buffer` from `offset` on.
    pub(crate) fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match rustix::io::pread(&self.fd, &mut *buffer, offset) {
                Ok(0) => return Err(changed()),
                Ok(len) => {
                    buffer = &mut buffer[len..];
                    offset += len as u64;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says that all of the file will be read through this handle.
    pub(crate) fn will_be_read(&self, file: &File) {
        will_be_read(&self.fd, file.size);
    }

    /// Whether somebody has written to the file since the scan, even if that kept its size.
    pub(crate) fn is_modified(&self, tree: &Tree, file: &File) -> io::Result<bool> {
        Ok(Status::of_file(&self.fd)?.mtime != tree.entry(file.entry).mtime)
    }
}

/// What is said of a file that is not what it was.
pub(crate) fn changed() -> io::Error {
    io::Error::other("it has changed since the scan")
}
