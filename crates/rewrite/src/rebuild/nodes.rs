//! Directory entries and the inodes they name, numbered as the new image has them.

use durin_format::metadata::{DirEntry, Directory};
use durin_format::{Error, InodeNum, Result};
use durin_reader::{EntryRef, FileKind, Image};

/// Strings one after the other.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Strings {
    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Bytes of all of them.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            let string = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            string
        })
    }
}

/// An inode of the new image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// An entry of the old image that has its attributes.
    pub(crate) entry: EntryRef,
    pub(crate) kind: FileKind,
    /// How many entries name it.
    pub(crate) links: u32,
    /// The number of the content of a regular file in the old image.
    pub(crate) content: u32,
}

/// A directory of the new image, which has the number it had.
#[derive(Clone, Copy, Debug, Default)]
struct Dir {
    /// The directory that has an entry for it.
    parent: u32,
    self_entry: u32,
    first_entry: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// By inode number of the new image.
    pub(crate) list: Vec<Node>,
    /// The inode of each directory entry, that of the root first.
    of_entry: Vec<u32>,
    dirs: Vec<Dir>,
    /// Of all entries but that of the root.
    pub(crate) names: Strings,
    /// Of all symbolic links in the order of their inodes.
    pub(crate) targets: Strings,
}

impl Nodes {
    /// Walks over all directories of `image`.
    ///
    /// # Errors
    /// `Corrupt` if a value of the metadata cannot be.
    pub(crate) fn of(image: &Image) -> Result<Self> {
        let mut nodes = Self::default();
        let is_legacy = image.tables().0.dir_entries.is_none();
        // Directories come first. In old formats every further entry has an inode of its own.
        for inode in (0..image.inode_count()).map(InodeNum) {
            let entry = image.canonical_entry(inode)?;
            let kind = image.kind(entry)?;
            match kind {
                FileKind::Directory => nodes.dirs.push(Dir::default()),
                _ if is_legacy => break,
                _ => {}
            }
            nodes.push(image, entry, kind, 0)?;
        }
        nodes.of_entry.push(0);
        for dir in (0..).take(nodes.dirs.len()) {
            nodes.walk(image, dir, is_legacy)?;
        }
        nodes.renumber();
        for node in &nodes.list {
            if node.kind == FileKind::Symlink {
                nodes.targets.push(&image.read_link_raw(node.entry.inode)?);
            }
        }
        Ok(nodes)
    }

    fn push(&mut self, image: &Image, entry: EntryRef, kind: FileKind, links: u32) -> Result<u32> {
        let content = match kind {
            FileKind::Regular => image.content_number(entry.inode)?,
            _ => 0,
        };
        let number = count(self.list.len())?;
        self.list.push(Node {
            entry,
            kind,
            links,
            content,
        });
        Ok(number)
    }

    /// Takes the entries of a directory.
    fn walk(&mut self, image: &Image, dir: u32, is_legacy: bool) -> Result<()> {
        let first_entry = count(self.of_entry.len())?;
        if let Some(dir) = self.dirs.get_mut(dir as usize) {
            dir.first_entry = first_entry;
        }
        let mut name = Vec::new();
        for index in 0..image.dir_len(InodeNum(dir))? {
            let entry = image.dir_entry(InodeNum(dir), index, &mut name)?;
            self.names.push(&name);
            let number = count(self.of_entry.len())?;
            let kind = image.kind(entry)?;
            if kind == FileKind::Directory {
                let child = self.dirs.get_mut(entry.inode.0 as usize);
                let child = child.filter(|child| child.self_entry == 0 && entry.inode.0 > 0);
                let child = child.ok_or_else(|| {
                    Error::corrupt(format!(
                        "metadata: directory {} has two names or none",
                        entry.inode
                    ))
                })?;
                child.parent = dir;
                child.self_entry = number;
            }
            let node = if is_legacy && kind != FileKind::Directory {
                self.push(image, entry, kind, 1)?
            } else {
                if let Some(node) = self.list.get_mut(entry.inode.0 as usize) {
                    node.links += 1;
                    // In old formats attributes belong to the entry.
                    node.entry = entry;
                }
                entry.inode.0
            };
            self.of_entry.push(node);
        }
        Ok(())
    }

    /// Sorts inodes by kind, and regular files by whether they share their content.
    fn renumber(&mut self) {
        let contents = self.list.iter().map(|node| node.content as usize + 1);
        let mut sharers = vec![0_u32; contents.max().unwrap_or(0)];
        let regular = |node: &&Node| node.kind == FileKind::Regular;
        for node in self.list.iter().filter(regular) {
            if let Some(sharers) = sharers.get_mut(node.content as usize) {
                *sharers += 1;
            }
        }
        let key = |number: u32| {
            let node = self.list.get(number as usize);
            let (rank, inode, content) = node.map_or((0, 0, 0), |node| {
                (rank(node.kind), node.entry.inode.0, node.content)
            });
            let is_shared = rank == 2
                && sharers
                    .get(content as usize)
                    .is_some_and(|count| *count > 1);
            let content = if is_shared { content } else { 0 };
            (rank, is_shared, content, inode, number)
        };
        let mut order: Vec<u32> = (0..).take(self.list.len()).collect();
        order.sort_unstable_by_key(|number| key(*number));
        let mut places = vec![0; order.len()];
        for (place, number) in (0..).zip(&order) {
            if let Some(entry) = places.get_mut(*number as usize) {
                *entry = place;
            }
        }
        let nodes = order
            .iter()
            .filter_map(|number| self.list.get(*number as usize));
        self.list = nodes.copied().collect();
        for node in &mut self.of_entry {
            *node = places.get(*node as usize).copied().unwrap_or(0);
        }
    }

    /// Returns the table of directories.
    pub(crate) fn directories(&self) -> Vec<Directory> {
        let directories = self.dirs.iter().map(|dir| Directory {
            parent_entry: self
                .dirs
                .get(dir.parent as usize)
                .map_or(0, |parent| parent.self_entry),
            first_entry: dir.first_entry,
            self_entry: dir.self_entry,
        });
        let end = Directory {
            first_entry: count(self.of_entry.len()).unwrap_or(u32::MAX),
            ..Directory::default()
        };
        directories.chain([end]).collect()
    }

    /// Returns the table of entries; `name_places` are the places of their names.
    pub(crate) fn dir_entries(&self, name_places: &[u32]) -> Vec<DirEntry> {
        let entries = name_places.iter().zip(&self.of_entry);
        entries
            .map(|(name_index, inode_num)| DirEntry {
                name_index: *name_index,
                inode_num: *inode_num,
            })
            .collect()
    }
}

/// The order of kinds. Source: format specification, 7.1.
fn rank(kind: FileKind) -> u32 {
    match kind {
        FileKind::Directory => 0,
        FileKind::Symlink => 1,
        FileKind::Regular => 2,
        FileKind::CharDevice | FileKind::BlockDevice => 3,
        FileKind::Fifo | FileKind::Socket => 4,
    }
}

fn count(len: usize) -> Result<u32> {
    u32::try_from(len)
        .ok()
        .filter(|count| *count < u32::MAX)
        .ok_or_else(|| Error::limit("more than 2^32 - 2 directory entries"))
}
