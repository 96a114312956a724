//! The threads that answer requests that come through io_uring.
//!
//! Each of the kernel's queues has one thread from the beginning. When it is about to decode or to read, and no other thread waits in
//! its queue, another is started there. An entry cannot be taken out of a queue, so these threads stay; the kernel gives
//! requests to the one that was last busy, so that what is not needed sleeps.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{Builder, Scope};
use std::time::Instant;

use super::attend::Attendant;
use super::{Server, Threads};
use crate::adapter::ANSWER_LEN_MAX;
use crate::device::{Device, REQUEST_LEN_MAX};
use crate::protocol::Request;
use crate::ring::{Fetched, Ring, queue_count};

/// More queues than this are not used: a machine that may have so many processors has few of them, or memory for threads
/// that pay nothing.
const QUEUES_MAX: u16 = 64;

/// What there is of io_uring in a mount.
#[derive(Default)]
pub(crate) struct Rings {
    /// Those of the first threads, until they start.
    first: Mutex<Vec<Ring>>,
    /// How many threads wait in each queue.
    idle: Vec<AtomicUsize>,
}

impl Rings {
    /// Makes one for each queue; in the end it is the kernel that uses them or not.
    ///
    /// # Errors
    /// A text that says why there will be none.
    pub(crate) fn make(device: &Device, threads: Threads) -> Result<Self, String> {
        let count = queue_count().map_err(|error| format!("the number of processors: {error}"))?;
        if count > QUEUES_MAX {
            return Err(format!("{count} processors are too many"));
        }
        if usize::from(count) > threads.max {
            return Err(format!("{count} processors and {} threads", threads.max));
        }
        let first = (0..count).map(|queue| Ring::new(device, queue, ANSWER_LEN_MAX));
        let first: Vec<Ring> = first
            .collect::<io::Result<_>>()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            idle: first.iter().map(|_| AtomicUsize::new(0)).collect(),
            first: Mutex::new(first),
        })
    }

    /// How many queues there are; 0 if io_uring is not used.
    pub(crate) fn queue_count(&self) -> usize {
        self.idle.len()
    }

    /// Makes the kernel refuse the last of them.
    #[cfg(test)]
    pub(crate) fn spoil(&self) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = first.last_mut() {
            ring.spoil();
        }
    }

    fn idle(&self, ring: &Ring) -> Option<&AtomicUsize> {
        self.idle.get(usize::from(ring.queue()))
    }
}

impl Server {
    /// Starts the first thread of each queue; if that fails, all requests come through the device.
    pub(super) fn start_rings<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let rings = &self.rings.first;
        let rings = std::mem::take(&mut *rings.lock().unwrap_or_else(PoisonError::into_inner));
        if rings.is_empty() {
            return;
        }
        let (outcomes, all) = mpsc::channel();
        let count = rings.len();
        for ring in rings {
            // If there is no thread for it, the kernel must be told, or it would wait for good.
            let (hand_over, ring_of_thread) = mpsc::channel();
            let outcomes_of_thread = outcomes.clone();
            let serve = move || {
                if let Ok(ring) = ring_of_thread.recv() {
                    self.serve_ring(scope, ring, |outcome| {
                        outcomes_of_thread.send(outcome).ok();
                    });
                }
            };
            let name = format!("fuse-ring-{}", ring.queue());
            match Builder::new().name(name).spawn_scoped(scope, serve) {
                Ok(_) => {
                    self.count.fetch_add(1, Ordering::Relaxed);
                    hand_over.send(ring).ok();
                }
                Err(error) => {
                    let refused = ring.be_refused();
                    outcomes.send(Err(refused.err().unwrap_or(error))).ok();
                }
            }
        }
        drop(outcomes);
        if let Some(error) = all.iter().take(count).find_map(Result::err) {
            let text = format!("on offer, not used: {error}");
            self.adapter.tell_io_uring(text);
        }
    }

    /// Starts another thread for a queue, unless there are enough.
    fn start_ring<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, queue: u16) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let start = || {
            let ring = Ring::new(&self.device, queue, ANSWER_LEN_MAX)?;
            Builder::new()
                .name(format!("fuse-ring-{queue}"))
                .spawn_scoped(scope, move || self.serve_ring(scope, ring, drop))
        };
        if count >= self.threads.max || start().is_err() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Serves until the connection ends. `registered` is told whether the kernel has taken the entry.
    fn serve_ring<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut ring: Ring,
        registered: impl FnOnce(io::Result<()>),
    ) {
        let outcome = ring.enable().and_then(|()| ring.register());
        let is_registered = outcome.is_ok();
        registered(outcome);
        if is_registered && let Err(error) = self.answer_through(scope, ring) {
            self.note(Some(Err(error)));
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn answer_through<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut ring: Ring,
    ) -> io::Result<()> {
        let Some(idle) = self.rings.idle(&ring) else {
            return Ok(());
        };
        let queue = ring.queue();
        let mut buf = vec![0; REQUEST_LEN_MAX];
        let mut attendant = Attendant::new(&self.beside);
        loop {
            idle.fetch_add(1, Ordering::Relaxed);
            let start = Instant::now();
            let fetched = ring.wait(&mut buf);
            let waited = start.elapsed();
            idle.fetch_sub(1, Ordering::Relaxed);
            let len = match fetched {
                Ok(Fetched::Request(len)) => len,
                Ok(Fetched::End) => return Ok(()),
                // The request is lost, as one of a damaged connection is; those that come are not.
                Err(_) => {
                    ring.register()?;
                    continue;
                }
            };
            let request = buf.get(..len).and_then(Request::parse);
            let request = request.ok_or(io::ErrorKind::InvalidData)?;
            attendant.came(waited, request.pid);
            // A queue is that of a processor.
            self.sit(scope, &mut attendant, request.pid, Some(queue.into()));
            let mut slow = || {
                attendant.take_time();
                if idle.load(Ordering::Relaxed) == 0 {
                    self.start_ring(scope, queue);
                }
            };
            let (_, result) = self.adapter.answer(&request, ring.reply(), &mut slow);
            let len = ring.commit(request.unique, result)?;
            attendant.answered(len);
        }
    }
}
