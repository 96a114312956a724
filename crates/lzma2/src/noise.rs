//! What can be told to be noise at a glance: compressed and encrypted data, for the most part.

use crate::parse::Input;

/// Noise is looked at in steps of this length, this many at a time.
const STEP: usize = 1 << 10;
const STEP_COUNT: usize = 4;
/// How often each byte is there in a step of noise, squared, sums up to 5116 on average, with a deviation of 90.
const SQUARES_MAX: u32 = 5116 + 4 * 90;
/// In 64 MiB of noise hardly any position has a match of this length.
const MATCH_LEN: u32 = 6;

/// Shorter matches are hardly worth their packets where nothing else shrinks.
const WORTH_LEN: u32 = 4;
/// So many literals in a row are taken without a look at how else, at most;
const LITERALS_MAX: usize = 256;
/// at least this many where data hardly shrink already,
const LITERALS_MIN: usize = 32;
/// and elsewhere these, if they look like noise by their squares: 335 on average, with a deviation of 17.
const FIRST_LITERALS: usize = 192;
const FIRST_SQUARES_MAX: u32 = 335 + 4 * 17;

/// Returns where noise ends that starts at `at`, or where to look again.
pub(crate) fn end(input: &Input<'_>, at: usize) -> usize {
    let mut at = at;
    for _ in 0..STEP_COUNT {
        let Some(step) = input.data.get(at..at + STEP) else {
            break;
        };
        if squares(step) > SQUARES_MAX {
            break;
        }
        let len = unmatched(input, at, STEP, MATCH_LEN);
        at += len;
        if len < STEP {
            break;
        }
    }
    at
}

/// Returns how many literals to take from `at` on without choosing packets for them, where data hardly shrink.
pub(crate) fn literals(input: &Input<'_>, at: usize) -> usize {
    let len = unmatched(input, at, LITERALS_MAX, WORTH_LEN);
    if len < LITERALS_MIN { 0 } else { len }
}

/// As [`literals`], where data may well shrink.
pub(crate) fn first_literals(input: &Input<'_>, at: usize) -> usize {
    let len = unmatched(input, at, LITERALS_MAX, WORTH_LEN);
    let first = input.data.get(at..at + FIRST_LITERALS);
    let is_noise =
        len >= FIRST_LITERALS && first.is_some_and(|first| squares(first) <= FIRST_SQUARES_MAX);
    if is_noise { len } else { 0 }
}

/// How many positions from `at` on, up to `count`, have no match of `len` bytes.
fn unmatched(input: &Input<'_>, at: usize, count: usize, len: u32) -> usize {
    let end = input.data.len().min(at + count);
    let is_unmatched = |at: &usize| {
        let [longest, _] = input.finder.at(*at);
        longest.is_none_or(|found| found.len < len)
    };
    (at..end).take_while(is_unmatched).count()
}

fn squares(step: &[u8]) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in step {
        counts[usize::from(*byte)] += 1;
    }
    counts.iter().map(|count| count * count).sum()
}
