//! Round trips of ordinary data with every option.

use durin_lzma2::{Error, Filter, Given, Options};
use proptest::prelude::*;

use crate::data::{Numbers, copies, machine_code, text};
use crate::{PLAIN, check, decode, encode, encoder};

#[test]
fn short_blocks() {
    for len in 0..300 {
        check(&text(len, 1), &PLAIN);
        check(&vec![0; len], &PLAIN);
        check(&Numbers::new(2).bytes(len), &PLAIN);
        check(&b"ab".repeat(len)[len..], &PLAIN);
    }
}

#[test]
fn every_model() {
    let code = machine_code();
    let data = [text(40_000, 3), copies(40_000, 4), code[..80_000].to_vec()].concat();
    for lc in 0..=4 {
        for lp in 0..=4 - lc {
            for pb in 0..=4 {
                let options = Options {
                    given: Given::all(lc, lp, pb),
                    ..PLAIN
                };
                let len = check(&data, &options);
                assert!(len < data.len() * 7 / 10, "{options:?}: {len}");
            }
        }
    }
}

#[test]
fn parts_are_modelled_by_what_is_in_them() {
    // Two parts: text, then numbers of four bytes whose lower ones are noise.
    const PART_LEN: usize = 9 << 19;
    let mut data = text(PART_LEN, 3);
    let mut numbers = Numbers::new(8);
    let mut number = 1_u32 << 20;
    while data.len() < 2 * PART_LEN {
        number += numbers.below(1000) as u32;
        data.extend(number.to_le_bytes());
    }
    let free = Options {
        given: Given::default(),
        ..PLAIN
    };
    let len = check(&data, &free);
    for (lc, lp, pb) in [(4, 0, 0), (2, 2, 2)] {
        let same = Options {
            given: Given::all(lc, lp, pb),
            ..PLAIN
        };
        let other = check(&data, &same);
        assert!(len < other, "{len} of {other} with {lc}, {lp}, {pb}");
    }
}

#[test]
fn every_filter() {
    let code = machine_code();
    let delta = |distance: u8| Filter::Delta(distance.try_into().unwrap());
    for filter in [
        delta(1),
        delta(3),
        delta(255),
        Filter::X86,
        Filter::PowerPc,
        Filter::Arm,
        Filter::ArmThumb,
        Filter::Sparc,
        Filter::Arm64,
    ] {
        let options = Options {
            filter: Some(filter),
            ..PLAIN
        };
        // Each has something to change here: its instructions at every address.
        let mut numbers = Numbers::new(5);
        let mut odd = code[..100_000].to_vec();
        for _ in 0..20_000 {
            let at = numbers.below(odd.len() - 5);
            let instruction = [
                [0xE8, 1, 2, 3, 0],
                [0xE9, 0xE8, 0xE9, 0xFF, 0xFF],
                [0x48, 3, 2, 1, 0],
                [4, 3, 2, 0xEB, 9],
                [1, 0xF0, 2, 0xF8, 9],
                [0x40, 1, 2, 3, 4],
                [0x7F, 0xC1, 2, 3, 4],
                [1, 2, 3, 0x94, 9],
                [0xFF, 0xFF, 0xFF, 0x97, 0x97],
                [1, 2, 3, 0xB0, 9],
                [0xFF, 0xFF, 0xFF, 0xF0, 9],
            ][numbers.below(11)];
            odd[at..at + 5].copy_from_slice(&instruction);
        }
        check(&odd, &options);
        for len in 0..20 {
            check(&odd[..len], &options);
        }
        check(&code, &options);
    }
}

#[test]
fn values_that_change_little_become_small() {
    // Three values that wander, each for itself.
    let mut numbers = Numbers::new(6);
    let mut data = vec![0_u8, 100, 200];
    for at in 0..60_000_usize {
        data.push(
            data[at]
                .wrapping_add(numbers.below(5) as u8)
                .wrapping_sub(2),
        );
    }
    let options = Options {
        filter: Some(Filter::Delta(3_u8.try_into().unwrap())),
        ..PLAIN
    };
    let (plain, filtered) = (check(&data, &PLAIN), check(&data, &options));
    assert!(filtered < plain / 4 * 3, "{filtered} of {plain}");
}

#[test]
fn a_filter_makes_calls_alike() {
    // A few functions called from everywhere.
    let mut numbers = Numbers::new(9);
    let mut code = Vec::new();
    while code.len() < 200_000 {
        let target = numbers.below(16) as u32 * 0x1000;
        let next = code.len() as u32 + 5;
        code.push(0xE8);
        code.extend(target.wrapping_sub(next).to_le_bytes());
        code.extend([0x48, 0x89, numbers.below(4) as u8, 0x10]);
    }
    let options = Options {
        filter: Some(Filter::X86),
        ..PLAIN
    };
    let (plain, filtered) = (check(&code, &PLAIN), check(&code, &options));
    assert!(filtered < plain / 4 * 3, "{filtered} of {plain}");
}

#[test]
fn every_nice_length_and_dictionary() {
    let data = copies(300_000, 6);
    for nice_len in [2, 3, 8, 16, 63, 64, 66, 67, 68, 200, 272, 273] {
        check(&data, &Options { nice_len, ..PLAIN });
    }
    let mut before = usize::MAX;
    for dict_log2 in 12..=30 {
        let dict_len = 1 << dict_log2;
        let len = check(&data, &Options { dict_len, ..PLAIN });
        // What is farther away cannot be used.
        assert!(len <= before.saturating_add(before / 100));
        before = len;
        check(
            &data,
            &Options {
                dict_len: dict_len + 1,
                ..PLAIN
            },
        );
    }
}

#[test]
fn the_farthest_match() {
    let numbers = &mut Numbers::new(7);
    let dict_len = 1 << 16;
    for distance in [dict_len - 1, dict_len, dict_len + 1] {
        let head = numbers.bytes(200);
        let between = numbers.bytes(distance - head.len());
        let data = [&head[..], &between, &head].concat();
        let len = check(
            &data,
            &Options {
                dict_len: dict_len as u32,
                ..PLAIN
            },
        );
        let is_used = len < data.len() - 100;
        assert_eq!(is_used, distance <= dict_len, "{distance}");
    }
}

#[test]
fn matches_as_long_as_they_get() {
    let numbers = &mut Numbers::new(8);
    for len in [
        2, 3, 9, 10, 17, 18, 62, 63, 64, 65, 66, 67, 68, 272, 273, 274, 1000,
    ] {
        let head = numbers.bytes(len);
        let mut data = head.clone();
        for _ in 0..5 {
            data.extend(numbers.bytes(50));
            data.extend(&head);
        }
        check(&data, &PLAIN);
    }
}

/// Chunks end after 2 MiB of data, or 64 KiB of payload.
#[test]
fn ends_of_chunks() {
    let long = vec![b'x'; (2 << 20) + 1000];
    for len in [
        (2 << 20) - 274,
        (2 << 20) - 273,
        (2 << 20) - 1,
        2 << 20,
        (2 << 20) + 1,
    ] {
        check(&long[..len], &PLAIN);
    }
    let data = text(600_000, 9);
    check(&data, &PLAIN);
    let mut mixed = data[..100_000].to_vec();
    mixed.extend(Numbers::new(10).bytes(200_000));
    mixed.extend(&data[..200_000]);
    mixed.extend(Numbers::new(11).bytes(65_536));
    mixed.extend(vec![0; 100_000]);
    check(&mixed, &PLAIN);
}

#[test]
fn an_encoder_forgets() {
    let mut encoder = encoder();
    let blocks = [
        text(200_000, 12),
        Vec::new(),
        copies(500_000, 13),
        text(100_000, 12),
    ];
    for _ in 0..2 {
        for block in &blocks {
            let mut out = Vec::new();
            encoder.xz(block, &PLAIN, &mut out).unwrap();
            assert!(out == encode(block, &PLAIN));
        }
    }
}

#[test]
fn bare_data() {
    let data = text(100_000, 14);
    let mut bare = Vec::new();
    let mut encoder = encoder();
    encoder.lzma2(&data, &PLAIN, &mut bare).unwrap();
    let xz = encode(&data, &PLAIN);
    assert!(xz.windows(bare.len()).any(|part| part == bare));
}

#[test]
fn options_out_of_range() {
    let wrong = [
        Options {
            given: Given::all(3, 2, 2),
            ..PLAIN
        },
        Options {
            given: Given::all(5, 0, 2),
            ..PLAIN
        },
        Options {
            given: Given::all(3, 0, 5),
            ..PLAIN
        },
        Options {
            nice_len: 1,
            ..PLAIN
        },
        Options {
            nice_len: 274,
            ..PLAIN
        },
        Options {
            dict_len: 4095,
            ..PLAIN
        },
        Options {
            given: Given::all(u32::MAX, 5, 2),
            ..PLAIN
        },
    ];
    for options in wrong {
        let result = encoder().xz(b"abc", &options, &mut Vec::new());
        assert_eq!(result, Err(Error::Options), "{options:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..30), 0_usize..400), 0..60),
        lc in prop::option::of(0_u32..=4),
        pb in prop::option::of(0_u32..=4),
        nice_len in 2_u32..=273,
    ) {
        // Each part, then a part of all that stands before it.
        let mut data: Vec<u8> = Vec::new();
        for (new, copy_len) in parts {
            data.extend(&new);
            let distance = 1 + new.len() * 7;
            for _ in 0..copy_len {
                let byte = data.len().checked_sub(distance).map_or(0, |at| data[at]);
                data.push(byte);
            }
        }
        let given = Given { lc, pb, ..PLAIN.given };
        let options = Options { given, nice_len, ..PLAIN };
        let xz = encode(&data, &options);
        prop_assert_eq!(decode(&xz, data.len()), data);
    }
}
