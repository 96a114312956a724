//! Opening images and hashing what is in them.

use std::path::Path;
use std::sync::Arc;

use durin_format::digest::Digest;
use durin_format::{InodeNum, Result};
use durin_reader::{CacheOptions, Image, ImageOptions, MetadataCheck};
use durin_source::{MemorySource, OpenMode, Source};

/// Bytes read at a time: no multiple of anything, so that reads begin and end everywhere.
const PIECE_LEN: usize = 100_003;

/// Opens a file with the full check.
pub(crate) fn open_checked(path: &Path) -> Result<Image> {
    Image::open(
        durin_source::open(path, OpenMode::Mmap).unwrap(),
        &checked(),
    )
}

/// Opens bytes in memory.
pub(crate) fn open_bytes(bytes: Vec<u8>, options: &ImageOptions) -> Result<Image> {
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes));
    Image::open(source, options)
}

/// The full check, and no threads: thousands of images are opened.
pub(crate) fn checked() -> ImageOptions {
    ImageOptions {
        check: MetadataCheck::Full,
        ..quick()
    }
}

/// No check beyond the cheap ones.
pub(crate) fn quick() -> ImageOptions {
    ImageOptions {
        cache: CacheOptions {
            workers: 0,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    }
}

/// SHA-256 of a file, read from front to back.
pub(crate) fn sha256(image: &Image, inode: InodeNum) -> Result<Vec<u8>> {
    let mut hasher = Digest::parse("sha256")?.hasher();
    let mut buf = vec![0; PIECE_LEN];
    let mut offset = 0;
    loop {
        let len = image.read_at(inode, offset, &mut buf)?;
        if len == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buf[..len]);
        offset += len as u64;
    }
}

/// What a directory entry shows, to compare two readings of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) path: Vec<u8>,
    pub(crate) attr: durin_reader::Attr,
    pub(crate) target: Option<Vec<u8>>,
    pub(crate) content: Option<Vec<u8>>,
}

/// Reads everything that a user can see.
pub(crate) fn show(image: &Image) -> Result<Vec<Shown>> {
    image
        .walk()
        .map(|entry| {
            let entry = entry?;
            let inode = entry.entry.inode;
            let is = |kind| entry.attr.kind == kind;
            Ok(Shown {
                target: is(durin_reader::FileKind::Symlink)
                    .then(|| image.read_link(inode))
                    .transpose()?,
                content: is(durin_reader::FileKind::Regular)
                    .then(|| sha256(image, inode))
                    .transpose()?,
                path: entry.path,
                attr: entry.attr,
            })
        })
        .collect()
}
