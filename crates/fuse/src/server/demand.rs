//! How many threads wait for requests.
//!
//! One client sends its next request when it has the answer to the last one. For it one thread is best: with two, the
//! kernel wakes them in turn, each on a processor that sleeps, and none can watch for the next request. Many clients
//! want as many threads as the machine has processors for. Which of both it is tells a request that waits already when a
//! thread has answered another client's.
//!
//! Where most answers have to wait for the disk or a decoder, one more waits meanwhile: to call one each time, and to let one go
//! each time, costs more than the kernel's waking them in turn.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// What a request counts that had to wait, against those that had not: more than one in nine, and one thread is not enough.
const QUEUED: i32 = 8;
const PROMPT: i32 = -1;

/// How far the count goes in either direction until the number of threads changes.
const ENOUGH: i32 = 64;

/// How many more slow answers than quick ones, or the other way round, until one more thread is to wait, or no longer.
const SLOW_ENOUGH: i32 = 16;

/// How many threads are to wait, by the requests that have come.
#[derive(Debug)]
pub(super) struct Demand {
    threads: AtomicUsize,
    max: usize,
    count: AtomicI32,
    /// Slow answers against quick ones, and whether most are slow.
    slow: AtomicI32,
    are_slow: AtomicBool,
}

impl Demand {
    /// One thread first, `max` at most.
    pub(super) fn new(max: usize) -> Self {
        Self {
            threads: AtomicUsize::new(1),
            max,
            count: AtomicI32::new(0),
            slow: AtomicI32::new(0),
            are_slow: AtomicBool::new(false),
        }
    }

    /// How many threads are to wait now.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed) + usize::from(self.are_slow.load(Ordering::Relaxed))
    }

    /// Whether the number can change, so that it is worth finding out whether requests wait.
    pub(super) fn can_change(&self) -> bool {
        self.max > 1
    }

    /// Notes whether an answer was slow.
    pub(super) fn note_answer(&self, was_slow: bool) {
        let step = if was_slow { 1 } else { -1 };
        let before = self.slow.load(Ordering::Relaxed);
        let count = (before + step).clamp(-SLOW_ENOUGH, SLOW_ENOUGH);
        if count == before {
            return;
        }
        // Threads that do this at the same time may lose a step, and come there again.
        self.slow.store(count, Ordering::Relaxed);
        if count.abs() == SLOW_ENOUGH {
            self.are_slow.store(count > 0, Ordering::Relaxed);
        }
    }

    /// Notes whether a request had to wait for a thread; gives whether another is to wait for requests from now on.
    pub(super) fn note(&self, queued: bool) -> bool {
        let change = if queued { QUEUED } else { PROMPT };
        // Threads that pass a limit at the same time may lose a step, and come there again.
        let count = self.count.fetch_add(change, Ordering::Relaxed) + change;
        if count.abs() < ENOUGH {
            return false;
        }
        self.count.store(0, Ordering::Relaxed);
        let step = |threads: usize| match count > 0 {
            true => (threads < self.max).then_some(threads + 1),
            false => (threads > 1).then_some(threads - 1),
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.threads.fetch_update(set, fetch, step).is_ok() && count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes `count` requests, every `nth` of which had to wait; gives how many threads were asked for.
    fn note(demand: &Demand, count: u32, nth: u32) -> usize {
        (1..=count)
            .filter(|number| demand.note(number % nth == 0))
            .count()
    }

    #[test]
    fn one_thread_is_enough_while_hardly_a_request_waits() {
        let demand = Demand::new(8);
        assert_eq!(note(&demand, 10_000, 20), 0);
        assert_eq!(demand.threads(), 1);
    }

    #[test]
    fn threads_come_while_requests_wait_and_go_when_none_does() {
        let demand = Demand::new(8);
        assert_eq!(note(&demand, 10_000, 3), 7, "not more than there may be");
        assert_eq!(demand.threads(), 8);
        assert_eq!(note(&demand, 10_000, u32::MAX), 0);
        assert_eq!(demand.threads(), 1);
        assert_eq!(note(&demand, 16, 1), 1, "soon");
    }

    #[test]
    fn one_more_waits_while_most_answers_are_slow() {
        let demand = Demand::new(1);
        let answers =
            |count, nth| (1..=count).for_each(|number| demand.note_answer(number % nth == 0));
        answers(1000, 3);
        assert_eq!(demand.threads(), 1, "most are quick");
        answers(2 * SLOW_ENOUGH, 1);
        assert_eq!(demand.threads(), 2);
        for _ in 0..1000 {
            answers(2, 2);
        }
        assert_eq!(demand.threads(), 2, "as many of either kind");
        answers(2 * SLOW_ENOUGH, i32::MAX);
        assert_eq!(demand.threads(), 1);
    }

    #[test]
    fn a_single_thread_stays_alone() {
        let demand = Demand::new(1);
        assert!(!demand.can_change());
        assert_eq!(note(&demand, 1000, 1), 0);
        assert_eq!(demand.threads(), 1);
    }
}
