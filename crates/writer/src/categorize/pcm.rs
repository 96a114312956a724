//! Sampled sound: finding the samples in WAV, Wave64, AIFF and CAF files.
//!
//! Samples go to `pcmaudio/waveform`, what stands before and behind them to `pcmaudio/metadata`. Only whole numbers are
//! taken, and of what the header says only what fits the file: samples that end early are taken as far as they go.

use super::{Claim, Probe, framed, plain};
use super::{caf, iff, riff, wave64};
use crate::category::Category;

/// The most channels of a codec for sound, and more than nearly all files have.
const CHANNELS_MAX: u32 = 8;

/// How samples lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) big_endian: bool,
    pub(super) signed: bool,
    pub(super) bytes_per_sample: u32,
    /// Bits that carry the sample, the highest of its bytes.
    pub(super) bits_per_sample: u32,
    pub(super) channels: u32,
}

/// Samples of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waveform {
    pub(super) layout: Layout,
    pub(super) offset: u64,
    /// Bytes, which may be more than there are.
    pub(super) len: u64,
}

impl Layout {
    /// Whether numbers read from a header make sense.
    fn is_valid(&self) -> bool {
        let (bytes, bits) = (self.bytes_per_sample, self.bits_per_sample);
        if !(1..=CHANNELS_MAX).contains(&self.channels) || !(1..=4).contains(&bytes) {
            return false;
        }
        // 20 or 24 bits in four bytes are usual, too; else there is no more room than needed.
        let fills = bits > 8 * (bytes - 1) || bytes == 4 && bits >= 16;
        (8..=8 * bytes).contains(&bits) && fills
    }

    fn category(&self) -> Category {
        let Self {
            big_endian,
            signed,
            bytes_per_sample,
            bits_per_sample,
            channels,
        } = *self;
        let endianness = if big_endian { "big" } else { "little" };
        let signedness = if signed { "signed" } else { "unsigned" };
        let metadata = format!(
            r#"{{"bits_per_sample":{bits_per_sample},"bytes_per_sample":{bytes_per_sample},"endianness":"{endianness}","number_of_channels":{channels},"padding":"lsb","signedness":"{signedness}"}}"#
        );
        Category {
            name: "pcmaudio/waveform".to_owned(),
            subcategory: metadata.clone(),
            metadata: Some(metadata),
            granularity: bytes_per_sample * channels,
        }
    }
}

pub(super) fn claim(probe: &Probe<'_>) -> Option<Claim> {
    let waveform = riff::waveform(probe)
        .or_else(|| iff::waveform(probe))
        .or_else(|| caf::waveform(probe))
        .or_else(|| wave64::waveform(probe))?;
    if !waveform.layout.is_valid() {
        return None;
    }
    let category = waveform.layout.category();
    let there = probe.len().checked_sub(waveform.offset)?.min(waveform.len);
    let len = there - there % u64::from(category.granularity);
    if len == 0 {
        return None;
    }
    let metadata = plain("pcmaudio/metadata");
    let parts = framed(probe.len(), waveform.offset, len, &metadata, category)?;
    Some(Claim::Fragments(parts))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
