//! Who took how long in a build: the stages, and which of them held it up.

use std::time::Duration;

use durin_writer::stats::StageTimes;
use durin_writer::{Critical, Report};
use serde_json::{Value, json};

/// The times of phases and stages, and the critical path.
pub(super) fn to_json(report: &Report) -> Value {
    let phases = report.phases.iter().map(|times| {
        json!({
            "name": times.phase.name(),
            "wall_seconds": times.wall.as_secs_f64(),
            "cpu_seconds": times.cpu.as_secs_f64(),
            "parallelism": quotient(times.cpu, times.wall),
        })
    });
    json!({
        "phases": phases.collect::<Vec<_>>(),
        "stages": report.stages.iter().map(stage).collect::<Vec<_>>(),
        "critical_path": report.critical_path().iter().map(critical).collect::<Vec<_>>(),
    })
}

fn stage(times: &StageTimes) -> Value {
    json!({
        "name": times.stage.name(),
        "phase": times.stage.phase().name(),
        "threads": times.threads,
        "items": times.items,
        "bytes": times.bytes,
        "begin_seconds": times.begin.as_secs_f64(),
        "wall_seconds": times.wall.as_secs_f64(),
        "thread_seconds": times.thread_time.as_secs_f64(),
        "busy_seconds": times.busy.as_secs_f64(),
        "input_wait_seconds": times.input_wait.as_secs_f64(),
        "output_wait_seconds": times.output_wait.as_secs_f64(),
        "other_seconds": times.other().as_secs_f64(),
    })
}

fn critical(critical: &Critical) -> Value {
    json!({
        "phase": critical.phase.phase.name(),
        "wall_seconds": critical.phase.wall.as_secs_f64(),
        "stage": critical.stage.name(),
        "occupied_seconds": critical.occupied.as_secs_f64(),
        "occupied_share": quotient(critical.occupied, critical.phase.wall),
    })
}

/// Nothing for what took no time.
fn quotient(part: Duration, whole: Duration) -> Option<f64> {
    (!whole.is_zero()).then(|| part.as_secs_f64() / whole.as_secs_f64())
}
