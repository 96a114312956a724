//! Answering on the processor of the client that waits for the answer.
//!
//! A client that sends one request after the other sleeps while it is answered, and who answers it sleeps or looks for the
//! next request meanwhile. On two processors that keeps both awake, or wakes one of them twice for each request, which takes
//! longer than most answers. So the thread that answers a single client sits down beside it: it binds itself to the
//! processor that the client was on last, and takes the policy `SCHED_IDLE`. For the kernel a processor that has nothing
//! but idle threads is idle, so that the client stays there when the answer wakes it, and goes first at once; when it sleeps
//! again, the request is answered by a mere change of threads. A cold `find` takes half the processor time (docs/mounting.md).
//! It sleeps between requests: who looks for the next one and gives way (`watch`) keeps the processor as long as its group of
//! the scheduler has a share left, and client and driver are in different groups as a rule.
//!
//! An idle thread waits for all others that want its processor. So a guard looks each 2 ms whether who sits beside a client
//! gets anywhere, and has it stand up where others keep it from its work: it is an ordinary thread on any processor then,
//! and it is some time until anybody sits down again, longer each time. Only who may take back the policy sits down at all:
//! root, and users whose limits allow it (`RLIMIT_NICE`).
//!
//! The driver's own threads that read ahead are not to be such others, and keep off the processors where somebody sits
//! (`elsewhere`).
//!
//! Who sits starts no threads, for they would inherit policy and processor.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

use super::Server;
use crate::scheduling::{self, Policy};
use guard::Sitting;

mod elsewhere;
mod guard;

/// Requests of one client in a row, each soon after the answer to the last one, before it is worth sitting down.
pub(super) const RUN_MIN: u32 = 4;

/// Requests after which it is looked where the client is: others may have moved it.
const LOOK_EVERY: u32 = 64;

/// Bytes of an answer to one who reads a large file. It has the next part on its way already, which another processor
/// can fetch while it works.
const ANSWER_LARGE: usize = 256 * 1024;

/// How often threads sat down, and how often others were in the way.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) begun: AtomicU64,
    pub(crate) disturbed: AtomicU64,
}

/// Who sits beside clients, and the guard.
pub(crate) struct Beside {
    /// Whether anybody may. Until it is known, nobody does.
    may: AtomicBool,
    /// Whether the guard was started.
    asked: AtomicBool,
    begin: Instant,
    /// Until when nobody sits down, in milliseconds since `begin`.
    pause_until: AtomicU64,
    state: Mutex<State>,
    change: Condvar,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct State {
    sittings: Vec<Sitting>,
    pause: Duration,
    /// Requests that were answered beside clients since others were in the way last, by those who sit no more.
    steps: u32,
    is_over: bool,
}

/// What the guard knows of one that sits.
struct Taken {
    thread: Pid,
    client: u32,
    /// The processors that the thread may use when it stands up: somebody may have chosen others than it began with.
    home: CpuSet,
    /// Where it sits.
    processor: AtomicUsize,
    /// How many requests it has answered there.
    steps: AtomicU32,
    /// Whether the guard has had it stand up.
    is_lost: AtomicBool,
}

impl Taken {
    fn new(thread: Pid, client: u32, home: CpuSet, processor: usize) -> Self {
        Self {
            thread,
            client,
            home,
            processor: AtomicUsize::new(processor),
            steps: AtomicU32::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Makes it an ordinary thread.
    fn stand_up(&self) {
        // Nothing can be done about failures; both have succeeded before, and the thread works on in any case.
        scheduling::set_policy(Some(self.thread), Policy::Other).ok();
        sched_setaffinity(Some(self.thread), &self.home).ok();
    }
}

impl Beside {
    /// Without `wanted` nobody sits down.
    pub(crate) fn new(wanted: bool, counts: Arc<Counts>) -> Self {
        Self {
            may: AtomicBool::new(false),
            asked: AtomicBool::new(!wanted),
            begin: Instant::now(),
            pause_until: AtomicU64::new(0),
            state: Mutex::default(),
            change: Condvar::new(),
            counts,
        }
    }

    /// Lets the guard go, for good.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.change.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody may sit down now.
    fn is_free(&self) -> bool {
        self.may.load(Ordering::Relaxed)
            && millis(self.begin.elapsed()) >= self.pause_until.load(Ordering::Relaxed)
    }
}

/// The place of one thread that answers, beside a client or not.
pub(super) struct Seat<'a> {
    beside: &'a Beside,
    taken: Option<Arc<Taken>>,
    /// How many requests were answered there.
    steps: u32,
}

impl<'a> Seat<'a> {
    pub(super) fn new(beside: &'a Beside) -> Self {
        Self {
            beside,
            taken: None,
            steps: 0,
        }
    }

    /// Notes that a request of a client has come, the last of `run` in a row: sits down beside it if that pays, and stands
    /// up where another has come. `processor` tells where the client is, if that is known.
    ///
    /// Gives false if the run has to begin anew.
    pub(super) fn note(&mut self, client: u32, run: u32, processor: Option<usize>) -> bool {
        let Some(taken) = &self.taken else {
            if run >= RUN_MIN && self.beside.is_free() {
                self.sit_down(client, processor);
            }
            return true;
        };
        if taken.is_lost.load(Ordering::Relaxed) {
            self.taken = None;
            return false;
        }
        if client != taken.client {
            self.leave();
            return true;
        }
        self.steps = self.steps.wrapping_add(1);
        taken.steps.store(self.steps, Ordering::Relaxed);
        if processor.is_none() && self.steps.is_multiple_of(LOOK_EVERY) {
            self.follow(client);
        }
        true
    }

    /// Goes to where the client is now.
    fn follow(&mut self, client: u32) {
        let Some(taken) = &self.taken else {
            return;
        };
        match processor_of(client) {
            Some(now) if now == taken.processor.load(Ordering::Relaxed) => {}
            Some(now) if bind(&taken.home, now) => taken.processor.store(now, Ordering::Relaxed),
            _ => self.leave(),
        }
    }

    /// Notes how long an answer was. Gives false if the run has to begin anew: further answers will be as long.
    pub(super) fn answered(&mut self, len: usize) -> bool {
        let is_small = len <= ANSWER_LARGE;
        if !is_small {
            self.leave();
        }
        is_small
    }

    fn sit_down(&mut self, client: u32, processor: Option<usize>) {
        let processor = processor.or_else(|| processor_of(client));
        // Who has given the thread another policy wants it to have that.
        if !scheduling::policy().is_ok_and(|policy| policy == Policy::Other) {
            return;
        }
        let Ok(home) = sched_getaffinity(None) else {
            return;
        };
        let Some(at) = processor.filter(|at| bind(&home, *at)) else {
            return;
        };
        let taken = Arc::new(Taken::new(gettid(), client, home, at));
        // Whoever holds this lock is an ordinary thread, or the guard could wait for an idle one.
        let mut state = self.beside.state();
        let is_first = state.sittings.is_empty();
        state.sittings.push(Sitting::new(Arc::clone(&taken)));
        drop(state);
        if is_first {
            self.beside.change.notify_one();
        }
        self.taken = Some(taken);
        self.steps = 0;
        if scheduling::set_policy(None, Policy::Idle).is_err() {
            self.leave();
            return;
        }
        self.beside.counts.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the thread sits beside a client.
    pub(super) fn is_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// Stands up, for work that may take long, or for somebody else.
    pub(super) fn leave(&mut self) {
        let Some(taken) = self.taken.take() else {
            return;
        };
        taken.stand_up();
        let mut state = self.beside.state();
        let others = |sitting: &Sitting| !Arc::ptr_eq(&sitting.seat, &taken);
        state.sittings.retain(others);
        if !taken.is_lost.load(Ordering::Relaxed) {
            state.steps = state.steps.saturating_add(self.steps);
        }
    }
}

impl Server {
    /// Starts the guard, if it is wanted and was not started before. Without one nobody sits down.
    pub(super) fn start_guard<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if self.beside.asked.swap(true, Ordering::Relaxed) {
            return;
        }
        // Whatever a thread starts while it sits would be an idle one on that processor, too.
        self.adapter.start_workers();
        let guard = Builder::new().name("fuse-guard".to_owned());
        let has_request = || self.device.has_request();
        let workers = || self.adapter.workers();
        guard
            .spawn_scoped(scope, move || self.beside.guard(&has_request, &workers))
            .ok();
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Binds the calling thread to one of the processors that it may use; gives whether it is one.
fn bind(home: &CpuSet, processor: usize) -> bool {
    if processor >= CpuSet::MAX_CPU || !home.is_set(processor) {
        return false;
    }
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).is_ok()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Where a thread was last.
fn processor_of(thread: u32) -> Option<usize> {
    /// The field of proc_pid_stat(5), from the one behind the name.
    const PROCESSOR: usize = 36;
    // Threads of clients in other name spaces have no number here.
    (thread != 0)
        .then(|| field_of(&format!("/proc/{thread}/stat"), PROCESSOR))?
        .and_then(|field| field.parse().ok())
}

/// A field of such a file, counted from the one behind the name.
fn field_of(path: &str, index: usize) -> Option<String> {
    let mut buf = [0; 1024];
    let len = File::open(path).ok()?.read(&mut buf).ok()?;
    let text = String::from_utf8_lossy(buf.get(..len)?);
    // The name may have any bytes, also this one.
    let (_, fields) = text.rsplit_once(')')?;
    fields
        .split_ascii_whitespace()
        .nth(index)
        .map(str::to_owned)
}

#[cfg(test)]
pub(super) mod tests;
