//! Tests of who sits beside a client, and of the guard.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::mpsc::channel;

use durin_testkit::require;

use super::guard::{Doing, PAUSE, QUIET_MAX, STEPS_GOOD, STEPS_MIN, pause_after};
use super::*;

/// A thread at rest, for as long as `body` takes.
pub(super) fn with_sleeper(body: impl FnOnce(Pid)) {
    let (number, numbers) = channel();
    let (leave, left) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            number.send(gettid()).unwrap();
            left.recv().ok();
        });
        body(numbers.recv().unwrap());
        drop(leave);
    });
}

/// Somebody at rest, beside whom one can sit, is what `body` gets, and a place where somebody may sit. Without a guard a
/// busy machine changes nothing of what happens.
pub(in crate::server) fn beside_a_sleeper(
    guarded: bool,
    body: impl FnOnce(&Beside, &mut Seat<'_>, u32) + Send,
) {
    let nobody: &(dyn Fn() -> Vec<Pid> + Sync) = &Vec::new;
    beside_a_sleeper_with(guarded.then_some(nobody), body);
}

/// The same; with `workers` there is a guard, which is told that they read ahead.
fn beside_a_sleeper_with(
    workers: Option<&(dyn Fn() -> Vec<Pid> + Sync)>,
    body: impl FnOnce(&Beside, &mut Seat<'_>, u32) + Send,
) {
    let beside = Beside::new(true, Arc::default());
    let beside_client = |client: u32| {
        std::thread::scope(|scope| {
            if let Some(workers) = workers {
                scope.spawn(|| beside.guard(&|| false, &|| workers()));
            } else {
                beside.may.store(true, Ordering::Relaxed);
            }
            // In a thread of its own, which has the policy.
            let beside = &beside;
            let sat = scope.spawn(move || {
                while !beside.is_free() {
                    std::thread::yield_now();
                }
                let home = sched_getaffinity(None).unwrap();
                let mut seat = Seat::new(beside);
                body(beside, &mut seat, client);
                drop(seat);
                assert_eq!(scheduling::policy().unwrap(), Policy::Other);
                assert_eq!(sched_getaffinity(None).unwrap(), home);
            });
            let sat = sat.join();
            beside.end();
            sat.unwrap();
        })
    };
    with_sleeper(|client| beside_client(client.as_raw_nonzero().get().unsigned_abs()));
}

/// Whether a thread may take back the policy here.
pub(in crate::server) fn may_sit() -> Result<(), String> {
    let tried = std::thread::scope(|scope| {
        let there_and_back = || {
            scheduling::set_policy(None, Policy::Idle)?;
            scheduling::set_policy(None, Policy::Other)
        };
        scope.spawn(there_and_back).join().unwrap()
    });
    tried.map_err(|error| format!("the policy SCHED_IDLE cannot be taken back: {error}"))
}

#[test]
fn sits_where_the_client_is_and_stands_up_for_another() {
    require!(may_sit());
    beside_a_sleeper(false, |beside, seat, client| {
        assert!(seat.note(client, RUN_MIN - 1, None));
        assert!(seat.taken.is_none(), "too few requests");
        assert!(seat.note(client, RUN_MIN, None));
        let at = processor_of(client).unwrap();
        let taken = seat.taken.as_ref().unwrap();
        assert_eq!(taken.processor.load(Ordering::Relaxed), at);
        assert_eq!(scheduling::policy().unwrap(), Policy::Idle);
        let mut only = CpuSet::new();
        only.set(at);
        assert_eq!(sched_getaffinity(None).unwrap(), only);
        assert!(seat.answered(ANSWER_LARGE) && seat.taken.is_some());
        seat.note(client + 1, 1, None);
        assert!(seat.taken.is_none() && beside.state().sittings.is_empty());
        assert_eq!(beside.counts.begun.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn nobody_sits_for_long_where_nothing_is_asked() {
    require!(may_sit());
    beside_a_sleeper(false, |_, _, client| {
        // The one at rest is who sits here.
        let seat = Taken::new(
            Pid::from_raw(client.cast_signed()).unwrap(),
            client,
            CpuSet::new(),
            0,
        );
        let mut sitting = Sitting::new(Arc::new(seat));
        // The first look sees how it is.
        for _ in 0..QUIET_MAX {
            assert_eq!(sitting.look(&|| false), Doing::Well);
        }
        assert_eq!(sitting.look(&|| false), Doing::Nothing);
        sitting.seat.steps.store(STEPS_MIN, Ordering::Relaxed);
        assert_eq!(sitting.look(&|| false), Doing::Well);
        sitting
            .seat
            .steps
            .store(2 * STEPS_MIN - 1, Ordering::Relaxed);
        assert_eq!(
            sitting.look(&|| false),
            Doing::Well,
            "too few, for the first time"
        );
    });
}

/// Looks a few times at somebody who waits for a processor that a busy client has; gives what came of it.
fn beside_a_busy_client(has_request: bool) -> Doing {
    let is_over = AtomicBool::new(false);
    let (number, numbers) = channel();
    std::thread::scope(|scope| {
        // Both want the same processor, and one goes first.
        for policy in [Policy::Other, Policy::Idle] {
            let (number, is_over) = (number.clone(), &is_over);
            scope.spawn(move || {
                let home = sched_getaffinity(None).unwrap();
                let first = (0..CpuSet::MAX_CPU).find(|at| bind(&home, *at));
                assert!(first.is_some());
                number.send((policy == Policy::Idle, gettid())).unwrap();
                scheduling::set_policy(None, policy).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                scheduling::set_policy(None, Policy::Other).unwrap();
            });
        }
        let mut threads: Vec<_> = numbers.iter().take(2).collect();
        threads.sort_unstable_by_key(|(sits, _)| *sits);
        let [(_, client), (_, sits)] = threads[..] else {
            unreachable!("two were taken");
        };
        let seat = Taken::new(
            sits,
            client.as_raw_nonzero().get().unsigned_abs(),
            CpuSet::new(),
            0,
        );
        let mut sitting = Sitting::new(Arc::new(seat));
        let looks = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(2));
            sitting.look(&|| has_request)
        });
        let doing = looks.take(10_000).find(|doing| *doing != Doing::Well);
        is_over.store(true, Ordering::Relaxed);
        doing.unwrap_or(Doing::Well)
    })
}

#[test]
fn a_client_at_work_is_in_the_way_of_other_clients_only() {
    require!(may_sit());
    assert_eq!(beside_a_busy_client(false), Doing::Nothing);
    assert_eq!(beside_a_busy_client(true), Doing::Disturbed);
}

#[test]
fn stands_up_where_others_are_in_the_way_and_waits_before_it_sits_down_again() {
    require!(may_sit());
    beside_a_sleeper(true, |beside, seat, client| {
        let at = processor_of(client).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // An ordinary thread that wants all of that processor.
            scope.spawn(|| {
                let home = sched_getaffinity(None).unwrap();
                assert!(bind(&home, at));
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            while beside.counts.disturbed.load(Ordering::Relaxed) == 0 {
                seat.note(client, RUN_MIN, None);
                std::hint::spin_loop();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(beside.pause_until.load(Ordering::Relaxed) >= millis(PAUSE));
        assert_eq!(beside.state().pause, PAUSE);
    });
}

#[test]
fn pauses_grow_unless_much_was_answered_since_by_whoever_sat() {
    let pauses = std::iter::successors(Some(Duration::ZERO), |before| {
        Some(pause_after(*before, STEPS_GOOD - 1))
    });
    let pauses: Vec<_> = pauses.take(20).collect();
    assert_eq!(pauses.get(1..3).unwrap(), [PAUSE, 2 * PAUSE]);
    assert_eq!(pauses.last(), Some(&Duration::from_secs(12)));
    assert_eq!(pause_after(Duration::from_secs(12), STEPS_GOOD), PAUSE);

    require!(may_sit());
    beside_a_sleeper(false, |beside, seat, client| {
        for _ in 0..2 {
            assert!(seat.note(client, RUN_MIN, None) && seat.taken.is_some());
            (0..3).for_each(|_| assert!(seat.note(client, RUN_MIN, None)));
            seat.leave();
        }
        assert_eq!(beside.state().steps, 6);
    });
}

#[test]
fn workers_keep_off_while_somebody_sits() {
    require!(may_sit());
    with_sleeper(|worker| {
        let is_at = move || sched_getaffinity(Some(worker)).unwrap();
        let home = is_at();
        beside_a_sleeper_with(Some(&move || vec![worker]), |_, seat, client| {
            // The guard has who is asked nothing stand up after a while.
            while home.count() > 1 && is_at() == home {
                seat.note(client, RUN_MIN, None);
                std::thread::yield_now();
            }
            seat.leave();
            while is_at() != home {
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn long_answers_and_foreign_processors_are_not_for_sitting() {
    require!(may_sit());
    beside_a_sleeper(false, |_, seat, client| {
        seat.note(client, RUN_MIN, Some(CpuSet::MAX_CPU));
        assert!(seat.taken.is_none());
        seat.note(client, RUN_MIN, None);
        assert!(seat.taken.is_some());
        // Or it would sit down again for the next one.
        assert!(!seat.answered(ANSWER_LARGE + 1) && seat.taken.is_none());
        // Whoever is in another name space of processes.
        seat.note(0, RUN_MIN, None);
        assert!(seat.taken.is_none());
    });
}

#[test]
fn nobody_sits_who_was_told_not_to() {
    let beside = Beside::new(false, Arc::default());
    assert!(beside.asked.load(Ordering::Relaxed) && !beside.is_free());
}
