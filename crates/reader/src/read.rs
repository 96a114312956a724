//! Reading file contents at any place.

use durin_format::{BlockIndex, InodeNum, Result};

use crate::block_cache::Ready;
use crate::chunks::{Extent, Place};
use crate::image::Image;
use crate::perfmon::{Operation, Perfmon};

/// Extents looked at to find the block that a sequential reader needs next. It is usually the next but one;
/// looking further costs the reader more than the early start saves.
const LOOK_AHEAD_COUNT: usize = 64;

/// Blocks of one read whose bytes are counted.
const TALLY_LEN: usize = 8;

impl Image {
    /// Reads bytes of a regular file from `offset` into `buf` and returns how many: fewer than `buf` holds only at the
    /// end of the file.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `inode` is no regular file, `Corrupt` if metadata or a block is damaged,
    /// `Io` if the image cannot be read.
    pub fn read_at(&self, inode: InodeNum, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _timer = Perfmon::start(self.perfmon(), Operation::Read);
        let content = self.content_number(inode)?;
        if offset == 0 {
            // Before it waits for its own block.
            self.begin_file(inode);
        }
        let read = |block, at, target: &mut [u8]| {
            self.cache()
                .read_from(block, at, target)
                .map(|()| Ready::Yes)
        };
        let done = self.read_content(content, offset, buf, read)?;
        if self.cache().wants_references() {
            self.cache().set_references(self.references());
        }
        Ok(done.unwrap_or(0))
    }

    /// As [`Self::read_at`] if that takes no decoding and no reading of the image; `None` if it does.
    ///
    /// # Errors
    /// As [`Self::read_at`].
    pub fn read_ready(
        &self,
        inode: InodeNum,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let timer = Perfmon::start(self.perfmon(), Operation::Read);
        let content = self.content_number(inode)?;
        let read = |block, at, target: &mut [u8]| self.cache().read_ready(block, at, target);
        let done = self.read_content(content, offset, buf, read)?;
        match done {
            None => timer.discard(),
            Some(_) if offset == 0 => self.begin_file(inode),
            Some(_) => {}
        }
        Ok(done)
    }

    fn read_content(
        &self,
        content: u32,
        offset: u64,
        buf: &mut [u8],
        read: impl Fn(BlockIndex, u64, &mut [u8]) -> Result<Ready>,
    ) -> Result<Option<usize>> {
        let mut extents = self.extents_from(content, offset)?;
        let mut done = 0;
        let mut last_block = None;
        let mut tally = Tally::default();
        while done < buf.len() {
            let Some(extent) = extents.next().transpose()? else {
                break;
            };
            let at = offset.saturating_add(done as u64);
            let Some(target) = part_of(&extent, at, buf.get_mut(done..).unwrap_or_default()) else {
                continue;
            };
            match extent.place {
                Place::Hole => target.fill(0),
                Place::Data { block, offset } => {
                    let skipped = at - extent.offset;
                    if read(block, u64::from(offset) + skipped, target)? == Ready::No {
                        return Ok(None);
                    }
                    last_block = Some(block);
                    tally.add(block, target.len());
                }
            }
            done += target.len();
        }
        for (block, len) in tally.blocks() {
            self.cache().note_read(block, len);
        }
        if let Some(block) = last_block {
            self.look_ahead(content, offset, offset + done as u64, block, extents);
        }
        Ok(Some(done))
    }

    /// When the file is being read from front to back, lets the worker threads begin with its next block.
    fn look_ahead(
        &self,
        content: u32,
        start: u64,
        end: u64,
        block: BlockIndex,
        mut rest: impl Iterator<Item = Result<Extent>>,
    ) {
        let ahead = self.cache().read_ahead_bytes();
        if ahead > 0 {
            let near = |extent: &Extent| extent.offset < end.saturating_add(ahead);
            let mut last = block;
            for extent in rest.by_ref().map_while(Result::ok).take_while(near) {
                if let Place::Data { block: next, .. } = extent.place
                    && next != last
                {
                    last = next;
                    self.cache().prefetch(next);
                }
            }
            return;
        }
        if !self.cache().reads_ahead() || !self.sequences().continues(content, start, end) {
            return;
        }
        let next =
            rest.take(LOOK_AHEAD_COUNT)
                .map_while(Result::ok)
                .find_map(|extent| match extent.place {
                    Place::Data {
                        block: other,
                        offset,
                    } if other != block => Some((other, u64::from(offset) + extent.len)),
                    _ => None,
                });
        if let Some((next, end)) = next {
            self.cache().prefetch_to(next, end);
        }
    }
}

/// How much a read has taken from which blocks. Of very many, those that come last are forgotten.
#[derive(Default)]
struct Tally([(Option<BlockIndex>, u64); TALLY_LEN]);

impl Tally {
    fn add(&mut self, block: BlockIndex, len: usize) {
        let is_its =
            |known: &&mut (Option<BlockIndex>, u64)| known.0.is_none_or(|one| one == block);
        if let Some(known) = self.0.iter_mut().find(is_its) {
            *known = (Some(block), known.1 + len as u64);
        }
    }

    fn blocks(self) -> impl Iterator<Item = (BlockIndex, u64)> {
        let known = self.0.into_iter();
        known.map_while(|(block, len)| Some((block?, len)))
    }
}

/// The beginning of `rest` that `extent` fills, when the next byte wanted is at `at` in the file.
fn part_of<'a>(extent: &Extent, at: u64, rest: &'a mut [u8]) -> Option<&'a mut [u8]> {
    let skipped = at.checked_sub(extent.offset)?;
    let left = extent.len.checked_sub(skipped).filter(|left| *left > 0)?;
    let len = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
    rest.get_mut(..len)
}
