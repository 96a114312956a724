//! Who works how long at what: the times of each stage of a build, by which one sees what holds it up.
//!
//! A thread that begins to work at a stage makes a [`StageThread`] with [`Stats::enter`](super::Stats::enter), says when
//! it waits ([`StageThread::wait_in`] for something to do, [`StageThread::wait_out`] for room to put the result) and
//! what it has done, and drops it at the end. What is then known of each stage:
//!
//! - *busy*: processor time of its threads, as the system counts it for each thread;
//! - *waiting for input* and *waiting for output*: time spent inside the two calls;
//! - *other*: what is left of the time of its threads, that is the disk, locks, or other programs on the processors.
//!
//! A stage that holds the build up is one that hardly waits. Its input queue is full: the stage before it waits for
//! output; its output queue is empty: the stage behind it waits for input.
//!
//! Each wait costs one system call (some 200 ns) and two looks at the clock: enough for a run, a block or a file, too
//! much for a record. The clock reaches nothing but these figures: no byte of an image depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::Phase;
use super::workers::{Board, Slot};

/// A stage of a build, or a part of one whose cost is worth knowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Reading directories and attributes.
    Scan,
    /// Making the tree of what was found.
    Assemble,
    /// Looking for holes.
    Sparse,
    /// Reading files to hash, sketch or categorize them.
    Analyze,
    /// Hashing files.
    Hash,
    /// Finding out what files are.
    Categorize,
    /// Making sketches for the order.
    Sketch,
    /// Deciding where contents go.
    Order,
    /// Reading contents.
    Read,
    /// Looking for the places where repetitions can begin.
    Anchor,
    /// Cutting contents into blocks.
    Segment,
    /// Compressing blocks.
    Compress,
    /// Writing the image.
    Emit,
    /// Making the metadata.
    Metadata,
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 14] = [
        Self::Scan,
        Self::Assemble,
        Self::Sparse,
        Self::Analyze,
        Self::Hash,
        Self::Categorize,
        Self::Sketch,
        Self::Order,
        Self::Read,
        Self::Anchor,
        Self::Segment,
        Self::Compress,
        Self::Emit,
        Self::Metadata,
    ];

    /// Its name in reports, which stays the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Assemble => "assemble",
            Self::Sparse => "sparse",
            Self::Analyze => "analyze",
            Self::Hash => "hash",
            Self::Categorize => "categorize",
            Self::Sketch => "sketch",
            Self::Order => "order",
            Self::Read => "read",
            Self::Anchor => "anchor",
            Self::Segment => "segment",
            Self::Compress => "compress",
            Self::Emit => "emit",
            Self::Metadata => "metadata",
        }
    }

    /// What a thread that works at it is doing.
    #[must_use]
    pub fn doing(self) -> &'static str {
        match self {
            Self::Scan => "scanning",
            Self::Assemble => "building the tree",
            Self::Sparse => "finding holes",
            Self::Analyze => "analyzing",
            Self::Hash => "hashing",
            Self::Categorize => "categorizing",
            Self::Sketch => "sketching",
            Self::Order => "ordering",
            Self::Read => "reading",
            Self::Anchor => "searching",
            Self::Segment => "segmenting",
            Self::Compress => "compressing",
            Self::Emit => "writing",
            Self::Metadata => "building metadata",
        }
    }

    /// The phase in which it runs.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self {
            Self::Scan | Self::Assemble => Phase::Scanning,
            Self::Sparse
            | Self::Analyze
            | Self::Hash
            | Self::Categorize
            | Self::Sketch
            | Self::Order => Phase::Hashing,
            Self::Read | Self::Anchor | Self::Segment | Self::Compress | Self::Emit => {
                Phase::Writing
            }
            Self::Metadata => Phase::Metadata,
        }
    }
}

/// The figures of one stage while threads work at it.
#[derive(Debug, Default)]
struct StageClock {
    threads: AtomicU64,
    threads_max: AtomicU64,
    /// Nanoseconds from the start of the build to the first entry; counted from 1, 0 is "never".
    first: AtomicU64,
    last: AtomicU64,
    thread_time: AtomicU64,
    busy: AtomicU64,
    input_wait: AtomicU64,
    output_wait: AtomicU64,
    items: AtomicU64,
    bytes: AtomicU64,
}

/// What is known of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTimes {
    /// Which one.
    pub stage: Stage,
    /// The most threads that worked at it at once.
    pub threads: u64,
    /// From the start of the build to the first thread's beginning.
    pub begin: Duration,
    /// From the first thread's beginning to the last figure of the last thread.
    pub wall: Duration,
    /// The time its threads existed, summed over them.
    pub thread_time: Duration,
    /// Processor time of its threads.
    pub busy: Duration,
    /// Time its threads had nothing to do.
    pub input_wait: Duration,
    /// Time its threads waited for room or leave to go on.
    pub output_wait: Duration,
    /// What it was done to, as the stage counts: files, runs or blocks.
    pub items: u64,
    /// Bytes it was done to.
    pub bytes: u64,
}

impl StageTimes {
    /// The time that its threads neither computed nor waited for another stage: the disk, locks, other programs.
    #[must_use]
    pub fn other(&self) -> Duration {
        self.thread_time
            .saturating_sub(self.busy + self.input_wait + self.output_wait)
    }

    /// The time that each of its threads did not wait for another stage, in the mean.
    #[must_use]
    pub fn occupied(&self) -> Duration {
        let waits = self.input_wait + self.output_wait;
        let threads = u32::try_from(self.threads).unwrap_or(u32::MAX).max(1);
        self.thread_time.saturating_sub(waits) / threads
    }
}

/// The clocks of all stages, and what each worker is doing.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) start: Instant,
    clocks: [StageClock; Stage::ALL.len()],
    pub(super) board: Board,
}

impl Default for Stages {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            clocks: Default::default(),
            board: Board::default(),
        }
    }
}

impl Stages {
    fn clock(&self, stage: Stage) -> &StageClock {
        &self.clocks[stage as usize]
    }

    /// Returns what is known of each stage at which a thread has worked.
    pub(super) fn times(&self) -> Vec<StageTimes> {
        let ran = |stage: &Stage| self.clock(*stage).first.load(Ordering::Relaxed) > 0;
        let times = |stage: Stage| {
            let clock = self.clock(stage);
            let duration = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
            let begin = duration(&clock.first);
            StageTimes {
                stage,
                threads: clock.threads_max.load(Ordering::Relaxed),
                begin,
                wall: duration(&clock.last).saturating_sub(begin),
                thread_time: duration(&clock.thread_time),
                busy: duration(&clock.busy),
                input_wait: duration(&clock.input_wait),
                output_wait: duration(&clock.output_wait),
                items: clock.items.load(Ordering::Relaxed),
                bytes: clock.bytes.load(Ordering::Relaxed),
            }
        };
        Stage::ALL.into_iter().filter(ran).map(times).collect()
    }
}

/// A thread that works at a stage; it owns all it needs, so that it may be left behind.
#[derive(Debug)]
pub(crate) struct StageThread {
    stages: Arc<Stages>,
    stage: Stage,
    /// Up to when its time is counted, and its processor time then.
    counted: Instant,
    counted_cpu: u64,
    slot: Option<Slot>,
}

impl StageThread {
    pub(super) fn new(stages: Arc<Stages>, stage: Stage) -> Self {
        let slot = stages.board.slot();
        let mut thread = Self {
            stages,
            stage,
            counted: Instant::now(),
            counted_cpu: thread_cpu_ns(),
            slot,
        };
        thread.enter(stage);
        thread
    }

    /// Does something that takes as long as there is nothing to do: receives from a queue, for one.
    pub(crate) fn wait_in<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        self.wait(wait, |clock| &clock.input_wait)
    }

    /// Does something that takes as long as those behind are busy: sends to a queue, takes a buffer or leave.
    pub(crate) fn wait_out<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        self.wait(wait, |clock| &clock.output_wait)
    }

    /// Counts what it has done.
    pub(crate) fn did(&self, items: u64, bytes: u64) {
        let clock = self.clock();
        clock.items.fetch_add(items, Ordering::Relaxed);
        clock.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says what it works on, for those who look: a path, or a block. `bytes` is how much that is, if it is known.
    pub(crate) fn job(&self, bytes: u64, what: impl FnOnce() -> String) {
        if let Some(slot) = &self.slot {
            slot.begin(self.stage, bytes, what());
        }
    }

    /// Says that the job is done.
    pub(crate) fn job_end(&self) {
        if let Some(slot) = &self.slot {
            slot.end();
        }
    }

    fn clock(&self) -> &StageClock {
        self.stages.clock(self.stage)
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        let clock = self.stages.clock(stage);
        let threads = clock.threads.fetch_add(1, Ordering::Relaxed) + 1;
        clock.threads_max.fetch_max(threads, Ordering::Relaxed);
        let begin = ns(self.counted - self.stages.start).max(1);
        let never = clock
            .first
            .compare_exchange(0, begin, Ordering::Relaxed, Ordering::Relaxed);
        if never.is_err() {
            clock.first.fetch_min(begin, Ordering::Relaxed);
        }
    }

    fn leave(&mut self) {
        self.count();
        self.clock().threads.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the time up to now as time of the stage.
    ///
    /// A thread that is left behind is counted up to its last wait; whoever takes its result sees its time, too.
    fn count(&mut self) {
        let now = Instant::now();
        let cpu = thread_cpu_ns();
        let clock = self.clock();
        add(&clock.thread_time, now - self.counted);
        let busy = cpu.saturating_sub(self.counted_cpu);
        clock.busy.fetch_add(busy, Ordering::Relaxed);
        let last = ns(now - self.stages.start);
        clock.last.fetch_max(last, Ordering::Relaxed);
        self.counted = now;
        self.counted_cpu = cpu;
    }

    fn wait<T>(
        &mut self,
        wait: impl FnOnce() -> T,
        of: impl FnOnce(&StageClock) -> &AtomicU64,
    ) -> T {
        self.count();
        let result = wait();
        let now = Instant::now();
        let clock = self.clock();
        add(&clock.thread_time, now - self.counted);
        add(of(clock), now - self.counted);
        self.counted = now;
        result
    }
}

impl Drop for StageThread {
    fn drop(&mut self) {
        self.leave();
    }
}

fn add(counter: &AtomicU64, duration: Duration) {
    counter.fetch_add(ns(duration), Ordering::Relaxed);
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of this thread, and of those that have helped it.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

fn thread_cpu_ns() -> u64 {
    let own = timespec_ns(clock_gettime(ClockId::ThreadCPUTime));
    own.saturating_add(ns(durin_codec::helped()))
}

/// Returns the processor time of the process, of threads that have ended, too.
#[must_use]
pub fn process_cpu() -> Duration {
    Duration::from_nanos(timespec_ns(clock_gettime(ClockId::ProcessCPUTime)))
}

fn timespec_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let rest = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds * 1_000_000_000 + rest
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn times(stages: &Stages, stage: Stage) -> StageTimes {
        let all = stages.times();
        *all.iter()
            .find(|times| times.stage == stage)
            .expect("a stage that ran")
    }

    #[test]
    fn time_is_busy_or_waiting() {
        let stages = Arc::new(Stages::default());
        let mut thread = StageThread::new(Arc::clone(&stages), Stage::Segment);
        let begun = Instant::now();
        while begun.elapsed() < SHORT {
            std::hint::black_box(begun);
        }
        thread.wait_in(|| sleep(SHORT));
        thread.wait_out(|| sleep(2 * SHORT));
        thread.did(3, 100);
        drop(thread);
        let times = times(&stages, Stage::Segment);
        assert!(!times.busy.is_zero() && times.busy <= times.thread_time);
        assert!(times.input_wait >= SHORT && times.output_wait >= 2 * SHORT);
        assert!(times.thread_time >= 4 * SHORT && times.wall >= 4 * SHORT);
        assert!(times.occupied() >= SHORT && times.occupied() < times.thread_time);
        assert_eq!((times.threads, times.items, times.bytes), (1, 3, 100));
        assert_eq!(stages.times().len(), 1, "no other stage ran");
    }

    #[test]
    fn a_wait_publishes_what_was_done_before() {
        let stages = Arc::new(Stages::default());
        let mut thread = StageThread::new(Arc::clone(&stages), Stage::Compress);
        let begun = Instant::now();
        while begun.elapsed() < SHORT {
            std::hint::black_box(begun);
        }
        thread.wait_out(|| ());
        assert!(!times(&stages, Stage::Compress).busy.is_zero());
    }
}
