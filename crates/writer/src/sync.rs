//! Starting threads, in one place.

use std::thread;

/// Runs `work` on `count` threads (at least one) and returns what each returned.
///
/// A panic of a thread is passed on.
pub(crate) fn in_parallel<T: Send>(count: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    if count <= 1 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}
