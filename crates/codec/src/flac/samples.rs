//! Samples as they lie in the bytes of a sound file, and as numbers.

use durin_format::{Error, Result};

/// How samples lie in bytes, channels interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleLayout {
    pub(super) channel_count: usize,
    /// Bits that carry the sample.
    pub(super) bits: u32,
    /// Bytes that a sample takes.
    pub(super) bytes: usize,
    pub(super) signed: bool,
    pub(super) big_endian: bool,
    /// Whether bits that carry nothing are the lowest of the word instead of the highest.
    pub(super) low_padding: bool,
}

impl SampleLayout {
    /// Bytes of one sample of every channel.
    pub(super) fn frame_len(&self) -> usize {
        self.bytes * self.channel_count
    }

    /// By how many bits the sample sits above the lowest one.
    fn shift(&self) -> u32 {
        if self.low_padding {
            self.word_bits() - self.bits
        } else {
            0
        }
    }

    fn word_bits(&self) -> u32 {
        match self.bytes {
            1 => 8,
            2 => 16,
            3 => 24,
            _ => 32,
        }
    }

    /// Splits `data` into its channels.
    ///
    /// # Errors
    /// `InvalidInput` when they are no whole samples of every channel, or when bits that should carry nothing do.
    pub(super) fn unpack(&self, data: &[u8], channels: &mut Vec<Vec<i32>>) -> Result<()> {
        if !data.len().is_multiple_of(self.frame_len()) {
            return Err(Error::invalid_input(format!(
                "flac: {} bytes are no whole samples of {} channels",
                data.len(),
                self.channel_count
            )));
        }
        channels.resize_with(self.channel_count, Vec::new);
        let count = data.len() / self.frame_len();
        let mut exact = true;
        for (index, channel) in channels.iter_mut().enumerate() {
            channel.clear();
            channel.reserve(count);
            for bytes in data
                .chunks_exact(self.bytes)
                .skip(index)
                .step_by(self.channel_count)
            {
                let word = self.load(bytes);
                let sample = self.sample(word);
                exact &= self.word(i64::from(sample)) == word;
                channel.push(sample);
            }
        }
        if exact {
            Ok(())
        } else {
            Err(Error::invalid_input(
                "flac: padding bits that are not empty",
            ))
        }
    }

    /// Appends the bytes of samples, of which every channel has equally many.
    pub(super) fn pack(&self, channels: &[Vec<i64>], out: &mut Vec<u8>) {
        let start = out.len();
        let count = channels.first().map_or(0, Vec::len);
        out.resize(start + count * self.frame_len(), 0);
        let target = out.get_mut(start..).unwrap_or_default();
        for (index, channel) in channels.iter().enumerate() {
            let slots = target
                .chunks_exact_mut(self.bytes)
                .skip(index)
                .step_by(self.channel_count);
            for (slot, sample) in slots.zip(channel) {
                self.store(self.word(*sample), slot);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits are what is wanted"
    )]
    fn word(&self, sample: i64) -> u32 {
        let offset = if self.signed { 0 } else { 1 << (self.bits - 1) };
        let word = (sample.wrapping_add(offset) << self.shift()).cast_unsigned() as u32;
        word & (u32::MAX >> (32 - self.word_bits()))
    }

    fn sample(&self, word: u32) -> i32 {
        let unused = 32 - self.bits;
        let top = word >> self.shift() << unused;
        if self.signed {
            top.cast_signed() >> unused
        } else {
            // Takes 2^(bits - 1) away by flipping the highest bit before extending it.
            (top ^ (1 << 31)).cast_signed() >> unused
        }
    }

    fn load(&self, bytes: &[u8]) -> u32 {
        let join = |word: u32, byte: &u8| (word << 8) | u32::from(*byte);
        if self.big_endian {
            bytes.iter().fold(0, join)
        } else {
            bytes.iter().rev().fold(0, join)
        }
    }

    fn store(&self, word: u32, slot: &mut [u8]) {
        let bytes = word.to_le_bytes();
        if self.big_endian {
            slot.iter_mut()
                .rev()
                .zip(bytes)
                .for_each(|(slot, byte)| *slot = byte);
        } else {
            slot.iter_mut()
                .zip(bytes)
                .for_each(|(slot, byte)| *slot = byte);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_samples_and_back() {
        let layout = SampleLayout {
            channel_count: 1,
            bits: 12,
            bytes: 2,
            signed: false,
            big_endian: false,
            low_padding: false,
        };
        let signed = SampleLayout {
            signed: true,
            ..layout
        };
        let low = SampleLayout {
            low_padding: true,
            ..layout
        };
        let signed_low = SampleLayout {
            low_padding: true,
            ..signed
        };
        for (layout, data, samples) in [
            (layout, [0x00, 0x08, 0x01, 0x00], [0, -2047]),
            (signed, [0xFF, 0xFF, 0x01, 0x00], [-1, 1]),
            (low, [0x00, 0x80, 0x10, 0x00], [0, -2047]),
            (signed_low, [0xF0, 0xFF, 0x10, 0x80], [-1, -2047]),
        ] {
            for big_endian in [false, true] {
                let layout = SampleLayout {
                    big_endian,
                    ..layout
                };
                let [a, b, c, d] = data;
                let data = if big_endian { [b, a, d, c] } else { data };
                let mut channels = Vec::new();
                layout.unpack(&data, &mut channels).unwrap();
                assert_eq!(channels, [samples]);
                let mut out = Vec::new();
                layout.pack(&[samples.map(i64::from).to_vec()], &mut out);
                assert_eq!(out, data);
            }
        }
    }

    #[test]
    fn full_padding_is_refused() {
        let layout = SampleLayout {
            channel_count: 2,
            bits: 20,
            bytes: 3,
            signed: true,
            big_endian: true,
            low_padding: true,
        };
        let mut channels = Vec::new();
        assert!(
            layout
                .unpack(&[1, 2, 0x30, 1, 2, 0x31], &mut channels)
                .is_err()
        );
        assert!(layout.unpack(&[1, 2, 0x30], &mut channels).is_err());
        assert!(
            layout
                .unpack(&[1, 2, 0x30, 1, 2, 0x30], &mut channels)
                .is_ok()
        );
    }
}
