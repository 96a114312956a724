//! One side of a comparison: an image, or a directory of this system.

use std::fs::{self, File, Metadata};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use durin_format::{Error, InodeNum, Result};
use durin_reader::{FileKind, Image, WalkEntry};

use super::super::target::ImageArguments;
use crate::common::escape;
use crate::common::logger::Logger;

/// Directories nested deeper than this are not followed: no path that long can be opened.
const DEPTH_MAX: usize = 4096;

pub(super) enum Side {
    Image(Box<Image>),
    Directory(PathBuf),
}

/// An entry of either side.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Names from the top with `/` in between; empty for the top.
    pub(super) path: Vec<u8>,
    pub(super) kind: FileKind,
    /// Permission bits.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Bytes of a regular file.
    pub(super) size: Option<u64>,
    mtime_ns: i128,
    pub(super) rdev: u64,
    /// Where a symbolic link points.
    pub(super) target: Option<Vec<u8>>,
    /// The inode in an image.
    pub(super) inode: Option<InodeNum>,
}

/// All entries of a side, by path.
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    /// Entries that could not be read.
    pub(super) errors: u64,
}

impl Node {
    /// The modification time in steps of `resolution_ns`.
    pub(super) fn mtime_in(&self, resolution_ns: u64) -> i128 {
        self.mtime_ns.div_euclid(i128::from(resolution_ns.max(1)))
    }

    /// Whether both are files of the same size, which is not 0.
    pub(super) fn may_have_other_content(&self, other: &Self) -> bool {
        self.size == other.size && self.size.is_some_and(|size| size > 0)
    }
}

impl Side {
    /// Opens what `path` names.
    pub(super) fn open(path: &Path, source: &ImageArguments, logger: &Logger) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self::Directory(path.to_owned()));
        }
        let image = source.open(path, 0, logger)?;
        Ok(Self::Image(Box::new(image)))
    }

    /// How finely times are stored, in nanoseconds.
    pub(super) fn time_resolution(&self) -> Result<u64> {
        match self {
            Self::Directory(_) => Ok(1),
            Self::Image(image) => {
                let (tables, _) = image.tables();
                let options = tables.options.unwrap_or_default();
                let fraction = options.subsecond_resolution_nsec_multiplier;
                let seconds = options.time_resolution_sec.unwrap_or(1);
                Ok(match fraction {
                    Some(fraction) if fraction > 0 => fraction.into(),
                    _ => u64::from(seconds.max(1)) * 1_000_000_000,
                })
            }
        }
    }

    /// Lists everything. What cannot be read is reported and counted.
    pub(super) fn nodes(&self, logger: &Logger) -> Result<Nodes> {
        let mut list = Nodes {
            nodes: Vec::new(),
            errors: 0,
        };
        match self {
            Self::Image(image) => {
                for entry in image.walk() {
                    list.add(entry.and_then(|entry| of_image(image, entry)), logger);
                }
            }
            Self::Directory(top) => {
                let mut pending = vec![(Vec::new(), 0)];
                while let Some((path, depth)) = pending.pop() {
                    let node = of_file(top, path);
                    if let Ok(node) = &node
                        && node.kind == FileKind::Directory
                        && depth < DEPTH_MAX
                    {
                        match names(top, &node.path) {
                            Ok(paths) => {
                                pending.extend(paths.into_iter().map(|path| (path, depth + 1)));
                            }
                            Err(error) => list.add(Err(error), logger),
                        }
                    }
                    list.add(node, logger);
                }
            }
        }
        list.nodes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(list)
    }

    /// Reads a part of a file; less than asked for only at its end.
    pub(super) fn reader(&self, node: &FileRef) -> Result<Reader<'_>> {
        match (self, node.inode) {
            (Self::Image(image), Some(inode)) => Ok(Reader::Image(image, inode)),
            (Self::Image(_), None) => Err(Error::not_found("no such file in the image")),
            (Self::Directory(top), _) => {
                let path = join(top, &node.path);
                let file = File::open(&path).map_err(|error| {
                    Error::io(format!("cannot open '{}'", escape::path(&path)), error)
                })?;
                Ok(Reader::File(file))
            }
        }
    }
}

impl Nodes {
    fn add(&mut self, node: Result<Node>, logger: &Logger) {
        match node {
            Ok(node) => self.nodes.push(node),
            Err(error) => {
                logger.error(error.to_string());
                self.errors += 1;
            }
        }
    }
}

/// A regular file of a side.
#[derive(Clone, Debug)]
pub(super) struct FileRef {
    pub(super) path: Vec<u8>,
    pub(super) inode: Option<InodeNum>,
}

pub(super) enum Reader<'a> {
    Image(&'a Image, InodeNum),
    File(File),
}

impl Reader<'_> {
    /// Fills `buffer` from `offset` on, as far as the file goes; returns the number of bytes.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + filled as u64;
            let len = match self {
                Self::Image(image, inode) => image.read_at(*inode, at, rest)?,
                Self::File(file) => match file.read_at(rest, at) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    read => read.map_err(|error| Error::io("cannot read", error))?,
                },
            };
            if len == 0 {
                break;
            }
            filled += len;
        }
        Ok(filled)
    }
}

fn of_image(image: &Image, entry: WalkEntry) -> Result<Node> {
    let attr = entry.attr;
    Ok(Node {
        kind: attr.kind,
        mode: attr.mode & 0o7777,
        uid: attr.uid,
        gid: attr.gid,
        size: (attr.kind == FileKind::Regular).then_some(attr.size),
        mtime_ns: i128::from(attr.mtime.sec) * 1_000_000_000 + i128::from(attr.mtime.nsec),
        rdev: attr.rdev,
        target: match attr.kind {
            FileKind::Symlink => Some(image.read_link(attr.inode)?),
            _ => None,
        },
        inode: Some(attr.inode),
        path: entry.path,
    })
}

fn of_file(top: &Path, path: Vec<u8>) -> Result<Node> {
    let full = join(top, &path);
    let failed = |error| Error::io(format!("cannot read '{}'", escape::path(&full)), error);
    // The top may be a link that the user gave; nothing below is followed.
    let metadata = if path.is_empty() {
        fs::metadata(&full)
    } else {
        fs::symlink_metadata(&full)
    }
    .map_err(failed)?;
    let kind = kind(&metadata)?;
    Ok(Node {
        kind,
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        size: (kind == FileKind::Regular).then_some(metadata.size()),
        mtime_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        rdev: match kind {
            FileKind::CharDevice | FileKind::BlockDevice => metadata.rdev(),
            _ => 0,
        },
        target: match kind {
            FileKind::Symlink => Some(
                fs::read_link(&full)
                    .map_err(failed)?
                    .into_os_string()
                    .into_vec(),
            ),
            _ => None,
        },
        inode: None,
        path,
    })
}

fn kind(metadata: &Metadata) -> Result<FileKind> {
    FileKind::from_mode(metadata.mode())
        .ok_or_else(|| Error::unsupported(format!("file type of mode {:o}", metadata.mode())))
}

/// The paths of what is in the directory `path`.
fn names(top: &Path, path: &[u8]) -> Result<Vec<Vec<u8>>> {
    let full = join(top, path);
    let failed = |error| Error::io(format!("cannot read '{}'", escape::path(&full)), error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(&full).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().into_vec();
        paths.push(match path {
            b"" => name,
            path => [path, &name].join(&b'/'),
        });
    }
    Ok(paths)
}

fn join(top: &Path, path: &[u8]) -> PathBuf {
    match path {
        b"" => top.to_owned(),
        path => top.join(std::ffi::OsStr::from_bytes(path)),
    }
}
