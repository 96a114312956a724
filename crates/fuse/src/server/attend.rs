//! What a thread knows of those whose requests it answers, whichever way they come.

use std::thread::Scope;
use std::time::{Duration, Instant};

use super::Server;
use super::beside::{Beside, RUN_MIN, Seat};
use super::watch::Watch;

/// One thread's attention: how fast requests follow each other, and its place beside the client.
///
/// Both pay while answers are quick and small. What follows an answer that was slow is slow, too, as likely as not, and
/// goes to another thread meanwhile: after one the thread begins anew, as it does after a large one.
pub(super) struct Attendant<'a> {
    watch: Watch,
    seat: Seat<'a>,
    is_slow: bool,
}

impl<'a> Attendant<'a> {
    pub(super) fn new(beside: &'a Beside) -> Self {
        Self {
            watch: Watch::default(),
            seat: Seat::new(beside),
            is_slow: false,
        }
    }

    /// Until when to look for the next request, if the last one has been answered now.
    ///
    /// Beside the client nobody looks: the client is to have the processor, and gets it at once from who sleeps.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        match self.seat.is_taken() {
            true => None,
            false => self.watch.until(now),
        }
    }

    /// Notes how long the next request took to come, and the thread it is from; gives whether the last one was from
    /// another.
    pub(super) fn came(&mut self, waited: Duration, client: u32) -> bool {
        let is_other = !self.watch.was_last(client);
        self.watch.note(waited, client, !self.seat.is_taken());
        is_other
    }

    /// Is an ordinary thread from now on.
    pub(super) fn stand_up(&mut self) {
        self.seat.leave();
    }

    /// Notes that the answer will be slow.
    pub(super) fn take_time(&mut self) {
        self.is_slow = true;
        self.stand_up();
    }

    /// Notes the length of the answer that has been given; gives whether it was slow.
    pub(super) fn answered(&mut self, len: usize) -> bool {
        let was_slow = std::mem::take(&mut self.is_slow);
        if !self.seat.answered(len) || was_slow {
            self.watch.begin_anew();
        }
        was_slow
    }
}

impl Server {
    /// Sits down beside the client whose request has come, if that pays, or stands up where another has come.
    /// `processor` tells where the client is, if that is known.
    pub(super) fn sit<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        attendant: &mut Attendant<'_>,
        client: u32,
        processor: Option<usize>,
    ) {
        let run = attendant.watch.run();
        if run >= RUN_MIN {
            self.start_guard(scope);
        }
        if !attendant.seat.note(client, run, processor) {
            attendant.watch.begin_anew();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use durin_testkit::require;

    use super::super::beside::tests::{beside_a_sleeper, may_sit};
    use super::*;

    /// Has requests of one client come one after the other until it is worth looking for the next.
    fn attend(attendant: &mut Attendant<'_>) {
        let now = Instant::now();
        for _ in 0..=RUN_MIN {
            attendant.came(Duration::ZERO, 7);
            assert!(!attendant.answered(100));
        }
        assert!(attendant.until(now).is_some());
    }

    #[test]
    fn what_follows_a_slow_or_a_large_answer_is_not_looked_for() {
        let beside = Beside::new(false, Arc::default());
        let mut attendant = Attendant::new(&beside);
        attend(&mut attendant);
        attendant.take_time();
        assert!(attendant.answered(100), "slow");
        assert_eq!(attendant.until(Instant::now()), None);
        attend(&mut attendant);
        assert!(!attendant.answered(1 << 20), "large");
        assert_eq!(attendant.until(Instant::now()), None);
        attend(&mut attendant);
    }

    #[test]
    fn who_sits_beside_a_client_does_not_look() {
        require!(may_sit());
        beside_a_sleeper(false, |beside, _, client| {
            let mut attendant = Attendant::new(beside);
            attend(&mut attendant);
            assert!(attendant.seat.note(client, RUN_MIN, None));
            assert!(attendant.seat.is_taken());
            assert_eq!(attendant.until(Instant::now()), None);
            attendant.stand_up();
            assert!(attendant.until(Instant::now()).is_some());
        });
    }

    #[test]
    fn tells_another_client() {
        let beside = Beside::new(false, Arc::default());
        let mut attendant = Attendant::new(&beside);
        assert!(attendant.came(Duration::ZERO, 7));
        assert!(!attendant.came(Duration::ZERO, 7));
        assert!(attendant.came(Duration::ZERO, 8));
    }
}
