//! Data that do not shrink.

use crate::data::{Numbers, text};
use crate::{PLAIN, check};

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
