//! What the commands look at: an image, and paths in it as a user of a mounted image would write them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::Args;
use durin_format::{Error, Result};
use durin_reader::{EntryRef, FileKind, Image, ImageOffset, ImageOptions, MetadataCheck};

use crate::common::arguments::{byte_size, image_offset};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::{escape, image};

/// Links followed for one path, as in the kernel.
const LINKS_MAX: u32 = 40;

/// An image and paths in it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Image")]
pub(crate) struct Target {
    /// Image to look into
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Paths in the image [default: its root]
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,

    #[command(flatten)]
    source: ImageArguments,
}

/// Where an image is in its file, and the memory for reading it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Image")]
pub(crate) struct ImageArguments {
    /// Where the image starts in the file: 'auto' or bytes
    #[arg(short = 'O', long, value_name = "OFFSET", default_value = "auto", value_parser = image_offset)]
    image_offset: ImageOffset,

    /// Memory for decompressed blocks
    #[arg(long, value_name = "SIZE", default_value = "512m", value_parser = byte_size, hide_short_help = true)]
    cache_size: u64,
}

impl ImageArguments {
    /// Opens an image; `workers` threads decompress ahead of readers.
    pub(crate) fn open(
        &self,
        path: &std::path::Path,
        workers: usize,
        logger: &Logger,
    ) -> Result<Image> {
        let mut options = ImageOptions {
            offset: self.image_offset,
            check: MetadataCheck::Quick,
            ..ImageOptions::default()
        };
        options.cache.bytes_max = self.cache_size;
        options.cache.workers = workers;
        image::open(path, &options, logger)
    }
}

/// A place in an image.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) entry: EntryRef,
    /// Names from below the root with `/` in between; empty for the root.
    pub(crate) path: Vec<u8>,
}

/// Whether a link at the end of a path stands for what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

impl Target {
    /// Opens the image.
    pub(crate) fn open(&self, workers: usize, logger: &Logger) -> Result<Image> {
        self.source.open(&self.image, workers, logger)
    }

    /// The paths that were given.
    pub(crate) fn paths(&self) -> &[OsString] {
        &self.paths
    }

    /// Finds the paths, or the root if there are none. What is not there is reported; also returns how many were not.
    pub(crate) fn find(
        &self,
        image: &Image,
        last: LastLink,
        logger: &Logger,
    ) -> std::result::Result<(Vec<Found>, u64), Failure> {
        if self.paths.is_empty() {
            let root = Found {
                entry: image.root(),
                path: Vec::new(),
            };
            return Ok((vec![root], 0));
        }
        let (mut found, mut missing) = (Vec::new(), 0);
        for path in &self.paths {
            match resolve(image, path.as_bytes(), last) {
                Ok(place) => found.push(place),
                Err(error) => {
                    logger.error(format!("{}: {error}", escape::bytes(path.as_bytes())));
                    missing += 1;
                }
            }
        }
        Ok((found, missing))
    }
}

/// The path as shown: the root is `.`.
pub(crate) fn shown(path: &[u8]) -> String {
    match path {
        b"" => ".".to_owned(),
        path => escape::bytes(path),
    }
}

/// Follows `path` from the root, with `.`, `..` and symbolic links as in a mounted image whose root is `/`.
pub(crate) fn resolve(image: &Image, path: &[u8], last: LastLink) -> Result<Found> {
    let mut pending = components(path);
    let mut walked: Vec<(EntryRef, Vec<u8>)> = Vec::new();
    let mut links = 0;
    // A slash at the end asks for a directory.
    let must_be_dir = path.last() == Some(&b'/');
    while let Some(name) = pending.pop() {
        let here = walked.last().map_or(image.root(), |(entry, _)| *entry);
        if image.kind(here)? != FileKind::Directory {
            return Err(Error::not_found("Not a directory"));
        }
        match name.as_slice() {
            b"." => continue,
            b".." => {
                walked.pop();
                continue;
            }
            _ => {}
        }
        let Some(entry) = image.lookup(here.inode, &name)? else {
            return Err(Error::not_found("No such file or directory"));
        };
        let follows = !pending.is_empty() || last == LastLink::Follow || must_be_dir;
        if follows && image.kind(entry)? == FileKind::Symlink {
            links += 1;
            if links > LINKS_MAX {
                return Err(Error::not_found("Too many levels of symbolic links"));
            }
            let target = image.read_link(entry.inode)?;
            if target.first() == Some(&b'/') {
                walked.clear();
            }
            pending.extend(components(&target));
        } else {
            walked.push((entry, name));
        }
    }
    let entry = walked.last().map_or(image.root(), |(entry, _)| *entry);
    if must_be_dir && image.kind(entry)? != FileKind::Directory {
        return Err(Error::not_found("Not a directory"));
    }
    let names: Vec<Vec<u8>> = walked.into_iter().map(|(_, name)| name).collect();
    Ok(Found {
        entry,
        path: names.join(&b'/'),
    })
}

/// The names of a path, the first one last. A `.` is one, as only directories have it.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/');
    let mut names: Vec<Vec<u8>> = names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_come_from_the_end() {
        let names = [&b"c"[..], b"..", b"b", b".", b"a"];
        assert_eq!(components(b"//a/./b/../c/"), names);
        assert!(components(b"/").is_empty());
    }
}
