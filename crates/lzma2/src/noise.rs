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
    let data_len = input.data.len();
    let end = data_len.min(at + count);
    // In the largest blocks the finder does not tell how long such matches are.
    let known_max = input.finder.len_known_max();
    let is_unmatched = |at: &usize| {
        let [longest, _] = input.finder.at(*at);
        longest.is_none_or(|found| {
            let is_short = found.len < len;
            is_short && (found.len < known_max || input.len_of(found, *at, data_len - *at) < len)
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Crew;
    use crate::finder::Finder;

    #[test]
    fn noise_that_comes_again_is_none_in_blocks_of_any_length() {
        let mut state = 1_u32;
        let next = |()| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let once: Vec<u8> = std::iter::repeat_n((), 20_000).map(next).collect();
        let data = [once.as_slice(), &once].concat();
        for block_len in [data.len(), 1 << 25, 1 << 29, 1 << 30] {
            let mut finder = Finder::default();
            finder.fill(&data, &Crew::alone()).expect("memory");
            finder.keep_as_of(block_len);
            let input = Input {
                data: &data,
                finder: &finder,
                distance_max: 1 << 20,
                nice_len: 64,
            };
            let look =
                [literals, first_literals].map(|look| [look(&input, 100), look(&input, 20_100)]);
            assert_eq!(look, [[LITERALS_MAX, 0]; 2], "{block_len}");
            assert_eq!(end(&input, 20_100), 20_100, "{block_len}");
        }
    }
}
