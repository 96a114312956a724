//! AIFF and AIFF-C files.

use super::pcm::{Layout, Waveform};
use super::probe::{Probe, be16, be32};

/// The description of AIFF, and what AIFF-C adds first.
const COMM_LEN: u32 = 18;
/// The offset and the block size in front of the samples.
const SSND_HEADER_LEN: u32 = 8;

pub(super) fn waveform(probe: &Probe<'_>) -> Option<Waveform> {
    let head: [u8; 12] = probe.bytes(0)?;
    if !head.starts_with(b"FORM") || !matches!(&head[8..], b"AIFF" | b"AIFC") {
        return None;
    }
    let has_type = head.ends_with(b"AIFC");
    let mut at = 12;
    let mut common = None;
    let mut samples = None;
    // The two chunks come in any order.
    while common.is_none() || samples.is_none() {
        let chunk: [u8; 8] = probe.bytes(at)?;
        let size = be32(&chunk, 4)?;
        let start = at + 8;
        match &chunk[..4] {
            b"COMM" => common = Some(describe(probe, start, size, has_type)?),
            b"SSND" => {
                let header: [u8; 8] = probe.bytes(start)?;
                let skipped = u64::from(be32(&header, 0)?) + u64::from(SSND_HEADER_LEN);
                let len = u64::from(size).checked_sub(skipped)?;
                samples = Some((start + skipped, len));
            }
            _ => {}
        }
        at = start + u64::from(size) + u64::from(size % 2);
    }
    let (layout, frame_count) = common?;
    let (offset, len) = samples?;
    let frame_len = u64::from(layout.bytes_per_sample) * u64::from(layout.channels);
    Some(Waveform {
        layout,
        offset,
        len: len.min(frame_len * u64::from(frame_count)),
    })
}

/// Returns how samples lie and how many there are of each channel.
fn describe(probe: &Probe<'_>, start: u64, size: u32, has_type: bool) -> Option<(Layout, u32)> {
    if size < COMM_LEN + if has_type { 4 } else { 0 } {
        return None;
    }
    let common: [u8; 8] = probe.bytes(start)?;
    let big_endian = !has_type
        || match &probe.bytes::<4>(start + u64::from(COMM_LEN))? {
            b"NONE" | b"twos" => true,
            b"sowt" => false,
            _ => return None,
        };
    let bits = u32::from(be16(&common, 6)?);
    let layout = Layout {
        big_endian,
        signed: true,
        bytes_per_sample: bits.div_ceil(8),
        bits_per_sample: bits,
        channels: u32::from(be16(&common, 0)?),
    };
    Some((layout, be32(&common, 2)?))
}
