//! Watching for the next request for a moment before going to sleep.
//!
//! Who lists a tree or opens many files sends the next request some microseconds after the answer to the last one. To wake
//! a thread on a processor that has gone to sleep meanwhile takes longer than to answer, for both sides, in virtual
//! machines above all. So once requests come one on the heels of the other, the thread looks for the next one itself,
//! giving way to whoever else wants its processor, and goes to sleep where none has come in time.

use std::time::{Duration, Instant};

/// How long to look. Programs that do more than that between two requests have other costs than waking.
const TIME_MAX: Duration = Duration::from_micros(100);

/// Requests that came in time, all from one thread, before it is worth looking for the next one. Several threads keep
/// the processors busy, so that looking takes time from them.
const RUN_MIN: u32 = 4;

/// The same after looking in vain again and again.
const RUN_MIN_MOST: u32 = 64;

/// By how much that changes: looking in vain costs as much as finding saves twice or three times.
const MISSED_MORE: u32 = 6;
const CAME_LESS: u32 = 2;

/// How fast requests follow each other.
#[derive(Debug)]
pub(super) struct Watch {
    /// How many requests in a row came in time, and from which thread.
    run: u32,
    client: u32,
    /// How many it takes: more after each time that none came, fewer after each that came.
    run_min: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            run: 0,
            client: 0,
            run_min: RUN_MIN,
        }
    }
}

impl Watch {
    /// Until when to look for the next request, if the last one has been answered now.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        (self.run >= self.run_min).then(|| now + TIME_MAX)
    }

    /// How many requests of one client have come in time, one after the other.
    pub(super) fn run(&self) -> u32 {
        self.run
    }

    /// Forgets them.
    pub(super) fn begin_anew(&mut self) {
        self.run = 0;
    }

    /// Whether the last request was from that thread.
    pub(super) fn was_last(&self, client: u32) -> bool {
        self.client == client
    }

    /// Notes how long the next request took to come, and the thread it is from; `may_look` is whether the thread looks for
    /// requests at all just now.
    pub(super) fn note(&mut self, waited: Duration, client: u32, may_look: bool) {
        let looked = may_look && self.run >= self.run_min;
        let came = waited <= TIME_MAX;
        if looked {
            self.run_min = if came {
                (self.run_min - CAME_LESS).max(RUN_MIN)
            } else {
                (self.run_min + MISSED_MORE).min(RUN_MIN_MOST)
            };
        }
        let continues = came && client == self.client;
        self.run = if continues {
            self.run.saturating_add(1)
        } else {
            0
        };
        self.client = client;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = TIME_MAX;
    const LATE: Duration = Duration::from_millis(1);

    /// How many requests have to follow each other until it is worth looking for the next.
    fn run(watch: &mut Watch) -> u32 {
        let now = Instant::now();
        watch.note(LATE, 7, true);
        let mut count = 0;
        while watch.until(now).is_none() {
            watch.note(SOON, 7, true);
            count += 1;
        }
        assert_eq!(watch.until(now), Some(now + TIME_MAX));
        count
    }

    #[test]
    fn only_runs_of_requests_are_watched_for() {
        let mut watch = Watch::default();
        assert_eq!(run(&mut watch), RUN_MIN);
        // Another thread breaks a run, without having kept anybody waiting.
        watch.note(SOON, 8, true);
        assert_eq!(run(&mut watch), RUN_MIN);
    }

    #[test]
    fn who_does_not_look_does_not_look_in_vain() {
        let mut watch = Watch::default();
        for _ in 0..10 {
            assert_eq!(run(&mut watch), RUN_MIN);
            watch.note(LATE, 7, false);
        }
    }

    #[test]
    fn it_takes_more_after_looking_in_vain() {
        let mut watch = Watch::default();
        let needed: Vec<_> = (0..12).map(|_| run(&mut watch)).collect();
        assert_eq!(needed[..4], [4, 10, 16, 22]);
        assert_eq!(needed[10..], [64, 64]);
        for _ in 0..RUN_MIN_MOST {
            watch.note(SOON, 7, true);
        }
        assert_eq!(run(&mut watch), RUN_MIN + MISSED_MORE);
    }
}
