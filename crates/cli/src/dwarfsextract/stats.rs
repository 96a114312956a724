//! The figures of a running extraction, as bars or as percentages.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use durin_extract::Stats;
use serde_json::{Map, Value, json};

use crate::common::progress::Snapshot;
use crate::common::size;

/// Time between two percentages on standard output, as the reference's.
const PERCENT_INTERVAL: Duration = Duration::from_millis(40);

/// What `stats` says now.
pub(super) fn snapshot(stats: &Stats) -> Snapshot {
    let bytes = load(&stats.bytes_done);
    let files = load(&stats.files_done);
    Snapshot {
        status: format!("{files} files extracted"),
        fraction: fraction(stats),
        work: fraction(stats),
        bytes,
        simple: format!("{files} files/{} written", size::display(bytes)),
        phases: vec![("extracting", Duration::ZERO)],
        fields: fields(stats),
        ..Snapshot::default()
    }
}

/// What an event tells beyond what all programs do.
fn fields(stats: &Stats) -> Map<String, Value> {
    [
        ("files_total", &stats.files_total),
        ("files_done", &stats.files_done),
        ("bytes_total", &stats.bytes_total),
    ]
    .map(|(name, figure)| (name.to_owned(), json!(load(figure))))
    .into_iter()
    .collect()
}

fn load(figure: &AtomicU64) -> u64 {
    figure.load(Ordering::Relaxed)
}

#[expect(clippy::cast_precision_loss, reason = "a share for display")]
fn fraction(stats: &Stats) -> Option<f64> {
    match load(&stats.bytes_total) {
        0 => None,
        total => Some(load(&stats.bytes_done) as f64 / total as f64),
    }
}

/// Does `work` while writing `\rN%` to standard output, and `\r100%` when it succeeded.
pub(super) fn with_percentages<T, E>(
    stats: &Stats,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let print = move || {
            while ended.recv_timeout(PERCENT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let percent = (fraction(stats).unwrap_or_default() * 100.0)
                    .clamp(0.0, 99.0)
                    .floor();
                print_now(&format!("\r{percent}%"));
            }
        };
        // Without the thread the work gets done all the same, only quietly.
        let display = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn_scoped(scope, print);
        let result = work();
        drop(end);
        if let Ok(display) = display {
            drop(display.join());
        }
        if result.is_ok() {
            print_now("\r100%\n");
        }
        result
    })
}

/// Whoever reads the percentages may stop doing so without stopping the work.
fn print_now(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
