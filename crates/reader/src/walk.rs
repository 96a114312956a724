//! Visiting everything in an image.

use durin_format::{Error, InodeNum, Result};

use crate::attr::Attr;
use crate::chunks::Place;
use crate::image::{EntryRef, Image};
use crate::metadata::Rank;

/// Longest path that a walk follows, in bytes. Paths are handed out whole, so that a chain of directories as deep as an
/// image can have it would cost the square of its depth; no program can use such a path either.
const PATH_BYTES_MAX: usize = 64 << 10;

/// One step of a walk.
#[derive(Clone, Debug)]
pub struct WalkEntry {
    /// Names from below the root, with `/` in between; empty for the root.
    pub path: Vec<u8>,
    /// The directory entry.
    pub entry: EntryRef,
    /// Its attributes.
    pub attr: Attr,
}

impl Image {
    /// Visits every directory entry, the root first, then depth first in stored order.
    ///
    /// An entry that cannot be read is an error in its place, and the walk goes on after it. A directory that is met a
    /// second time (which only a damaged image has) is an error and not entered again. When the chunk table of the image
    /// is damaged as a whole, that is all that is said.
    pub fn walk(&self) -> impl Iterator<Item = Result<WalkEntry>> + '_ {
        self.walk_from(self.root(), Vec::new())
    }

    /// As [`Self::walk`], beginning with any entry, whose path is `path`.
    pub fn walk_from(
        &self,
        entry: EntryRef,
        path: Vec<u8>,
    ) -> impl Iterator<Item = Result<WalkEntry>> + '_ {
        Walk {
            image: self,
            visited: vec![false; count(self.metadata().partition.directory_count())],
            stack: Vec::new(),
            path: Vec::new(),
            start: Some((entry, path)),
            left: self.entry_count(),
        }
    }

    /// Returns all regular files, each once, ordered by the place of their first byte in the image:
    /// reading them in this order decompresses every block about once. Files without data come first.
    ///
    /// # Errors
    /// `Corrupt` if a value in the metadata is wrong.
    pub fn files_in_data_order(&self) -> Result<Vec<InodeNum>> {
        self.metadata().check_chunk_order()?;
        let partition = &self.metadata().partition;
        let mut files = Vec::with_capacity(count(partition.regular_count()));
        for inode in partition.first_regular..partition.first_device {
            let inode = InodeNum(inode);
            files.push((self.first_data(inode)?, inode));
        }
        files.sort_unstable();
        Ok(files.into_iter().map(|(_, inode)| inode).collect())
    }

    /// Block and offset of the first byte that is not in a hole.
    fn first_data(&self, inode: InodeNum) -> Result<Option<(u32, u32)>> {
        for extent in self.chunks(inode)? {
            if let Place::Data { block, offset } = extent?.place {
                return Ok(Some((block.0, offset)));
            }
        }
        Ok(None)
    }
}

struct Walk<'a> {
    image: &'a Image,
    /// By directory inode: whether the walk has been in it.
    visited: Vec<bool>,
    /// The directories that the walk is in. Their number is bounded by that of directories.
    stack: Vec<Level>,
    /// Path of the innermost directory.
    path: Vec<u8>,
    /// Where the walk begins, until it has.
    start: Option<(EntryRef, Vec<u8>)>,
    /// Entries that there can still be. Directories of a damaged image can share entries, which would make a walk take
    /// the square of their number.
    left: u32,
}

/// A directory that the walk is in.
struct Level {
    dir: InodeNum,
    /// Index of the next entry.
    next: u32,
    /// Number of entries.
    len: u32,
    /// Length of the path of the directory.
    path_len: usize,
}

impl Walk<'_> {
    /// Makes the directory `entry`, whose path is `path`, the innermost one, if it is one.
    fn enter(&mut self, entry: EntryRef, path: &[u8]) -> Result<()> {
        let metadata = self.image.metadata();
        if metadata.partition.rank(entry.inode) != Some(Rank::Directory) {
            return Ok(());
        }
        let dir = entry.inode;
        match self.visited.get_mut(count(dir.0)) {
            Some(visited) if !*visited => *visited = true,
            _ => {
                return Err(metadata.corrupt(format!("directory {dir} has more than one entry")));
            }
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(Error::limit(format!(
                "directory {dir}: path of more than {PATH_BYTES_MAX} bytes"
            )));
        }
        let len = self.image.dir_len(dir)?;
        self.path.clear();
        self.path.extend_from_slice(path);
        self.stack.push(Level {
            dir,
            next: 0,
            len,
            path_len: path.len(),
        });
        Ok(())
    }

    fn visit(&mut self, entry: EntryRef, path: Vec<u8>) -> Result<WalkEntry> {
        let attr = self.image.attr(entry)?;
        self.enter(entry, &path)?;
        Ok(WalkEntry { path, entry, attr })
    }

    fn step(&mut self, dir: InodeNum, index: u32) -> Result<WalkEntry> {
        let mut name = Vec::new();
        let entry = self.image.dir_entry(dir, index, &mut name)?;
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.len());
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
        let shown = path.clone();
        self.visit(entry, path)
            .map_err(|error| error.context(String::from_utf8_lossy(&shown)))
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<WalkEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((entry, path)) = self.start.take() {
            if let Err(error) = self.image.metadata().check_chunk_order() {
                return Some(Err(error));
            }
            return Some(self.visit(entry, path));
        }
        loop {
            let level = self.stack.last_mut()?;
            if level.next < level.len {
                let (dir, index) = (level.dir, level.next);
                level.next += 1;
                self.path.truncate(level.path_len);
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    self.stack.clear();
                    let message = "directories have more entries than there are";
                    return Some(Err(self.image.metadata().corrupt(message)));
                }
                return Some(self.step(dir, index));
            }
            self.stack.pop();
        }
    }
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
