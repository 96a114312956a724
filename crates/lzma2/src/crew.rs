//! Threads that encode blocks, and what they share: tables for fewer blocks than there are threads.
//!
//! The table of a block's matches is several times as large as the block. So only some threads have tables at a time; the
//! others find matches for them, or choose packets of their blocks, until it is their turn. A thread that has a block is
//! a [`Member`]; while it waits for tables or for another block, threads that help work in its place. There are never
//! more at work than the crew has members.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Error;
use crate::finder::Finder;

/// So many threads are kept busy by the tables of one block.
pub const THREADS_PER_TABLE: usize = 4;

/// What encoding one block takes.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) finder: Finder,
    /// The block, if it is filtered.
    pub(crate) filtered: Vec<u8>,
}

/// Threads that encode, and their memory.
///
/// What they write does not depend on how many they are.
#[derive(Debug)]
pub struct Crew {
    /// The most threads that work.
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// How many threads more may work.
    free: usize,
    /// Members that only wait until they may work.
    joining: usize,
    /// Members that wait for tables.
    without_tables: usize,
    /// How many blocks more may be encoded.
    tables_free: usize,
    tables: Vec<Tables>,
}

impl State {
    /// Whether members would work if no others helped in their place.
    fn is_awaited(&self) -> bool {
        self.joining > 0 || self.without_tables > 0 && self.tables_free > 0
    }
}

impl Crew {
    /// Makes a crew of `threads` threads that encode up to `tables` blocks at a time; each of these is at least one.
    #[must_use]
    pub fn new(threads: usize, tables: usize) -> Self {
        let threads = threads.max(1);
        Self::with(threads, threads, tables.max(1))
    }

    /// Makes a crew for the one thread that has it, which need not join.
    #[must_use]
    pub fn alone() -> Self {
        Self::with(1, 0, 1)
    }

    fn with(threads: usize, free: usize, tables_free: usize) -> Self {
        Self {
            threads,
            state: Mutex::new(State {
                free,
                joining: 0,
                without_tables: 0,
                tables_free,
                tables: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns when one thread more may work, which is this one.
    #[must_use]
    pub fn join(&self) -> Member<'_> {
        let mut state = self.lock();
        state.joining += 1;
        state = self.wait(state, |_| true);
        state.joining -= 1;
        drop(state);
        Member { crew: self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes one of those that work as soon as `may` says so, too.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        may: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        while state.free == 0 || !may(&state) {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.free -= 1;
        if state.free > 0 {
            // Helpers have let this one go first.
            self.changed.notify_all();
        }
        state
    }

    /// Lets another thread work.
    fn leave(&self) {
        self.lock().free += 1;
        self.changed.notify_all();
    }

    /// Calls `work` with tables; a member lets others work until there are some.
    pub(crate) fn with_tables<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        let mut state = self.lock();
        if state.tables_free == 0 {
            state.free += 1;
            self.changed.notify_all();
            state.without_tables += 1;
            state = self.wait(state, |state| state.tables_free > 0);
            state.without_tables -= 1;
        }
        state.tables_free -= 1;
        let mut tables = state.tables.pop().unwrap_or_default();
        drop(state);
        // Should `work` panic, the others must not wait for these for ever.
        let _turn = Turn { crew: self };
        let result = work(&mut tables);
        self.lock().tables.push(tables);
        result
    }

    /// Calls `work` with each number below `count`, from this thread and those that are free, up to `threads_max`, and
    /// returns what it returned. `tools` makes what each of the threads needs.
    pub(crate) fn each<S, T: Send>(
        &self,
        count: usize,
        threads_max: usize,
        tools: impl Fn() -> Result<S, Error> + Sync,
        work: impl Fn(&mut S, usize) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let job = Job {
            crew: self,
            count,
            next: AtomicUsize::new(0),
            tools,
            work,
            results: Mutex::new(Vec::with_capacity(count)),
            helped: AtomicU64::new(0),
        };
        let mut tools = (job.tools)()?;
        thread::scope(|scope| {
            for _ in 1..threads_max.min(count).min(self.threads) {
                // If the system gives no thread, the others do it.
                drop(thread::Builder::new().spawn_scoped(scope, || job.help()));
            }
            let _end = End {
                crew: self,
                next: &job.next,
                count,
            };
            job.work(&mut tools, || false);
        });
        let helped = job.helped.into_inner();
        HELPED.set(HELPED.get() + helped);
        let results = job.results.into_inner();
        let mut results = results.unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|(number, _)| *number);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }
}

/// A thread that is counted among those that work.
#[derive(Debug)]
pub struct Member<'a> {
    crew: &'a Crew,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.crew.leave();
    }
}

/// The right to have tables.
#[derive(Debug)]
struct Turn<'a> {
    crew: &'a Crew,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.crew.lock().tables_free += 1;
        self.crew.changed.notify_all();
    }
}

/// Sends those away who wait to help, also if the thread panics that they would help.
struct End<'a> {
    crew: &'a Crew,
    next: &'a AtomicUsize,
    count: usize,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let state = self.crew.lock();
        self.next.fetch_max(self.count, Ordering::Relaxed);
        drop(state);
        self.crew.changed.notify_all();
    }
}

/// Numbers that some threads do something with.
struct Job<'a, T, M, W> {
    crew: &'a Crew,
    count: usize,
    /// The first number that nobody has taken.
    next: AtomicUsize,
    tools: M,
    work: W,
    results: Mutex<Vec<(usize, T)>>,
    /// Processor time of the threads that help, in nanoseconds.
    helped: AtomicU64,
}

impl<S, T, M, W> Job<'_, T, M, W>
where
    T: Send,
    M: Fn() -> Result<S, Error> + Sync,
    W: Fn(&mut S, usize) -> T + Sync,
{
    /// Works until no number is left, or `may_stop`.
    fn work(&self, tools: &mut S, may_stop: impl Fn() -> bool) {
        while !may_stop() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            let result = (self.work)(tools, number);
            let results = self.results.lock();
            let mut results = results.unwrap_or_else(PoisonError::into_inner);
            results.push((number, result));
        }
    }

    /// Works whenever a member does not, until no number is left.
    fn help(&self) {
        while let Some(_place) = self.place() {
            // Without memory for its tools a thread leaves the work to the others; nor does it keep them while it waits.
            let Ok(mut tools) = (self.tools)() else {
                return;
            };
            self.work(&mut tools, || self.crew.lock().is_awaited());
        }
        self.helped.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
    }

    /// Waits until one thread more may work; there is nothing to do if numbers run out before.
    fn place(&self) -> Option<Member<'_>> {
        let mut state = self.crew.lock();
        while self.next.load(Ordering::Relaxed) < self.count {
            if state.free > 0 && !state.is_awaited() {
                state.free -= 1;
                return Some(Member { crew: self.crew });
            }
            let woken = self.crew.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

thread_local! {
    static HELPED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the processor time of all threads that have helped this one.
#[must_use]
pub fn helped() -> Duration {
    Duration::from_nanos(HELPED.get())
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn no_more_threads_work_than_there_are_members() {
        let crew = Crew::new(3, 1);
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |_: &mut (), number: usize| {
            most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            working.fetch_sub(1, Ordering::SeqCst);
            number * 2
        };
        let block = || {
            let _member = crew.join();
            crew.with_tables(|_| crew.each(20, 8, || Ok(()), work))
        };
        thread::scope(|scope| {
            let threads = [scope.spawn(block), scope.spawn(block), scope.spawn(block)];
            for thread in threads {
                let results = thread.join().expect("no panic").expect("tools");
                assert_eq!(results, (0..40).step_by(2).collect::<Vec<_>>());
            }
        });
        assert_eq!(most.into_inner(), 3);
        let state = crew.lock();
        assert_eq!((state.free, state.tables_free), (3, 1));
        assert_eq!(state.tables.len(), 1);
    }

    #[test]
    fn who_waits_for_tables_is_replaced() {
        let crew = Crew::new(2, 1);
        let (entered, waits) = (Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _member = crew.join();
                entered.wait();
                crew.with_tables(|_| waits.store(false, Ordering::SeqCst));
            });
            let _member = crew.join();
            crew.with_tables(|_| {
                waits.store(true, Ordering::SeqCst);
                entered.wait();
                while crew.lock().without_tables == 0 {
                    thread::yield_now();
                }
                // Neither of two can end without the other.
                let together = Barrier::new(2);
                let work = |_: &mut (), _| together.wait().is_leader();
                let results = crew.each(4, 8, || Ok(()), work).expect("tools");
                assert_eq!(results.iter().filter(|leads| **leads).count(), 2);
                assert!(waits.load(Ordering::SeqCst));
            });
        });
        assert!(!waits.into_inner());
    }

    #[test]
    fn alone_there_is_nobody_to_help() {
        let this = thread::current().id();
        let work = |_: &mut (), _| thread::current().id() == this;
        let crew = Crew::alone();
        let results = crew.each(9, 8, || Ok(()), work);
        assert_eq!(results, Ok(vec![true; 9]));
        let none = crew.each(9, 8, || Err::<(), _>(Error::Memory), |_: &mut (), _| ());
        assert_eq!(none, Err(Error::Memory));
        assert_eq!(helped(), Duration::ZERO);
    }

    #[test]
    fn a_panic_leaves_the_tables_to_the_others() {
        let crew = Crew::new(2, 1);
        thread::scope(|scope| {
            let panics = || {
                let _member = crew.join();
                let work = |_: &mut (), _| panic!("on purpose");
                crew.with_tables(|_| crew.each::<_, ()>(9, 2, || Ok(()), work))
            };
            assert!(scope.spawn(panics).join().is_err());
        });
        let _member = crew.join();
        crew.with_tables(|_| ());
        assert_eq!(crew.lock().free, 1);
        // Nor does one that would help wait for ever if the other does not come.
        let waits = Crew::new(2, 1);
        let [_first, _second] = [waits.join(), waits.join()];
        let panics = || waits.each::<_, ()>(9, 2, || Ok(()), |_: &mut (), _| panic!("on purpose"));
        assert!(std::panic::catch_unwind(panics).is_err());
    }
}
