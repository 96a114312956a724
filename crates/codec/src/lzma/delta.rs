//! Data for which the Delta filter pays: values of a fixed length that change little from one to the next, as pixels,
//! samples and measurements do.
//!
//! How bytes differ from those some bytes before is distributed less evenly than the bytes are; that is found by counting,
//! and tells at which distance. But the compressor knows repetitions, too, which graphics are full of and which the filter
//! spoils. So what the counts suggest is tried.

use std::num::NonZeroU8;

use durin_format::Result;

use super::filters::Filter;
use super::stream::Compressor;
use super::tune::{Model, Trials};
use crate::histogram::{Histogram, places};

/// One, two and four channels or bytes; of two bytes each; of four. And doubles, alone or as pairs.
const DISTANCES: [u8; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Bytes with fewer bits than these have more to gain from repetitions: text, most code, tables.
const BITS_MIN: f64 = 5.0;
/// The filter has to spare so many bits in a byte to be tried.
const BITS_SPARED_MIN: f64 = 0.4;

/// Ways to model what the filter leaves: for pixels; for numbers of 2 and 4 bytes, whose lower bytes are noise.
pub(super) const MODELS: [Model; 3] = [
    Model::new(4, 0, 0),
    Model::new(3, 1, 1),
    Model::new(2, 2, 2),
];

/// The filter changes all of a block and makes decoding slower: it has to save this share of a sample, 1/32.
pub(super) const SHIFT: u32 = 5;

/// Returns at which distance bytes of `data` change so little that the filter may pay.
pub(super) fn likely(data: &[u8]) -> Option<NonZeroU8> {
    let data = places(data);
    let bits = Histogram::of(&data).bits_per_byte();
    if bits < BITS_MIN {
        return None;
    }
    let changes = |distance: u8| Histogram::of_changes(&data, distance.into()).bits_per_byte();
    let (distance, changes) = DISTANCES
        .map(|distance| (distance, changes(distance)))
        .into_iter()
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    NonZeroU8::new(distance).filter(|_| bits - changes > BITS_SPARED_MIN)
}

/// Tells data for which the Delta filter pays; one for each thread.
#[derive(Debug)]
pub struct DeltaTrial(Compressor);

impl DeltaTrial {
    /// Bytes that are tried: few, as compressing them costs as much as some of the data that follow.
    const LEN_MAX: usize = 64 << 10;

    /// Makes one that has no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Compressor::new())
    }

    /// Returns at which distance a Delta filter makes `data` clearly smaller, as far as up to 64 KiB of them tell.
    ///
    /// # Errors
    /// [`durin_format::ErrorKind::Limit`] if there is no memory.
    pub fn distance(&mut self, data: &[u8]) -> Result<Option<NonZeroU8>> {
        let Some(distance) = likely(data) else {
            return Ok(None);
        };
        // The end, far from headers.
        let data = &data[data.len().saturating_sub(Self::LEN_MAX)..];
        let mut trials = Trials::new(data, &mut self.0);
        let default = (Model::DEFAULT, trials.len_with(Model::DEFAULT)?);
        let (plain, len) = trials.better(default, 0, MODELS)?;
        let filtered = MODELS.map(|model| model.with(Filter::delta(distance)));
        let (best, _) = trials.better((plain, len), len >> SHIFT, filtered)?;
        Ok(best.filter.map(|_| distance))
    }
}

impl Default for DeltaTrial {
    fn default() -> Self {
        Self::new()
    }
}
