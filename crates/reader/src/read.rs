//! Reading file contents at any place.

use durin_format::{BlockIndex, InodeNum, Result};

use crate::block_cache::Ready;
use crate::chunks::{Extent, Place};
use crate::image::Image;
use crate::perfmon::{Operation, Perfmon};
use crate::target::{Filling, ReadTarget};

/// Extents looked at to find the block that a sequential reader needs next. It is usually the next but one;
/// looking further costs the reader more than the early start saves.
const LOOK_AHEAD_COUNT: usize = 64;

/// Blocks of one read that are told apart.
const FEW_BLOCKS: usize = 8;

impl Image {
    /// Reads bytes of a regular file from `offset` into `buf` and returns how many: fewer than `buf` holds only at the
    /// end of the file.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `inode` is no regular file, `Corrupt` if metadata or a block is damaged,
    /// `Io` if the image cannot be read.
    pub fn read_at(&self, inode: InodeNum, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.read_to(inode, offset, buf.len(), &mut Filling(buf))
    }

    /// As [`Self::read_at`], for `len` bytes and a target that may keep parts of blocks instead of copies of them.
    ///
    /// # Errors
    /// As [`Self::read_at`].
    pub fn read_to(
        &self,
        inode: InodeNum,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<usize> {
        let _timer = Perfmon::start(self.perfmon(), Operation::Read);
        let content = self.content_number(inode)?;
        if offset == 0 {
            // Before it waits for its own block.
            self.begin_file(inode);
        }
        self.decode_together(content, offset, len as u64)?;
        let read = |block, at, len, target: &mut dyn ReadTarget| {
            self.cache()
                .read_from(block, at, len, target)
                .map(|()| Ready::Yes)
        };
        let done = self.read_content(content, offset, len, target, read)?;
        if self.cache().wants_references() {
            self.cache().set_references(self.references());
        }
        Ok(done.unwrap_or(0))
    }

    /// As [`Self::read_to`] if that takes no decoding and no reading of the image; `None` if it does, whatever has got to the
    /// target by then.
    ///
    /// # Errors
    /// As [`Self::read_at`].
    pub fn read_ready(
        &self,
        inode: InodeNum,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Option<usize>> {
        let timer = Perfmon::start(self.perfmon(), Operation::Read);
        let content = self.content_number(inode)?;
        let read = |block, at, len, target: &mut dyn ReadTarget| {
            self.cache().read_ready(block, at, len, target)
        };
        let done = self.read_content(content, offset, len, target, read)?;
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
        len: usize,
        target: &mut dyn ReadTarget,
        read: impl Fn(BlockIndex, u64, usize, &mut dyn ReadTarget) -> Result<Ready>,
    ) -> Result<Option<usize>> {
        let mut extents = self.extents_from(content, offset)?;
        let mut done = 0;
        let mut last_block = None;
        let mut taken = FewBlocks::default();
        while done < len {
            let Some(extent) = extents.next().transpose()? else {
                break;
            };
            let at = offset.saturating_add(done as u64);
            let Some((skipped, part)) = part_of(&extent, at, len - done) else {
                continue;
            };
            match extent.place {
                Place::Hole => target.room(part).fill(0),
                Place::Data { block, offset } => {
                    if read(block, u64::from(offset) + skipped, part, target)? == Ready::No {
                        return Ok(None);
                    }
                    last_block = Some(block);
                    if let Some(bytes) = taken.of(block) {
                        *bytes += part as u64;
                    }
                }
            }
            done += part;
        }
        for (block, len) in taken.all() {
            self.cache().note_read(block, len);
        }
        if let Some(block) = last_block {
            self.look_ahead(content, offset, offset + done as u64, block, extents);
        }
        Ok(Some(done))
    }

    /// Lets the worker threads begin with what a read needs of further blocks, while who reads decodes the first that it
    /// would have to wait for.
    fn decode_together(&self, content: u32, offset: u64, len: u64) -> Result<()> {
        let cache = self.cache();
        // Who has a plan has asked for these blocks, or kept what is needed of them.
        if cache.depth() == 0 || cache.has_outlook() {
            return Ok(());
        }
        let end = offset.saturating_add(len);
        let mut needs = FewBlocks::default();
        for extent in self.extents_from(content, offset)? {
            let extent = extent?;
            if extent.offset >= end {
                break;
            }
            if let Place::Data { block, offset } = extent.place
                && let Some(need) = needs.of(block)
            {
                let len = extent.len.min(end - extent.offset);
                *need = u64::from(offset).saturating_add(len).max(*need);
            }
        }
        let lacking = needs.all().filter(|(block, end)| cache.lacks(*block, *end));
        for (block, end) in lacking.skip(1).take(cache.depth()) {
            cache.prefetch_to(block, end);
        }
        Ok(())
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

/// A number for each block of a read. Of very many, those that come last are forgotten.
#[derive(Default)]
struct FewBlocks([Option<(BlockIndex, u64)>; FEW_BLOCKS]);

impl FewBlocks {
    /// The number of a block, 0 at first.
    fn of(&mut self, block: BlockIndex) -> Option<&mut u64> {
        let is_its = |one: &&mut Option<(BlockIndex, u64)>| one.is_none_or(|(of, _)| of == block);
        let own = self.0.iter_mut().find(is_its)?;
        let (_, number) = own.get_or_insert((block, 0));
        Some(number)
    }

    fn all(self) -> impl Iterator<Item = (BlockIndex, u64)> {
        self.0.into_iter().map_while(|one| one)
    }
}

/// Where in `extent` the next byte wanted is, which is at `at` in the file, and how many of `wanted` bytes it has from there.
fn part_of(extent: &Extent, at: u64, wanted: usize) -> Option<(u64, usize)> {
    let skipped = at.checked_sub(extent.offset)?;
    let left = extent.len.checked_sub(skipped).filter(|left| *left > 0)?;
    let len = usize::try_from(left).map_or(wanted, |left| left.min(wanted));
    Some((skipped, len))
}
