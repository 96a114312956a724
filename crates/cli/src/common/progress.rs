//! The progress display: samples what a library counts and draws it on standard error.
//!
//! A thread of its own wakes up a few times a second, so that the work itself never waits for a terminal.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::logger::{self, Level, Logger};
use super::{duration, size, terminal};

/// Time between two pictures of the live display.
const LIVE_INTERVAL: Duration = Duration::from_millis(200);

/// Least time between two plain lines.
const SIMPLE_INTERVAL: Duration = Duration::from_secs(2);

/// Over how long the rate is averaged: long enough to be readable, short enough to follow a change of phase.
const RATE_WINDOW: Duration = Duration::from_secs(5);

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
    pub(crate) phase: String,
    /// Lines of detail above the bar.
    pub(crate) details: Vec<String>,
    /// The share that is done; `None` while the whole is not known.
    pub(crate) fraction: Option<f64>,
    /// Bytes done so far, for the rate.
    pub(crate) bytes: u64,
    /// The tail of a plain line: `3 blocks/12 MiB written`.
    pub(crate) simple: String,
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
        let display = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn_scoped(scope, move || show_until(&ended, logger, mode, &sample));
        if display.is_err() {
            logger.warn("cannot start the progress display");
        }
        let result = work();
        drop(end);
        result
    })
}

fn show_until(
    ended: &mpsc::Receiver<()>,
    logger: &Logger,
    mode: Mode,
    sample: &dyn Fn() -> Snapshot,
) {
    let interval = if mode == Mode::Simple {
        SIMPLE_INTERVAL
    } else {
        LIVE_INTERVAL
    };
    let mut meter = Meter::new(Instant::now());
    let mut last_simple = String::new();
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let snapshot = sample();
        meter.push(Instant::now(), snapshot.bytes);
        if mode == Mode::Simple {
            let line = simple_line(&snapshot);
            if line != last_simple && logger.shows(Level::Info) {
                logger.write_above_progress(&format!("- {}  ==> {line}\n", logger::local_time()));
            }
            last_simple = line;
        } else {
            let unicode = mode == Mode::Unicode;
            logger.draw_progress(&picture(
                &snapshot,
                &meter,
                unicode,
                terminal::stderr_width(),
            ));
        }
    }
    logger.draw_progress("");
}

fn simple_line(snapshot: &Snapshot) -> String {
    let percent = (snapshot.fraction.unwrap_or_default() * 100.0).floor();
    format!("{percent}% done, {}", snapshot.simple)
}

/// Measures the rate over the last moments, and the time that is left.
struct Meter {
    started: Instant,
    /// When, and how many bytes were done then; oldest first.
    samples: std::collections::VecDeque<(Instant, u64)>,
}

impl Meter {
    fn new(started: Instant) -> Self {
        Self {
            started,
            samples: [(started, 0)].into(),
        }
    }

    fn push(&mut self, now: Instant, bytes: u64) {
        self.samples.push_back((now, bytes));
        while self.samples.len() > 2
            && self
                .samples
                .front()
                .is_some_and(|(time, _)| now - *time > RATE_WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Bytes a second.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is shown with four digits; both operands are positive"
    )]
    fn rate(&self) -> u64 {
        let (Some((first_time, first)), Some((last_time, last))) =
            (self.samples.front(), self.samples.back())
        else {
            return 0;
        };
        let seconds = (*last_time - *first_time).as_secs_f64();
        if seconds > 0.0 {
            (last.saturating_sub(*first) as f64 / seconds) as u64
        } else {
            0
        }
    }

    fn elapsed(&self) -> Duration {
        self.samples
            .back()
            .map_or(Duration::ZERO, |(now, _)| *now - self.started)
    }

    /// The time left if the rest takes as long for its share as what is done did.
    fn remaining(&self, fraction: f64) -> Option<Duration> {
        // The first moments say nothing about the rest.
        if fraction < 0.01 || self.elapsed() < Duration::from_secs(1) {
            return None;
        }
        let seconds = self.elapsed().as_secs_f64() * (1.0 - fraction.min(1.0)) / fraction;
        let left = Duration::try_from_secs_f64(seconds.round()).ok();
        left.filter(|left| !left.is_zero())
    }
}

/// The lines of the live display, each ended by a line feed and cut to `width` columns.
fn picture(snapshot: &Snapshot, meter: &Meter, unicode: bool, width: usize) -> String {
    let mut text = String::new();
    for line in snapshot
        .details
        .iter()
        .chain([&snapshot.phase])
        .filter(|line| !line.is_empty())
    {
        text.extend(line.chars().take(width.saturating_sub(1)));
        text.push('\n');
    }
    let figures = figures(snapshot, meter);
    let bar_width = width.saturating_sub(figures.len() + 4).min(60);
    if let Some(fraction) = snapshot.fraction.filter(|_| bar_width >= 10) {
        push_bar(&mut text, fraction, bar_width, unicode);
    }
    text.extend(figures.chars().take(width.saturating_sub(1)));
    text.push('\n');
    text
}

fn figures(snapshot: &Snapshot, meter: &Meter) -> String {
    let mut text = String::new();
    if let Some(fraction) = snapshot.fraction {
        text.push_str(&format!(
            "{:3.0}%  ",
            (fraction * 100.0).clamp(0.0, 100.0).floor()
        ));
    }
    text.push_str(&format!(
        "{}  {}/s",
        size::display(snapshot.bytes),
        size::display(meter.rate())
    ));
    if let Some(remaining) = snapshot
        .fraction
        .and_then(|fraction| meter.remaining(fraction))
    {
        text.push_str(&format!("  ETA {}", duration::display(remaining)));
    }
    text
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns of a bar: small positive numbers"
)]
fn push_bar(text: &mut String, fraction: f64, width: usize, unicode: bool) {
    let filled = ((fraction.clamp(0.0, 1.0) * width as f64) as usize).min(width);
    let (full, empty) = if unicode {
        ('\u{2588}', '\u{2591}')
    } else {
        ('=', ' ')
    };
    let (open, close) = if unicode { ("", " ") } else { ("[", "] ") };
    text.push_str(open);
    text.extend(std::iter::repeat_n(full, filled));
    text.extend(std::iter::repeat_n(empty, width - filled));
    text.push_str(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(seconds: u64, bytes: u64) -> Meter {
        let started = Instant::now();
        let mut meter = Meter::new(started);
        meter.push(started + Duration::from_secs(seconds), bytes);
        meter
    }

    #[test]
    fn shows_percent_bytes_rate_and_time_left() {
        let snapshot = Snapshot {
            fraction: Some(0.25),
            bytes: 4 << 20,
            phase: "writing".to_owned(),
            ..Snapshot::default()
        };
        let text = picture(&snapshot, &meter(2, 4 << 20), false, 80);
        let (phase, bar) = text.trim_end().split_once('\n').unwrap_or_default();
        assert_eq!(phase, "writing");
        assert!(
            bar.starts_with("[=") && bar.ends_with(" 25%  4 MiB  2 MiB/s  ETA 6s"),
            "{bar}"
        );
    }

    #[test]
    fn lines_fit_the_terminal() {
        let snapshot = Snapshot {
            fraction: Some(0.5),
            phase: "x".repeat(500),
            details: vec!["y".repeat(500)],
            ..Snapshot::default()
        };
        for width in [20, 40, 80, 300] {
            for line in picture(&snapshot, &meter(10, 1 << 40), true, width).lines() {
                assert!(line.chars().count() < width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn unknown_total_has_no_percent() {
        let text = picture(
            &Snapshot {
                bytes: 1024,
                ..Snapshot::default()
            },
            &meter(1, 1024),
            false,
            80,
        );
        assert_eq!(text, "1 KiB  1 KiB/s\n");
    }
}
