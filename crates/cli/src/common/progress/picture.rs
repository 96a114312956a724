//! The lines of the live display.

use super::meter::Meter;
use super::text::{Charset, columns, fit};
use super::{Snapshot, WorkerLine};
use crate::common::{duration, size};

/// The widest bar; longer ones say no more.
const BAR_WIDTH_MAX: usize = 60;
/// The narrowest bar that says something.
const BAR_WIDTH_MIN: usize = 10;
/// Terminals narrower than this get no lines of workers.
const WORKERS_WIDTH_MIN: usize = 40;

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) charset: Charset,
}

/// Returns the lines, none wider than the room less one column, which some terminals need for the cursor.
pub(super) fn picture(snapshot: &Snapshot, meter: &Meter, room: Room) -> Vec<String> {
    let width = room.columns.saturating_sub(1);
    let status = status(snapshot);
    let bar = bar_line(snapshot, meter, width, room.charset);
    // The cursor stands below the last line. What says most stays longest.
    let free = room.rows.saturating_sub(3);
    let workers_wanted = if room.columns < WORKERS_WIDTH_MIN {
        0
    } else {
        snapshot.workers.len()
    };
    let details_count = snapshot.details.len().min(free);
    let workers_count = workers_wanted.min(free - details_count);
    let mut lines = Vec::new();
    if free > details_count + workers_count {
        lines.push(rule(width, room.charset));
    }
    lines.push(fit(&status, width, room.charset));
    let details = snapshot.details.iter().take(details_count);
    lines.extend(details.map(|line| fit(line, width, room.charset)));
    lines.push(bar);
    // One line less than there are says how many are not shown.
    let is_cut = workers_count < workers_wanted && workers_count > 0;
    let shown = workers_count - usize::from(is_cut);
    let workers = snapshot.workers.iter().take(shown);
    lines.extend(workers.map(|worker| fit(&worker_line(worker), width, room.charset)));
    if is_cut {
        let more = format!("[{} more]", workers_wanted - shown);
        lines.push(fit(&more, width, room.charset));
    }
    lines
}

/// What is being done, and to what.
pub(super) fn status(snapshot: &Snapshot) -> String {
    if snapshot.current.is_empty() {
        snapshot.status.clone()
    } else {
        format!("{}: {}", snapshot.status, snapshot.current)
    }
}

/// `[compressing] block 12 (zstd:level=22) 45%`.
pub(super) fn worker_line(worker: &WorkerLine) -> String {
    let about = if worker.is_estimate { "~" } else { "" };
    let progress = match worker.fraction {
        Some(fraction) => format!(" {about}{:.0}%", (fraction * 100.0).floor()),
        None => String::new(),
    };
    format!("[{}] {}{progress}", worker.doing, worker.what)
}

fn rule(width: usize, charset: Charset) -> String {
    let line = match charset {
        Charset::Ascii => "-",
        Charset::Unicode => "\u{23af}",
    };
    line.repeat(width)
}

fn bar_line(snapshot: &Snapshot, meter: &Meter, width: usize, charset: Charset) -> String {
    let figures = figures(snapshot, meter);
    let bar_width = width
        .saturating_sub(columns(&figures) + 3)
        .min(BAR_WIDTH_MAX);
    let mut text = String::new();
    if let Some(fraction) = snapshot.fraction.filter(|_| bar_width >= BAR_WIDTH_MIN) {
        push_bar(&mut text, fraction, bar_width, charset);
    }
    text.push_str(&figures);
    fit(&text, width, charset)
}

fn figures(snapshot: &Snapshot, meter: &Meter) -> String {
    let mut text = String::new();
    if let Some(fraction) = snapshot.fraction {
        let percent = (fraction * 100.0).clamp(0.0, 100.0).floor();
        text.push_str(&format!("{percent:3.0}%  "));
    }
    let (bytes, rate) = (size::display(snapshot.bytes), size::display(meter.rate()));
    text.push_str(&format!("{bytes}  {rate}/s"));
    if let Some(remaining) = meter.remaining() {
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
fn push_bar(text: &mut String, fraction: f64, width: usize, charset: Charset) {
    let filled = ((fraction.clamp(0.0, 1.0) * width as f64) as usize).min(width);
    let [open, full, empty, close] = match charset {
        Charset::Unicode => ["", "\u{2588}", "\u{2591}", " "],
        Charset::Ascii => ["[", "=", " ", "] "],
    };
    text.push_str(open);
    text.push_str(&full.repeat(filled));
    text.push_str(&empty.repeat(width - filled));
    text.push_str(close);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn meter(seconds: u64, bytes: u64, share: f64) -> Meter {
        let started = Instant::now();
        let mut meter = Meter::new(started);
        meter.push(started, 0, Some(0.0));
        meter.push(started + Duration::from_secs(seconds), bytes, Some(share));
        meter
    }

    fn room(columns: usize, rows: usize) -> Room {
        Room {
            columns,
            rows,
            charset: Charset::Ascii,
        }
    }

    fn worker(what: &str, fraction: Option<f64>) -> WorkerLine {
        WorkerLine {
            doing: "compressing",
            what: what.to_owned(),
            fraction,
            is_estimate: true,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn shows_percent_bytes_rate_and_time_left() {
        let snapshot = Snapshot {
            fraction: Some(0.25),
            bytes: 4 << 20,
            status: "writing".to_owned(),
            current: "a/b".to_owned(),
            ..Snapshot::default()
        };
        let lines = picture(&snapshot, &meter(2, 4 << 20, 0.25), room(80, 24));
        assert_eq!(lines[0], "-".repeat(79));
        assert_eq!(lines[1], "writing: a/b");
        assert!(
            lines[2].starts_with("[=") && lines[2].ends_with(" 25%  4 MiB  2 MiB/s  ETA 6s"),
            "{lines:?}"
        );
    }

    #[test]
    fn lines_fit_the_terminal() {
        let snapshot = Snapshot {
            fraction: Some(0.5),
            status: "\u{4e00}".repeat(500),
            details: vec!["y".repeat(500); 6],
            workers: vec![worker(&"z".repeat(500), Some(0.4)); 30],
            ..Snapshot::default()
        };
        for columns_max in [1, 2, 20, 40, 80, 300] {
            for rows in [1, 2, 3, 5, 8, 24, 100] {
                for charset in [Charset::Ascii, Charset::Unicode] {
                    let room = Room {
                        columns: columns_max,
                        rows,
                        charset,
                    };
                    let lines = picture(&snapshot, &meter(10, 1 << 40, 0.5), room);
                    assert!(lines.len() < rows.max(3), "{rows}: {}", lines.len());
                    for line in lines {
                        assert!(columns(&line) < columns_max.max(1), "{columns_max}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn workers_that_do_not_fit_are_counted() {
        let snapshot = Snapshot {
            workers: (0..10)
                .map(|n| worker(&format!("block {n} (lz4)"), None))
                .collect(),
            ..Snapshot::default()
        };
        let lines = picture(&snapshot, &meter(1, 0, 0.0), room(80, 8));
        assert_eq!(lines.last().map(String::as_str), Some("[6 more]"));
        assert_eq!(lines[lines.len() - 2], "[compressing] block 3 (lz4)");
        let line = worker_line(&worker("block 12 (zstd:level=22)", Some(0.456)));
        assert_eq!(line, "[compressing] block 12 (zstd:level=22) ~45%");
    }

    #[test]
    fn unknown_total_has_no_percent() {
        let snapshot = Snapshot {
            bytes: 1024,
            ..Snapshot::default()
        };
        let started = Instant::now();
        let mut meter = Meter::new(started);
        meter.push(started, 0, None);
        meter.push(started + Duration::from_secs(1), 1024, None);
        let lines = picture(&snapshot, &meter, room(80, 24));
        assert_eq!(lines.last().map(String::as_str), Some("1 KiB  1 KiB/s"));
    }
}
