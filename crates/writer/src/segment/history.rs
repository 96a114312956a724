//! The bytes of all blocks made so far, for comparison.
//!
//! The block being filled and the latest ones are in memory, these shared with the threads that compress them. Of older
//! ones there is a strong hash for each grain, and where each part came from: they are read again from the input, and
//! only what has the hash is believed. So a file that changes during the build can make no other file wrong, and the
//! answer is the same from memory and from the input, unless that has changed.
//! Memory: the given bytes, 16 bytes a grain, 4 a slot, some 20 bytes for each part of a content in the blocks, and a
//! cache. Grains are the larger, the less memory there is for their hashes; what is found does not depend on that.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use durin_kernels::equal;
use xxhash_rust::xxh3::xxh3_128;

use super::group::places_max;
use crate::dedupe::ContentIndex;

/// What is read again and hashed at once, as a power of two. Smaller ones cost memory for hashes, larger ones time for
/// small files.
const GRAIN_BITS_MIN: u32 = 14;
/// Larger ones would make the time of a comparison unbearable, and need 16 MiB for a terabyte.
const GRAIN_BITS_MAX: u32 = 20;
/// Bytes of grains that are kept in memory after they have been read again; each has one place where it can be.
const CACHE_BYTES: usize = 4 << 20;

/// A place in the blocks: where the block begins, plus the offset in it. Blocks begin at multiples of a slot, so that a
/// table of slots tells which block has a place.
pub(super) type Place = u64;

/// How much of the blocks is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Bytes of full blocks in memory.
    pub(super) blocks: u64,
    /// Bytes of hashes of older blocks, as far as larger grains allow.
    pub(super) hashes: u64,
    /// Bytes that there will be in all blocks, at most.
    pub(super) data_len: u64,
}

impl Kept {
    /// Returns the length of grains as a power of two.
    fn grain_bits(self) -> u32 {
        let places = places_max(self.data_len);
        let bytes = |bits: &u32| (places >> *bits).saturating_mul(size_of::<u128>() as u64);
        (GRAIN_BITS_MIN..GRAIN_BITS_MAX)
            .find(|bits| bytes(bits) <= self.hashes)
            .unwrap_or(GRAIN_BITS_MAX)
    }
}

/// Reads what has been read before.
pub(crate) trait Reread {
    /// Fills `target` with the data of a content from `offset` on. Gives up on any error, quietly.
    fn reread(&mut self, content: ContentIndex, offset: u64, target: &mut [u8]) -> bool;
}

/// The blocks.
pub(super) struct History<R> {
    source: R,
    /// The length of slots as a power of two.
    slot_bits: u32,
    /// The block that has each slot, of finished blocks.
    slots: Vec<u32>,
    /// Where each block begins, the open one included.
    starts: Vec<Place>,
    /// Bytes of full blocks to keep in memory.
    memory_max: u64,
    grain_len: usize,
    /// Whether blocks will be needed after they have left memory.
    is_kept: bool,
    open: Vec<u8>,
    /// The latest blocks.
    recent: VecDeque<Arc<Vec<u8>>>,
    recent_bytes: u64,
    /// Bytes of each finished block.
    lens: Vec<u32>,
    origins: Origins,
    /// Of each grain of the blocks that have left memory.
    grains: Vec<u128>,
    /// Which is the first grain of each of those.
    first_grains: Vec<u64>,
    /// Grains that are not what they were.
    changed: BTreeSet<u64>,
    cache: Vec<Grain>,
    /// Grains that were read again.
    pub(super) rereads: u64,
}

/// Where the parts of the blocks came from, by their places.
#[derive(Default)]
struct Origins {
    places: Vec<Place>,
    contents: Vec<ContentIndex>,
    offsets: Vec<u64>,
}

#[derive(Clone, Default)]
struct Grain {
    /// Counted over all blocks; nothing is here while `data` is empty.
    number: u64,
    data: Vec<u8>,
}

impl<R: Reread> History<R> {
    pub(super) fn new(source: R, slot_bits: u32, kept: Kept) -> Self {
        Self {
            source,
            slot_bits,
            slots: Vec::new(),
            starts: vec![0],
            memory_max: kept.blocks,
            grain_len: 1 << kept.grain_bits(),
            is_kept: kept.data_len > kept.blocks,
            open: Vec::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
            lens: Vec::new(),
            origins: Origins::default(),
            grains: Vec::new(),
            first_grains: Vec::new(),
            changed: BTreeSet::new(),
            cache: Vec::new(),
            rereads: 0,
        }
    }

    /// Returns the number of the open block.
    pub(super) fn open_block(&self) -> u64 {
        self.lens.len() as u64
    }

    /// Returns the place of the next byte.
    pub(super) fn end(&self) -> Place {
        self.place(self.open_block(), self.open.len())
    }

    pub(super) fn open_len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn place(&self, block: u64, offset: usize) -> Place {
        self.start_of(block) + offset as u64
    }

    pub(super) fn block_of(&self, place: Place) -> u64 {
        let slot = usize::try_from(place >> self.slot_bits).ok();
        let block = slot.and_then(|slot| self.slots.get(slot));
        block.map_or(self.open_block(), |block| u64::from(*block))
    }

    pub(super) fn offset_of(&self, place: Place) -> usize {
        let start = self.start_of(self.block_of(place));
        usize::try_from(place - start).unwrap_or(usize::MAX)
    }

    fn start_of(&self, block: u64) -> Place {
        let start = usize::try_from(block)
            .ok()
            .and_then(|block| self.starts.get(block));
        start.copied().unwrap_or(Place::MAX)
    }

    /// Begins a block with this buffer, which is empty.
    pub(super) fn begin(&mut self, buffer: Vec<u8>) {
        self.open = buffer;
    }

    /// Appends data of a content to the open block.
    pub(super) fn append(&mut self, content: ContentIndex, offset: u64, data: &[u8]) {
        if self.is_kept {
            self.origins.add(self.end(), content, offset);
        }
        self.open.extend_from_slice(data);
    }

    /// Ends the open block and returns it.
    pub(super) fn finish(&mut self) -> Arc<Vec<u8>> {
        let block = Arc::new(std::mem::take(&mut self.open));
        let len = block.len();
        let number = u32::try_from(self.lens.len()).unwrap_or(u32::MAX);
        let slots = len.div_ceil(1 << self.slot_bits);
        self.slots.resize(self.slots.len() + slots, number);
        self.starts
            .push((self.slots.len() as u64) << self.slot_bits);
        self.lens.push(u32::try_from(len).unwrap_or(u32::MAX));
        self.recent.push_back(Arc::clone(&block));
        self.recent_bytes += len as u64;
        while self.recent_bytes > self.memory_max {
            let Some(oldest) = self.recent.pop_front() else {
                break;
            };
            self.recent_bytes -= oldest.len() as u64;
            if self.is_kept {
                self.keep_hashes(&oldest);
            }
        }
        block
    }

    fn keep_hashes(&mut self, block: &[u8]) {
        self.first_grains.push(self.grains.len() as u64);
        let hashes = block.chunks(self.grain_len).map(xxh3_128);
        self.grains.extend(hashes);
    }

    /// Returns whether a place is just behind the last byte of a finished block.
    pub(super) fn is_block_end(&self, block: u64, offset: usize) -> bool {
        usize::try_from(block)
            .ok()
            .and_then(|block| self.lens.get(block))
            .is_some_and(|len| *len as usize == offset)
    }

    /// Returns whether `len` bytes at a place are the last ones of a finished block.
    pub(super) fn ends_block(&self, place: Place, len: usize) -> bool {
        self.is_block_end(self.block_of(place), self.offset_of(place) + len)
    }

    /// Returns how many first bytes of `data` are at `place`, as far as its block goes.
    pub(super) fn equal_after(&mut self, place: Place, data: &[u8]) -> usize {
        let block = self.block_of(place);
        let start = self.offset_of(place);
        let mut done = 0;
        while done < data.len() {
            let Some((part, at)) = self.part(block, start + done) else {
                break;
            };
            let part = &part[at..];
            let len = equal::prefix(part, &data[done..]);
            done += len;
            if len < part.len() {
                break;
            }
        }
        done
    }

    /// Returns how many last bytes of `data` are just before `place`, as far as its block goes.
    pub(super) fn equal_before(&mut self, place: Place, data: &[u8]) -> usize {
        let block = self.block_of(place);
        let end = self.offset_of(place);
        let mut done = 0;
        while done < data.len() && done < end {
            let Some((part, at)) = self.part(block, end - done - 1) else {
                break;
            };
            let part = &part[..=at];
            let len = equal::suffix(part, &data[..data.len() - done]);
            done += len;
            if len < part.len() {
                break;
            }
        }
        done
    }

    /// Returns data around a byte of a block, and where it is in them.
    fn part(&mut self, block: u64, offset: usize) -> Option<(&[u8], usize)> {
        if block == self.open_block() {
            return (offset < self.open.len()).then_some((&self.open, offset));
        }
        let len = *self.lens.get(usize::try_from(block).ok()?)? as usize;
        if offset >= len {
            return None;
        }
        let first_recent = self.open_block() - self.recent.len() as u64;
        if let Some(index) = block.checked_sub(first_recent) {
            let data = self.recent.get(usize::try_from(index).ok()?)?;
            return Some((data, offset));
        }
        if !self.is_kept {
            return None;
        }
        let start = offset - offset % self.grain_len;
        let grain = self.grain(block, start, self.grain_len.min(len - start))?;
        Some((grain, offset - start))
    }

    /// Returns a grain of a block that has left memory.
    fn grain(&mut self, block: u64, start: usize, len: usize) -> Option<&[u8]> {
        let first = self.first_grains.get(usize::try_from(block).ok()?)?;
        let number = first + (start / self.grain_len) as u64;
        let cache_len = CACHE_BYTES / self.grain_len;
        let slot = usize::try_from(number % cache_len as u64).unwrap_or(0);
        let is_cached = self
            .cache
            .get(slot)
            .is_some_and(|grain| grain.number == number && !grain.data.is_empty());
        if !is_cached {
            if self.cache.is_empty() {
                self.cache.resize(cache_len, Grain::default());
            }
            let mut data = std::mem::take(&mut self.cache[slot].data);
            data.resize(len, 0);
            let is_same = !self.changed.contains(&number)
                && self.reread(self.place(block, start), &mut data)
                && self.grains.get(usize::try_from(number).ok()?) == Some(&xxh3_128(&data));
            if !is_same {
                self.changed.insert(number);
                return None;
            }
            self.cache[slot] = Grain { number, data };
        }
        Some(&self.cache[slot].data)
    }

    /// Reads data of one block again, part by part.
    fn reread(&mut self, place: Place, target: &mut [u8]) -> bool {
        self.rereads += 1;
        let origins = &self.origins;
        let mut index = origins.places.partition_point(|start| *start <= place);
        let mut done = 0;
        while done < target.len() {
            let at = place + done as u64;
            let Some(origin) = index.checked_sub(1) else {
                return false;
            };
            let next = origins.places.get(index).copied().unwrap_or(u64::MAX);
            let len = usize::try_from(next - at).unwrap_or(usize::MAX);
            let len = len.min(target.len() - done);
            let offset = origins.offsets[origin] + (at - origins.places[origin]);
            let part = &mut target[done..done + len];
            if !self.source.reread(origins.contents[origin], offset, part) {
                return false;
            }
            done += len;
            index += 1;
        }
        true
    }
}

impl Origins {
    fn add(&mut self, place: Place, content: ContentIndex, offset: u64) {
        if let (Some(start), Some(last), Some(begin)) = (
            self.places.last(),
            self.contents.last(),
            self.offsets.last(),
        ) && *last == content
            && offset.checked_sub(*begin) == Some(place - start)
        {
            return;
        }
        self.places.push(place);
        self.contents.push(content);
        self.offsets.push(offset);
    }
}
