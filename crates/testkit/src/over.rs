//! Telling the threads beside a test that it is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the test is over. It is, too, when it fails: a scope would wait for its threads without end.
#[derive(Debug, Default)]
pub struct Over(AtomicBool);

/// Makes it over when it goes out of scope.
#[derive(Debug)]
pub struct Guard<'a>(&'a Over);

impl Over {
    /// Whether threads beside the test end now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What to hold while they go on.
    #[must_use]
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_the_threads_beside_it() {
        let over = Over::default();
        let failed = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let _guard = over.guard();
                scope.spawn(|| {
                    while !over.is_over() {
                        std::thread::yield_now();
                    }
                });
                std::panic::resume_unwind(Box::new("a test that fails"));
            });
        });
        assert!(failed.is_err());
        assert!(over.is_over());
    }
}
