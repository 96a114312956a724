//! How many threads wait for requests.
//!
//! One client sends its next request when it has the answer to the last one. For it one thread is best: with two, the
//! kernel wakes them in turn, each on a processor that sleeps, and none can watch for the next request. Many clients
//! want as many threads as the machine has processors for. Which of both it is tells a request that waits already when a
//! thread has answered another client's.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// What a request counts that had to wait, against those that had not: more than one in nine, and one thread is not enough.
const QUEUED: i32 = 8;
const PROMPT: i32 = -1;

/// How far the count goes in either direction until the number of threads changes.
const ENOUGH: i32 = 64;

/// How many threads are to wait, by the requests that have come.
#[derive(Debug)]
pub(super) struct Demand {
    threads: AtomicUsize,
    max: usize,
    count: AtomicI32,
}

impl Demand {
    /// One thread first, `max` at most.
    pub(super) fn new(max: usize) -> Self {
        Self {
            threads: AtomicUsize::new(1),
            max,
            count: AtomicI32::new(0),
        }
    }

    /// How many threads are to wait now.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Whether the number can change, so that it is worth finding out whether requests wait.
    pub(super) fn can_change(&self) -> bool {
        self.max > 1
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
    fn a_single_thread_stays_alone() {
        let demand = Demand::new(1);
        assert!(!demand.can_change());
        assert_eq!(note(&demand, 1000, 1), 0);
        assert_eq!(demand.threads(), 1);
    }
}
