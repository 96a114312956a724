//! Wave64 files: chunks as those of WAV, with names of 16 bytes and sizes of 8.

use super::pcm::Waveform;
use super::probe::{Probe, le64};
use super::riff;

const RIFF: [u8; 16] = [
    0x72, 0x69, 0x66, 0x66, 0x2E, 0x91, 0xCF, 0x11, 0xA5, 0xD6, 0x28, 0xDB, 0x04, 0xC1, 0x00, 0x00,
];
/// What all names but the first end with.
const NAME_TAIL: [u8; 12] = [
    0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1, 0x00, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A,
];
/// Bytes of a name and a size, which the size counts.
const HEADER_LEN: u64 = 24;

pub(super) fn waveform(probe: &Probe<'_>) -> Option<Waveform> {
    if !probe.starts_with(&RIFF) || !is_named(&probe.bytes(HEADER_LEN)?, *b"wave") {
        return None;
    }
    let mut at = HEADER_LEN + 16;
    let mut layout = None;
    loop {
        let header: [u8; 24] = probe.bytes(at)?;
        let len = le64(&header, 16)?.checked_sub(HEADER_LEN)?;
        let start = at + HEADER_LEN;
        if is_named(&header, *b"fmt ") {
            layout = Some(riff::format(probe, start, len)?);
        } else if is_named(&header, *b"data") {
            return Some(Waveform {
                layout: layout?,
                offset: start,
                len,
            });
        }
        at = start.checked_add(len)?.checked_next_multiple_of(8)?;
    }
}

fn is_named(header: &[u8; 24], name: [u8; 4]) -> bool {
    header.starts_with(&name) && header[4..16] == NAME_TAIL
}
