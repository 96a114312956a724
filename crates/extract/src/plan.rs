//! What there is to extract: a flat list of directories and one of everything in them.
//!
//! The walk is over directory inodes and visits each once, so that a hostile image cannot make it endless; it is
//! breadth first, so a directory always stands behind its parent. Names that could lead out of the target are refused here,
//! before anything is made. Memory is about 40 bytes and the name for each path.

use durin_format::{Error, InodeNum, Result};
use durin_reader::{EntryRef, FileKind, Image};

use crate::options::ExtractOptions;

/// Deeper trees are refused: opening a directory takes a step a level.
const DEPTH_MAX: u32 = 65_536;

/// Longest path of a directory where paths are needed as a whole, in bytes. A chain of directories as deep as an image can have
/// it would cost the square of its depth; no program can use such a path either.
const PATH_BYTES_MAX: usize = 64 << 10;

/// More faults than this, or of more bytes of text, are not told one by one: a hostile image could fill memory with them.
const REFUSED_MAX: usize = 10_000;
const REFUSED_BYTES_MAX: usize = 4 << 20;

/// The place of the target itself among [`Plan::dirs`].
pub(crate) const TOP: u32 = 0;

/// Everything to extract.
pub(crate) struct Plan {
    /// Directories, the target first, parents before children.
    pub(crate) dirs: Vec<Dir>,
    /// Everything else, by directory.
    pub(crate) entries: Vec<Entry>,
    /// What is left out, with the reasons.
    pub(crate) refused: Vec<Error>,
    /// The bytes of what is said of them.
    refused_bytes: usize,
    names: Vec<u8>,
    paths: Paths,
}

/// A directory to make.
pub(crate) struct Dir {
    /// Its place among [`Plan::dirs`].
    pub(crate) parent: u32,
    pub(crate) entry: EntryRef,
    /// Whether it is asked for, or holds something that is.
    pub(crate) is_wanted: bool,
    depth: u32,
    path_len: usize,
    name: Span,
}

/// What is needed of the places of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// Names are enough: one is opened below the other.
    Names,
    /// Paths from below the top.
    Whole,
}

/// Something else to make.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The place of its directory among [`Plan::dirs`].
    pub(crate) dir: u32,
    pub(crate) kind: FileKind,
    pub(crate) entry: EntryRef,
    name: Span,
}

/// A range of [`Plan::names`].
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: u16,
}

impl Plan {
    /// Walks the image.
    ///
    /// # Errors
    /// `Limit` if more is wrong than could be reported; other faults are listed in [`Self::refused`].
    pub(crate) fn make(image: &Image, options: &ExtractOptions, paths: Paths) -> Result<Self> {
        let paths = match options.pattern {
            Some(_) => Paths::Whole,
            None => paths,
        };
        let mut plan = Self {
            paths,
            dirs: Vec::new(),
            entries: Vec::new(),
            refused: Vec::new(),
            refused_bytes: 0,
            names: Vec::new(),
        };
        plan.dirs.push(Dir {
            parent: TOP,
            entry: image.root(),
            is_wanted: true,
            depth: 0,
            path_len: 0,
            name: Span { start: 0, len: 0 },
        });
        let mut seen = Inodes::new(image.inode_count());
        seen.insert(image.root().inode);
        let mut next = 0;
        while let Some(dir) = plan.dirs.get(next) {
            let inode = dir.entry.inode;
            let place = u32::try_from(next).map_err(|_| Error::limit("2^32 directories"))?;
            if let Err(error) = plan.list(image, options, place, inode, &mut seen) {
                plan.leave_out(error.context(plan.shown_dir(place)));
            }
            if plan.has_too_many_faults() {
                let count = plan.refused.len();
                let text = format!("{count} entries cannot be extracted, and there are more");
                return Err(Error::limit(text));
            }
            next += 1;
        }
        Ok(plan)
    }

    fn list(
        &mut self,
        image: &Image,
        options: &ExtractOptions,
        place: u32,
        inode: InodeNum,
        seen: &mut Inodes,
    ) -> Result<()> {
        let mut name = Vec::new();
        // Only patterns need whole paths.
        let prefix = options.pattern.as_ref().map(|_| self.dir_path(place));
        for index in 0..image.dir_len(inode)? {
            // Also ends a directory of nothing but faults; the caller ends the walk.
            if self.has_too_many_faults() {
                break;
            }
            let found = image
                .dir_entry(inode, index, &mut name)
                .and_then(|entry| Ok((entry, image.kind(entry)?)));
            let (entry, kind) = match found {
                Ok(found) => found,
                Err(error) => {
                    self.leave_out(error.context(self.shown_dir(place)));
                    continue;
                }
            };
            if let Err(reason) = check_name(&name) {
                self.refuse(place, &name, reason);
                continue;
            }
            let is_matched = match (&options.pattern, &prefix) {
                (Some(pattern), Some(prefix)) => pattern.is_match(&joined(prefix, &name)),
                _ => true,
            };
            if kind == FileKind::Directory {
                if seen.insert(entry.inode) {
                    self.push_dir(place, &name, entry, is_matched);
                } else {
                    self.refuse(place, &name, "the directory is in several places");
                }
            } else if is_matched && !is_skipped(kind, options) {
                let name = self.keep(&name);
                self.entries.push(Entry {
                    dir: place,
                    kind,
                    entry,
                    name,
                });
                self.want(place);
            }
        }
        Ok(())
    }

    fn push_dir(&mut self, parent: u32, name: &[u8], entry: EntryRef, is_matched: bool) {
        let above = self.dirs.get(parent as usize);
        let (depth, path_len) = above.map_or((0, 0), |dir| (dir.depth, dir.path_len));
        let (depth, path_len) = (depth + 1, path_len + name.len() + 1);
        if depth > DEPTH_MAX {
            return self.refuse(parent, name, "the tree is deeper than 65536 levels");
        }
        if self.paths == Paths::Whole && path_len > PATH_BYTES_MAX {
            return self.refuse(parent, name, "its path is longer than 64 KiB");
        }
        let name = self.keep(name);
        self.dirs.push(Dir {
            parent,
            entry,
            is_wanted: is_matched,
            depth,
            path_len,
            name,
        });
        if is_matched {
            self.want(parent);
        }
    }

    /// Marks a directory and those above it; stops at the first that is marked, so that all marking is linear.
    fn want(&mut self, mut place: u32) {
        while let Some(dir) = self.dirs.get_mut(place as usize) {
            if place == TOP || std::mem::replace(&mut dir.is_wanted, true) {
                break;
            }
            place = dir.parent;
        }
    }

    fn refuse(&mut self, dir: u32, name: &[u8], reason: &str) {
        let path = shown(&joined(&self.dir_path(dir), name));
        self.leave_out(Error::corrupt(format!("{path}: refused: {reason}")));
    }

    fn leave_out(&mut self, error: Error) {
        self.refused_bytes += error.to_string().len();
        self.refused.push(error);
    }

    fn has_too_many_faults(&self) -> bool {
        self.refused.len() > REFUSED_MAX || self.refused_bytes > REFUSED_BYTES_MAX
    }

    fn keep(&mut self, name: &[u8]) -> Span {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        // `check_name` has limited the length.
        let len = u16::try_from(name.len()).unwrap_or(u16::MAX);
        Span { start, len }
    }

    /// Gives an entry another name.
    pub(crate) fn rename(&mut self, entry: &mut Entry, name: &[u8]) {
        entry.name = self.keep(name);
    }

    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.dirs.iter().skip(1).any(|dir| dir.is_wanted)
    }

    /// The name of a directory; that of the target is empty.
    pub(crate) fn dir_name(&self, dir: u32) -> &[u8] {
        self.dirs
            .get(dir as usize)
            .map_or(&[], |dir| self.text(dir.name))
    }

    /// The name of an entry.
    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        self.text(entry.name)
    }

    /// The path of a directory below the target, for messages and patterns.
    pub(crate) fn dir_path(&self, mut place: u32) -> Vec<u8> {
        let mut parts = Vec::new();
        while place != TOP {
            parts.push(self.dir_name(place));
            place = self.dirs.get(place as usize).map_or(TOP, |dir| dir.parent);
        }
        parts.reverse();
        parts.join(&b'/')
    }

    /// The path of a directory as it is shown in messages; `/` is the root of the image.
    pub(crate) fn shown_dir(&self, dir: u32) -> String {
        if dir == TOP {
            return "/".to_owned();
        }
        shown(&self.dir_path(dir))
    }

    /// The path of an entry as it is shown in messages.
    pub(crate) fn shown(&self, entry: &Entry) -> String {
        shown(&self.path(entry))
    }

    /// All names of a file as they are shown in messages.
    pub(crate) fn shown_all(&self, entries: &[Entry]) -> String {
        let paths: Vec<String> = entries.iter().map(|entry| self.shown(entry)).collect();
        paths.join(", ")
    }

    /// The path of an entry below the target.
    pub(crate) fn path(&self, entry: &Entry) -> Vec<u8> {
        joined(&self.dir_path(entry.dir), self.name(entry))
    }

    fn text(&self, span: Span) -> &[u8] {
        self.names
            .get(span.start..span.start + usize::from(span.len))
            .unwrap_or_default()
    }
}

/// Which inodes have been seen, a bit each.
struct Inodes {
    words: Vec<u64>,
}

impl Inodes {
    fn new(count: u32) -> Self {
        Self {
            words: vec![0; (count as usize).div_ceil(64)],
        }
    }

    /// Returns false if it was in already, or is no inode of the image.
    fn insert(&mut self, inode: InodeNum) -> bool {
        let Some(word) = self.words.get_mut(inode.0 as usize / 64) else {
            return false;
        };
        let bit = 1 << (inode.0 % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Refuses names that mean more than an entry of the directory they stand in.
fn check_name(name: &[u8]) -> std::result::Result<(), &'static str> {
    match name {
        b"" => Err("the name is empty"),
        b"." | b".." => Err("the name means another directory"),
        _ if name.contains(&b'/') => Err("the name contains a slash"),
        _ if name.contains(&0) => Err("the name contains a NUL"),
        _ if name.len() > usize::from(u16::MAX) => Err("the name is too long"),
        _ => Ok(()),
    }
}

fn is_skipped(kind: FileKind, options: &ExtractOptions) -> bool {
    match kind {
        FileKind::CharDevice | FileKind::BlockDevice => options.skip_devices,
        FileKind::Fifo | FileKind::Socket => options.skip_specials,
        _ => false,
    }
}

fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() {
        name.to_vec()
    } else {
        [dir, name].join(&b'/')
    }
}

/// A path for a message: what is no text or would move the cursor is escaped.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path)
        .chars()
        .flat_map(|c| {
            let is_plain = !c.is_control();
            let escaped = (!is_plain).then(|| c.escape_default());
            is_plain
                .then_some(c)
                .into_iter()
                .chain(escaped.into_iter().flatten())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [&b""[..], b".", b"..", b"/etc", b"a/b", b"a\0"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in [&b"a"[..], b"...", b"..a", b"\xff", b" "] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn messages_cannot_move_the_cursor() {
        assert_eq!(shown(b"a\x1b[2J\n\xff"), "a\\u{1b}[2J\\n\u{fffd}");
    }
}
