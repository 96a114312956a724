//! Rewriting in memory, and what an image shows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durin_codec::Spec;
use durin_format::digest::Digest;
use durin_format::events::Quiet;
use durin_format::{InodeNum, Result};
use durin_reader::{Attr, CacheOptions, CheckLevel, CheckOptions, FileKind, Image, ImageOptions};
use durin_rewrite::{Figures, RebuildOptions, Recompress, Report, RewriteOptions, rewrite};
use durin_source::{MemorySource, OpenMode};

/// Bytes read at a time: no multiple of anything, so that reads begin and end everywhere.
const PIECE_LEN: usize = 100_003;

fn image_options() -> ImageOptions {
    ImageOptions {
        cache: CacheOptions {
            workers: 0,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    }
}

pub(crate) fn open_file(path: &Path) -> Result<Image> {
    Image::open(
        durin_source::open(path, OpenMode::Mmap).unwrap(),
        &image_options(),
    )
}

pub(crate) fn open(bytes: &[u8]) -> Result<Image> {
    Image::open(
        Arc::new(MemorySource::new(bytes.to_vec())),
        &image_options(),
    )
}

pub(crate) fn try_rewrite(image: &Image, options: &RewriteOptions) -> Result<(Vec<u8>, Report)> {
    let mut new = Vec::new();
    let cancel = AtomicBool::new(false);
    let figures = Figures::default();
    let report = rewrite(image, options, &mut new, &figures, &Quiet, &cancel)?;
    Ok((new, report))
}

/// Rewrites and checks the new image in full.
#[track_caller]
pub(crate) fn rewritten(image: &Image, options: &RewriteOptions) -> Vec<u8> {
    let (new, report) = try_rewrite(image, options).unwrap();
    assert_eq!(report.image_bytes + report.header_bytes, new.len() as u64);
    let level = CheckOptions {
        level: CheckLevel::Full,
        workers: 1,
    };
    let found = open(&new).unwrap().check(&level, &|_, _| {});
    assert!(found.is_ok(), "{:?}", found.errors);
    new
}

/// The kinds of rewriting, fast ones.
pub(crate) fn kinds() -> Vec<(&'static str, RewriteOptions)> {
    let zstd: Spec = "zstd:level=1".parse().unwrap();
    let recompress = |what| RewriteOptions {
        compression: zstd.clone().into(),
        metadata_compression: zstd.clone(),
        workers: 2,
        ..RewriteOptions::new(what)
    };
    let rebuild = |what, pack: &str| RewriteOptions {
        rebuild: Some(RebuildOptions {
            pack: durin_writer::PackOptions::parse(pack).unwrap(),
            ..RebuildOptions::default()
        }),
        ..recompress(what)
    };
    let recut = |bits| RewriteOptions {
        block_size_bits: Some(bits),
        ..rebuild(Recompress::ALL, "auto")
    };
    vec![
        ("none", recompress(Recompress::NONE)),
        ("all", recompress(Recompress::ALL)),
        ("block", recompress(Recompress::BLOCK)),
        ("rebuild", rebuild(Recompress::METADATA, "all")),
        ("rebuild plain", rebuild(Recompress::METADATA, "plain")),
        ("small blocks", recut(10)),
        ("medium blocks", recut(14)),
        ("large blocks", recut(27)),
    ]
}

/// What a directory entry shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) path: Vec<u8>,
    pub(crate) attr: Attr,
    target: Option<Vec<u8>>,
    content: Option<Vec<u8>>,
    /// Holes of the content: beginning and length.
    holes: Vec<(u64, u64)>,
}

/// Everything that a user can see.
pub(crate) fn show(image: &Image) -> Result<Vec<Shown>> {
    let one = |entry: Result<durin_reader::WalkEntry>| {
        let entry = entry?;
        let inode = entry.entry.inode;
        let is = |kind| entry.attr.kind == kind;
        let is_file = is(FileKind::Regular);
        Ok(Shown {
            target: is(FileKind::Symlink)
                .then(|| image.read_link_raw(inode))
                .transpose()?,
            content: is_file.then(|| content(image, inode)).transpose()?,
            holes: if is_file {
                holes(image, inode)?
            } else {
                Vec::new()
            },
            path: entry.path,
            attr: entry.attr,
        })
    };
    image.walk().map(one).collect()
}

/// The digest of a file; of one that is far too large to be read, that of its ends.
fn content(image: &Image, inode: InodeNum) -> Result<Vec<u8>> {
    const LEN_MAX: u64 = 256 << 20;
    let size = image.inode_attr(inode)?.size;
    let mut hasher = Digest::parse("xxh3-128")?.hasher();
    let mut buf = vec![0; PIECE_LEN];
    let mut offset = 0;
    loop {
        if size > LEN_MAX && offset > LEN_MAX / 16 && offset < size - LEN_MAX / 16 {
            offset = size - LEN_MAX / 16;
        }
        let len = image.read_at(inode, offset, &mut buf)?;
        if len == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buf[..len]);
        offset += len as u64;
    }
}

fn holes(image: &Image, inode: InodeNum) -> Result<Vec<(u64, u64)>> {
    let mut holes = Vec::new();
    for extent in image.chunks(inode)? {
        let extent = extent?;
        if extent.place == durin_reader::Place::Hole {
            holes.push((extent.offset, extent.len));
        }
    }
    Ok(holes)
}
