//! Data that make a careless search take forever: all of it must be done in time in proportion to the length.

use crate::data::Numbers;
use crate::{PLAIN, check};

const LEN: usize = 2 << 20;

#[track_caller]
fn check_small(data: &[u8]) {
    let len = check(data, &PLAIN);
    assert!(len < data.len() / 100, "{len}");
}

#[test]
fn short_periods() {
    let noise = Numbers::new(1).bytes(300);
    for period in [1, 2, 3, 4, 5, 7, 8, 9, 16, 24, 100, 255, 300] {
        let data: Vec<u8> = noise[..period].iter().copied().cycle().take(LEN).collect();
        check_small(&data);
    }
}

#[test]
fn long_periods() {
    for period in [4096, 65_536, 1 << 20] {
        let noise = Numbers::new(2).bytes(period);
        let data: Vec<u8> = noise.iter().copied().cycle().take(LEN).collect();
        check(&data, &PLAIN);
    }
}

/// Runs of one byte that differ in length, with others between them.
#[test]
fn broken_runs() {
    let mut numbers = Numbers::new(3);
    for run_len_max in [10, 100, 300, 1000, 100_000] {
        let mut data = Vec::new();
        while data.len() < LEN {
            let len = numbers.below(run_len_max);
            data.resize(data.len() + len, 0);
            data.push(numbers.below(2) as u8);
        }
        check(&data, &PLAIN);
    }
}

/// Each word is the two before it: many matches of every length at each position.
#[test]
fn fibonacci_words() {
    let (mut before, mut word) = (b"a".to_vec(), b"ab".to_vec());
    while word.len() < LEN {
        let next = [&word[..], &before].concat();
        before = std::mem::replace(&mut word, next);
    }
    check_small(&word[..LEN]);
}

/// Few different bytes, so that there are very many short matches.
#[test]
fn two_letters() {
    let mut numbers = Numbers::new(4);
    let data: Vec<u8> = (0..LEN / 4)
        .map(|_| b'a' + numbers.below(2) as u8)
        .collect();
    check(&data, &PLAIN);
}

/// More positions than are sorted at once have the same two bytes before.
#[test]
fn one_prefix_everywhere() {
    let mut numbers = Numbers::new(5);
    let mut data = Vec::new();
    while data.len() < LEN / 4 {
        data.extend([0, 0, 0, 0, 0, 0, 0, numbers.below(3) as u8]);
    }
    check(&data, &PLAIN);
}
