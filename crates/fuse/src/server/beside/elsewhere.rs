//! The threads that read ahead leave the processors alone where somebody sits beside a client.
//!
//! They are ordinary threads, so that one of them beside the client keeps the one that sits there, which is idle for the
//! kernel, from each answer until it has decoded its block.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the threads that read ahead may be.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Each of them, and the processors it may use where nobody sits: somebody may have chosen those.
    homes: Vec<(Pid, CpuSet)>,
    /// Where somebody sits.
    taken: Vec<usize>,
}

impl Elsewhere {
    /// Keeps `workers` off the processors that are `taken`, and lets them go where nobody sits any more.
    ///
    /// Nothing can be done about failures: they stay where they are, and the guard sees who is in the way.
    pub(super) fn keep_off(&mut self, taken: Vec<usize>, workers: &dyn Fn() -> Vec<Pid>) {
        if taken == self.taken {
            return;
        }
        if self.taken.is_empty() {
            let with_home = |thread| Some((thread, sched_getaffinity(Some(thread)).ok()?));
            self.homes = workers().into_iter().filter_map(with_home).collect();
        }
        for (thread, home) in &self.homes {
            sched_setaffinity(Some(*thread), &without(home, &taken)).ok();
        }
        self.taken = taken;
    }
}

/// The processors of `home` that are not `taken`; all of them if none is left.
fn without(home: &CpuSet, taken: &[usize]) -> CpuSet {
    let mut left = *home;
    for processor in taken {
        left.unset(*processor);
    }
    if left.count() == 0 { *home } else { left }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::tests::with_sleeper;
    use super::*;

    fn set(processors: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        processors.iter().for_each(|processor| set.set(*processor));
        set
    }

    #[test]
    fn what_is_left_is_never_nothing() {
        assert_eq!(without(&set(&[0, 1, 5]), &[1, 7]), set(&[0, 5]));
        assert_eq!(without(&set(&[3]), &[3]), set(&[3]));
        assert_eq!(without(&set(&[2, 3]), &[3, 2]), set(&[2, 3]));
    }

    #[test]
    fn workers_keep_off_and_come_back_to_what_they_had() {
        with_sleeper(|worker| {
            let is_at = || sched_getaffinity(Some(worker)).unwrap();
            let home = is_at();
            let mut usable = (0..CpuSet::MAX_CPU).filter(|at| home.is_set(*at));
            let (first, second) = (usable.next().unwrap(), usable.next());
            let workers = || vec![worker];

            let mut elsewhere = Elsewhere::default();
            elsewhere.keep_off(vec![first], &workers);
            assert_eq!(is_at(), without(&home, &[first]));
            // Whoever sits goes elsewhere itself: what the worker had at first still counts.
            if let Some(second) = second {
                elsewhere.keep_off(vec![second], &workers);
                assert_eq!(is_at(), without(&home, &[second]));
            }
            elsewhere.keep_off(Vec::new(), &workers);
            assert_eq!(is_at(), home);
        });
    }
}
