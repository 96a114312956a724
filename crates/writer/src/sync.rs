//! Starting threads, in one place.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use durin_format::{Error, Result};

use crate::context::Context;

/// How often a waiting thread looks whether the user wants to stop.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// The most items that a thread takes at once, which makes taking cheap items cheap.
const BATCH_MAX: usize = 16;
/// The least number of times that a thread goes for items, so that slow ones are shared out.
const BATCHES_PER_THREAD_MIN: usize = 32;

/// Runs `work` on `count` threads (at least one), this one being one of them, and returns what each returned.
///
/// A thread that the system does not give leaves its share to the others. A panic of a thread is passed on.
pub(crate) fn in_parallel<T: Send>(count: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let start = || thread::Builder::new().spawn_scoped(scope, &work);
        let others: Vec<_> = (1..count).map_while(|_| start().ok()).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        results
    })
}

/// Applies `work` to all items with the scanner's threads and returns the results in the order of the items.
///
/// Each thread has what `start` makes. The results end early when the user wants to stop.
pub(crate) fn map_in_parallel<T: Sync, S, R: Send>(
    context: Context<'_>,
    items: &[T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = context.options.scanner_workers.min(items.len()).max(1);
    let batch_len = (items.len() / threads / BATCHES_PER_THREAD_MIN).clamp(1, BATCH_MAX);
    let parts = in_parallel(threads, || {
        let mut state = start();
        let mut results = Vec::new();
        loop {
            let first = next.fetch_add(batch_len, Ordering::Relaxed);
            let batch = items.iter().enumerate().skip(first).take(batch_len);
            if batch.len() == 0 || context.is_cancelled() {
                return results;
            }
            results.extend(batch.map(|(index, item)| (index, work(&mut state, item))));
        }
    });
    let mut results: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs `work` on a thread of its own and waits for it, but not longer than until the user wants to stop.
///
/// The thread is left behind then and ends by itself; it must own what it uses.
pub(crate) fn run_detached<T: Send + 'static>(
    context: Context<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = channel();
    let thread = spawn_detached(move || {
        // Nobody receives after a cancellation.
        drop(sender.send(work()));
    })?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => context.check_cancelled()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(Error::cancelled()),
            },
        }
    }
}

/// Starts a thread that may be left behind.
pub(crate) fn spawn_detached(
    work: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    thread::Builder::new().spawn(work).map_err(no_thread)
}

/// The error when the system has no thread to give.
pub(crate) fn no_thread(error: io::Error) -> Error {
    Error::io("cannot start a thread", error)
}
