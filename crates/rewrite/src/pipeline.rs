//! Blocks from the old image to the new one: the threads and the queues between them.
//!
//! Threads that fetch, one that cuts, threads that pack, and this one, which writes. The queues hold as many items as
//! there are permits, so that nobody but those who wait for a permit waits to send. If one of them fails, or the user
//! wants to stop, it closes its queues, which ends the others with the block they are at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Scope};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use durin_format::{Error, Result};
use durin_reader::Image;
use durin_writer::sampler::Sampler;
use durin_writer::sections::SectionWriter;

use crate::budget::Budget;
use crate::cut::{Cut, Cutter, Ends};
use crate::fetch::{Fetcher, Permit};
use crate::figures::Figures;
use crate::pack::{Packed, Packer};
use crate::plan::Plan;
use crate::report::CategoryReport;

/// How often a waiting thread looks whether the user wants to stop.
const POLL: Duration = Duration::from_millis(50);

/// What it takes to move the blocks.
pub(crate) struct Pipeline<'a> {
    pub(crate) image: &'a Image,
    pub(crate) plan: &'a Plan,
    pub(crate) budget: &'a Budget,
    pub(crate) figures: &'a Figures,
    pub(crate) cancel: &'a AtomicBool,
    pub(crate) niceness: i32,
    pub(crate) sampler: Option<&'a Sampler>,
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) cut: Cut,
    /// Of new blocks, by stream.
    pub(crate) streams: Vec<CategoryReport>,
    /// Blocks copied as they were.
    pub(crate) copied: u64,
}

impl Pipeline<'_> {
    /// Writes all blocks.
    ///
    /// # Errors
    /// What reading, decoding, compressing or writing a block gives; `Cancelled`.
    pub(crate) fn run(&self, writer: &mut SectionWriter<'_>) -> Result<Moved> {
        let budget = self.budget;
        let (fetch_permits, fetch_permitted) = permits(budget.fetched);
        let (fetched_sender, fetched) = bounded(budget.fetched);
        let (permit_sender, permitted) = permits(budget.in_flight);
        let (task_sender, tasks) = bounded(budget.in_flight);
        let (packed_sender, packed) = unbounded();
        let fetcher = Fetcher::new(self.image, self.plan, self.figures);
        let packer = Packer {
            plan: self.plan,
            crew: budget.compressors.crew(),
            niceness: self.niceness,
            sampler: self.sampler,
        };
        let ends = Ends {
            fetched,
            fetch_permits,
            permits: permitted,
            tasks: task_sender,
        };
        let cutter = Cutter::new(self.plan, self.figures, ends);
        let (fetcher, packer) = (&fetcher, &packer);
        // The ends of the queues are gone when the closure is left, so that no thread waits for one that did not start.
        thread::scope(move |scope| {
            start(scope, budget.fetchers, || {
                let (permits, fetched) = (fetch_permitted.clone(), fetched_sender.clone());
                move || fetcher.work(&permits, &fetched)
            })?;
            start(scope, budget.compressors.workers, || {
                let (tasks, packed) = (tasks.clone(), packed_sender.clone());
                move || packer.work(&tasks, &packed)
            })?;
            drop((fetch_permitted, fetched_sender, tasks, packed_sender));
            let cut = Builder::new().spawn_scoped(scope, move || cutter.run());
            let cut = cut.map_err(no_thread)?;
            let written = self.write(writer, &packed, &permit_sender);
            drop((packed, permit_sender));
            let cut = match cut.join() {
                Ok(cut) => cut,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            match (written, cut) {
                (Ok(moved), Ok(cut)) => Ok(Moved { cut, ..moved }),
                // If writing fails, the one that cuts only says that nobody takes its blocks, and the other way round.
                (Err(error), Ok(_)) => Err(error),
                (Ok(_), Err(error)) => Err(error),
                (Err(written), Err(cut)) => Err(more_telling(written, cut)),
            }
        })
    }

    /// Writes blocks in the order of their numbers until no more come, and gives their permits back.
    fn write(
        &self,
        writer: &mut SectionWriter<'_>,
        packed: &Receiver<Result<Packed>>,
        permits: &Sender<Permit>,
    ) -> Result<Moved> {
        let figures = self.figures;
        let mut moved = Moved::default();
        let reports = self.plan.streams.iter().map(|stream| CategoryReport {
            name: stream.name.clone(),
            ..CategoryReport::default()
        });
        moved.streams.extend(reports);
        let mut early: BTreeMap<u32, Packed> = BTreeMap::new();
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            let block = match packed.recv_timeout(POLL) {
                Ok(block) => block?,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            early.insert(block.number, block);
            while let Some(block) = early.remove(&writer.next_number()) {
                let section = &block.section;
                writer.section(section)?;
                let stored = section.payload.len() as u64;
                if let Some(stream) = moved.streams.get_mut(block.stream) {
                    stream.blocks += 1;
                    stream.block_bytes += section.data_len;
                    stream.compressed_bytes += stored;
                }
                moved.copied += u64::from(block.is_copy);
                figures.blocks_written.add(1);
                figures.block_bytes.add(section.data_len);
                figures.compressed_block_bytes.add(stored);
                let written = writer.written_bytes();
                figures
                    .written_bytes
                    .add(written - figures.written_bytes.get());
                // The one that cuts may have ended already.
                permits.try_send(Permit).ok();
            }
        }
        if early.is_empty() {
            Ok(moved)
        } else {
            Err(Error::cancelled())
        }
    }
}

/// Starts up to `count` threads, at least one.
fn start<'scope, 'env, W: FnOnce() + Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    count: usize,
    work: impl Fn() -> W,
) -> Result<()> {
    for number in 0..count.max(1) {
        match Builder::new().spawn_scoped(scope, work()) {
            // The others do it, then.
            Err(_) if number > 0 => break,
            started => drop(started.map_err(no_thread)?),
        }
    }
    Ok(())
}

/// Returns a queue that is full.
fn permits(count: usize) -> (Sender<Permit>, Receiver<Permit>) {
    let (sender, receiver) = bounded(count);
    for _ in 0..count {
        // There is room, and the receiver is there.
        sender.try_send(Permit).ok();
    }
    (sender, receiver)
}

/// Of two errors the one that is the reason for the other.
fn more_telling(written: Error, cut: Error) -> Error {
    match written.kind() {
        durin_format::ErrorKind::Cancelled => cut,
        _ => written,
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::io("cannot start a thread", error)
}
