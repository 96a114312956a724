//! Payloads that somebody damaged: an error or a result of the right length, soon, and never a panic.

use durin_codec::{Decoder, decompress, decompress_from, uncompressed_len};
use durin_format::section::CompressionType;
use durin_format::{ErrorKind, Result};

use crate::data::{self, Random, SPECS};

const OUTPUT_MAX: u64 = 1 << 16;

/// Decodes a payload that is handed out as it is asked for.
fn handed_out(kind: CompressionType, payload: &[u8]) -> Result<Vec<u8>> {
    let mut read = data::handing_out(payload);
    decompress_from(kind, payload.len(), OUTPUT_MAX, &mut read).map(|bytes| bytes.to_vec())
}

/// Decodes at once, in steps, and as it is read; returns whether there was a result.
fn try_all(kind: CompressionType, payload: &[u8]) -> bool {
    let whole = decompress(kind, payload, OUTPUT_MAX);
    let in_steps = Decoder::new(kind, payload, OUTPUT_MAX).and_then(|mut decoder| {
        let mut out = Vec::new();
        while (out.len() as u64) < decoder.uncompressed_len() {
            let want = out.len() + 777;
            decoder.decode_to(payload, &mut out, want)?;
        }
        // For outputs of no bytes.
        decoder.decode_to(payload, &mut out, usize::MAX)?;
        Ok(out)
    });
    let handed_out = handed_out(kind, payload);
    for error in [&whole, &in_steps, &handed_out]
        .into_iter()
        .filter_map(|r| r.as_ref().err())
    {
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit
            ),
            "{error:?}"
        );
    }
    let Ok(whole) = whole else {
        assert!(in_steps.is_err(), "{kind:?}: only a step works");
        assert!(handed_out.is_err(), "{kind:?}: only reading works");
        return false;
    };
    let len = uncompressed_len(kind, payload, OUTPUT_MAX).unwrap();
    assert!(whole.len() as u64 == len && len <= OUTPUT_MAX, "{kind:?}");
    assert!(
        in_steps.unwrap() == whole,
        "{kind:?}: steps give other bytes"
    );
    assert!(
        handed_out.unwrap() == whole,
        "{kind:?}: reading gives other bytes"
    );
    true
}

/// Payloads of a few hundred bytes of every algorithm.
fn small_payloads() -> Vec<(&'static str, CompressionType, Vec<u8>)> {
    let mut payloads = Vec::new();
    for (text, metadata) in SPECS {
        if *text == "null" {
            continue;
        }
        for data in [
            data::text(600),
            data::sound(800),
            vec![5; 3000],
            data::random(200),
        ] {
            let (kind, payload) = data::encode(text, *metadata, &data);
            assert!(try_all(kind, &payload), "{text}");
            payloads.push((*text, kind, payload));
        }
    }
    payloads
}

#[test]
fn every_truncation_is_an_error() {
    for (text, kind, payload) in small_payloads() {
        for len in 0..payload.len() {
            assert!(!try_all(kind, &payload[..len]), "{text} cut at {len}");
        }
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    for (text, kind, payload) in small_payloads() {
        for tail in [&[0][..], &[1], &[0xFF; 16]] {
            assert!(!try_all(kind, &[&payload, tail].concat()), "{text}");
        }
    }
}

#[test]
fn every_changed_byte_is_survived() {
    for (_, kind, mut payload) in small_payloads() {
        for place in 0..payload.len() {
            let right = payload[place];
            for wrong in [
                right ^ 1,
                right ^ 0x80,
                right.wrapping_add(1),
                !right,
                0,
                0xFF,
            ] {
                payload[place] = wrong;
                try_all(kind, &payload);
            }
            payload[place] = right;
        }
    }
}

#[test]
fn noise_is_survived() {
    let mut random = Random::new(99);
    let payloads = small_payloads();
    for _ in 0..20_000 {
        let (_, kind, payload) = &payloads[random.below(payloads.len() as u64) as usize];
        let mut payload = payload.clone();
        for _ in 0..=random.below(8) {
            let place = random.below(payload.len() as u64) as usize;
            payload[place] = random.next() as u8;
        }
        try_all(*kind, &payload);
    }
    for code in 0..9 {
        for len in 0..200 {
            try_all(CompressionType::from(code), &data::random(len));
        }
    }
}

#[test]
fn sizes_are_compared_before_anything_else() {
    let huge_lz4 = [0xFF, 0xFF, 0xFF, 0xFF, 0];
    let huge_varint = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0];
    let long_varint = [0xFF; 12];
    for (kind, payload) in [
        (CompressionType::Lz4, &huge_lz4[..]),
        (CompressionType::Brotli, &huge_varint),
        (CompressionType::Flac, &huge_varint),
        (CompressionType::Ricepp, &huge_varint),
        (CompressionType::Brotli, &long_varint),
    ] {
        let error = decompress(kind, payload, OUTPUT_MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        // Even where everything is allowed, no memory is promised that is not there.
        assert!(decompress(kind, payload, u64::MAX).is_err());
    }
}

/// Sizes that a ceiling lets pass, of payloads far too small for them: found out without touching that much memory.
#[test]
fn large_claims_take_no_memory() {
    const CLAIM: usize = 1 << 30;
    let claim_varint = [0x80, 0x80, 0x80, 0x80, 0x04];
    let with_varint = |spec, metadata, data: &[u8]| {
        let (kind, payload) = data::encode(spec, metadata, data);
        // The true size takes two bytes.
        (kind, [&claim_varint, &payload[2..]].concat())
    };
    let (lz4, mut lz4_payload) = data::encode("lz4", None, &[5; 3000]);
    lz4_payload[..4].copy_from_slice(&(CLAIM as u32).to_le_bytes());
    let (zstd, zstd_payload) = data::encode("zstd:level=3", None, &[5; 3000]);
    // The magic number, a flag for a size of two bytes in one segment, and the size.
    assert_eq!(zstd_payload[4], 0x60);
    let zstd_header = [&zstd_payload[..4], &[0xA0], &(CLAIM as u32).to_le_bytes()].concat();
    let zstd_payload = [&zstd_header, &zstd_payload[7..]].concat();
    let before = resident_bytes_max();
    for (kind, payload) in [
        (lz4, lz4_payload),
        (zstd, zstd_payload),
        with_varint("brotli", None, &[5; 3000]),
        with_varint("ricepp", Some(data::IMAGE), &[5; 3000]),
        with_varint("flac", Some(data::PCM), &[5; 3000]),
    ] {
        assert_eq!(
            uncompressed_len(kind, &payload, u64::MAX).unwrap(),
            CLAIM as u64
        );
        let error = decompress(kind, &payload, CLAIM as u64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let mut read = data::handing_out(&payload);
        let handed_out = decompress_from(kind, payload.len(), CLAIM as u64, &mut read);
        assert_eq!(handed_out.unwrap_err().kind(), ErrorKind::Corrupt);
        let in_steps = Decoder::new(kind, &payload, CLAIM as u64).and_then(|mut decoder| {
            let mut out = Vec::new();
            decoder.decode_to(&payload, &mut out, 1)?;
            decoder.decode_to(&payload, &mut out, usize::MAX)
        });
        assert!(in_steps.is_err());
    }
    // Other tests run beside this one and take some.
    assert!(resident_bytes_max() - before < CLAIM as u64 / 2);
}

/// The most memory that this process has had so far; 0 where the system does not tell.
fn resident_bytes_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[test]
fn unknown_types_are_unsupported() {
    let error = decompress(CompressionType::Unknown(99), b"x", OUTPUT_MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "compression type 99");
}
