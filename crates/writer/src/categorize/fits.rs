//! FITS: images of 16 bits from telescopes.
//!
//! Pixels go to `fits/image`, what stands before and behind them to `fits/metadata`. Cameras of fewer bits leave the
//! lowest ones empty; how many is only known when all pixels have been looked at.

use super::{Part, Probe, framed, plain};
use crate::category::Category;

/// The unit of a FITS file.
const BLOCK_LEN: u64 = 2880;
const CARD_LEN: usize = 80;
/// Headers are some blocks long; a file without an end to its header is not worth more.
const HEADER_BLOCKS_MAX: u64 = 128;
const BYTES_PER_PIXEL: u64 = 2;
/// The most that the codec can leave out. Source: format specification, 3.7.
const UNUSED_LSBS_MAX: u32 = 8;

/// An image of a file, and what its pixels have in common as far as they have been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    file_len: u64,
    offset: u64,
    len: u64,
    component_count: u32,
    /// All bytes at even places from the start of the image joined, and those at odd places.
    high_bits: u8,
    low_bits: u8,
}

pub(super) fn claim(probe: &Probe<'_>) -> Option<Image> {
    let file_len = probe.len();
    let is_fits = probe.starts_with(b"SIMPLE  =") && file_len.is_multiple_of(BLOCK_LEN);
    if !is_fits || file_len < 2 * BLOCK_LEN {
        return None;
    }
    let mut header = Header::default();
    let mut block = [0; 2880];
    let mut at = 0;
    loop {
        if at >= HEADER_BLOCKS_MAX * BLOCK_LEN {
            return None;
        }
        probe.read(at, &mut block)?;
        at += BLOCK_LEN;
        if block.chunks_exact(CARD_LEN).any(|card| header.take(card)) {
            break;
        }
    }
    header.image(file_len, at)
}

/// What matters of a header.
#[derive(Debug, Default)]
struct Header {
    is_simple: bool,
    bits: Option<u64>,
    axes: Option<u64>,
    width: Option<u64>,
    height: Option<u64>,
    has_bayer_pattern: bool,
}

impl Header {
    /// Takes a card and returns whether it is the last.
    fn take(&mut self, card: &[u8]) -> bool {
        let (keyword, rest) = card.split_at(8);
        let value = rest.strip_prefix(b"=").unwrap_or_default();
        let value = value.split(|byte| *byte == b'/').next().unwrap_or_default();
        let text = std::str::from_utf8(value).unwrap_or_default().trim();
        let number = || text.parse().ok();
        match keyword.trim_ascii_end() {
            b"SIMPLE" => self.is_simple = text == "T",
            b"BITPIX" => self.bits = number(),
            b"NAXIS" => self.axes = number(),
            b"NAXIS1" => self.width = number(),
            b"NAXIS2" => self.height = number(),
            b"BAYERPAT" => self.has_bayer_pattern = true,
            b"END" => return true,
            _ => {}
        }
        false
    }

    fn image(&self, file_len: u64, offset: u64) -> Option<Image> {
        if !self.is_simple || self.bits != Some(16) || self.axes != Some(2) {
            return None;
        }
        let component_count = if self.has_bayer_pattern { 2 } else { 1 };
        let pixels = self.width?.checked_mul(self.height?)?;
        let len = pixels.checked_mul(BYTES_PER_PIXEL)?;
        let end = offset.checked_add(len)?;
        let is_whole = len.is_multiple_of(BYTES_PER_PIXEL * u64::from(component_count));
        (len > 0 && end <= file_len && is_whole).then_some(Image {
            file_len,
            offset,
            len,
            component_count,
            high_bits: 0,
            low_bits: 0,
        })
    }
}

impl Image {
    /// Looks at the bytes from `offset` of the file on.
    pub(crate) fn look(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        let start = self.offset.clamp(offset, end);
        let end = (self.offset + self.len).clamp(start, end);
        if start < self.offset || start == end {
            return;
        }
        let place = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
        let data = &data[place(start)..place(end)];
        let join = |pair: (u8, u8), bytes: &[u8; 2]| (pair.0 | bytes[0], pair.1 | bytes[1]);
        let (pairs, rest) = data.as_chunks::<2>();
        let mut pair = pairs.iter().fold((0, 0), join);
        pair.0 |= rest.first().copied().unwrap_or(0);
        if !(start - self.offset).is_multiple_of(BYTES_PER_PIXEL) {
            pair = (pair.1, pair.0);
        }
        self.high_bits |= pair.0;
        self.low_bits |= pair.1;
    }

    /// Splits the file, now that all of it has been looked at.
    pub(crate) fn parts(&self) -> Option<Vec<Part>> {
        // The high byte comes first.
        let bits = u16::from(self.high_bits) << 8 | u16::from(self.low_bits);
        let unused = bits.trailing_zeros().min(UNUSED_LSBS_MAX);
        let components = self.component_count;
        let metadata = format!(
            r#"{{"bytes_per_sample":2,"component_count":{components},"endianness":"big","unused_lsb_count":{unused}}}"#
        );
        let image = Category {
            name: "fits/image".to_owned(),
            subcategory: metadata.clone(),
            metadata: Some(metadata),
            granularity: 2 * components,
        };
        framed(
            self.file_len,
            self.offset,
            self.len,
            &plain("fits/metadata"),
            image,
        )
    }
}

#[cfg(test)]
mod tests;
