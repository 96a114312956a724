//! What readers and worker threads do with blocks: finding them, decoding as far as somebody wants, counting.

use std::sync::Arc;

use durin_format::section::CompressionType;
use durin_format::{BlockIndex, Error, Result};
use durin_source::Source;

use super::Ready;
use super::entries::Entries;
use super::slot::{Kind, Slots};
use super::state::Rest;
use super::tidy::Tidying;
use super::work::Work;
use crate::options::Tidy;
use crate::perfmon::{Operation, Perfmon};
use crate::sections::Section;
use crate::sync::{AtomicU64, OnceLock, Ordering};
use crate::target::ReadTarget;

/// What readers and worker threads use together.
pub(super) struct Shared {
    pub(super) source: Arc<dyn Source>,
    pub(super) slots: Slots,
    pub(super) entries: Arc<Entries>,
    pub(super) counters: Counters,
    /// Uncompressed size that no block exceeds.
    pub(super) block_size: u64,
    pub(super) perfmon: Option<Arc<Perfmon>>,
    pub(super) whole_permille: u64,
    pub(super) tidy: Tidy,
    pub(super) tidying: OnceLock<Option<Tidying>>,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) decoded_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn read_ready(
        &self,
        block: BlockIndex,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Ready> {
        let timer = Perfmon::start(self.perfmon.as_deref(), Operation::BlockGet);
        let given = self
            .entries
            .find(block)
            .map(|entry| entry.give_soon(offset, len, target));
        if !given.unwrap_or(Ok(false))? {
            timer.discard();
            return Ok(Ready::No);
        }
        self.counters.hits.fetch_add(1, Ordering::Relaxed);
        Ok(Ready::Yes)
    }

    pub(super) fn read(
        &self,
        block: BlockIndex,
        offset: u64,
        len: usize,
        target: &mut dyn ReadTarget,
    ) -> Result<Rest> {
        let _timer = Perfmon::start(self.perfmon.as_deref(), Operation::BlockGet);
        let section = self.slots.section(block)?;
        let end = offset.saturating_add(len as u64);
        match self.slots.kind(self.source.as_ref(), block)? {
            Kind::Stored => check_end(end, section.payload_len)
                .and_then(|()| {
                    let at = section.payload_offset + offset;
                    crate::payload::read_exact(self.source.as_ref(), at, target.room(len))
                })
                .map(|()| Rest::Wait)
                .map_err(|error| place(error, block, section)),
            Kind::Compressed(compression) => {
                let entry = self.entries.of(block);
                let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
                if entry.give(offset, len, target)? {
                    count(&self.counters.hits);
                    return Ok(Rest::Wait);
                }
                count(&self.counters.misses);
                self.entries.note_return(block);
                let _timer = Perfmon::start(self.perfmon.as_deref(), Operation::BlockDecode);
                let work = self.work(block, section, compression);
                self.tidying();
                let rest = entry.decode_and_give(&work, offset, len, target)?;
                let wanted_end = self
                    .entries
                    .outlook()
                    .map_or(0, |outlook| outlook.end(block));
                let fits = wanted_end <= self.entries.memory().bytes_max() / 2;
                if fits && wanted_end > end {
                    // So that pieces can be kept of it when it goes. Who needs what is damaged meets the error.
                    entry.decode_to(&work, wanted_end).ok();
                }
                Ok(rest)
            }
            Kind::Failed(error) => Err(error),
        }
    }

    pub(super) fn block_len(&self, block: BlockIndex) -> Result<u64> {
        let section = self.slots.section(block)?;
        match self.slots.kind(self.source.as_ref(), block)? {
            Kind::Stored => Ok(section.payload_len),
            Kind::Compressed(compression) => {
                let entry = self.entries.of(block);
                entry.len(&self.work(block, section, compression))
            }
            Kind::Failed(error) => Err(error),
        }
    }

    /// Whether nobody has asked for a block that is worth decoding.
    pub(super) fn is_fresh(&self, block: BlockIndex) -> bool {
        let entry = self.entries.peek(block);
        entry.is_none_or(|entry| entry.is_kept())
            && !self.slots.is_known_stored(block)
            && !self.entries.is_gone(block)
    }

    /// The same of what is before `end`, as far as that can be told without waiting.
    pub(super) fn lacks(&self, block: BlockIndex, end: u64) -> bool {
        !self.slots.is_known_stored(block)
            && !self.entries.is_gone(block)
            && self
                .entries
                .peek(block)
                .is_none_or(|entry| entry.lacks(end))
    }

    /// Decodes a block as far as `end` for a reader to come, who will meet the error again if there is one.
    pub(super) fn decode_to(&self, block: BlockIndex, end: u64) {
        let Ok(section) = self.slots.section(block) else {
            return;
        };
        if let Ok(Kind::Compressed(compression)) = self.slots.kind(self.source.as_ref(), block) {
            let _timer = Perfmon::start(self.perfmon.as_deref(), Operation::BlockDecodeAhead);
            let entry = self.entries.of(block);
            entry
                .decode_to(&self.work(block, section, compression), end)
                .ok();
        }
    }

    /// Starts the thread that gives memory back, with the first block that takes some.
    fn tidying(&self) {
        self.tidying
            .get_or_init(|| Tidying::start(self.entries.memory(), &self.tidy));
    }

    fn work<'a>(
        &'a self,
        block: BlockIndex,
        section: &'a Section,
        compression: CompressionType,
    ) -> Work<'a> {
        Work {
            source: self.source.as_ref(),
            slots: &self.slots,
            counters: &self.counters,
            block,
            section,
            compression,
            block_size: self.block_size,
            whole_permille: self.whole_permille,
            bytes_max: self.entries.memory().bytes_max(),
            entries: &self.entries,
        }
    }
}

/// Says which block and section an error is about.
pub(super) fn place(error: Error, block: BlockIndex, section: &Section) -> Error {
    error
        .context(format!("block {block}"))
        .at(section.location())
}

/// Compares the end of what is wanted with the length of a block.
pub(super) fn check_end(end: u64, len: u64) -> Result<()> {
    if end > len {
        return Err(Error::corrupt(format!(
            "too short: expected {end} bytes or more, found {len}"
        )));
    }
    Ok(())
}
