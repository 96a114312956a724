//! The threads that answer.
//!
//! Most requests are answered in microseconds, and a request costs most when it wakes a thread on another processor, which
//! the kernel does in turn with all that wait for one. So as few wait as will do (`demand`), each with its own descriptor
//! and buffers, and each does all of a request itself. Only when one of them is about to decode or to read, and no other
//! waits for requests, another takes its place: one that is `parked`, or a new one, up to a limit. So `ls` never waits for
//! a slow block.
//! A thread that finds that others wait has done its part, and is parked or ends. One that waits alone looks for the next
//! request for a moment before it sleeps (`watch`), or answers a single client on that one's processor and sleeps there in
//! between (`beside`), both as long as answers are quick (`attend`).
//!
//! With io_uring (`rings`) it is the same for each of the kernel's queues, but that threads stay.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use crate::adapter::{Adapter, Then};
use crate::device::{Device, End, REQUEST_LEN_MAX, Received};
use crate::options::MountOptions;
use crate::protocol::{Reply, Request};
use attend::Attendant;
use beside::Beside;
use demand::Demand;
use parked::Parked;
use rings::Rings;

mod attend;
pub(crate) mod beside;
mod demand;
mod parked;
pub(crate) mod rings;
mod watch;

/// Threads that wait for requests where many come at once: half the number of cores, but not more than this; further
/// ones wait for the same locks. While one client sends them one after the other, a single one does (`demand`).
const WAITING_MAX: usize = 8;

/// With those that come and go.
const THREADS_MAX: usize = 32;

/// Threads that may be parked, so that readers of slow blocks, who come again, do not have one started each time: a reader
/// of one large file keeps up to ten busy. Each has memory for an answer, which goes with it.
const SPARE: usize = 16;
const SPARE_FOR: Duration = Duration::from_secs(5);

/// How many threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    /// That wait for requests, at most.
    pub(crate) waiting: usize,
    /// While slow reads are under way.
    pub(crate) max: usize,
}

impl Threads {
    pub(crate) fn choose(mount: &MountOptions) -> Self {
        let cores = match mount.processors {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            told => told,
        };
        let waiting = (cores / 2).clamp(1, WAITING_MAX);
        let max = match mount.threads {
            0 => THREADS_MAX,
            wanted => wanted,
        };
        Self {
            waiting: waiting.min(max),
            max,
        }
    }
}

/// One mount being served.
pub(crate) struct Server {
    adapter: Adapter,
    device: Arc<Device>,
    threads: Threads,
    /// Whether each thread gets a descriptor of its own.
    clones: bool,
    count: AtomicUsize,
    /// Those that wait for requests, and how many are to.
    idle: AtomicUsize,
    demand: Demand,
    parked: Parked,
    beside: Beside,
    rings: Rings,
    /// How the first thread ended that did not end well.
    outcome: Mutex<Option<io::Result<End>>>,
}

impl Server {
    /// Without `rings` all requests come through the device.
    pub(crate) fn new(
        adapter: Adapter,
        device: Device,
        rings: Rings,
        threads: Threads,
        clones: bool,
        beside: Beside,
    ) -> Self {
        Self {
            adapter,
            device: Arc::new(device),
            rings,
            threads,
            clones,
            count: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            demand: Demand::new(threads.waiting),
            parked: Parked::new(SPARE, SPARE_FOR),
            beside,
            outcome: Mutex::new(None),
        }
    }

    #[cfg(test)]
    pub(crate) fn rings(&self) -> &Rings {
        &self.rings
    }

    /// Allows another number of threads to wait than this machine's processors want.
    #[cfg(test)]
    pub(crate) fn set_waiting_max(&mut self, max: usize) {
        self.demand = Demand::new(max);
    }

    #[cfg(test)]
    pub(crate) fn waiting_wanted(&self) -> usize {
        self.demand.threads()
    }

    /// Serves until the connection ends.
    ///
    /// # Errors
    /// When the device fails.
    pub(crate) fn run(&self) -> io::Result<End> {
        std::thread::scope(|scope| {
            self.start_rings(scope);
            self.count.fetch_add(1, Ordering::Relaxed);
            self.note(self.serve(scope, &self.device));
        });
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.take().unwrap_or(Ok(End::Unmounted))
    }

    /// Has another thread wait for requests, unless there are enough.
    fn call_another<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if !self.parked.call() {
            self.start(scope);
        }
    }

    /// Starts another thread, unless there are enough. If the system has none to give, those that are there do.
    fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let started = count < self.threads.max
            && self.descriptor().is_ok_and(|device| {
                Builder::new()
                    .name(format!("fuse-{count}"))
                    .spawn_scoped(scope, move || self.note(self.serve(scope, &device)))
                    .is_ok()
            });
        if !started {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn descriptor(&self) -> io::Result<Arc<Device>> {
        if self.clones {
            return self.device.duplicate().map(Arc::new);
        }
        Ok(Arc::clone(&self.device))
    }

    fn serve<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        device: &Device,
    ) -> Option<io::Result<End>> {
        let mut buf = vec![0; REQUEST_LEN_MAX];
        let mut reply = Reply::default();
        let mut attendant = Attendant::new(&self.beside);
        loop {
            if !self.may_wait() {
                return None;
            }
            let start = Instant::now();
            let queued = self.demand.can_change() && device.has_request();
            let received = self.receive(device, &mut buf, attendant.until(start));
            let waited = start.elapsed();
            self.idle.fetch_sub(1, Ordering::Relaxed);
            let len = match received {
                Ok(Received::Request(len)) => len,
                Ok(Received::End(end)) => return Some(Ok(end)),
                Err(error) => return Some(Err(error)),
            };
            let Some(request) = buf.get(..len).and_then(Request::parse) else {
                return Some(Err(io::ErrorKind::InvalidData.into()));
            };
            let is_other = attendant.came(waited, request.pid);
            // The one who has just got an answer wakes another thread with the next request, if others wait, and this one
            // finds it first.
            if self.demand.note(queued && is_other) {
                attendant.stand_up();
                self.call_another(scope);
            }
            if self.demand.threads() == 1 {
                self.sit(scope, &mut attendant, request.pid, None);
            } else {
                attendant.stand_up();
            }
            let mut slow = || {
                attendant.take_time();
                if self.idle.load(Ordering::Relaxed) == 0 {
                    self.call_another(scope);
                }
            };
            let (then, result) = self.adapter.answer(&request, &mut reply, &mut slow);
            if then == Then::Send {
                // The request may have been taken back meanwhile; that the connection is gone, the next read says.
                let len = reply.finish(request.unique, result);
                let was_slow = attendant.answered(len);
                self.demand.note_answer(was_slow);
                device.send(&reply).ok();
                reply.give_back();
            }
        }
    }

    /// Waits for a request. A thread that is the only one to wait looks for it first if there is a time until when:
    /// where others sleep, the kernel wakes one of them all the same.
    fn receive(
        &self,
        device: &Device,
        buf: &mut [u8],
        until: Option<Instant>,
    ) -> io::Result<Received> {
        let is_alone = self.clones && self.idle.load(Ordering::Relaxed) == 1;
        let watched = match until.filter(|_| is_alone) {
            Some(until) => device.watch(buf, until)?,
            None => None,
        };
        match watched {
            Some(received) => Ok(received),
            None => device.receive(buf),
        }
    }

    /// Counts this thread as waiting for requests, once it is needed; gives whether it is.
    ///
    /// It counts only if there is room, never for a moment, or another that is about to do something slow would rely on it.
    fn may_wait(&self) -> bool {
        let one_more = |idle: usize| (idle < self.demand.threads()).then_some(idle + 1);
        loop {
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.idle.fetch_update(set, fetch, one_more).is_ok() {
                return true;
            }
            if !self.parked.wait() {
                self.count.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
        }
    }

    /// Keeps why a thread ended; an error says more than an end.
    fn note(&self, ended: Option<io::Result<End>>) {
        let Some(ended) = ended else {
            return;
        };
        self.parked.end();
        self.beside.end();
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.as_ref().is_none_or(|known| known.is_ok()) {
            *outcome = Some(ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_sets_the_ceiling() {
        let choose = |threads, processors| {
            Threads::choose(&MountOptions {
                threads,
                processors,
                ..MountOptions::default()
            })
        };
        assert_eq!(choose(1, 0), Threads { waiting: 1, max: 1 });
        let many = choose(200, 0);
        assert!(many.waiting <= WAITING_MAX && many.max == 200);
        assert_eq!(choose(0, 0).max, THREADS_MAX);
        for (processors, waiting) in [(1, 1), (6, 3), (100, WAITING_MAX)] {
            assert_eq!(choose(0, processors).waiting, waiting, "{processors}");
        }
    }
}
