//! Finds out what the bytes go to.

use std::collections::BTreeMap;

use durin_format::section::{CompressionType, SectionType};
use durin_format::{InodeNum, Result};
use durin_reader::{FileKind, Image, Info, Place, StoredSizes, WalkEntry};

use super::overlap::{self, Overlap, Piece};
use super::top::Top;
use super::tree::Builder;
use super::{Block, BlockSum, Group, Named, Space, Totals, Usage, kinds, paths, to_usize};
use crate::common::logger::Logger;
use crate::dwarfsck::tables_text;

/// Files, groups and clusters that are shown at most.
const SHOWN_MAX: usize = 100;

/// Collects the report; what cannot be read is told to `logger` and counted.
pub(crate) fn collect(image: &Image, info: &Info, logger: &Logger) -> Result<Space> {
    let mut walk = Walk {
        image,
        stored: image.stored_sizes()?,
        tree: Builder::new(info.original_filesystem_size, info.compressed_block_size),
        totals: Totals::default(),
        kinds: BTreeMap::new(),
        largest: Top::new(SHOWN_MAX),
        seen: vec![false; to_usize(image.inode_count())],
        contents: Contents::default(),
    };
    let mut errors = 0;
    for entry in image.walk() {
        if let Err(error) = entry.and_then(|entry| walk.visit(entry)) {
            logger.error(error.to_string());
            errors += 1;
        }
    }
    let Walk {
        tree,
        mut totals,
        kinds,
        largest,
        contents,
        ..
    } = walk;
    let (mut duplicates, duplicate_bytes) = contents.duplicates();
    totals.duplicates = duplicate_bytes;
    let overlap = overlap::find(pieces(image, &contents)?, &contents.sizes);
    let blocks = blocks(info);
    finish_totals(&mut totals, info, image, &contents, overlap.referred);
    let mut clusters = clusters(overlap, &contents.sizes);
    paths::fill(image, &mut duplicates, &mut clusters);
    let (tables, data) = image.tables();
    Ok(Space {
        totals,
        tree: tree.finish(),
        kinds: sorted(kinds),
        categories: block_sums(&blocks, |block| {
            block.category.clone().unwrap_or_else(|| "none".to_owned())
        }),
        codecs: block_sums(&blocks, |block| codec_name(block.compression).to_owned()),
        blocks,
        largest: largest.finish(),
        duplicates,
        clusters,
        tables: tables_text::rows(tables, data),
        errors,
    })
}

/// How a codec is called; a block with a damaged header has none.
pub(crate) fn codec_name(compression: Option<CompressionType>) -> &'static str {
    compression.map_or("unknown", CompressionType::name)
}

struct Walk<'a> {
    image: &'a Image,
    stored: StoredSizes,
    tree: Builder,
    totals: Totals,
    kinds: BTreeMap<Vec<u8>, Usage>,
    largest: Top<Named>,
    /// By inode: files with several links count once.
    seen: Vec<bool>,
    contents: Contents,
}

impl Walk<'_> {
    fn visit(&mut self, entry: WalkEntry) -> Result<()> {
        let attr = &entry.attr;
        match attr.kind {
            FileKind::Directory => self.tree.directory(entry.path),
            FileKind::Regular => {
                self.totals.entries += 1;
                self.totals.size = self.totals.size.saturating_add(attr.size);
                let seen = self.seen.get_mut(to_usize(attr.inode.0));
                if seen.is_none_or(|seen| std::mem::replace(seen, true)) {
                    self.totals.hard_links = self.totals.hard_links.saturating_add(attr.size);
                } else {
                    self.file(&entry)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, entry: &WalkEntry) -> Result<()> {
        let attr = &entry.attr;
        self.totals.holes += attr.size.saturating_sub(attr.allocated);
        let content = self.image.content_number(attr.inode)?;
        let usage = Usage {
            files: 1,
            size: attr.allocated,
            stored: self.stored.of(content),
        };
        self.contents.add(content, attr.inode, attr.allocated);
        let kind = kinds::kind(&entry.path, attr.mode);
        self.kinds.entry(kind).or_default().add(usage);
        self.tree.file(&entry.path, usage);
        // Files that take next to nothing of the image may still be large.
        let rank = usage.stored_bytes().saturating_mul(1 << 16) + usage.size.min(0xffff);
        self.largest.offer(rank, || Named {
            name: entry.path.clone(),
            usage,
        });
        Ok(())
    }
}

/// The contents by their number.
#[derive(Default)]
struct Contents {
    /// Any inode that has it.
    inodes: Vec<Option<InodeNum>>,
    /// Files that have it.
    users: Vec<u64>,
    /// Bytes without holes.
    sizes: Vec<u64>,
}

impl Contents {
    fn add(&mut self, content: u32, inode: InodeNum, size: u64) {
        let index = to_usize(content);
        if self.users.len() <= index {
            self.inodes.resize(index + 1, None);
            self.users.resize(index + 1, 0);
            self.sizes.resize(index + 1, 0);
        }
        self.inodes[index] = Some(inode);
        self.users[index] += 1;
        self.sizes[index] = size;
    }

    /// The groups of equal files that save most, and what all of them save.
    fn duplicates(&self) -> (Vec<Group>, u64) {
        let mut sum: u64 = 0;
        let mut groups = Top::new(SHOWN_MAX);
        for ((content, users), size) in (0..).zip(&self.users).zip(&self.sizes) {
            let saved = users.saturating_sub(1).saturating_mul(*size);
            sum = sum.saturating_add(saved);
            groups.offer(saved, || Group {
                files: *users,
                size: *size,
                saved,
                contents: vec![content],
                paths: Vec::new(),
            });
        }
        (groups.finish(), sum)
    }
}

/// All chunks that are no holes.
fn pieces(image: &Image, contents: &Contents) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for (content, inode) in (0..).zip(&contents.inodes) {
        let Some(inode) = *inode else { continue };
        for extent in image.chunks(inode)? {
            let extent = extent?;
            if let Place::Data { block, offset } = extent.place {
                pieces.push(Piece {
                    block: block.0,
                    offset,
                    len: u32::try_from(extent.len).unwrap_or(u32::MAX),
                    content,
                });
            }
        }
    }
    Ok(pieces)
}

fn clusters(overlap: Overlap, sizes: &[u64]) -> Vec<Group> {
    let mut clusters = Top::new(SHOWN_MAX);
    for cluster in overlap.clusters {
        let saved = cluster.size.saturating_sub(cluster.distinct);
        clusters.offer(saved, || Group {
            files: cluster.contents.len() as u64,
            size: cluster.size,
            saved,
            contents: paths::chosen(cluster.contents, sizes),
            paths: Vec::new(),
        });
    }
    clusters.finish()
}

fn finish_totals(
    totals: &mut Totals,
    info: &Info,
    image: &Image,
    contents: &Contents,
    referred: u64,
) {
    let distinct = contents.sizes.iter().sum::<u64>();
    totals.shared = distinct.saturating_sub(referred);
    totals.blocks = info.uncompressed_block_size.unwrap_or(referred);
    totals.unused = totals.blocks.saturating_sub(referred);
    totals.blocks_stored = info.compressed_block_size;
    totals.metadata = info.uncompressed_metadata_size;
    totals.metadata_stored = info.compressed_metadata_size;
    totals.image = info.image_offset.saturating_add(image.len());
    totals.rest = totals
        .image
        .saturating_sub(totals.blocks_stored)
        .saturating_sub(totals.metadata_stored);
}

fn blocks(info: &Info) -> Vec<Block> {
    let is_block =
        |section: &&durin_reader::SectionInfo| section.section_type == SectionType::Block;
    info.sections
        .iter()
        .filter(is_block)
        .map(|section| Block {
            category: section.category.clone(),
            compression: section.compression,
            size: section.size,
            stored: section.compressed_size,
        })
        .collect()
}

/// Adds up blocks by a name; the largest in the image first.
fn block_sums(blocks: &[Block], name: impl Fn(&Block) -> String) -> Vec<BlockSum> {
    let mut sums: BTreeMap<String, BlockSum> = BTreeMap::new();
    for block in blocks {
        let sum = sums.entry(name(block)).or_default();
        sum.blocks += 1;
        sum.size += block.size.unwrap_or(0);
        sum.stored += block.stored;
    }
    let mut sums: Vec<_> = sums
        .into_iter()
        .map(|(name, sum)| BlockSum { name, ..sum })
        .collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.stored));
    sums
}

fn sorted(usages: BTreeMap<Vec<u8>, Usage>) -> Vec<Named> {
    let mut all: Vec<_> = usages
        .into_iter()
        .map(|(name, usage)| Named { name, usage })
        .collect();
    all.sort_by_key(|named| std::cmp::Reverse((named.usage.stored_bytes(), named.usage.size)));
    all
}
