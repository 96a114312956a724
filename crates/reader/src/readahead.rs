//! Threads that decode blocks before somebody asks for them.
//!
//! Requests go through a bounded channel; when it is full a request is dropped, because by the time its turn came the
//! reader would have decoded the block. **Memory**: the blocks decoded, which the cache counts.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use durin_format::BlockIndex;
use parking_lot::Mutex;
use rustix::process::Pid;

/// A block, and how far it is to be decoded.
type Request = (BlockIndex, u64);

/// The worker threads; dropping this waits for what they are doing and ends them.
pub(crate) struct Readahead {
    /// `None` only while this is dropped.
    requests: Option<Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
    /// Their numbers, of those that have begun.
    numbers: Arc<Mutex<Vec<Pid>>>,
}

impl Readahead {
    /// Starts the threads, which call `decode` for each request. `None` if the system has no thread to give:
    /// reading works without.
    pub(crate) fn start(
        workers: usize,
        decode: impl Fn(BlockIndex, u64) + Clone + Send + 'static,
    ) -> Option<Self> {
        // Two waiting requests for each thread: more would be about blocks that the reader reaches first.
        let (requests, waiting) = bounded(workers.saturating_mul(2));
        let mut threads = Vec::new();
        let numbers: Arc<Mutex<Vec<Pid>>> = Arc::default();
        for number in 0..workers {
            let waiting: Receiver<Request> = waiting.clone();
            let (decode, numbers) = (decode.clone(), Arc::clone(&numbers));
            let work = move || {
                numbers.lock().push(rustix::thread::gettid());
                waiting.iter().for_each(|(block, end)| decode(block, end));
            };
            let name = format!("readahead-{number}");
            threads.extend(Builder::new().name(name).spawn(work));
        }
        (!threads.is_empty()).then_some(Self {
            requests: Some(requests),
            threads,
            numbers,
        })
    }

    /// The numbers of the threads that have begun.
    pub(crate) fn threads(&self) -> Vec<Pid> {
        self.numbers.lock().clone()
    }

    /// Asks for a block as far as `end`; false if there is enough to do.
    pub(crate) fn request(&self, block: BlockIndex, end: u64) -> bool {
        // A full channel is the answer "no".
        let requests = self.requests.as_ref();
        requests.is_some_and(|requests| requests.try_send((block, end)).is_ok())
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_threads_that_work_are_those_that_are_told() {
        let (told, heard) = bounded(2);
        let readahead = Readahead::start(2, move |_, _| {
            told.send(rustix::thread::gettid()).unwrap();
        });
        let readahead = readahead.unwrap();
        while readahead.threads().len() < 2 {
            std::thread::yield_now();
        }
        for block in 0..10 {
            assert!(readahead.request(BlockIndex(block), u64::MAX));
            assert!(readahead.threads().contains(&heard.recv().unwrap()));
        }
        let [first, second] = readahead.threads()[..] else {
            unreachable!("there are two");
        };
        assert_ne!(first, second);
    }
}
