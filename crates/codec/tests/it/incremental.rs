//! Decoding in steps gives the same bytes as decoding at once, and no more than a step ahead of what was asked for.

use durin_codec::{Decoder, decompress_from};
use durin_format::ErrorKind;
use durin_format::section::CompressionType;

use crate::data::{self, SPECS};

/// Steps that fit no block, frame or chunk.
const STEPS: [usize; 5] = [1, 13, 4097, 70_001, 262_144];

#[test]
fn steps_give_the_whole() {
    for (text, metadata) in SPECS {
        let data = data::sound(200_000);
        let (kind, payload) = data::encode(text, *metadata, &data);
        let mut decoder = Decoder::new(kind, &payload, data.len() as u64).unwrap();
        assert_eq!(decoder.uncompressed_len(), data.len() as u64);
        let mut out = Vec::new();
        let mut steps = STEPS.iter().cycle();
        while out.len() < data.len() {
            let want = out.len() + steps.next().unwrap();
            decoder.decode_to(&payload, &mut out, want).unwrap();
            assert!(out.len() >= want.min(data.len()), "{text}");
        }
        assert!(out == data, "{text}");
        decoder.decode_to(&payload, &mut out, usize::MAX).unwrap();
        assert!(out == data, "{text}");
    }
}

#[test]
fn a_little_costs_a_little() {
    // The most that each may decode beyond what was asked for: its block, frame or nothing.
    for (text, ahead_max) in [
        ("null", 0),
        ("zstd:level=3", 128 << 10),
        ("lzma:level=1", 0),
        ("brotli:quality=3", 0),
        ("flac", 4096 * 4),
    ] {
        let data = data::sound(1 << 20);
        let (kind, payload) = data::encode(text, Some(data::PCM), &data);
        let mut decoder = Decoder::new(kind, &payload, 1 << 20).unwrap();
        assert!(decoder.is_incremental());
        let mut out = Vec::new();
        decoder.decode_to(&payload, &mut out, 1000).unwrap();
        assert!(
            (1000..=1000 + ahead_max).contains(&out.len()),
            "{text}: {}",
            out.len()
        );
        assert!(data.starts_with(&out), "{text}");
        // Its buffer was made once, for everything.
        let address = out.as_ptr();
        decoder.decode_to(&payload, &mut out, usize::MAX).unwrap();
        assert_eq!(out.as_ptr(), address, "{text}");
        assert!(out == data, "{text}");
    }
}

#[test]
fn a_buffer_may_move_between_steps() {
    for (text, metadata) in SPECS {
        let data = data::sound(160_000);
        let (kind, payload) = data::encode(text, *metadata, &data);
        let mut decoder = Decoder::new(kind, &payload, data.len() as u64).unwrap();
        let mut out = Vec::new();
        for want in [1, 70_000, 70_001, 150_000, 160_000] {
            // A copy without the room that the decoder had made; the original stays, so that the address differs.
            let mut moved = out.clone();
            decoder.decode_to(&payload, &mut moved, want).unwrap();
            out = moved;
        }
        assert!(out == data, "{text}");
    }
}

#[test]
fn an_error_stays_an_error() {
    let data = data::text(300_000);
    for text in ["zstd:level=3", "lzma:level=1", "brotli:quality=3", "lz4"] {
        let (kind, mut payload) = data::encode(text, None, &data);
        let middle = payload.len() / 2;
        payload[middle..middle + 64].fill(0xFF);
        let mut decoder = Decoder::new(kind, &payload, 300_000).unwrap();
        let mut out = Vec::new();
        decoder
            .decode_to(&payload, &mut out, usize::MAX)
            .unwrap_err();
        decoder
            .decode_to(&payload, &mut out, usize::MAX)
            .unwrap_err();
    }
}

#[test]
fn a_payload_is_decoded_while_it_is_read() {
    // Several pieces, cut where no block begins.
    let data = [data::random(700_000), data::sound(400_000)].concat();
    for (text, metadata) in SPECS {
        let (kind, payload) = data::encode(text, *metadata, &data);
        let mut done = 0;
        let mut longest = 0;
        let mut read = |buf: &mut [u8]| {
            buf.copy_from_slice(&payload[done..][..buf.len()]);
            done += buf.len();
            longest = longest.max(buf.len());
            Ok(())
        };
        let out = decompress_from(kind, payload.len(), data.len() as u64, &mut read).unwrap();
        assert!(*out == data && done == payload.len(), "{text}");
        if kind == CompressionType::Zstd {
            assert!(payload.len() > 700_000 && longest <= 256 << 10, "{text}");
        }
        // A size that is not allowed shows before anything is decoded.
        let mut read = data::handing_out(&payload);
        let error = decompress_from(kind, payload.len(), data.len() as u64 - 1, &mut read);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt, "{text}");
    }
}

#[test]
fn lz4_can_be_decoded_from_the_end_of_its_own_output() {
    // What shrinks only at the beginning leaves least room between what is read and what is written.
    for zeros in [0, 1, 20, 255, 256, 300, 2_000, 70_000] {
        for noise in [0, 1, 14, 15, 16, 254, 255, 270, 65_000, 1_000_000] {
            for tail in [0, 40] {
                let data = [vec![0; zeros], data::random(noise), vec![7; tail]].concat();
                for text in ["lz4", "lz4hc"] {
                    let (kind, payload) = data::encode(text, None, &data);
                    let mut read = data::handing_out(&payload);
                    let out = decompress_from(kind, payload.len(), data.len() as u64, &mut read);
                    assert!(
                        *out.unwrap() == data,
                        "{text}: {zeros} zeros, {noise} of noise, {tail}"
                    );
                }
            }
        }
    }
}
