//! Finding data that cannot be compressed: media, archives, encrypted data.
//!
//! Most data give themselves away at once: a sample whose bytes are unevenly distributed can be compressed, and nothing
//! more is asked. Only where the sample looks like noise is the piece really tried, once for the distribution of its
//! bytes (which the fast levels of zstd do not use, while the slow compressors do) and once for repetitions, with zstd.
//! Such data pass through the trial fast, and it costs a hundredth of what compressing them would.

use durin_codec::{Encoder, Histogram, Spec};
use durin_format::Result;

use super::IncompressibleOptions;

/// A sample with fewer bits in a byte than this can be compressed for sure.
const CLEAR_BITS: f64 = 7.2;
/// Bytes that the codes of a distribution take.
const CODE_TABLE_LEN: f64 = 128.0;

/// Tries data; one for each thread.
pub(crate) struct Trial {
    encoder: Box<dyn Encoder>,
    out: Vec<u8>,
}

/// A range of a file and whether it can be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) len: u64,
    pub(crate) is_incompressible: bool,
}

/// What is known of a file so far.
#[derive(Debug)]
pub(crate) struct Findings {
    options: IncompressibleOptions,
    file_len: u64,
    /// Bytes that have been tried, and that compressing would save of them.
    tried: u64,
    saved: f64,
    is_compressible: bool,
    /// For fragments: what is known of the block that the next bytes continue, and the ranges before it.
    block: Block,
    ranges: Vec<Range>,
    ranges_len: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    start: u64,
    end: u64,
    saved: f64,
}

impl Trial {
    /// # Errors
    /// What making an encoder gives, such as `Limit`.
    pub(crate) fn new(options: &IncompressibleOptions, piece_len: usize) -> Result<Self> {
        let spec = Spec::parse(&format!("zstd:level={}", options.zstd_level))?;
        Ok(Self {
            encoder: spec.encoder(piece_len, None)?,
            out: Vec::new(),
        })
    }

    /// Returns about how many bytes compressing the piece would save.
    fn savings(&mut self, piece: &[u8]) -> f64 {
        let len = float(piece.len() as u64);
        let sample = Histogram::of_sample(piece).bits_per_byte();
        let by_distribution = |bits: f64| (len * (1.0 - bits / 8.0) - CODE_TABLE_LEN).max(0.0);
        if sample < CLEAR_BITS {
            return by_distribution(sample);
        }
        let by_distribution = by_distribution(Histogram::of(piece).bits_per_byte());
        let by_repetitions = match self.encoder.encode(piece, &mut self.out) {
            Ok(()) => (len - float(self.out.len() as u64)).max(0.0),
            // Nothing is lost if it goes where it can be compressed.
            Err(_) => len,
        };
        by_distribution.max(by_repetitions)
    }
}

impl Findings {
    pub(crate) fn new(options: IncompressibleOptions, file_len: u64) -> Self {
        Self {
            options,
            file_len,
            tried: 0,
            saved: 0.0,
            is_compressible: file_len < options.min_input_size.max(1),
            block: Block::default(),
            ranges: Vec::new(),
            ranges_len: 0,
        }
    }

    /// Whether more data would change nothing.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_compressible
    }

    /// Takes the data at `offset`; the offsets ascend, and holes are left out.
    pub(crate) fn take(&mut self, trial: &mut Trial, mut offset: u64, mut data: &[u8]) {
        if !self.options.fragments {
            if !self.is_compressible {
                self.tried += data.len() as u64;
                self.saved += trial.savings(data);
                self.is_compressible =
                    self.saved > (1.0 - self.options.ratio) * float(self.file_len);
            }
            return;
        }
        let block_size = self.options.block_size.max(1);
        while !data.is_empty() {
            let block_end = (offset / block_size + 1).saturating_mul(block_size);
            if self.block.end != offset || self.block.start / block_size != offset / block_size {
                self.finish_block();
                self.block = Block {
                    start: offset,
                    end: offset,
                    saved: 0.0,
                };
            }
            let len = usize::try_from(block_end - offset).unwrap_or(usize::MAX);
            let (now, later) = data.split_at(len.min(data.len()));
            self.block.saved += trial.savings(now);
            offset += now.len() as u64;
            self.block.end = offset;
            data = later;
        }
    }

    /// Adds the block to the ranges.
    fn finish_block(&mut self) {
        let Block { start, end, saved } = self.block;
        let len = end - start;
        self.push(start - self.ranges_len, false);
        let is_incompressible =
            len >= self.options.min_input_size && saved <= (1.0 - self.options.ratio) * float(len);
        self.push(len, is_incompressible);
    }

    fn push(&mut self, len: u64, is_incompressible: bool) {
        self.ranges_len += len;
        match self.ranges.last_mut() {
            _ if len == 0 => {}
            Some(last) if last.is_incompressible == is_incompressible => last.len += len,
            _ => self.ranges.push(Range {
                len,
                is_incompressible,
            }),
        }
    }

    /// Returns the ranges of the file, now that all of it has been taken.
    pub(crate) fn finish(mut self) -> Vec<Range> {
        if self.options.fragments && !self.is_compressible {
            self.finish_block();
            self.push(self.file_len - self.ranges_len, false);
        } else {
            // A file of holes is none that needs to be stored as it is.
            let is_incompressible = !self.is_compressible && self.tried > 0;
            self.push(self.file_len, is_incompressible);
        }
        self.ranges
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: IncompressibleOptions = IncompressibleOptions {
        min_input_size: 256,
        block_size: 1 << 16,
        fragments: false,
        ratio: 0.99,
        zstd_level: -1,
    };

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56).to_le_bytes()[0]
        };
        (0..len).map(next).collect()
    }

    fn ranges(
        options: IncompressibleOptions,
        pieces: &[(u64, &[u8])],
        len: u64,
    ) -> Vec<(u64, bool)> {
        let mut trial = Trial::new(&options, 1 << 17).expect("an encoder");
        let mut findings = Findings::new(options, len);
        for (offset, data) in pieces {
            findings.take(&mut trial, *offset, data);
        }
        let ranges = findings.finish().into_iter();
        ranges
            .map(|range| (range.len, range.is_incompressible))
            .collect()
    }

    #[test]
    fn noise_is_incompressible_and_text_is_not() {
        for len in [256, 1000, 5000, 100_000] {
            let (noise, text) = (noise(len), b"some words ".repeat(len / 11 + 1));
            let file_len = len as u64;
            assert_eq!(
                ranges(OPTIONS, &[(0, &noise)], file_len),
                [(file_len, true)]
            );
            let text = &text[..len];
            assert_eq!(ranges(OPTIONS, &[(0, text)], file_len), [(file_len, false)]);
        }
    }

    #[test]
    fn what_repeats_or_is_skewed_is_compressible() {
        let repeated = noise(40_000).repeat(2);
        assert_eq!(
            ranges(OPTIONS, &[(0, &repeated)], 80_000),
            [(80_000, false)]
        );
        // Seven bits in each byte, in no order.
        let skewed: Vec<u8> = noise(80_000).iter().map(|byte| byte & 0x7F).collect();
        assert_eq!(ranges(OPTIONS, &[(0, &skewed)], 80_000), [(80_000, false)]);
    }

    #[test]
    fn small_files_and_holes_are_left_alone() {
        assert_eq!(ranges(OPTIONS, &[(0, &noise(255))], 255), [(255, false)]);
        assert_eq!(ranges(OPTIONS, &[], 1 << 40), [(1 << 40, false)]);
    }

    #[test]
    fn fragments_are_told_apart_by_blocks() {
        let options = IncompressibleOptions {
            fragments: true,
            ..OPTIONS
        };
        let block = 1_u64 << 16;
        let mut data = noise(1 << 17);
        data.extend(std::iter::repeat_n(b'x', 1 << 16));
        data.extend(noise(1000));
        let len = data.len() as u64;
        let expected = [(2 * block, true), (block, false), (1000, true)];
        assert_eq!(ranges(options, &[(0, &data)], len), expected);
        // In pieces that do not fit the blocks, behind a hole and before one.
        let pieces: Vec<_> = data.chunks(10_000).zip(0_u64..).collect();
        let pieces: Vec<(u64, &[u8])> = pieces
            .into_iter()
            .map(|(piece, number)| (3 * block + number * 10_000, piece))
            .collect();
        let expected = [
            (3 * block, false),
            (2 * block, true),
            (block, false),
            (1000, true),
            (block, false),
        ];
        assert_eq!(ranges(options, &pieces, 4 * block + len), expected);
        // A file of holes only.
        assert_eq!(ranges(options, &[], block), [(block, false)]);
    }
}
