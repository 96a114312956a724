//! Threads that are not needed just now, until another calls one to take its place.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Where they are.
pub(super) struct Parked {
    state: Mutex<State>,
    change: Condvar,
    /// More than these are not kept, and none for longer.
    max: usize,
    patience: Duration,
}

#[derive(Default)]
struct State {
    /// How many are here, and how many of them are called.
    count: usize,
    called: usize,
    is_over: bool,
}

impl Parked {
    pub(super) fn new(max: usize, patience: Duration) -> Self {
        Self {
            state: Mutex::default(),
            change: Condvar::new(),
            max,
            patience,
        }
    }

    /// Calls one; gives whether there was one.
    pub(super) fn call(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.called >= state.count {
            return false;
        }
        state.called += 1;
        drop(state);
        self.change.notify_one();
        true
    }

    /// Waits until the calling thread is called. Gives whether it was: it is to end where there are enough, when nobody
    /// has called for long, or all is over.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over || state.count >= self.max {
            return false;
        }
        state.count += 1;
        let (mut state, _) = self
            .change
            .wait_timeout_while(state, self.patience, |state| {
                state.called == 0 && !state.is_over
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.count -= 1;
        let is_called = state.called > 0;
        state.called = state.called.saturating_sub(1);
        is_called && !state.is_over
    }

    /// Lets all go for good.
    pub(super) fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        drop(state);
        self.change.notify_all();
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
    fn not_more_are_kept_than_are_wanted() {
        assert!(!Parked::new(0, Duration::MAX).wait());
    }

    #[test]
    fn those_that_nobody_calls_go() {
        let parked = Parked::new(1, Duration::from_millis(1));
        assert!(!parked.wait() && !parked.call());
    }
}
