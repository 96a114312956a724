//! What will be read of each block, for those who know which files they are going to read in which order.
//!
//! Blocks that are needed next are decoded ahead.
//! In the order of their data most files lie in the block that is being read, and some have pieces in others here and
//! there. A cache without room for all blocks would decode those again and again for a few bytes. So before a block goes,
//! the cache asks here for the pieces that files of other blocks will want of it, and keeps just them.
//!
//! **Memory**: 12 bytes for each such piece, a sixteenth of the cache at most, and some for each block. For pieces beyond
//! that, blocks are decoded when they are read.

use std::ops::Range;
use std::sync::Arc;

use durin_format::{BlockIndex, InodeNum, Result};

use crate::chunks::Place;
use crate::image::Image;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// The part of the cache that the list of pieces may take beside it.
const MEMORY_SHARE: u64 = 16;

/// Pieces of files that are looked at. In a damaged image all files could have all pieces.
const LOOKED_AT_MAX: u64 = 1 << 24;

/// What will be read.
pub(crate) struct Outlook {
    blocks: Vec<Wanted>,
    /// Blocks in the order in which they are needed first, each with the file that needs it.
    order: Vec<(u32, BlockIndex)>,
    /// Files that have been read.
    done: AtomicU64,
}

/// What is going to be read of a block.
#[derive(Clone, Default)]
struct Wanted {
    /// Where the last byte ends that anybody wants.
    end: u32,
    /// What files of other blocks want, in the order of its places.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    start: u32,
    end: u32,
    file: u32,
}

/// Says that files are read in a known order, until this is dropped.
#[derive(Debug)]
pub struct ReadingPlan<'a> {
    image: &'a Image,
    outlook: Arc<Outlook>,
    /// Blocks that were asked for, or reached before anybody did.
    asked: Mutex<usize>,
}

impl Image {
    /// Tells that `files` are going to be read in this order by one or more threads, each as a whole: the cache of blocks
    /// makes the best of that.
    ///
    /// What is wrong with a file is found when it is read.
    pub fn plan_reading(&self, files: impl Iterator<Item = InodeNum>) -> ReadingPlan<'_> {
        let outlook = Arc::new(self.outlook(files));
        self.cache().set_outlook(Some(Arc::clone(&outlook)));
        ReadingPlan {
            image: self,
            outlook,
            asked: Mutex::new(0),
        }
    }

    fn outlook(&self, files: impl Iterator<Item = InodeNum>) -> Outlook {
        let bytes_max = match self.cache().has_room_for_all() {
            true => 0,
            false => self.cache().memory().bytes_max() / MEMORY_SHARE,
        };
        let mut listing = Listing {
            blocks: vec![Wanted::default(); self.block_count() as usize],
            order: Vec::new(),
            pieces_left: bytes_max / size_of::<Piece>() as u64,
            extents_left: LOOKED_AT_MAX,
        };
        for (number, file) in (0..).zip(files) {
            if listing.extents_left == 0 {
                break;
            }
            // What is wrong with a file is found when its turn comes.
            listing.add(self, number, file).ok();
        }
        for block in &mut listing.blocks {
            block.pieces.sort_unstable();
        }
        Outlook {
            blocks: listing.blocks,
            order: listing.order,
            done: AtomicU64::new(0),
        }
    }
}

impl ReadingPlan<'_> {
    /// Tells that the first `count` files have been read.
    pub fn done(&self, count: usize) {
        self.outlook.done.store(count as u64, Ordering::Relaxed);
    }

    /// Tells that file number `file` is going to be read now, and has the blocks decoded that come next.
    pub fn come_to(&self, file: usize) {
        let (cache, order) = (self.image.cache(), &self.outlook.order);
        let reached = order.partition_point(|(first, _)| (*first as usize) < file);
        let mut asked = lock(&self.asked);
        *asked = reached.max(*asked);
        while *asked < reached + cache.depth()
            && let Some((_, block)) = order.get(*asked)
            && cache.prefetch_to(*block, self.outlook.end(*block))
        {
            *asked += 1;
        }
    }
}

impl Drop for ReadingPlan<'_> {
    fn drop(&mut self) {
        self.image.cache().set_outlook(None);
    }
}

/// An outlook in the making.
struct Listing {
    blocks: Vec<Wanted>,
    order: Vec<(u32, BlockIndex)>,
    pieces_left: u64,
    extents_left: u64,
}

impl Listing {
    fn add(&mut self, image: &Image, number: u32, file: InodeNum) -> Result<()> {
        let mut own = None;
        for extent in image.chunks(file)? {
            let extent = extent?;
            let Some(left) = self.extents_left.checked_sub(1) else {
                break;
            };
            self.extents_left = left;
            let Place::Data { block, offset } = extent.place else {
                continue;
            };
            let end = u64::from(offset).saturating_add(extent.len);
            // What is beyond the end of any block cannot be read.
            let end = u32::try_from(end)
                .ok()
                .filter(|end| *end <= image.block_size());
            let (Some(end), Some(wanted)) = (end, self.blocks.get_mut(block.0 as usize)) else {
                continue;
            };
            if wanted.end == 0 {
                self.order.push((number, block));
            }
            wanted.end = wanted.end.max(end);
            if *own.get_or_insert(block) != block && self.pieces_left > 0 {
                self.pieces_left -= 1;
                wanted.pieces.push(Piece {
                    start: offset,
                    end,
                    file: number,
                });
            }
        }
        Ok(())
    }
}

impl Outlook {
    /// The ranges of a block that files of others are going to read: in order, none of which touches the next.
    pub(crate) fn wanted(&self, block: BlockIndex) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for piece in self.still_wanted(block) {
            match ranges.last_mut().filter(|last| piece.start <= last.end) {
                Some(last) => last.end = last.end.max(piece.end),
                None => ranges.push(piece.start..piece.end),
            }
        }
        ranges
    }

    /// Whether files of other blocks are going to read anything of a block.
    pub(crate) fn wants(&self, block: BlockIndex) -> bool {
        self.still_wanted(block).next().is_some()
    }

    /// How far a block is going to be read, in bytes.
    pub(crate) fn end(&self, block: BlockIndex) -> u64 {
        let wanted = self.blocks.get(block.0 as usize);
        wanted.map_or(0, |wanted| wanted.end).into()
    }

    fn still_wanted(&self, block: BlockIndex) -> impl Iterator<Item = &Piece> {
        let done = self.done.load(Ordering::Relaxed);
        let wanted = self.blocks.get(block.0 as usize);
        let pieces = wanted.map_or(&[][..], |wanted| &wanted.pieces);
        pieces
            .iter()
            .filter(move |piece| u64::from(piece.file) >= done)
    }
}

impl std::fmt::Debug for Outlook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlook")
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
