//! What goes in comes out, for every algorithm, many options and several kinds of data.

use std::io::Write;
use std::process::{Command, Stdio};

use durin_codec::{Spec, decompress, uncompressed_len};
use durin_format::section::CompressionType;

use crate::data::{self, SPECS};

#[test]
fn every_specification_and_kind_of_data() {
    for (text, metadata) in SPECS {
        let spec = Spec::parse(text).unwrap();
        // One encoder for all, so that nothing may be left over from the block before.
        let mut encoder = spec.encoder(300_000, *metadata).unwrap();
        for data in [
            Vec::new(),
            b"abcd".to_vec(),
            vec![0; 100_000],
            data::text(100_000),
            data::random(70_000),
            data::sound(100_000),
            data::code(50_000),
        ] {
            let mut payload = b"left over".to_vec();
            encoder.encode(&data, &mut payload).unwrap();
            let (kind, len) = (spec.compression_type(), data.len() as u64);
            assert_eq!(
                uncompressed_len(kind, &payload, len).unwrap(),
                len,
                "{text}"
            );
            assert!(
                decompress(kind, &payload, len).unwrap() == data,
                "{text} of {len}"
            );
            if len > 0 {
                // One byte too much for the ceiling.
                assert!(decompress(kind, &payload, len - 1).is_err(), "{text}");
            }
            let mut again = Vec::new();
            encoder.encode(&data, &mut again).unwrap();
            assert!(again == payload, "{text} of {len} differs the second time");
        }
    }
}

#[test]
fn higher_levels_are_smaller() {
    let text = data::text(300_000);
    let sound = data::sound(400_000);
    let len = |spec, metadata, data: &[u8]| data::encode(spec, metadata, data).1.len();
    for (worse, better) in [
        ("lz4", "lz4hc"),
        ("lz4hc:level=3", "zstd:level=1"),
        ("zstd:level=1", "zstd:level=19"),
        ("lzma:level=0", "lzma:level=9"),
        ("brotli:quality=1", "brotli:quality=11"),
    ] {
        assert!(
            len(worse, None, &text) > len(better, None, &text),
            "{better}"
        );
    }
    let pcm = Some(data::PCM);
    for (worse, better) in [
        ("flac:level=0", "flac:level=2"),
        ("flac:level=2", "flac:level=5"),
        ("flac:level=5", "flac:level=8"),
        ("flac:level=8", "flac:level=8:exhaustive"),
    ] {
        assert!(
            len(worse, pcm, &sound) >= len(better, pcm, &sound),
            "{better}"
        );
    }
    assert!(len("flac:level=5", pcm, &sound) < len("lzma", None, &sound));
}

#[test]
fn filters_for_machine_code_are_taken_when_smaller() {
    let code = data::code(200_000);
    let len = |spec, data: &[u8]| data::encode(spec, None, data).1.len();
    assert!(len("lzma:level=6:binary=x86", &code) < len("lzma:level=6", &code) / 2);
    let text = data::text(50_000);
    assert!(len("lzma:level=6:binary=x86", &text) <= len("lzma:level=6", &text));
}

#[test]
fn windows_reach_as_far_as_asked() {
    // The same random bytes twice, 9 MiB apart.
    let mut data = data::random(1 << 20);
    data.resize(9 << 20, 0);
    data.extend_from_within(..1 << 20);
    let len = |spec| data::encode(spec, None, &data).1.len();
    let once = (1 << 20) + (64 << 10);
    for spec in [
        "zstd:level=1:long",
        "brotli:quality=5:lgwin=30",
        "lzma:level=0:dict_size=24",
    ] {
        assert!(len(spec) < once, "{spec}");
    }
    for spec in [
        "zstd:level=1:wlog=20",
        "brotli:quality=5:lgwin=20",
        "lzma:level=0",
    ] {
        assert!(len(spec) > once, "{spec}");
    }
}

#[test]
fn other_programs_read_it() {
    for (text, metadata) in SPECS {
        let spec = Spec::parse(text).unwrap();
        let program = match spec.compression_type() {
            CompressionType::Lzma => "xz",
            CompressionType::Zstd => "zstd",
            _ => continue,
        };
        for data in [
            Vec::new(),
            data::text(100_000),
            data::random(70_000),
            data::code(50_000),
        ] {
            let (_, payload) = data::encode(text, *metadata, &data);
            let started = Command::new(program)
                .args(["-t", "-q", "-"])
                .stdin(Stdio::piped())
                .spawn();
            let mut child = match started {
                Ok(child) => child,
                Err(error) => {
                    assert!(std::env::var_os("CI").is_none(), "{program}: {error}");
                    eprintln!("SKIPPED: {program}: {error}");
                    return;
                }
            };
            child.stdin.take().unwrap().write_all(&payload).unwrap();
            assert!(child.wait().unwrap().success(), "{text} of {}", data.len());
        }
    }
}

#[test]
fn tuning_finds_the_filter_and_keeps_what_is_given() {
    let code = data::code(200_000);
    let len = |spec| data::encode(spec, None, &code).1.len();
    assert!(len("lzma:level=6:tune") < len("lzma:level=6") / 2);
    assert!(len("lzma:level=6:tune:lc=0") < len("lzma:level=6:lc=0"));
    let error = Spec::parse("lzma:lc=4:lp=1")
        .unwrap()
        .encoder(1 << 20, None)
        .err()
        .unwrap();
    assert!(error.to_string().contains("lc + lp"), "{error}");
}

#[test]
fn what_an_encoder_was_made_for_changes_nothing() {
    let data: Vec<u8> = (0..9000_u32)
        .map(|n| (n / 11).wrapping_mul(n).to_le_bytes()[1])
        .collect();
    for text in [
        "brotli",
        "brotli:quality=4",
        "brotli:quality=5:lgwin=30",
        "zstd:level=3",
        "zstd:level=3:long:lhrlog=4",
        "zstd:level=3:long:lhrlog=13",
        "lzma:level=9:tune",
        "lz4hc",
    ] {
        let spec = Spec::parse(text).unwrap();
        let [small, large] = [data.len(), 1 << 22].map(|block_len| {
            let mut out = Vec::new();
            let mut encoder = spec.encoder(block_len, None).unwrap();
            encoder.encode(&data, &mut out).unwrap();
            out
        });
        assert!(small == large, "{text}");
    }
}

#[test]
fn tuning_makes_room_for_what_is_given() {
    for text in ["lzma:tune:lp=2", "lzma:tune:lp=4", "lzma:tune:lc=2:lp=2"] {
        let spec = Spec::parse(text).unwrap();
        assert!(spec.encoder(1 << 16, None).is_ok(), "{text}");
    }
    for text in ["lzma:lp=2", "lzma:tune:lc=3:lp=2"] {
        let spec = Spec::parse(text).unwrap();
        assert!(spec.encoder(1 << 16, None).is_err(), "{text}");
    }
}
