//! The progress display: samples what a library counts and shows it on standard error.
//!
//! A thread of its own wakes up a few times a second, so that the work itself never waits for a terminal.
//! `picture` lays out the live display, which [`Logger`] draws below its messages; `meter` knows rate and time left.
//! For programs there are events instead, one JSON object a line (docs/progress.md).

mod meter;
mod picture;
mod text;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::logger::{self, Logger};
use super::terminal;
use meter::Meter;
use picture::Room;
pub(crate) use text::{Charset, columns};

/// Time between two pictures of the live display.
const LIVE_INTERVAL: Duration = Duration::from_millis(200);
/// Least time between two plain lines.
const SIMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two events.
const EVENT_INTERVAL: Duration = Duration::from_millis(500);
/// How long the beginning of a phase may go unnoticed.
const PHASE_INTERVAL: Duration = Duration::from_millis(50);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Not at all
    None,
    /// As plain lines, at most one every two seconds
    Simple,
    /// As a bar redrawn in place, in ASCII
    Ascii,
    /// As a bar redrawn in place
    Unicode,
    /// As events for programs, one JSON object a line
    Json,
}

impl Mode {
    /// The display for standard error as it is: a bar on a terminal, nothing otherwise.
    pub(crate) fn automatic() -> Self {
        use std::io::IsTerminal as _;
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        match (
            std::io::stderr().is_terminal() && !dumb,
            terminal::locale_is_utf8(),
        ) {
            (false, _) => Self::None,
            (true, true) => Self::Unicode,
            (true, false) => Self::Ascii,
        }
    }
}

/// What is known of the work at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// What is being done.
    pub(crate) status: String,
    /// To what, if that is worth showing.
    pub(crate) current: String,
    /// Lines of detail above the bar.
    pub(crate) details: Vec<String>,
    /// What each worker does, if that was asked for.
    pub(crate) workers: Vec<WorkerLine>,
    /// The share that is done; `None` while the whole is not known.
    pub(crate) fraction: Option<f64>,
    /// The share of the work that is done, for the time left: what the slowest part has done. `None` while nothing can
    /// be said.
    pub(crate) work: Option<f64>,
    /// Bytes done so far, for the rate.
    pub(crate) bytes: u64,
    /// The tail of a plain line: `3 blocks/12 MiB written`.
    pub(crate) simple: String,
    /// The phases begun, and when: seconds from the start of the work.
    pub(crate) phases: Vec<(&'static str, Duration)>,
    /// What an event tells beyond this.
    pub(crate) fields: Map<String, Value>,
}

/// What one worker does.
#[derive(Clone, Debug)]
pub(crate) struct WorkerLine {
    pub(crate) doing: &'static str,
    pub(crate) what: String,
    pub(crate) fraction: Option<f64>,
    /// Whether the fraction is what others took for as much, because nobody can look into a codec.
    pub(crate) is_estimate: bool,
    pub(crate) elapsed: Duration,
}

/// Does `work` while showing what `sample` returns.
pub(crate) fn during<T>(
    logger: &Logger,
    mode: Mode,
    sample: impl Fn() -> Snapshot + Send,
    work: impl FnOnce() -> T,
) -> T {
    if mode == Mode::None {
        return work();
    }
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let show = move || match mode {
            Mode::Json => send_until(&ended, logger, &sample),
            Mode::Simple => print_until(&ended, logger, &sample),
            Mode::Ascii => draw_until(&ended, logger, Charset::Ascii, &sample),
            _ => draw_until(&ended, logger, Charset::Unicode, &sample),
        };
        let display = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn_scoped(scope, show);
        if display.is_err() {
            logger.warn("cannot start the progress display");
        }
        let result = work();
        drop(end);
        result
    })
}

fn is_time(ended: &mpsc::Receiver<()>, interval: Duration) -> bool {
    ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout)
}

/// Draws pictures in place.
fn draw_until(
    ended: &mpsc::Receiver<()>,
    logger: &Logger,
    charset: Charset,
    sample: &dyn Fn() -> Snapshot,
) {
    let mut meters = Meters::default();
    while is_time(ended, LIVE_INTERVAL) {
        let snapshot = sample();
        let meter = meters.of(&snapshot);
        let (columns, rows) = terminal::stderr_size();
        let room = Room {
            columns,
            rows,
            charset,
        };
        logger.draw_progress(picture::picture(&snapshot, meter, room));
    }
    logger.draw_progress(Vec::new());
}

/// Prints plain lines, when there is something new to say.
fn print_until(ended: &mpsc::Receiver<()>, logger: &Logger, sample: &dyn Fn() -> Snapshot) {
    let mut last = String::new();
    while is_time(ended, SIMPLE_INTERVAL) {
        let snapshot = sample();
        let percent = (snapshot.fraction.unwrap_or_default() * 100.0).floor();
        let line = format!("{percent}% done, {}", snapshot.simple);
        let time = logger::local_time();
        let mut lines = String::new();
        if line != last {
            lines.push_str(&format!("- {time}  ==> {line}\n"));
        }
        for worker in &snapshot.workers {
            lines.push_str(&format!("- {time}  {}\n", picture::worker_line(worker)));
        }
        // Whatever the level of messages: nobody gets these lines without having asked for them.
        if !lines.is_empty() {
            logger.write_above_progress(&lines);
        }
        last = line;
    }
}

/// Sends events: one for each phase begun, and one with all figures every half second.
fn send_until(ended: &mpsc::Receiver<()>, logger: &Logger, sample: &dyn Fn() -> Snapshot) {
    let mut meters = Meters::default();
    let mut phases_sent = 0;
    let mut last = Instant::now();
    loop {
        let goes_on = is_time(ended, PHASE_INTERVAL);
        let is_due = last.elapsed() >= EVENT_INTERVAL;
        let snapshot = sample();
        for (name, begun) in snapshot.phases.iter().skip(phases_sent) {
            let fields = json!({ "phase": name, "begun_seconds": begun.as_secs_f64() });
            logger.event("phase", fields);
        }
        let is_new_phase = snapshot.phases.len() > phases_sent;
        phases_sent = snapshot.phases.len();
        if is_due || is_new_phase || !goes_on {
            last = Instant::now();
            let meter = meters.of(&snapshot);
            logger.event("progress", progress_fields(&snapshot, meter));
        }
        if !goes_on {
            return;
        }
    }
}

fn progress_fields(snapshot: &Snapshot, meter: &Meter) -> Value {
    let mut fields = snapshot.fields.clone();
    let workers = snapshot.workers.iter().map(|worker| {
        json!({
            "doing": worker.doing,
            "what": worker.what,
            "fraction": worker.fraction,
            "fraction_is_estimate": worker.fraction.is_some() && worker.is_estimate,
            "elapsed_seconds": worker.elapsed.as_secs_f64(),
        })
    });
    let eta = meter.remaining().map(|left| left.as_secs());
    let general = [
        ("phase", json!(snapshot.phases.last().map(|(name, _)| name))),
        ("status", json!(snapshot.status)),
        ("current", json!(snapshot.current)),
        ("fraction", json!(snapshot.fraction)),
        ("bytes_done", json!(snapshot.bytes)),
        ("bytes_per_second", json!(meter.rate())),
        ("eta_seconds", json!(eta)),
        ("workers", Value::Array(workers.collect())),
    ];
    let general = general.map(|(name, value)| (name.to_owned(), value));
    fields.extend(general);
    Value::Object(fields)
}

/// A meter for the phase that is on: bytes of different phases do not add up.
#[derive(Debug, Default)]
struct Meters {
    phase: usize,
    meter: Option<Meter>,
}

impl Meters {
    /// Takes a snapshot, and returns the meter that has it.
    fn of(&mut self, snapshot: &Snapshot) -> &Meter {
        let now = Instant::now();
        if snapshot.phases.len() != self.phase {
            self.phase = snapshot.phases.len();
            self.meter = None;
        }
        let meter = self.meter.get_or_insert_with(|| Meter::new(now));
        meter.push(now, snapshot.bytes, snapshot.work);
        meter
    }
}
