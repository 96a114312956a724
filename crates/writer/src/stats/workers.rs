//! What each thread works on at the moment, for those who want to look over its shoulder.
//!
//! Nothing is noted unless somebody has said before the build that they will look: most jobs are small files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stage::Stage;

/// What a thread works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// At which stage.
    pub stage: Stage,
    /// A path made printable, or which block.
    pub what: String,
    /// Bytes of it; 0 where that is not known.
    pub bytes: u64,
    /// Since when.
    pub elapsed: Duration,
}

/// What one thread works on, and since when.
type SharedJob = Arc<Mutex<Option<(Job, Instant)>>>;

/// A place on the board: what one thread works on, and since when.
#[derive(Debug)]
pub(super) struct Slot(SharedJob);

/// All slots.
#[derive(Debug, Default)]
pub(super) struct Board {
    is_shown: AtomicBool,
    slots: Mutex<Vec<SharedJob>>,
}

impl Board {
    pub(super) fn show(&self) {
        self.is_shown.store(true, Ordering::Relaxed);
    }

    /// Returns a place for a new thread, if anybody looks.
    pub(super) fn slot(&self) -> Option<Slot> {
        if !self.is_shown.load(Ordering::Relaxed) {
            return None;
        }
        let slot = SharedJob::default();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose threads have ended.
        slots.retain(|slot| Arc::strong_count(slot) > 1);
        slots.push(Arc::clone(&slot));
        Some(Slot(slot))
    }

    /// Returns what the threads that have something to do work on, in the order in which they were started.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let job = |slot: &SharedJob| {
            let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().map(|(job, since)| Job {
                elapsed: since.elapsed(),
                ..job.clone()
            })
        };
        let is_used = |slot: &&Arc<_>| Arc::strong_count(slot) > 1;
        slots.iter().filter(is_used).filter_map(job).collect()
    }
}

impl Slot {
    pub(super) fn begin(&self, stage: Stage, bytes: u64, what: String) {
        let job = Job {
            stage,
            what,
            bytes,
            elapsed: Duration::ZERO,
        };
        self.set(|slot| *slot = Some((job, Instant::now())));
    }

    pub(super) fn end(&self) {
        self.set(|slot| *slot = None);
    }

    fn set(&self, change: impl FnOnce(&mut Option<(Job, Instant)>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_jobs_while_their_threads_exist() {
        let board = Board::default();
        assert!(board.slot().is_none(), "nobody looks");
        board.show();
        let (first, second) = (board.slot().expect("shown"), board.slot().expect("shown"));
        assert_eq!(board.jobs(), []);
        second.begin(Stage::Compress, 100, "block 1".to_owned());
        first.begin(Stage::Hash, 0, "a/b".to_owned());
        let seen: Vec<_> = board.jobs();
        let seen: Vec<_> = seen.iter().map(|job| (job.stage, &*job.what)).collect();
        assert_eq!(seen, [(Stage::Hash, "a/b"), (Stage::Compress, "block 1")]);
        second.end();
        drop(first);
        assert_eq!(board.jobs(), []);
    }
}
