//! How fast the work goes, and how long the rest will take.
//!
//! Work gets done in leaps: a block counts when it is written, and some are written at once. So the rate behind the
//! time left is taken over many seconds, and the time shown runs down by itself and only drifts towards a new estimate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Over how long the rate shown is averaged: long enough to be readable, short enough to follow a change.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Over how long the rate behind the time left is averaged at least: some blocks of the slowest levels.
const ETA_WINDOW_MIN: Duration = Duration::from_secs(30);
/// The share of the time so far over which it is averaged if that is more, so that long builds have calm estimates.
const ETA_WINDOW_SHARE: u32 = 4;
/// How fast the time shown drifts to the estimate: about two thirds of the way in this many seconds.
const ETA_DRIFT_SECONDS: f64 = 8.0;
/// Nothing is said of the rest before this much of the work, and this long.
const ETA_SHARE_MIN: f64 = 0.005;
const ETA_ELAPSED_MIN: Duration = Duration::from_secs(2);
/// Samples kept for the time left; older ones lie further apart.
const ETA_SAMPLES_MAX: usize = 256;

/// Measures one phase.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    now: Instant,
    /// When, and how many bytes were done then; oldest first.
    bytes: VecDeque<(Instant, u64)>,
    /// When, and which share of the work was done then; oldest first.
    shares: VecDeque<(Instant, f64)>,
    /// Seconds left as shown.
    remaining: Option<f64>,
}

impl Meter {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            started,
            now: started,
            bytes: VecDeque::new(),
            shares: VecDeque::new(),
            remaining: None,
        }
    }

    /// Takes what is done at a moment: bytes, and if the whole is known which share of the work.
    pub(crate) fn push(&mut self, now: Instant, bytes: u64, share: Option<f64>) {
        let passed = (now - self.now).as_secs_f64();
        self.now = now;
        self.bytes.push_back((now, bytes));
        while self.bytes.len() > 2
            && self
                .bytes
                .front()
                .is_some_and(|(time, _)| now - *time > RATE_WINDOW)
        {
            self.bytes.pop_front();
        }
        match share {
            Some(share) => self.push_share(share, passed),
            None => {
                self.shares.clear();
                self.remaining = None;
            }
        }
    }

    fn push_share(&mut self, share: f64, passed: f64) {
        self.shares.push_back((self.now, share));
        let window = ((self.now - self.started) / ETA_WINDOW_SHARE).max(ETA_WINDOW_MIN);
        let is_old = |sample: Option<&(Instant, f64)>| {
            sample.is_some_and(|(time, _)| self.now - *time > window)
        };
        // The first sample is the last one before the window.
        while is_old(self.shares.get(1)) {
            self.shares.pop_front();
        }
        if self.shares.len() > ETA_SAMPLES_MAX {
            let mut is_kept = false;
            self.shares.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        let Some(estimate) = self.estimate() else {
            return;
        };
        self.remaining = Some(match self.remaining {
            None => estimate,
            Some(shown) => {
                let run_down = (shown - passed).max(0.0);
                let drift = 1.0 - (-passed / ETA_DRIFT_SECONDS).exp();
                run_down + (estimate - run_down) * drift
            }
        });
    }

    /// Seconds left if the rest goes as fast as the work of the last moments.
    fn estimate(&self) -> Option<f64> {
        let ((first_time, first), (last_time, last)) = (self.shares.front()?, self.shares.back()?);
        let seconds = (*last_time - *first_time).as_secs_f64();
        let done = last - first;
        let is_early = *last < ETA_SHARE_MIN || self.now - self.started < ETA_ELAPSED_MIN;
        if is_early || seconds <= 0.0 || done <= 0.0 {
            return None;
        }
        Some((1.0 - last).max(0.0) * seconds / done)
    }

    /// Bytes a second.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is shown with four digits; both operands are positive"
    )]
    pub(crate) fn rate(&self) -> u64 {
        let (Some((first_time, first)), Some((last_time, last))) =
            (self.bytes.front(), self.bytes.back())
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

    /// The time left, if there is something to say.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let seconds = self.remaining?.round();
        let left = Duration::try_from_secs_f64(seconds).ok();
        left.filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(200);

    #[test]
    fn rate_of_the_last_moments() {
        let started = Instant::now();
        let mut meter = Meter::new(started);
        meter.push(started, 0, None);
        for second in 1..=20 {
            let bytes = if second <= 10 { 0 } else { (second - 10) << 20 };
            meter.push(started + Duration::from_secs(second), bytes, None);
        }
        assert_eq!(meter.rate(), 1 << 20);
        assert_eq!(meter.remaining(), None);
    }

    /// Work of 200 seconds in 25 leaps, eight seconds apart: what is shown stays near the truth and does not jump.
    #[test]
    fn time_left_does_not_jump_when_work_leaps() {
        let started = Instant::now();
        let mut meter = Meter::new(started);
        let mut before: Option<f64> = None;
        for tick in 0..1000_u32 {
            let now = started + TICK * tick;
            let leaps = (TICK * tick).as_secs() / 8;
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let share = leaps as f64 / 25.0;
            meter.push(now, 0, Some(share));
            let Some(shown) = meter.remaining else {
                continue;
            };
            let truth = 200.0 - (TICK * tick).as_secs_f64();
            if tick > 250 {
                let error = (shown - truth).abs();
                assert!(error < 20.0 + truth / 5.0, "{shown} instead of {truth}");
            }
            if let Some(before) = before {
                assert!((shown - before).abs() < 8.0, "{before} to {shown}");
            }
            before = Some(shown);
        }
        assert!(before.is_some());
    }

    #[test]
    fn time_left_follows_a_lasting_change() {
        let started = Instant::now();
        let mut meter = Meter::new(started);
        let mut share = 0.0;
        for tick in 0..1000_u32 {
            // 20 seconds at full speed, then at a tenth.
            share += if tick < 100 { 0.002 } else { 0.0002 };
            meter.push(started + TICK * tick, 0, Some(share));
        }
        let truth = (1.0 - share) / 0.0002 * 0.2;
        let shown = meter.remaining.unwrap_or_default();
        assert!((shown - truth).abs() < truth / 5.0, "{shown}, {truth}");
    }
}
