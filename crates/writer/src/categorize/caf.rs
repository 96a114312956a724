//! Core Audio files.

use super::pcm::{Layout, Waveform};
use super::probe::{Probe, be16, be32, be64};

const FLAG_FLOAT: u32 = 1;
const FLAG_LITTLE_ENDIAN: u32 = 2;
/// The number of edits in front of the samples.
const EDIT_COUNT_LEN: u64 = 4;
/// The size of samples that go on to the end of the file.
const TO_THE_END: u64 = u64::MAX;

pub(super) fn waveform(probe: &Probe<'_>) -> Option<Waveform> {
    if !probe.starts_with(b"caff") || be16(&probe.bytes::<8>(0)?, 4)? != 1 {
        return None;
    }
    let mut at = 8;
    let mut layout = None;
    loop {
        let chunk: [u8; 12] = probe.bytes(at)?;
        let size = be64(&chunk, 4)?;
        let start = at + 12;
        match &chunk[..4] {
            b"desc" => layout = Some(describe(&probe.bytes(start)?)?),
            b"data" => {
                let len = match size {
                    TO_THE_END => u64::MAX,
                    size => size.checked_sub(EDIT_COUNT_LEN)?,
                };
                return Some(Waveform {
                    layout: layout?,
                    offset: start + EDIT_COUNT_LEN,
                    len,
                });
            }
            _ => {}
        }
        at = start.checked_add(size)?;
    }
}

fn describe(desc: &[u8; 32]) -> Option<Layout> {
    let flags = be32(desc, 12)?;
    let packet_len = be32(desc, 16)?;
    let frames_per_packet = be32(desc, 20)?;
    let channels = be32(desc, 24)?;
    if &desc[8..12] != b"lpcm" || flags & FLAG_FLOAT != 0 || frames_per_packet != 1 {
        return None;
    }
    if channels == 0 || !packet_len.is_multiple_of(channels) {
        return None;
    }
    Some(Layout {
        big_endian: flags & FLAG_LITTLE_ENDIAN == 0,
        signed: true,
        bytes_per_sample: packet_len / channels,
        bits_per_sample: be32(desc, 28)?,
        channels,
    })
}
