//! Blocks, decompressed as far as somebody has read them, shared by all threads and bounded in bytes.
//!
//! * A **stored** block is read straight from the source. Its checksum is verified when it is first touched.
//! * A **compressed** block has an [`entry::Entry`] with the decoder and what it has made so far. A reader who needs
//!   more continues the decoder; all who wait for the same block get what that one decode makes.
//!
//! A hit takes one short lock of a shard of the map and one shared lock of the entry.
//! **Memory**: [`CacheOptions::bytes_max`], or what is being decoded if that is more, and what readers still hold;
//! it is counted while blocks are being decoded. `memory` says what goes, `packing` holds more in the same memory for
//! readers who come back, and `tidy` gives back what nobody uses.

mod alone;
mod consumed;
mod entries;
mod entry;
mod kept;
mod memory;
mod packing;
mod payloads;
mod shared;
mod slot;
mod state;
mod tidy;
mod work;

pub use memory::CacheMemory;

use std::sync::Arc;

use durin_format::{BlockIndex, Result};
use durin_source::Source;
use rustix::process::Pid;

use self::entries::Entries;
use self::shared::{Counters, Shared, place};
use self::slot::Slots;
use self::state::Rest;
use crate::options::CacheOptions;
use crate::outlook::Outlook;
use crate::perfmon::Perfmon;
use crate::readahead::Readahead;
use crate::sections::Section;
use crate::sequence::BlockRun;
use crate::sync::{OnceLock, Ordering};
use crate::target::{Filling, ReadTarget};

/// Blocks that a cache must have room for before other files have theirs decoded ahead: a smaller one would throw out what
/// is in use.
const WALK_BLOCKS_MIN: u64 = 16;

/// What the cache has done since the image was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Reads of compressed blocks that found their bytes.
    pub hits: u64,
    /// Reads of compressed blocks that had to decode.
    pub misses: u64,
    /// Bytes decoded.
    pub decoded_bytes: u64,
    /// Blocks thrown out.
    pub evictions: u64,
    /// Bytes decoded that were packed instead of thrown out.
    pub packed_bytes: u64,
    /// Bytes held now.
    pub held_bytes: u64,
}

/// Whether bytes could be given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Yes,
    No,
}

/// The blocks of an image.
pub struct BlockCache {
    shared: Arc<Shared>,
    workers: usize,
    /// Blocks in order before others are decoded ahead; 0: never.
    run_min: u32,
    read_ahead_bytes: u64,
    follows_walks: bool,
    run: BlockRun,
    /// Blocks read ahead at most; they must leave most of the cache to what is being read.
    depth_max: u32,
    /// Threads start with the first block read ahead: a program that forks after opening the image still has them.
    readahead: OnceLock<Option<Readahead>>,
}

impl BlockCache {
    pub(crate) fn new(
        source: &Arc<dyn Source>,
        blocks: Vec<Section>,
        has_v2_headers: bool,
        block_size: u32,
        options: &CacheOptions,
    ) -> Self {
        let checks = slot::Checks {
            has_v2_headers,
            verify: options.verify_blocks,
            block_size: block_size.into(),
        };
        let memory = match &options.memory {
            Some(memory) => memory.clone(),
            None => CacheMemory::new(options.bytes_max),
        };
        let bytes_max = memory.bytes_max();
        let slots = Slots::new(blocks, checks);
        let block_count = slots.count();
        Self {
            shared: Arc::new(Shared {
                source: Arc::clone(source),
                slots,
                entries: Entries::new(&memory, block_count, options.lets_go),
                counters: Counters::default(),
                block_size: block_size.into(),
                perfmon: options.perfmon.clone(),
                whole_permille: options.whole_permille.min(1000).into(),
                tidy: options.tidy.clone(),
                tidying: OnceLock::new(),
            }),
            workers: options.workers,
            run_min: options.run_min,
            read_ahead_bytes: options.read_ahead_bytes,
            follows_walks: options.follows_walks
                && u64::from(block_size) <= bytes_max / WALK_BLOCKS_MIN,
            run: BlockRun::default(),
            depth_max: u32::try_from(bytes_max / (4 * u64::from(block_size.max(1))))
                .unwrap_or(u32::MAX)
                .clamp(1, u32::try_from(options.workers.max(1)).unwrap_or(u32::MAX)),
            readahead: OnceLock::new(),
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn block_count(&self) -> u32 {
        self.shared.slots.count()
    }

    /// Fills `buf` with the bytes of a block that begin at `offset`.
    ///
    /// # Errors
    /// `Corrupt` if there is no such block, it is damaged, or it ends too early, `Unsupported` if its compression is
    /// unknown, `Io` if it cannot be read.
    pub fn read(&self, block: BlockIndex, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.read_from(block, offset.into(), buf.len(), &mut Filling(buf))
    }

    /// Gives `len` bytes of a block that begin at `offset`.
    pub(crate) fn read_from(
        &self,
        block: BlockIndex,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<()> {
        self.note(block);
        if self.shared.read(block, offset, len, target)? == Rest::Decode {
            self.finish(block);
        }
        Ok(())
    }

    /// Has the rest of a block decoded, by a worker thread if there is one.
    fn finish(&self, block: BlockIndex) {
        match self.readahead() {
            Some(readahead) => drop(readahead.request(block, u64::MAX)),
            None => self.shared.decode_to(block, u64::MAX),
        }
    }

    /// As [`Self::read_from`] if the bytes are decoded already.
    pub(crate) fn read_ready(
        &self,
        block: BlockIndex,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Ready> {
        let ready = self.shared.read_ready(block, offset, len, target)?;
        if ready == Ready::Yes {
            self.note(block);
        }
        Ok(ready)
    }

    fn note(&self, block: BlockIndex) {
        if self.reads_ahead() {
            // Programs that read a whole tree meet the blocks in order, whatever files they are in.
            let run = self.run.note(block);
            // Who has left the last one half-way hops between neighbours, and may not come to the end of this one.
            let goes_on = || !self.lacks(BlockIndex(block.0.saturating_sub(1)), u64::MAX);
            if run == 0 || run < self.run_min || !goes_on() {
                return;
            }
            for step in 1..=run.min(self.depth_max) {
                self.prefetch(BlockIndex(block.0.saturating_add(step)));
            }
        }
    }

    /// Returns the uncompressed size of a block in bytes. Reads the whole payload unless the block is in use.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn block_len(&self, block: BlockIndex) -> Result<u64> {
        self.shared.block_len(block)
    }

    /// Compares the payload of a block with its checksum, without decoding it. Formats before 2.2 have no checksums.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn verify(&self, block: BlockIndex) -> Result<()> {
        let shared = &self.shared;
        let section = shared.slots.section(block)?;
        shared
            .slots
            .verify(shared.source.as_ref(), section)
            .map_err(|error| place(error, block, section))
    }

    /// Decodes all of a block.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn decode(&self, block: BlockIndex) -> Result<()> {
        let last = self.block_len(block)?.checked_sub(1);
        if let Some(last) = last {
            self.shared.read(block, last, 1, &mut Filling(&mut [0]))?;
        }
        Ok(())
    }

    /// Returns how many blocks may be asked for ahead: as many as there are workers, and as there is room for.
    #[must_use]
    pub fn depth(&self) -> usize {
        if self.workers == 0 {
            0
        } else {
            self.depth_max as usize
        }
    }

    /// Returns how many threads may decode at the same time, beside those who read.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Whether anything happens on [`Self::prefetch`].
    pub(crate) fn reads_ahead(&self) -> bool {
        self.workers > 0 && self.run_min > 0
    }

    /// How much of a file is decoded ahead of each read of it.
    pub(crate) fn read_ahead_bytes(&self) -> u64 {
        if self.workers > 0 {
            self.read_ahead_bytes
        } else {
            0
        }
    }

    /// Returns the memory that this cache counts in.
    #[must_use]
    pub fn memory(&self) -> &CacheMemory {
        self.shared.entries.memory()
    }

    /// Lets a worker thread decode a whole block. Does nothing when all of them have enough to do.
    pub fn prefetch(&self, block: BlockIndex) {
        if block.0 >= self.block_count() || !self.shared.is_fresh(block) {
            return;
        }
        if let Some(readahead) = self.readahead() {
            readahead.request(block, u64::MAX);
        }
    }

    /// Whether somebody has to decode for what is before `end` of a block, as far as that can be told without waiting.
    pub(crate) fn lacks(&self, block: BlockIndex, end: u64) -> bool {
        block.0 < self.block_count() && self.shared.lacks(block, end)
    }

    /// Lets a worker thread decode a block as far as `end`, unless that is done; false when all have enough to do.
    pub(crate) fn prefetch_to(&self, block: BlockIndex, end: u64) -> bool {
        if !self.lacks(block, end) {
            return true;
        }
        self.readahead()
            .is_some_and(|readahead| readahead.request(block, end))
    }

    /// Notes that a file was read, and how many bytes of a block that took.
    pub(crate) fn note_read(&self, block: BlockIndex, len: u64) {
        self.shared.entries.note_read(block, len);
    }

    /// Whether [`Self::set_references`] is to be called.
    pub(crate) fn wants_references(&self) -> bool {
        let decoded = self.shared.counters.decoded_bytes.load(Ordering::Relaxed);
        let consumed = self.shared.entries.consumed.as_ref();
        consumed.is_some_and(|consumed| consumed.wants_references(decoded))
    }

    /// Tells how many bytes all files together have in each block.
    pub(crate) fn set_references(&self, references: Vec<u64>) {
        if let Some(consumed) = &self.shared.entries.consumed {
            consumed.set_references(references);
        }
    }

    /// Says what is going to be read, or that it is not known any more.
    pub(crate) fn set_outlook(&self, outlook: Option<Arc<Outlook>>) {
        self.shared.entries.set_outlook(outlook);
    }

    /// Whether it is known what is going to be read.
    pub(crate) fn has_outlook(&self) -> bool {
        self.shared.entries.outlook().is_some()
    }

    /// Whether all blocks may be held at the same time.
    pub(crate) fn has_room_for_all(&self) -> bool {
        let blocks = u64::from(self.block_count()).saturating_mul(self.shared.block_size);
        blocks <= self.memory().bytes_max()
    }

    /// Whether programs that read file by file have the next files decoded ahead.
    pub(crate) fn follows_walks(&self) -> bool {
        self.follows_walks && self.reads_ahead()
    }

    /// Starts the worker threads, if there are to be any, before they are needed: threads begin with the priority and the
    /// processors of the one that starts them, which may be others later.
    pub fn start_workers(&self) {
        self.readahead();
    }

    /// The worker threads that have begun, as the kernel numbers them: where they run is for those to say who know what else
    /// goes on there.
    #[must_use]
    pub fn worker_threads(&self) -> Vec<Pid> {
        let started = self.readahead.get().and_then(Option::as_ref);
        started.map(Readahead::threads).unwrap_or_default()
    }

    /// The worker threads, if there are to be any.
    fn readahead(&self) -> Option<&Readahead> {
        if self.workers == 0 {
            return None;
        }
        let start = || {
            let shared = Arc::clone(&self.shared);
            let decode = move |block, end| shared.decode_to(block, end);
            Readahead::start(self.workers, decode)
        };
        self.readahead.get_or_init(start).as_ref()
    }

    /// Decodes a whole block, or looks at it if it is stored; false if the cache has no room for another.
    pub(crate) fn preload(&self, block: BlockIndex) -> bool {
        let shared = &self.shared;
        if shared
            .entries
            .memory()
            .held_bytes()
            .saturating_add(shared.block_size)
            > shared.entries.memory().bytes_max()
        {
            return false;
        }
        shared.decode_to(block, u64::MAX);
        true
    }

    /// What measures this image.
    pub(crate) fn perfmon(&self) -> Option<&Perfmon> {
        self.shared.perfmon.as_deref()
    }

    /// Returns what the cache has done so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let counters = &self.shared.counters;
        CacheStats {
            hits: counters.hits.load(Ordering::Relaxed),
            misses: counters.misses.load(Ordering::Relaxed),
            decoded_bytes: counters.decoded_bytes.load(Ordering::Relaxed),
            evictions: self.memory().evictions(),
            packed_bytes: self.memory().packed_bytes(),
            held_bytes: self.memory().held_bytes(),
        }
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache")
            .field("block_count", &self.block_count())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
