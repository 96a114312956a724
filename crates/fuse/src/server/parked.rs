//! Threads that are not needed just now, until another calls one to take its place.
//!
//! The one that came last is called first: its memory for answers is likeliest to be in a processor's cache still, and
//! those that are not needed stay asleep until they go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Where they are.
pub(super) struct Parked {
    state: Mutex<State>,
    /// More than these are not kept, and none for longer.
    max: usize,
    patience: Duration,
}

#[derive(Default)]
struct State {
    /// The one that came last at the end.
    waiting: Vec<Arc<Waiting>>,
    is_over: bool,
}

/// A thread that waits.
struct Waiting {
    thread: Thread,
    /// Set when it has been taken out of [`State::waiting`].
    is_called: AtomicBool,
}

impl Parked {
    pub(super) fn new(max: usize, patience: Duration) -> Self {
        Self {
            state: Mutex::default(),
            max,
            patience,
        }
    }

    /// Calls one; gives whether there was one.
    pub(super) fn call(&self) -> bool {
        let last = self.state().waiting.pop();
        last.map(|waiting| waiting.call()).is_some()
    }

    /// Waits until the calling thread is called. Gives whether it was: it is to end where there are enough, when nobody
    /// has called for long, or all is over.
    pub(super) fn wait(&self) -> bool {
        let own = Arc::new(Waiting {
            thread: std::thread::current(),
            is_called: AtomicBool::new(false),
        });
        {
            let mut state = self.state();
            if state.is_over || state.waiting.len() >= self.max {
                return false;
            }
            state.waiting.push(Arc::clone(&own));
        }
        let start = Instant::now();
        while !own.is_called.load(Ordering::Acquire) {
            let left = self.patience.saturating_sub(start.elapsed());
            if left.is_zero() && self.leave(&own) {
                return false;
            }
            std::thread::park_timeout(left);
        }
        !self.state().is_over
    }

    /// Lets all go for good.
    pub(super) fn end(&self) {
        let all = {
            let mut state = self.state();
            state.is_over = true;
            std::mem::take(&mut state.waiting)
        };
        all.iter().for_each(|waiting| waiting.call());
    }

    /// Takes one out that nobody has called; gives whether it was there.
    fn leave(&self, own: &Arc<Waiting>) -> bool {
        let waiting = &mut self.state().waiting;
        let at = waiting.iter().position(|other| Arc::ptr_eq(other, own));
        at.map(|at| waiting.remove(at)).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn those_that_are_called_come_and_all_go_in_the_end() {
        let parked = Parked::new(2, Duration::MAX);
        assert!(!parked.call(), "nobody is there");
        let (came, all) = channel();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let came = came.clone();
                scope.spawn(|| {
                    let came = came;
                    while parked.wait() {
                        came.send(()).unwrap();
                    }
                });
            }
            for _ in 0..100 {
                while !parked.call() {
                    std::thread::yield_now();
                }
                all.recv().unwrap();
            }
            parked.end();
        });
        drop(came);
        assert_eq!(all.iter().count(), 0);
        assert!(!parked.wait() && !parked.call());
    }

    #[test]
    fn the_one_that_came_last_is_called_first() {
        let parked = Parked::new(3, Duration::MAX);
        let (came, all) = channel();
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (parked, came) = (&parked, came.clone());
                scope.spawn(move || {
                    assert!(parked.wait());
                    came.send(number).unwrap();
                });
                while parked.state().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            for number in (0..3).rev() {
                assert!(parked.call());
                assert_eq!(all.recv().unwrap(), number);
            }
        });
    }

    #[test]
    fn not_more_are_kept_than_are_wanted() {
        assert!(!Parked::new(0, Duration::MAX).wait());
    }

    #[test]
    fn those_that_nobody_calls_go() {
        let parked = Parked::new(1, Duration::from_millis(1));
        assert!(!parked.wait() && !parked.call());
    }
}
