//! Measuring operations: how many, how long, and how that is spread. Optional, and free of cost when it is off.
//!
//! Latencies are counted in buckets that are at most an eighth wide, so percentiles are right to within that.
//! A trace keeps every operation, up to [`TRACE_EVENTS_MAX`], in the form that `chrome://tracing` and Perfetto read.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use durin_format::{Error, Result};

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Buckets for each doubling.
const STEPS: u64 = 8;
const BUCKET_COUNT: usize = 8 * 64;

/// What a trace keeps at most: some 48 MiB.
const TRACE_EVENTS_MAX: usize = 1 << 20;

/// The parts of the driver that are measured. Source: CLI reference, `perfmon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Requests of the kernel.
    Fuse,
    /// Names, attributes, links.
    FileSystem,
    /// Contents of files.
    InodeReader,
    /// Blocks.
    BlockCache,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Fuse,
        Self::FileSystem,
        Self::InodeReader,
        Self::BlockCache,
    ];

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fuse => "fuse",
            Self::FileSystem => "filesystem_v2",
            Self::InodeReader => "inode_reader_v2",
            Self::BlockCache => "block_cache",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Operation {
    FuseLookup,
    FuseGetattr,
    FuseReadlink,
    FuseOpen,
    FuseRead,
    FuseReaddir,
    FuseStatfs,
    FuseGetxattr,
    FuseLseek,
    Find,
    Getattr,
    Readlink,
    Read,
    BlockGet,
    BlockDecode,
    BlockDecodeAhead,
}

impl Operation {
    const ALL: [Self; 16] = [
        Self::FuseLookup,
        Self::FuseGetattr,
        Self::FuseReadlink,
        Self::FuseOpen,
        Self::FuseRead,
        Self::FuseReaddir,
        Self::FuseStatfs,
        Self::FuseGetxattr,
        Self::FuseLseek,
        Self::Find,
        Self::Getattr,
        Self::Readlink,
        Self::Read,
        Self::BlockGet,
        Self::BlockDecode,
        Self::BlockDecodeAhead,
    ];

    const fn place(self) -> (Component, &'static str) {
        use Component::{BlockCache, FileSystem, Fuse, InodeReader};
        match self {
            Self::FuseLookup => (Fuse, "op_lookup"),
            Self::FuseGetattr => (Fuse, "op_getattr"),
            Self::FuseReadlink => (Fuse, "op_readlink"),
            Self::FuseOpen => (Fuse, "op_open"),
            Self::FuseRead => (Fuse, "op_read"),
            Self::FuseReaddir => (Fuse, "op_readdir"),
            Self::FuseStatfs => (Fuse, "op_statfs"),
            Self::FuseGetxattr => (Fuse, "op_getxattr"),
            Self::FuseLseek => (Fuse, "op_lseek"),
            Self::Find => (FileSystem, "find"),
            Self::Getattr => (FileSystem, "getattr"),
            Self::Readlink => (FileSystem, "readlink"),
            Self::Read => (InodeReader, "read"),
            Self::BlockGet => (BlockCache, "get"),
            Self::BlockDecode => (BlockCache, "decode"),
            Self::BlockDecodeAhead => (BlockCache, "decode_ahead"),
        }
    }
}

/// The measurements of one image.
#[derive(Debug)]
pub struct Perfmon {
    components: Vec<Component>,
    histograms: Vec<Histogram>,
    start: Instant,
    trace: Option<Mutex<Trace>>,
}

#[derive(Debug)]
struct Histogram {
    count: AtomicU64,
    total_ns: AtomicU64,
    max_ns: AtomicU64,
    buckets: Vec<AtomicU64>,
}

#[derive(Debug, Default)]
struct Trace {
    events: Vec<Event>,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    operation: Operation,
    thread: u64,
    start_ns: u64,
    len_ns: u64,
}

/// Figures of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// How often it was done.
    pub count: u64,
    /// How long it took in all.
    pub total: Duration,
    /// Half of them were not slower.
    pub p50: Duration,
    /// Nine of ten were not slower.
    pub p90: Duration,
    /// 99 of 100 were not slower.
    pub p99: Duration,
    /// The slowest.
    pub max: Duration,
}

/// Measures from its making to its end.
#[must_use]
pub struct Timer<'a>(Option<(&'a Perfmon, Operation, Instant)>);

impl Perfmon {
    /// Measures `components`, and keeps a trace of them if asked to.
    #[must_use]
    pub fn new(components: &[Component], traces: bool) -> Self {
        Self {
            components: components.to_vec(),
            histograms: Operation::ALL.iter().map(|_| Histogram::new()).collect(),
            start: Instant::now(),
            trace: traces.then(Mutex::default),
        }
    }

    /// Parses names of components between `separator`s.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no component has.
    pub fn components(list: &str, separator: char) -> Result<Vec<Component>> {
        let parse = |name: &str| {
            let found = Component::ALL.into_iter().find(|one| one.name() == name);
            found.ok_or_else(|| {
                let known = Component::ALL.map(Component::name).join(", ");
                Error::invalid_input(format!("no component '{name}' ({known})"))
            })
        };
        list.split(separator).map(parse).collect()
    }

    /// Begins to measure an operation. Without measurements, or if its component is not measured, this is nothing.
    #[inline]
    pub fn start(this: Option<&Self>, operation: Operation) -> Timer<'_> {
        let Some(perfmon) = this else {
            return Timer(None);
        };
        let is_measured = perfmon.components.contains(&operation.place().0);
        Timer(is_measured.then(|| (perfmon, operation, Instant::now())))
    }

    /// Returns the figures of an operation; `None` if there was none.
    #[must_use]
    pub fn figures(&self, operation: Operation) -> Option<Figures> {
        self.histograms.get(operation as usize)?.figures()
    }

    /// Describes all that was measured, in text of some lines an operation.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for operation in Operation::ALL {
            let (component, name) = operation.place();
            let Some(figures) = self.figures(operation) else {
                continue;
            };
            let mean = figures
                .total
                .checked_div(u32::try_from(figures.count).unwrap_or(u32::MAX));
            // Writing to a string cannot fail.
            write!(
                text,
                "[{}.{name}]\n      samples: {}\n      overall: {:.3?}\n  avg latency: {:.3?}\n  p50 latency: {:.3?}\n\
                 \x20 p90 latency: {:.3?}\n  p99 latency: {:.3?}\n  max latency: {:.3?}\n",
                component.name(),
                figures.count,
                figures.total,
                mean.unwrap_or_default(),
                figures.p50,
                figures.p90,
                figures.p99,
                figures.max,
            )
            .ok();
        }
        text
    }

    /// Writes the trace as JSON and returns how many operations were left out for being too many.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<u64> {
        let Some(trace) = &self.trace else {
            return Ok(0);
        };
        let trace = lock(trace);
        let process = std::process::id();
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        for (index, event) in trace.events.iter().enumerate() {
            let (component, name) = event.operation.place();
            let micros = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
            write!(
                out,
                "{}\n{{\"name\":\"{name}\",\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{process},\"tid\":{}}}",
                if index > 0 { "," } else { "" },
                component.name(),
                micros(event.start_ns),
                micros(event.len_ns),
                event.thread,
            )?;
        }
        writeln!(out, "\n]}}")?;
        out.flush()?;
        Ok(trace.lost)
    }

    fn end(&self, operation: Operation, start: Instant) {
        let len_ns = nanoseconds(start.elapsed());
        if let Some(histogram) = self.histograms.get(operation as usize) {
            histogram.add(len_ns);
        }
        if let Some(trace) = &self.trace {
            let event = Event {
                operation,
                thread: thread_number(),
                start_ns: nanoseconds(start.saturating_duration_since(self.start)),
                len_ns,
            };
            lock(trace).add(event);
        }
    }
}

impl Timer<'_> {
    /// Forgets it: what was begun is done in another way, and measured there.
    pub fn discard(mut self) {
        self.0 = None;
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        if let Some((perfmon, operation, start)) = self.0.take() {
            perfmon.end(operation, start);
        }
    }
}

impl Trace {
    fn add(&mut self, event: Event) {
        if self.events.len() < TRACE_EVENTS_MAX {
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }
}

impl Histogram {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
            buckets: (0..BUCKET_COUNT).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn add(&self, ns: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
        if let Some(bucket) = self.buckets.get(bucket_of(ns)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn figures(&self) -> Option<Figures> {
        let count = self.count.load(Ordering::Relaxed);
        let max = self.max_ns.load(Ordering::Relaxed);
        let percentile = |percent: u64| {
            let wanted = (count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let reaches = |bucket: &AtomicU64| {
                seen += bucket.load(Ordering::Relaxed);
                seen >= wanted
            };
            let bucket = self.buckets.iter().position(reaches);
            Duration::from_nanos(bucket.map_or(max, upper_ns).min(max))
        };
        (count > 0).then(|| Figures {
            count,
            total: Duration::from_nanos(self.total_ns.load(Ordering::Relaxed)),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: Duration::from_nanos(max),
        })
    }
}

/// The bucket of a latency: below 8 ns one each, then eight for each doubling.
fn bucket_of(ns: u64) -> usize {
    let doublings = u64::from(ns.checked_ilog2().unwrap_or(0)).saturating_sub(STEPS.ilog2().into());
    let bucket = doublings * STEPS + (ns >> doublings);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The largest latency of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let doublings = bucket / STEPS - 1;
    let first = STEPS + bucket % STEPS;
    (u128::from(first + 1) << doublings)
        .saturating_sub(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A small number for the calling thread.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<u64> = const { Cell::new(0) };
    }
    OWN.with(|own| {
        if own.get() == 0 {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_an_eighth_wide_and_in_order() {
        let mut last = 0;
        for ns in (0..2000).chain([1 << 20, (1 << 20) + 1, 1 << 40, u64::MAX]) {
            let bucket = bucket_of(ns);
            assert!(bucket >= last && bucket < BUCKET_COUNT, "{ns}");
            assert!(
                upper_ns(bucket) >= ns && upper_ns(bucket) - ns <= ns / 8,
                "{ns}"
            );
            last = bucket;
        }
    }

    #[test]
    fn percentiles_are_near() {
        let histogram = Histogram::new();
        assert_eq!(histogram.figures(), None);
        (1..=1000).for_each(|ns| histogram.add(ns * 1000));
        let figures = histogram.figures().unwrap();
        let near = |time: Duration, expect: u64| {
            let ns = nanoseconds(time);
            assert!(
                ns >= expect && ns <= expect + expect / 8,
                "{ns} is not {expect}"
            );
        };
        near(figures.p50, 500_000);
        near(figures.p99, 990_000);
        assert_eq!(
            (figures.count, figures.max),
            (1000, Duration::from_millis(1))
        );
    }

    #[test]
    fn only_what_is_asked_for_is_measured() {
        let components = Perfmon::components("fuse+block_cache", '+').unwrap();
        let perfmon = Perfmon::new(&components, true);
        drop(Perfmon::start(Some(&perfmon), Operation::FuseRead));
        drop(Perfmon::start(Some(&perfmon), Operation::Find));
        drop(Perfmon::start(None, Operation::FuseRead));
        assert_eq!(perfmon.figures(Operation::FuseRead).unwrap().count, 1);
        assert_eq!(perfmon.figures(Operation::Find), None);
        let summary = perfmon.summary();
        assert!(
            summary.contains("[fuse.op_read]") && summary.contains("p99 latency"),
            "{summary}"
        );
        let mut trace = Vec::new();
        assert_eq!(perfmon.write_trace(&mut trace).unwrap(), 0);
        let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
        let name = trace.pointer("/traceEvents/0/name").unwrap();
        assert_eq!(name, "op_read");
        assert!(Perfmon::components("fuse+x", '+').is_err());
    }
}
