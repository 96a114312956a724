//! Data that do not shrink.

use crate::data::{Numbers, copies, text};
use crate::{PLAIN, check, encode};

#[test]
fn noise_grows_little() {
    let mut numbers = Numbers::new(1);
    for len in [1, 100, 65_535, 65_536, 65_537, 131_072, 1_000_000] {
        let noise = numbers.bytes(len);
        let encoded = check(&noise, &PLAIN);
        assert!(encoded <= len + len / 4096 + 128, "{encoded} of {len}");
    }
}

#[test]
fn what_stands_in_stored_chunks_is_found_later() {
    let noise = Numbers::new(2).bytes(300_000);
    let data = [&noise[..], &text(50_000, 3), &noise].concat();
    let encoded = check(&data, &PLAIN);
    assert!(encoded < 330_000, "{encoded}");
}

/// Bytes of which lower ones are more frequent.
fn uneven(len: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let byte = |_| {
        let end = 1 + numbers.below(256);
        numbers.below(end) as u8
    };
    (0..len).map(byte).collect()
}

/// The bytes of stored chunks, and how many chunks of packets there are.
fn stored_and_packed(xz: &[u8]) -> (usize, usize) {
    let two = |at: usize| (usize::from(xz[at]) << 8) + usize::from(xz[at + 1]) + 1;
    // Behind the header of the stream, and that of the block, which says its length.
    let mut at = 12 + (usize::from(xz[12]) + 1) * 4;
    let (mut stored, mut packed) = (0, 0);
    while xz[at] != 0 {
        if xz[at] < 0x80 {
            stored += two(at + 1);
            at += 3 + two(at + 1);
        } else {
            packed += 1;
            at += 5 + usize::from(xz[at] >= 0xC0) + two(at + 3);
        }
    }
    (stored, packed)
}

#[test]
fn noise_between_packets_is_stored() {
    // As archives have it: members that are compressed already, with headers that are much alike.
    let mut numbers = Numbers::new(4);
    let mut data = Vec::new();
    let mut noise_len = 0;
    for number in 0..400 {
        data.extend(format!("PK-header-{number:04}-of/a/member/with/a/name.class").bytes());
        let len = 2000 + numbers.below(8000);
        data.extend(numbers.bytes(len));
        noise_len += len;
    }
    let len = check(&data, &PLAIN);
    // Packets of all of it would take a hundredth more than the noise.
    assert!(len < noise_len + 400 * 32, "{len} of {noise_len}");
    let (stored, packed) = stored_and_packed(&encode(&data, &PLAIN));
    assert!(stored > noise_len / 100 * 95, "{stored} of {noise_len}");
    assert!(packed > 300, "{packed}");
}

#[test]
fn what_is_uneven_is_packed_after_noise() {
    // Nothing repeats: only by and by, from the bytes themselves, it turns out that these shrink.
    for noise_len in [500, 1000, 3000, 20_000] {
        let mut numbers = Numbers::new(5);
        let mut data = Vec::new();
        for seed in 0..20 {
            data.extend(numbers.bytes(noise_len));
            data.extend(uneven(20_000, seed));
        }
        let len = check(&data, &PLAIN);
        let alone = encode(&uneven(20 * 20_000, 6), &PLAIN).len();
        let wanted = 20 * noise_len + alone;
        assert!(len < wanted + wanted / 100, "{len} of {wanted}");
    }
}

#[test]
fn matches_go_on_after_what_is_stored() {
    // Distances that the model remembers, from before the noise and from within.
    let mut numbers = Numbers::new(7);
    for seed in 0..100 {
        let mut data = Vec::new();
        for number in 0..50 {
            match numbers.below(5) {
                0 => data.extend(text(numbers.below(3000), seed)),
                1 => data.extend(copies(numbers.below(3000), seed + number)),
                2 => data.extend(uneven(numbers.below(3000), seed)),
                3 if !data.is_empty() => {
                    let start = numbers.below(data.len());
                    let end = data.len().min(start + numbers.below(3000));
                    data.extend_from_within(start..end);
                }
                _ => {
                    let len = 500 + numbers.below(6000);
                    data.extend(numbers.bytes(len));
                }
            }
        }
        check(&data, &PLAIN);
    }
}

#[test]
fn repeats_within_noise_are_found() {
    let mut numbers = Numbers::new(8);
    let mut data = numbers.bytes(100_000);
    for _ in 0..200 {
        let start = numbers.below(data.len() - 200);
        data.extend_from_within(start..start + 150);
        data.extend(numbers.bytes(3000));
    }
    let len = check(&data, &PLAIN);
    let noise_len = data.len() - 200 * 150;
    assert!(len < noise_len + 200 * 40, "{len} of {noise_len}");
}
