//! Reading old blocks, and decoding those that are compressed anew.
//!
//! Several threads; a block is numbered by its place in the plan's order when a thread takes it on, for which it needs a
//! permit. So the lowest number under way always has one, and whoever waits for it waits for work that goes on.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender};
use durin_codec::decompress;
use durin_format::section::CompressionType;
use durin_format::{Error, Result};
use durin_reader::{Image, RawSection};

use crate::figures::Figures;
use crate::plan::{Plan, StreamIndex};

/// The right to have one more block in memory.
#[derive(Debug)]
pub(crate) struct Permit;

/// A block as it is needed.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// To be copied.
    Stored(RawSection),
    /// To be compressed.
    Decoded(Vec<u8>),
}

/// A block on its way: its place in the order, its stream, and what was read.
pub(crate) type Numbered = (usize, StreamIndex, Result<Fetched>);

/// The place of an error that stands for a thread's end instead of a block's.
pub(crate) const NO_PLACE: usize = usize::MAX;

/// Tells the one who waits for this thread's block that it will not come.
struct PanicGuard<'a>(&'a Sender<Numbered>);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::unsupported("a decompression thread has failed");
            self.0.send((NO_PLACE, 0, Err(error))).ok();
        }
    }
}

/// What the threads share.
pub(crate) struct Fetcher<'a> {
    image: &'a Image,
    plan: &'a Plan,
    figures: &'a Figures,
    next: AtomicUsize,
}

impl<'a> Fetcher<'a> {
    pub(crate) fn new(image: &'a Image, plan: &'a Plan, figures: &'a Figures) -> Self {
        Self {
            image,
            plan,
            figures,
            next: AtomicUsize::new(0),
        }
    }

    /// Works until all blocks are taken or nobody wants them any more.
    pub(crate) fn work(&self, permits: &Receiver<Permit>, fetched: &Sender<Numbered>) {
        let guard = PanicGuard(fetched);
        while permits.recv().is_ok() {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = self.plan.order.get(place) else {
                return;
            };
            let (stream, _) = self.plan.stream(*block);
            let result = self.fetch(*block);
            let is_last = result.is_err();
            if guard.0.send((place, stream, result)).is_err() || is_last {
                return;
            }
        }
    }

    fn fetch(&self, block: u32) -> Result<Fetched> {
        let section = self.plan.sections.get(block as usize);
        let section = section.ok_or_else(Error::cancelled)?;
        let raw = self.image.read_section(section, u64::MAX)?;
        self.figures.old_blocks.add(1);
        self.figures.old_block_bytes.add(raw.payload.len() as u64);
        let (_, stream) = self.plan.stream(block);
        let compression = raw.header.compression;
        let is_copied = stream.is_none_or(|stream| {
            stream.coding.is_none() || (stream.keep == Some(compression) && !self.plan.recuts)
        });
        if is_copied {
            return Ok(Fetched::Stored(raw));
        }
        let len_max = u64::from(self.image.block_size());
        if compression == CompressionType::None && raw.payload.len() as u64 <= len_max {
            return Ok(Fetched::Decoded(raw.payload));
        }
        let data = decompress(compression, &raw.payload, len_max);
        let data = data.map_err(|error| error.at(section.location()))?;
        Ok(Fetched::Decoded(data))
    }
}
