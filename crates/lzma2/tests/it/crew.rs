//! Blocks of several parts, and several threads.

use std::sync::Arc;
use std::thread;

use durin_lzma2::{Crew, Encoder, Filter, Given, Options};

use crate::data::{Numbers, copies, text};
use crate::{PLAIN, check, decode, encode};

/// Parts are of about 8 MiB.
const MIB: usize = 1 << 20;

/// Lays data out at places of a block that is quickly encoded besides.
fn spread(len: usize, pieces: &[(usize, &[u8])]) -> Vec<u8> {
    let mut block = vec![0; len];
    for (start, piece) in pieces {
        block[*start..start + piece.len()].copy_from_slice(piece);
    }
    block
}

fn blocks() -> Vec<Vec<u8>> {
    let [text, copies] = [text(300_000, 1), copies(400_000, 2)];
    let mixed = [
        (100, &text[..]),
        (8 * MIB - 200_000, &copies),
        (16 * MIB - 10_000, &text),
    ];
    vec![
        spread(17 * MIB, &mixed),
        spread(9 * MIB, &mixed[..2]),
        copies,
        Vec::new(),
    ]
}

#[test]
fn lengths_about_parts() {
    for len in [8 * MIB, 8 * MIB + 1, 16 * MIB, 16 * MIB + 1] {
        let end = text(1000, 3);
        check(&spread(len, &[(len - 1000, &end)]), &PLAIN);
    }
}

#[test]
fn a_part_without_packets() {
    let mut data = Numbers::new(4).bytes(5 * MIB);
    let text = text(100_000, 5);
    data.extend(spread(5 * MIB, &[(100, &text)]));
    let len = check(&data, &PLAIN);
    assert!(len < 5 * MIB + MIB / 8, "{len}");
    // The other way round, and found in another part.
    data.rotate_left(5 * MIB);
    data.extend_from_within(5 * MIB..);
    let len = check(&data, &PLAIN);
    assert!(len < 5 * MIB + MIB / 8, "{len}");
}

#[test]
fn threads_change_no_byte() {
    let options = [
        PLAIN,
        Options {
            filter: Some(Filter::X86),
            given: Given::all(0, 2, 2),
            ..PLAIN
        },
        Options {
            given: Given::default(),
            ..PLAIN
        },
    ];
    let blocks = blocks();
    for options in options {
        let expected: Vec<_> = blocks.iter().map(|block| encode(block, &options)).collect();
        for (block, xz) in blocks.iter().zip(&expected) {
            assert!(decode(xz, block.len()) == *block);
        }
        for (threads, tables) in [(2, 1), (3, 2), (8, 1)] {
            let crew = Arc::new(Crew::new(threads, tables));
            let work = || {
                let mut encoder = Encoder::new(Arc::clone(&crew));
                for (block, expected) in blocks.iter().zip(&expected) {
                    let _member = crew.join();
                    let mut out = Vec::new();
                    encoder.xz(block, &options, &mut out).unwrap();
                    assert!(out == *expected, "{threads} {tables}");
                }
            };
            thread::scope(|scope| {
                scope.spawn(work);
                scope.spawn(work);
            });
        }
    }
}
