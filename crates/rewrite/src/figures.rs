//! Figures that a running rewriting keeps up to date, for a progress display to sample.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use durin_writer::stats::Counter;

/// What rewriting is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Verifying the old image.
    #[default]
    Checking,
    /// Copying or recompressing blocks.
    Blocks,
    /// Making and writing the metadata.
    Metadata,
    /// Nothing more to do.
    Finished,
}

impl Phase {
    /// Its name in reports, which stays the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Checking => "checking",
            Self::Blocks => "blocks",
            Self::Metadata => "metadata",
            Self::Finished => "finished",
        }
    }
}

/// The figures; each is right at the end of its phase and about right before.
#[derive(Debug)]
pub struct Figures {
    start: Instant,
    begins: Mutex<Vec<(Phase, Duration)>>,
    /// Bytes of the old image that are to be verified.
    pub check_bytes_total: Counter,
    /// Bytes of the old image verified.
    pub checked_bytes: Counter,
    /// Blocks of the old image.
    pub old_blocks_total: Counter,
    /// Bytes of the blocks of the old image as stored.
    pub old_block_bytes_total: Counter,
    /// Blocks of the old image that have been read.
    pub old_blocks: Counter,
    /// Bytes of them as stored.
    pub old_block_bytes: Counter,
    /// New blocks begun.
    pub blocks_made: Counter,
    /// New blocks written.
    pub blocks_written: Counter,
    /// Bytes of new blocks written, before compression.
    pub block_bytes: Counter,
    /// Bytes of new blocks as written, without section headers.
    pub compressed_block_bytes: Counter,
    /// Bytes of the new image written.
    pub written_bytes: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            begins: Mutex::default(),
            check_bytes_total: Counter::default(),
            checked_bytes: Counter::default(),
            old_blocks_total: Counter::default(),
            old_block_bytes_total: Counter::default(),
            old_blocks: Counter::default(),
            old_block_bytes: Counter::default(),
            blocks_made: Counter::default(),
            blocks_written: Counter::default(),
            block_bytes: Counter::default(),
            compressed_block_bytes: Counter::default(),
            written_bytes: Counter::default(),
        }
    }
}

impl Figures {
    /// Returns what rewriting is busy with.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let begins = self.phase_begins();
        begins.last().map_or(Phase::Checking, |(phase, _)| *phase)
    }

    /// Returns the phases begun so far, each with the time since these figures were made.
    #[must_use]
    pub fn phase_begins(&self) -> Vec<(Phase, Duration)> {
        let begins = self.begins.lock();
        begins.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how far the present phase is, between 0 and 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        match self.phase() {
            Phase::Checking => share(self.checked_bytes.get(), self.check_bytes_total.get()),
            Phase::Blocks => {
                let read = share(self.old_block_bytes.get(), self.old_block_bytes_total.get());
                read * share(self.blocks_written.get(), self.blocks_made.get())
            }
            Phase::Metadata | Phase::Finished => 1.0,
        }
    }

    pub(crate) fn begin(&self, phase: Phase) {
        let begin = (phase, self.start.elapsed());
        let begins = self.begins.lock();
        begins.unwrap_or_else(PoisonError::into_inner).push(begin);
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for display")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        (part as f64 / whole as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fraction_grows_with_the_work() {
        let figures = Figures::default();
        figures.check_bytes_total.add(10);
        figures.checked_bytes.add(5);
        assert!((figures.fraction() - 0.5).abs() < 1e-9);
        figures.begin(Phase::Blocks);
        figures.old_block_bytes_total.add(10);
        figures.old_block_bytes.add(5);
        figures.blocks_made.add(2);
        figures.blocks_written.add(1);
        assert!((figures.fraction() - 0.25).abs() < 1e-9);
        figures.begin(Phase::Finished);
        assert_eq!(figures.phase().name(), "finished");
        assert!((figures.fraction() - 1.0).abs() < 1e-9);
    }
}
