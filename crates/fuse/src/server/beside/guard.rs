//! The guard: who sits beside a client shall not wait for others.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::gettid;

use super::elsewhere::Elsewhere;
use super::{Beside, State, Taken, field_of, millis};
use crate::scheduling::{self, Policy};

/// How often the guard looks.
const TICK: Duration = Duration::from_millis(2);

/// Requests in that time that show that all is well.
pub(super) const STEPS_MIN: u32 = 16;

/// Processor time in that time that shows that requests take long, and nobody is in the way.
const WORK_MIN: Duration = Duration::from_micros(500);

/// How often in a row there may be less of either until nobody sits there any more: the client spends its time on other
/// things.
pub(super) const QUIET_MAX: u32 = 5;

/// How often in a row others seem to be in the way until they are: just now it may have come to its work.
const KEPT_MAX: u32 = 2;

/// How long nobody sits down after others were in the way: first, and in the end.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(12);

/// Requests answered beside clients since others were in the way last, after which that counts as the first time.
pub(super) const STEPS_GOOD: u32 = 20_000;

/// One that sits, and what the guard saw of it when it looked last.
pub(super) struct Sitting {
    pub(super) seat: Arc<Taken>,
    steps: u32,
    time: Duration,
    /// How often in a row it had little to do.
    quiet: u32,
    /// How often in a row others seemed to keep it from that.
    kept: u32,
    is_new: bool,
}

impl Beside {
    /// The guard: tries whether the way back from the policy is open, and then looks after those who sit.
    /// `has_request` says whether a request waits to be taken, and `workers` which threads read ahead.
    pub(super) fn guard(&self, has_request: &dyn Fn() -> bool, workers: &dyn Fn() -> Vec<Pid>) {
        // A guard that has another policy is not to get this one.
        if !scheduling::policy().is_ok_and(|policy| policy == Policy::Other) {
            return;
        }
        let this = Some(gettid());
        let may = scheduling::set_policy(this, Policy::Idle)
            .and_then(|()| scheduling::set_policy(this, Policy::Other));
        if may.is_err() {
            return;
        }
        let mut state = self.state();
        self.may.store(!state.is_over, Ordering::Relaxed);
        let mut elsewhere = Elsewhere::default();
        while !state.is_over {
            state = if state.sittings.is_empty() {
                let woken = self.change.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            } else {
                let woken = self
                    .change
                    .wait_timeout_while(state, TICK, |state| !state.is_over);
                woken.unwrap_or_else(PoisonError::into_inner).0
            };
            self.look_after(&mut state, has_request);
            elsewhere.keep_off(state.processors(), workers);
        }
        self.may.store(false, Ordering::Relaxed);
        elsewhere.keep_off(Vec::new(), workers);
    }

    /// Has those stand up who get nowhere, or whom nobody asks.
    fn look_after(&self, state: &mut State, has_request: &dyn Fn() -> bool) {
        let State {
            sittings,
            pause,
            steps,
            ..
        } = state;
        sittings.retain_mut(|sitting| {
            let doing = sitting.look(has_request);
            if doing == Doing::Well {
                return true;
            }
            // The thread does not end before it has looked here.
            sitting.seat.stand_up();
            sitting.seat.is_lost.store(true, Ordering::Relaxed);
            *steps = steps.saturating_add(sitting.steps);
            if doing == Doing::Disturbed {
                self.counts.disturbed.fetch_add(1, Ordering::Relaxed);
                *pause = pause_after(*pause, std::mem::take(steps));
                let until = self.begin.elapsed().saturating_add(*pause);
                self.pause_until.store(millis(until), Ordering::Relaxed);
            }
            false
        });
    }
}

/// How long nobody sits down, after a pause and so many requests that were answered since.
pub(super) fn pause_after(before: Duration, steps: u32) -> Duration {
    match steps {
        ..STEPS_GOOD => (before * 2).clamp(PAUSE, PAUSE_MAX),
        _ => PAUSE,
    }
}

impl State {
    /// Where somebody sits.
    fn processors(&self) -> Vec<usize> {
        let processors = self.sittings.iter();
        let processors = processors.map(|sitting| sitting.seat.processor.load(Ordering::Relaxed));
        processors.collect()
    }
}

impl Sitting {
    pub(super) fn new(seat: Arc<Taken>) -> Self {
        Self {
            seat,
            steps: 0,
            time: Duration::ZERO,
            quiet: 0,
            kept: 0,
            is_new: true,
        }
    }

    /// Sees how it is doing since the last look.
    pub(super) fn look(&mut self, has_request: &dyn Fn() -> bool) -> Doing {
        let thread = self.seat.thread;
        let steps = self.seat.steps.load(Ordering::Relaxed);
        let time = scheduling::processor_time(thread).unwrap_or_default();
        let done = steps.wrapping_sub(std::mem::replace(&mut self.steps, steps));
        let worked = time.saturating_sub(std::mem::replace(&mut self.time, time));
        if std::mem::take(&mut self.is_new) || done >= STEPS_MIN || worked >= WORK_MIN {
            (self.quiet, self.kept) = (0, 0);
            return Doing::Well;
        }
        // While the client is at work, whom the answer woke in the middle of sending it, it is wanted by others at most.
        let is_asked =
            || !is_runnable(&format!("/proc/{}/stat", self.seat.client)) || has_request();
        let own = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
        let is_kept = is_runnable(&own) && is_asked();
        self.kept = if is_kept { self.kept + 1 } else { 0 };
        self.quiet += 1;
        match (self.kept, self.quiet) {
            (KEPT_MAX.., _) => Doing::Disturbed,
            (_, QUIET_MAX..) => Doing::Nothing,
            _ => Doing::Well,
        }
    }
}

/// How one that sits is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Well,
    /// It is hardly asked for anything.
    Nothing,
    /// It has something to do, and others keep it from doing it.
    Disturbed,
}

/// Whether a thread runs or would if it could.
fn is_runnable(stat: &str) -> bool {
    field_of(stat, 0).is_some_and(|state| state == "R")
}
