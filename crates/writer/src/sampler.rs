//! Compressing some blocks, and what they tell of all others.
//!
//! Each block is compressed with a codec that costs next to nothing, and a few, spread evenly over each stream, in earnest
//! as well. The sizes that a block has with the two codecs go together closely, so that the few tell what all others would
//! have: real = ratio * cheap, by stream. How far the sampled blocks lie from that line gives the range.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use durin_codec::{Encoder, Spec, encode_section};
use durin_format::Result;
use durin_format::section::{CompressionType, SectionType, encode_header};

use crate::sections::Section;
use crate::stats::thread_cpu;

/// The codec for all blocks: some 500 MB a second, and its sizes follow those of any other codec.
const CHEAP: &str = "zstd:level=1";
/// How many blocks of a stream are compressed in earnest at least, if it has as many.
const SAMPLES_MIN: u64 = 4;
/// One in so many is, if there are enough of them.
const STRIDE_MAX: u64 = 16;
/// The error that is always possible: what follows the line in the sample need not do so in the rest.
const MODEL_ERROR: f64 = 0.003;
/// The error of a block of which nothing like it was sampled.
const UNKNOWN_ERROR: f64 = 0.1;

/// Decides which blocks are compressed, and remembers what they came to.
#[derive(Debug, Default)]
pub struct Sampler {
    /// By stream, one in how many blocks is compressed in earnest.
    strides: OnceLock<Vec<u64>>,
    samples: Mutex<Vec<Sample>>,
    /// By stream, bytes of the whole for a byte of what is read.
    weights: OnceLock<Vec<f64>>,
}

/// A block that may be compressed.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The number of its section.
    pub number: u32,
    /// Its stream.
    pub stream: usize,
    /// A number that grows by one from block to block of the stream; where it begins does not matter.
    pub place: u64,
    /// Its bytes before compression.
    pub data_len: u64,
    /// What the cheap codec makes of it.
    pub look: Look,
    /// Whether compressing it in earnest is storing it, so that there is nothing to save by not doing so.
    pub is_stored: bool,
}

/// What the cheap codec makes of a block.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Bytes.
    pub len: u64,
    /// Processor time that it took.
    pub cpu: Duration,
}

/// Compresses blocks with the cheap codec.
#[derive(Default)]
pub struct CheapEncoder(Option<(usize, Box<dyn Encoder>)>);

/// What all blocks are expected to come to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prediction {
    /// Bytes of payloads, most likely.
    pub bytes: f64,
    /// How many bytes less or more it may be.
    pub margin: f64,
    /// Processor time that compressing them takes.
    pub cpu: Duration,
    /// Blocks.
    pub blocks: f64,
    /// Bytes of blocks before compression.
    pub data_bytes: f64,
    /// Blocks that were compressed in earnest.
    pub sampled_blocks: u64,
    /// Bytes of their payloads.
    pub sampled_bytes: u64,
    /// Processor time that the samples and looking at all blocks took.
    pub sampling_cpu: Duration,
}

/// One block.
#[derive(Clone, Copy, Debug)]
struct Sample {
    number: u32,
    stream: usize,
    data_len: u64,
    /// Its length with the cheap codec.
    cheap_len: u64,
    cheap_cpu: Duration,
    /// What it came to, if it was compressed in earnest.
    real: Option<Real>,
}

/// A block as it would be.
#[derive(Clone, Copy, Debug)]
struct Real {
    len: u64,
    cpu: Duration,
}

/// Sums over all blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Extrapolated {
    bytes: f64,
    variance: f64,
    cpu_seconds: f64,
    blocks: f64,
    data_bytes: f64,
}

impl Sampler {
    /// Decides which blocks are compressed in earnest, by how many each stream will have at most.
    pub fn plan(&self, block_counts: impl Iterator<Item = u64>) {
        let stride = |count: u64| (count / SAMPLES_MIN).clamp(1, STRIDE_MAX);
        self.strides
            .get_or_init(|| block_counts.map(stride).collect());
    }

    /// Takes what a byte of each stream stands for, if not all of it is read.
    pub(crate) fn weigh(&self, weights: Vec<f64>) {
        self.weights.get_or_init(|| weights);
    }

    /// Compresses a block with `encode` if it is in the sample; the section of any other has no payload.
    ///
    /// # Errors
    /// Those of `encode`.
    pub fn sample(
        &self,
        candidate: Candidate,
        encode: impl FnOnce() -> Result<Section>,
    ) -> Result<Section> {
        let Candidate {
            number,
            stream,
            place,
            data_len,
            look,
            is_stored,
        } = candidate;
        let mut sample = Sample {
            number,
            stream,
            data_len,
            cheap_len: look.len,
            cheap_cpu: look.cpu,
            real: None,
        };
        let section = if is_stored || self.takes(stream, place) {
            let begun = thread_cpu();
            let section = encode()?;
            sample.real = Some(Real {
                len: section.payload.len() as u64,
                cpu: thread_cpu().saturating_sub(begun),
            });
            section
        } else {
            Section {
                section_type: SectionType::Block,
                header: encode_header(number, SectionType::Block, CompressionType::None, &[]),
                payload: Vec::new(),
                data_len,
            }
        };
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push(sample);
        Ok(section)
    }

    /// Whether a block is to be compressed in earnest.
    fn takes(&self, stream: usize, place: u64) -> bool {
        let strides = self.strides.get();
        let stride = strides.and_then(|strides| strides.get(stream)).copied();
        let stride = stride.unwrap_or(1);
        place % stride == stride / 2
    }

    /// Returns what the blocks seen so far tell.
    #[must_use]
    pub fn predict(&self) -> Prediction {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.sort_unstable_by_key(|sample| sample.number);
        let weights = self.weights.get().map_or(&[][..], Vec::as_slice);
        let all = extrapolate(&samples, weights);
        let sampled = samples.iter().filter_map(|sample| sample.real);
        Prediction {
            bytes: all.bytes,
            margin: 2.0 * all.variance.sqrt() + MODEL_ERROR * all.bytes,
            cpu: Duration::try_from_secs_f64(all.cpu_seconds).unwrap_or_default(),
            blocks: all.blocks,
            data_bytes: all.data_bytes,
            sampled_blocks: sampled.clone().count() as u64,
            sampled_bytes: sampled.clone().map(|real| real.len).sum(),
            sampling_cpu: sampled.map(|real| real.cpu).sum::<Duration>()
                + samples.iter().map(|sample| sample.cheap_cpu).sum(),
        }
    }
}

impl Look {
    /// Of a block that is stored as it is.
    #[must_use]
    pub fn stored(data_len: u64) -> Self {
        Self {
            len: data_len,
            cpu: Duration::ZERO,
        }
    }
}

/// What an image is expected to come to.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Bytes of the image, most likely.
    pub image_bytes: u64,
    /// Bytes of the image, with some certainty at least.
    pub image_bytes_low: u64,
    /// Bytes of the image, with some certainty at most.
    pub image_bytes_high: u64,
    /// Processor time of all threads.
    pub cpu: Duration,
    /// Blocks compressed in earnest.
    pub sampled_blocks: u64,
}

impl Prediction {
    /// Returns what is to be expected of an image of which `sampled_image_bytes` were made with only the samples in it;
    /// all but compressing takes `cpu_besides`.
    #[must_use]
    pub fn expected(&self, sampled_image_bytes: u64, cpu_besides: Duration) -> Expected {
        // What was written beside the payloads of blocks: headers, tables. There are more headers in the whole.
        let besides = sampled_image_bytes.saturating_sub(self.sampled_bytes);
        let image_bytes = |bytes: f64| besides + to_u64(bytes.max(0.0));
        Expected {
            image_bytes: image_bytes(self.bytes),
            image_bytes_low: image_bytes(self.bytes - self.margin),
            image_bytes_high: image_bytes(self.bytes + self.margin),
            cpu: cpu_besides + self.cpu,
            sampled_blocks: self.sampled_blocks,
        }
    }
}

impl CheapEncoder {
    /// Compresses a block.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn look(&mut self, data: &[u8]) -> Result<Look> {
        let begun = thread_cpu();
        let kept = self.0.take().filter(|(len_max, _)| *len_max >= data.len());
        let (_, encoder) = match kept {
            Some(kept) => self.0.insert(kept),
            None => {
                let encoder = Spec::parse(CHEAP)?.encoder(data.len(), None)?;
                self.0.insert((data.len(), encoder))
            }
        };
        let encoded = encode_section(&mut **encoder, CompressionType::Zstd, data.to_vec())?;
        Ok(Look {
            len: encoded.payload.len() as u64,
            cpu: thread_cpu().saturating_sub(begun),
        })
    }
}

impl std::fmt::Debug for CheapEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheapEncoder").finish_non_exhaustive()
    }
}

fn extrapolate(samples: &[Sample], weights: &[f64]) -> Extrapolated {
    let overall = Line::through(samples.iter());
    let streams = samples.iter().map(|sample| sample.stream).max();
    let mut all = Extrapolated::default();
    for stream in 0..=streams.unwrap_or(0) {
        let of_stream = || samples.iter().filter(move |sample| sample.stream == stream);
        let weight = weights.get(stream).copied().unwrap_or(1.0);
        let own = Line::through(of_stream());
        let line = own.as_ref().or(overall.as_ref());
        let mut unsampled = 0.0;
        let mut unsampled_count: f64 = 0.0;
        let mut count = 0.0;
        for sample in of_stream() {
            count += 1.0;
            all.data_bytes += to_f64(sample.data_len) * weight;
            if let Some(real) = sample.real {
                all.bytes += to_f64(real.len) * weight;
                all.cpu_seconds += real.cpu.as_secs_f64() * weight;
            } else if let Some(line) = line {
                let bytes = line.bytes_per_cheap * to_f64(sample.cheap_len);
                // No block becomes larger than it is.
                all.bytes += bytes.min(to_f64(sample.data_len)) * weight;
                all.cpu_seconds += line.seconds_per_byte * to_f64(sample.data_len) * weight;
                unsampled += bytes * weight;
                unsampled_count += weight;
            }
        }
        all.blocks += count * weight;
        all.variance += match &own {
            // What a block is off the line, and what the line itself is off.
            Some(line) if line.count > 1.0 => {
                let share = 1.0 / unsampled_count.max(1.0) + 1.0 / line.count;
                line.variance() * unsampled_count.powi(2) * share
            }
            _ => (UNKNOWN_ERROR * unsampled).powi(2),
        };
    }
    all
}

/// What sampled blocks have in common.
#[derive(Clone, Copy, Debug)]
struct Line {
    bytes_per_cheap: f64,
    seconds_per_byte: f64,
    count: f64,
    /// Sum of the squares of the bytes that blocks lie off. Not of shares: blocks that shrink to next to nothing lie
    /// far off by their share, and do not matter.
    squares: f64,
}

impl Line {
    fn through<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Option<Self> {
        let sampled = samples.filter_map(|sample| sample.real.map(|real| (sample, real)));
        let sum = |figure: &dyn Fn(&Sample, Real) -> f64| -> f64 {
            sampled
                .clone()
                .map(|(sample, real)| figure(sample, real))
                .sum()
        };
        let cheap = sum(&|sample, _| to_f64(sample.cheap_len));
        let data = sum(&|sample, _| to_f64(sample.data_len));
        if cheap <= 0.0 {
            return None;
        }
        let bytes_per_cheap = sum(&|_, real| to_f64(real.len)) / cheap;
        let off = |sample: &Sample, real: Real| {
            let expected = bytes_per_cheap * to_f64(sample.cheap_len);
            (to_f64(real.len) - expected).powi(2)
        };
        Some(Self {
            bytes_per_cheap,
            seconds_per_byte: sum(&|_, real| real.cpu.as_secs_f64()) / data.max(1.0),
            count: sum(&|_, _| 1.0),
            squares: sum(&off),
        })
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0).max(1.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, not negative"
)]
pub(crate) fn to_u64(count: f64) -> u64 {
    count.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u32, stream: usize, cheap_len: u64, real_len: Option<u64>) -> Sample {
        Sample {
            number,
            stream,
            data_len: 1000,
            cheap_len,
            cheap_cpu: Duration::ZERO,
            real: real_len.map(|len| Real {
                len,
                cpu: Duration::from_secs(1),
            }),
        }
    }

    #[test]
    fn the_few_tell_what_the_others_are() {
        let samples: Vec<_> = (0..40)
            .map(|number| {
                let cheap = 200 + 10 * u64::from(number);
                sample(number, 0, cheap, (number % 8 == 4).then_some(cheap / 2))
            })
            .collect();
        let all = extrapolate(&samples, &[]);
        let truth: u64 = (0..40).map(|number| (200 + 10 * number) / 2).sum();
        assert!((all.bytes - to_f64(truth)).abs() < 1.0, "{all:?}");
        assert!(all.variance.sqrt() < 1.0, "on a line: {all:?}");
        assert!((all.cpu_seconds - 40.0).abs() < 1e-6, "{all:?}");
        assert!((all.data_bytes - 40_000.0).abs() < 1e-6);
        let doubled = extrapolate(&samples, &[2.0]);
        assert!((doubled.bytes - 2.0 * all.bytes).abs() < 1e-6);
    }

    #[test]
    fn scatter_widens_the_range() {
        let scattered: Vec<_> = (0..40)
            .map(|number| {
                let real = 100 + 40 * u64::from(number / 8 % 2);
                sample(number, 0, 240, (number % 8 == 4).then_some(real))
            })
            .collect();
        let all = extrapolate(&scattered, &[]);
        assert!(all.variance.sqrt() > 0.05 * all.bytes, "{all:?}");
        // A stream of which nothing is known follows the others, with a wide range.
        let mut with_other = scattered.clone();
        with_other.push(sample(40, 1, 240, None));
        let more = extrapolate(&with_other, &[]);
        assert!(more.bytes > all.bytes && more.variance > all.variance);
    }

    #[test]
    fn all_or_none() {
        let samples: Vec<_> = (0..4).map(|n| sample(n, 0, 500, Some(400))).collect();
        let all = extrapolate(&samples, &[]);
        assert!((all.bytes - 1600.0).abs() < 1e-6 && all.variance == 0.0);
        assert!(extrapolate(&[], &[]).bytes == 0.0);
    }

    #[test]
    fn every_stream_has_samples() {
        let sampler = Sampler::default();
        sampler.plan([1, 3, 20, 1000].into_iter());
        for (stream, first, count) in [(0, 0, 1), (1, 1, 3), (2, 4, 20), (3, 24, 1000)] {
            let taken = (first..first + count).filter(|number| sampler.takes(stream, *number));
            let taken = taken.count();
            assert!(taken >= 1, "{stream}: {taken}");
            assert!(taken <= 64, "{stream}: {taken}");
        }
    }
}
