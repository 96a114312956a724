//! FLAC in every layout, and read by a decoder that is not ours.

use durin_codec::{Spec, decompress};
use durin_format::ErrorKind;
use durin_format::section::CompressionType;

use crate::data::{self, Random};

#[derive(Clone, Copy, Debug)]
struct Layout {
    bits: u32,
    bytes: u32,
    channels: u32,
    signed: bool,
    big_endian: bool,
    low_padding: bool,
}

impl Layout {
    fn metadata(self) -> String {
        format!(
            r#"{{"bits_per_sample":{},"bytes_per_sample":{},"endianness":"{}","number_of_channels":{},"padding":"{}","signedness":"{}"}}"#,
            self.bits,
            self.bytes,
            if self.big_endian { "big" } else { "little" },
            self.channels,
            if self.low_padding { "lsb" } else { "msb" },
            if self.signed { "signed" } else { "unsigned" },
        )
    }

    fn all() -> impl Iterator<Item = Self> {
        let widths =
            (8..=32).flat_map(|bits: u32| (bits.div_ceil(8)..=4).map(move |bytes| (bits, bytes)));
        widths.flat_map(|(bits, bytes)| {
            (0..8).map(move |flags| Self {
                bits,
                bytes,
                channels: 1 + (bits + bytes + flags) % 8,
                signed: flags & 1 != 0 || bits == 32,
                big_endian: flags & 2 != 0,
                low_padding: flags & 4 != 0,
            })
        })
    }

    /// Lays out samples, written from the format's description and not from the code under test.
    fn bytes(self, samples: impl Iterator<Item = i64>) -> Vec<u8> {
        let mut out = Vec::new();
        for sample in samples {
            let mut word = if self.signed {
                sample
            } else {
                sample + (1 << (self.bits - 1))
            };
            if self.low_padding {
                word <<= 8 * self.bytes - self.bits;
            }
            let bytes = word.to_le_bytes();
            let bytes = &bytes[..self.bytes as usize];
            if self.big_endian {
                out.extend(bytes.iter().rev());
            } else {
                out.extend(bytes);
            }
        }
        out
    }
}

/// Interleaved sound that comes near the limits of its width, with silence, noise and jumps between both ends.
fn samples(layout: Layout, count: u32) -> Vec<i64> {
    let mut random = Random::new(u64::from(layout.bits * 100 + layout.channels));
    let max = (1_i64 << (layout.bits - 1)) - 1;
    let mut out = Vec::new();
    for index in 0..count {
        let tone = (f64::from(index) * 0.02).sin() * 0.9 * max as f64;
        for channel in 0..layout.channels {
            let noise = random.below(64) as i64 - 32;
            out.push(match index / 1000 {
                0 => ((tone as i64 >> (channel % 3)) + noise).clamp(-max - 1, max),
                1 => 0,
                2 => (random.next() as i64).rem_euclid(2 * max + 2) - max - 1,
                // Opposite ends in neighbouring channels: the side takes one bit more.
                _ if (channel + index / 7) % 2 == 0 => max,
                _ => -max - 1,
            });
        }
    }
    out
}

#[test]
fn every_layout_survives() {
    for layout in Layout::all() {
        let data = layout.bytes(samples(layout, 3500).into_iter());
        for level in ["flac:level=1", "flac:level=5"] {
            let (kind, payload) = data::encode(level, Some(&layout.metadata()), &data);
            let out = decompress(kind, &payload, data.len() as u64).unwrap();
            assert!(out == data, "{layout:?}");
        }
    }
}

#[test]
fn every_level_survives() {
    for level in 0..=8 {
        for exhaustive in ["", ":exhaustive"] {
            for (bits, channels) in [(16, 2), (24, 2), (32, 2), (12, 1), (20, 3)] {
                let layout = Layout {
                    bits,
                    bytes: bits.div_ceil(8),
                    channels,
                    signed: true,
                    big_endian: false,
                    low_padding: false,
                };
                for count in [0, 1, 2, 5, 16, 1153, 4099, 9000] {
                    let data = layout.bytes(samples(layout, count).into_iter());
                    let spec = format!("flac:level={level}{exhaustive}");
                    let (kind, payload) = data::encode(&spec, Some(&layout.metadata()), &data);
                    let out = decompress(kind, &payload, data.len() as u64).unwrap();
                    assert!(out == data, "{spec} {layout:?} of {count}");
                }
            }
        }
    }
}

/// `claxon`, an independent decoder, reads the widths that a frame header has a code for, up to 24 bits.
#[test]
fn another_decoder_reads_our_streams() {
    for layout in Layout::all().filter(|layout| [8, 12, 16, 20, 24].contains(&layout.bits)) {
        let samples = samples(layout, 5000);
        let data = layout.bytes(samples.iter().copied());
        let (_, payload) = data::encode("flac:level=8", Some(&layout.metadata()), &data);
        let start = payload
            .windows(4)
            .position(|bytes| bytes == b"fLaC")
            .unwrap();
        let mut reader = claxon::FlacReader::new(&payload[start..]).unwrap();
        let info = reader.streaminfo();
        assert_eq!(
            (info.bits_per_sample, info.channels),
            (layout.bits, layout.channels)
        );
        assert_eq!((info.sample_rate, info.samples), (48_000, Some(5000)));
        let read: Vec<i64> = reader.samples().map(|s| i64::from(s.unwrap())).collect();
        assert!(read == samples, "{layout:?}");
    }
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let spec = Spec::parse("flac").unwrap();
    let good = data::PCM;
    assert!(spec.encoder(1 << 20, Some(good)).is_ok());
    for (metadata, message) in [
        (
            None,
            "the data belong to no category that tells their layout",
        ),
        (Some("[]".to_owned()), "they are no JSON object"),
        (
            Some(good.replace("\"padding\"", "\"x\"")),
            "padding is missing",
        ),
        (
            Some(good.replace("\"number_of_channels\":2", "\"number_of_channels\":9")),
            "number_of_channels is 9, not 1 to 8",
        ),
        (
            Some(good.replace("\"bits_per_sample\":16", "\"bits_per_sample\":17")),
            "bits_per_sample is 17, not 8 to 16",
        ),
        (
            Some(good.replace("\"little\"", "\"middle\"")),
            "endianness is \"middle\", not \"big\" or \"little\"",
        ),
        (
            Some(
                good.replace(":16", ":32")
                    .replace("sample\":2", "sample\":4")
                    .replace("\"signed\"", "\"unsigned\""),
            ),
            "unsigned samples of 32 bits are not read everywhere",
        ),
    ] {
        let error = spec.encoder(1 << 20, metadata.as_deref()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            format!("flac: metadata requirements not met: {message}")
        );
    }
}

#[test]
fn unsigned_samples_of_32_bits_can_be_read() {
    // Written as signed ones and then marked otherwise: the reference writes them, too.
    let layout = Layout {
        bits: 32,
        bytes: 4,
        channels: 1,
        signed: true,
        big_endian: false,
        low_padding: false,
    };
    let samples: Vec<i64> = vec![0, 1, -1, i64::from(i32::MIN), i64::from(i32::MAX)];
    let data = layout.bytes(samples.iter().copied());
    let (_, mut payload) = data::encode("flac", Some(&layout.metadata()), &data);
    let start = payload
        .windows(4)
        .position(|bytes| bytes == b"fLaC")
        .unwrap();
    // The flags are the last field of the header, before its stop byte.
    assert_eq!(payload[start - 2], 0x43);
    payload[start - 2] = 0x03;
    let out = decompress(CompressionType::Flac, &payload, 20).unwrap();
    let unsigned = Layout {
        signed: false,
        ..layout
    };
    assert_eq!(out, unsigned.bytes(samples.into_iter()));
}
