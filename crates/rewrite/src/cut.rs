//! From fetched blocks in any order to new blocks in theirs.
//!
//! One thread. Without another block size every old block becomes a new one; otherwise the data of each stream are
//! strung together and cut anew, one stream after the other, so that at most one block is open.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender};
use durin_format::{Error, Result};
use durin_reader::RawSection;

use crate::fetch::{Fetched, NO_PLACE, Numbered, Permit};
use crate::figures::Figures;
use crate::plan::{Plan, StreamIndex};

/// A new block that is to be made.
#[derive(Debug)]
pub(crate) struct Task {
    /// Its number, which is also that of its section.
    pub(crate) number: u32,
    pub(crate) stream: StreamIndex,
    /// Blocks of the stream in front of it.
    pub(crate) place: u64,
    pub(crate) work: Work,
}

/// What it is made of.
#[derive(Debug)]
pub(crate) enum Work {
    Copy(RawSection),
    Encode(Vec<u8>),
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Bytes of each old block; only known if data was cut anew.
    pub(crate) old_lens: Vec<u32>,
    /// The stream of each new block.
    pub(crate) streams: Vec<StreamIndex>,
}

/// The ends of the queues that the thread has.
pub(crate) struct Ends {
    pub(crate) fetched: Receiver<Numbered>,
    /// Takes permits to fetch back.
    pub(crate) fetch_permits: Sender<Permit>,
    /// Gives permits to begin a new block.
    pub(crate) permits: Receiver<Permit>,
    pub(crate) tasks: Sender<Task>,
}

/// The thread.
pub(crate) struct Cutter<'a> {
    plan: &'a Plan,
    figures: &'a Figures,
    ends: Ends,
    /// The block being filled and its stream.
    open: Option<(StreamIndex, Vec<u8>)>,
    /// New blocks so far, by stream.
    counts: Vec<u64>,
    cut: Cut,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(plan: &'a Plan, figures: &'a Figures, ends: Ends) -> Self {
        Self {
            plan,
            figures,
            ends,
            open: None,
            counts: vec![0; plan.streams.len()],
            cut: Cut {
                old_lens: vec![0; if plan.recuts { plan.order.len() } else { 0 }],
                streams: Vec::new(),
            },
        }
    }

    /// Works until all blocks have come.
    ///
    /// # Errors
    /// What reading a block gives; `Cancelled` if nobody takes the new blocks any more.
    pub(crate) fn run(mut self) -> Result<Cut> {
        let mut early = BTreeMap::new();
        for place in 0..self.plan.order.len() {
            let (stream, fetched) = loop {
                if let Some(found) = early.remove(&place) {
                    break found;
                }
                let (place, stream, fetched) =
                    self.ends.fetched.recv().map_err(|_| Error::cancelled())?;
                if place == NO_PLACE {
                    fetched?;
                    continue;
                }
                early.insert(place, (stream, fetched));
            };
            match fetched? {
                Fetched::Stored(raw) => self.send(stream, Work::Copy(raw))?,
                Fetched::Decoded(data) if self.plan.recuts => self.fill(place, stream, &data)?,
                Fetched::Decoded(data) => self.send(stream, Work::Encode(data))?,
            }
            // Those who fetch may have ended already.
            self.ends.fetch_permits.try_send(Permit).ok();
        }
        self.close()?;
        Ok(self.cut)
    }

    /// Appends an old block to the data of its stream.
    fn fill(&mut self, place: usize, stream: StreamIndex, data: &[u8]) -> Result<()> {
        let block = self.plan.order.get(place);
        let len = block.and_then(|block| self.cut.old_lens.get_mut(*block as usize));
        if let (Some(len), Ok(data_len)) = (len, u32::try_from(data.len())) {
            *len = data_len;
        }
        if self.open.as_ref().is_some_and(|(open, _)| *open != stream) {
            self.close()?;
        }
        let block_len = self.plan.streams.get(stream);
        let block_len = block_len.map_or(1, |stream| stream.block_len.max(1)) as usize;
        let mut rest = data;
        while !rest.is_empty() {
            let (_, open) = self.open.get_or_insert_with(|| (stream, Vec::new()));
            let (part, further) = rest.split_at(rest.len().min(block_len - open.len()));
            open.extend_from_slice(part);
            rest = further;
            if open.len() == block_len {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Sends the block being filled on.
    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some((stream, data)) => self.send(stream, Work::Encode(data)),
            None => Ok(()),
        }
    }

    fn send(&mut self, stream: StreamIndex, work: Work) -> Result<()> {
        let number = u32::try_from(self.cut.streams.len())
            .ok()
            .filter(|number| *number < u32::MAX - 1)
            .ok_or_else(|| Error::limit("more than 2^32 - 2 blocks"))?;
        self.ends.permits.recv().map_err(|_| Error::cancelled())?;
        self.cut.streams.push(stream);
        self.figures.blocks_made.add(1);
        let count = self.counts.get_mut(stream);
        let place = count.map_or(0, |count| std::mem::replace(count, *count + 1));
        let task = Task {
            number,
            stream,
            place,
            work,
        };
        self.ends.tasks.send(task).map_err(|_| Error::cancelled())
    }
}
