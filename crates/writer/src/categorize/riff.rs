//! WAV files: RIFF, and RF64 for those of more than 4 GiB.

use super::pcm::{Layout, Waveform};
use super::probe::{Probe, le16, le32, le64};

const TAG_PCM: u16 = 1;
const TAG_EXTENSIBLE: u16 = 0xFFFE;
/// What follows the tag in the identifier of a format.
const GUID_TAIL: [u8; 14] = [
    0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71,
];
/// Says that the size is in the `ds64` chunk.
const SIZE_ELSEWHERE: u32 = u32::MAX;
const FMT_LEN_MIN: u64 = 16;
const FMT_LEN_EXTENSIBLE: u64 = 40;

pub(super) fn waveform(probe: &Probe<'_>) -> Option<Waveform> {
    let head: [u8; 12] = probe.bytes(0)?;
    let is_long = matches!(&head[..4], b"RF64" | b"BW64");
    if !(is_long || head.starts_with(b"RIFF")) || !head.ends_with(b"WAVE") {
        return None;
    }
    let mut at = 12;
    let mut layout = None;
    let mut long_len = None;
    loop {
        let chunk: [u8; 8] = probe.bytes(at)?;
        let size = le32(&chunk, 4)?;
        let start = at + 8;
        match &chunk[..4] {
            b"ds64" if is_long => long_len = le64(&probe.bytes::<16>(start)?, 8),
            b"fmt " => layout = Some(format(probe, start, u64::from(size))?),
            b"data" => {
                let long_len = long_len.filter(|_| size == SIZE_ELSEWHERE);
                return Some(Waveform {
                    layout: layout?,
                    offset: start,
                    len: long_len.unwrap_or(u64::from(size)),
                });
            }
            _ => {}
        }
        at = start.checked_add(u64::from(size) + u64::from(size % 2))?;
    }
}

/// Reads the description of the samples, which Wave64 has in the same form.
pub(super) fn format(probe: &Probe<'_>, start: u64, len: u64) -> Option<Layout> {
    if len < FMT_LEN_MIN {
        return None;
    }
    let base: [u8; 16] = probe.bytes(start)?;
    let channels = u32::from(le16(&base, 2)?);
    let frame_len = u32::from(le16(&base, 12)?);
    let mut bits = u32::from(le16(&base, 14)?);
    match le16(&base, 0)? {
        TAG_PCM => {}
        TAG_EXTENSIBLE if len >= FMT_LEN_EXTENSIBLE => {
            let more: [u8; 24] = probe.bytes(start + FMT_LEN_MIN)?;
            if le16(&more, 8)? != TAG_PCM || !more.ends_with(&GUID_TAIL) {
                return None;
            }
            match u32::from(le16(&more, 2)?) {
                0 => {}
                valid => bits = valid,
            }
        }
        _ => return None,
    }
    if channels == 0 || !frame_len.is_multiple_of(channels) {
        return None;
    }
    let bytes_per_sample = frame_len / channels;
    Some(Layout {
        big_endian: false,
        signed: bytes_per_sample > 1,
        bytes_per_sample,
        bits_per_sample: bits,
        channels,
    })
}
