//! Runs of a period of 1, 2, 4 or 8 bytes, such as zeros: their matches need no search.

use std::ops::Range;

use super::DEPTH_MAX;
use crate::bytes::equal_len;

const PERIOD_MAX: usize = 8;
/// Runs that are shorter are sorted like everything else.
const LEN_MIN: usize = 4 * DEPTH_MAX;

/// A range of the block in which each byte is equal to the one `period` before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    start: usize,
    end: usize,
    pub(super) period: usize,
}

impl Run {
    /// The positions that have a match of `DEPTH_MAX` bytes one period before.
    pub(super) fn inner(&self) -> Range<usize> {
        self.start + self.period..self.end - DEPTH_MAX
    }
}

/// Returns all long runs in their order; they do not overlap.
pub(super) fn find(data: &[u8]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at + LEN_MIN <= data.len() {
        // A run that is long enough covers this place and the one after it.
        let probe = at + LEN_MIN / 2;
        let len_max = data.len() - probe - PERIOD_MAX;
        let len = equal_len(data, probe, probe + PERIOD_MAX, 0, len_max);
        if len < LEN_MIN / 4 {
            at += LEN_MIN / 4;
            continue;
        }
        let end = probe + PERIOD_MAX + len;
        let mut start = probe;
        while start > at && data[start - 1] == data[start - 1 + PERIOD_MAX] {
            start -= 1;
        }
        if end - start >= LEN_MIN {
            let period = [1, 2, 4]
                .into_iter()
                .find(|period| {
                    data[start] == data[start + period] && has_period(data, start, *period)
                })
                .unwrap_or(PERIOD_MAX);
            runs.push(Run { start, end, period });
        }
        at = end;
    }
    runs
}

/// Whether the eight bytes of a run at `start` repeat themselves after `period`.
fn has_period(data: &[u8], start: usize, period: usize) -> bool {
    (start..start + PERIOD_MAX).all(|at| data[at] == data[at + period])
}
