//! Cutting the files into work.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::Sender;
use durin_format::{BlockIndex, Result};
use durin_reader::{Attr, Extent, Place};

use super::End;
use super::order::Files;
use super::write::{self, LargeFile};
use crate::content::Written;
use crate::job::Job;
use crate::plan::Entry;

/// Files with more data are written by several workers.
pub(super) const SPLIT_BYTES: u64 = 32 << 20;

/// A piece of a large file ends where a block does, once it has this much data ...
const PIECE_BYTES_MIN: u64 = 1 << 20;

/// ... and in any case with this much,
const PIECE_BYTES_MAX: u64 = 32 << 20;

/// or this many extents, 40 bytes each.
const PIECE_EXTENTS_MAX: usize = 16_384;

/// Files that start in one block are handed out together, up to this many ...
const BATCH_FILES_MAX: usize = 256;

/// ... and this much data, so that the last worker does not work alone for long.
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// What a worker does next.
pub(super) enum Work {
    /// Whole files, as places among [`Files::groups`].
    Files(Range<usize>),
    /// A part of a large one.
    Piece(Arc<LargeFile>, Vec<Extent>),
}

/// Files that go to a worker together.
#[derive(Default)]
struct Batch {
    files: Range<usize>,
    block: Option<BlockIndex>,
    bytes: u64,
}

/// Sends all files to the workers, in order; returns early when the end is reached.
pub(super) fn hand_out(
    job: &Job<'_>,
    files: &Files,
    end: &End,
    sender: &Sender<Work>,
) -> Result<()> {
    let mut batch = Batch::default();
    for group in 0..files.len() {
        job.check_cancel()?;
        if end.is_reached() {
            return Ok(());
        }
        let names = files.entries(group);
        let Some(entry) = names.first() else {
            continue;
        };
        let (attr, block) = match look(job, entry) {
            Ok(found) => found,
            Err(error) => {
                write::give_up(job);
                job.skip(error.context(job.plan.shown_all(names)))?;
                continue;
            }
        };
        let is_large = attr.allocated > SPLIT_BYTES;
        let is_full = batch.bytes > BATCH_BYTES_MAX || batch.files.len() >= BATCH_FILES_MAX;
        let is_adjacent = batch.files.end == group;
        if is_large || is_full || !is_adjacent || (block.is_some() && block != batch.block) {
            send(sender, Work::Files(std::mem::take(&mut batch.files)));
            batch = Batch {
                files: group..group,
                block,
                bytes: 0,
            };
        }
        if is_large {
            hand_out_large(job, files, group, attr, sender)?;
        } else {
            batch.files.end = group + 1;
            batch.bytes += attr.allocated;
        }
    }
    send(sender, Work::Files(batch.files));
    Ok(())
}

/// Attributes of a file, and the block its data starts in.
fn look(job: &Job<'_>, entry: &Entry) -> Result<(Attr, Option<BlockIndex>)> {
    let attr = job.image.attr(entry.entry)?;
    let first = job.image.chunks(entry.entry.inode)?.next().transpose()?;
    let block = first.and_then(|extent| match extent.place {
        Place::Data { block, .. } => Some(block),
        Place::Hole => None,
    });
    Ok((attr, block))
}

fn hand_out_large(
    job: &Job<'_>,
    files: &Files,
    group: usize,
    attr: Attr,
    sender: &Sender<Work>,
) -> Result<()> {
    let names = files.entries(group);
    let Some(entry) = names.first() else {
        return Ok(());
    };
    let file = match write::create(job, entry) {
        Ok(file) => file,
        Err(error) => {
            write::give_up(job);
            return job.skip(error);
        }
    };
    let large = Arc::new(LargeFile::new(group, attr, file));
    let skipped = match send_pieces(job, entry, &large, sender) {
        Ok(written) => {
            large.all_sent(written);
            Ok(())
        }
        Err(error) => {
            large.give_up();
            job.skip(error.context(job.plan.shown_all(names)))
        }
    };
    skipped.and(large.end_piece(job, files))
}

/// Cuts a file into pieces; returns what it will be when they are written.
fn send_pieces(
    job: &Job<'_>,
    entry: &Entry,
    large: &Arc<LargeFile>,
    sender: &Sender<Work>,
) -> Result<Written> {
    let mut written = Written::default();
    let mut piece = Vec::new();
    let mut bytes = 0;
    let send_piece = |piece: &mut Vec<Extent>| {
        if !piece.is_empty() {
            large.add_piece();
            send(
                sender,
                Work::Piece(Arc::clone(large), std::mem::take(piece)),
            );
        }
    };
    let mut last_block = None;
    for extent in job.image.chunks(entry.entry.inode)? {
        let extent = extent?;
        written.end = extent.offset + extent.len;
        let Place::Data { block, .. } = extent.place else {
            written.has_holes = true;
            continue;
        };
        let is_full = bytes >= PIECE_BYTES_MAX || piece.len() >= PIECE_EXTENTS_MAX;
        if is_full || (last_block != Some(block) && bytes >= PIECE_BYTES_MIN) {
            job.check_cancel()?;
            send_piece(&mut piece);
            bytes = 0;
        }
        last_block = Some(block);
        bytes += extent.len;
        piece.push(extent);
    }
    send_piece(&mut piece);
    Ok(written)
}

/// Fails only when all workers are gone, for which one of them has the reason.
fn send(sender: &Sender<Work>, work: Work) {
    if !matches!(&work, Work::Files(files) if files.is_empty()) {
        sender.send(work).ok();
    }
}
