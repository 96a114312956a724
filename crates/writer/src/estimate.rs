//! What a build would come to, without building.
//!
//! Everything is done as for an image, up to the blocks and with the metadata: scan, deduplication, order, segmentation.
//! Only the blocks, which take nearly all of the time at the higher levels, are not all compressed as asked. Each is
//! compressed with a codec that costs next to nothing, and a few, spread evenly over the image, in earnest as well. The
//! sizes that a block has with the two codecs go together closely, so that the few tell what all others would have:
//! real = ratio * cheap, by stream. How far the sampled blocks lie from that line gives the range.
//!
//! Of a tree too large to read in a reasonable time, windows of the stored order stand for the whole.
//! The estimate depends on the tree and the options only, but for the processor time.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use durin_codec::{Encoder, Spec, encode_section};
use durin_format::Result;
use durin_format::section::CompressionType;

use crate::category::{Fragment, Stream};
use crate::report::Report;

/// The codec for all blocks: some 500 MB a second, and its sizes follow those of any other codec.
const CHEAP: &str = "zstd:level=1";
/// How many blocks of a stream are compressed in earnest at least, if it has as many.
const SAMPLES_MIN: u64 = 4;
/// One in so many is, if there are enough of them.
const STRIDE_MAX: u64 = 16;
/// Bytes that are read of a tree at most, for the estimate itself.
const INPUT_MAX: u64 = 16 << 30;
/// Windows of a stream that stand for all of it.
const WINDOWS: u64 = 64;
/// The error that is always possible: what follows the line in the sample need not do so in the rest.
const MODEL_ERROR: f64 = 0.003;
/// The error of a block of which nothing like it was sampled.
const UNKNOWN_ERROR: f64 = 0.1;

/// What a build is expected to come to.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The figures of all that was done; what depends on blocks as written is an estimate.
    pub report: Report,
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
    /// The share of the data that was read; 1 unless there is a lot.
    pub input_share: f64,
}

/// Compresses samples of blocks, and remembers what they came to.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// By stream, one in how many blocks is compressed in earnest.
    strides: OnceLock<Vec<u64>>,
    samples: Mutex<Vec<Sample>>,
    /// By stream, bytes of the whole for a byte of what is read.
    weights: OnceLock<Vec<f64>>,
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) number: u32,
    pub(crate) stream: usize,
    pub(crate) data_len: u64,
    /// Its length with the cheap codec.
    pub(crate) cheap_len: u64,
    /// What it came to, if it was compressed in earnest.
    pub(crate) real: Option<Real>,
}

/// A block as it would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real {
    pub(crate) len: u64,
    pub(crate) cpu: Duration,
}

/// What all blocks come to.
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
    pub(crate) fn plan(&self, block_counts: impl Iterator<Item = u64>) {
        let stride = |count: u64| (count / SAMPLES_MIN).clamp(1, STRIDE_MAX);
        self.strides
            .get_or_init(|| block_counts.map(stride).collect());
    }

    /// Leaves windows of each stream if there is more than can be read in a reasonable time.
    pub(crate) fn thin(&self, streams: &mut [Stream]) {
        self.thin_to(INPUT_MAX, streams);
    }

    fn thin_to(&self, input_max: u64, streams: &mut [Stream]) {
        let len = |stream: &Stream| stream.fragments.iter().map(|f| f.len).sum::<u64>();
        let data_len: u64 = streams.iter().map(len).sum();
        let weight = |stream: &mut Stream| {
            let whole = len(stream);
            if data_len > input_max {
                thin(&mut stream.fragments, whole, input_max, data_len);
            }
            to_f64(whole.max(1)) / to_f64(len(stream).max(1))
        };
        let weights = streams.iter_mut().map(weight).collect();
        self.weights.get_or_init(|| weights);
    }

    /// Returns how many bytes a block takes with a codec that costs next to nothing.
    pub(crate) fn cheap_len(cheap: &mut dyn Encoder, data: Vec<u8>) -> Result<u64> {
        let encoded = encode_section(cheap, CompressionType::Zstd, data)?;
        Ok(encoded.payload.len() as u64)
    }

    /// Returns the encoder for that.
    pub(crate) fn cheap_encoder(block_len: usize) -> Result<Box<dyn Encoder>> {
        Spec::parse(CHEAP)?.encoder(block_len, None)
    }

    /// Whether a block is to be compressed in earnest.
    pub(crate) fn takes(&self, stream: usize, number: u32) -> bool {
        let strides = self.strides.get();
        let stride = strides.and_then(|strides| strides.get(stream)).copied();
        let stride = stride.unwrap_or(1);
        u64::from(number) % stride == stride / 2
    }

    /// Remembers a block.
    pub(crate) fn record(&self, sample: Sample) {
        self.samples
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sample);
    }

    /// Completes the report of a build whose blocks were sampled.
    pub(crate) fn estimate(&self, report: Report, cpu_besides: Duration) -> Estimate {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.sort_unstable_by_key(|sample| sample.number);
        let weights = self.weights.get().map_or(&[][..], Vec::as_slice);
        let all = extrapolate(&samples, weights);
        let sampled = samples.iter().filter_map(|sample| sample.real);
        let sampled_bytes: u64 = sampled.clone().map(|real| real.len).sum();
        // What was written beside the payloads of blocks: headers, tables. There are more headers in the whole.
        let besides = report.image_bytes.saturating_sub(sampled_bytes);
        let margin = 2.0 * all.variance.sqrt() + MODEL_ERROR * all.bytes;
        let data: f64 = report.block_bytes.max(1) as f64;
        let image = |bytes: f64| besides + to_u64(bytes.max(0.0));
        Estimate {
            image_bytes: image(all.bytes),
            image_bytes_low: image(all.bytes - margin),
            image_bytes_high: image(all.bytes + margin),
            cpu: cpu_besides.mul_f64(all.data_bytes.max(1.0) / data)
                + Duration::try_from_secs_f64(all.cpu_seconds).unwrap_or_default(),
            sampled_blocks: sampled.count() as u64,
            input_share: (data / all.data_bytes.max(1.0)).min(1.0),
            report: Report {
                image_bytes: image(all.bytes),
                blocks: to_u64(all.blocks),
                block_bytes: to_u64(all.data_bytes),
                compressed_block_bytes: to_u64(all.bytes),
                // Their blocks were not compressed.
                categories: Vec::new(),
                ..report
            },
        }
    }
}

/// Leaves evenly spread windows of fragments, with a share of `input_max / data_len` of their bytes.
fn thin(fragments: &mut Vec<Fragment>, whole: u64, input_max: u64, data_len: u64) {
    let window = whole.div_ceil(WINDOWS).max(1);
    let share = to_f64(input_max) / to_f64(data_len);
    let kept = to_u64(to_f64(window) * share).max(1);
    let mut at = 0;
    let mut thinned = Vec::new();
    for fragment in fragments.iter() {
        // A long fragment may lie in several windows.
        let end = at + fragment.len;
        let mut start = at;
        while start < end {
            let window_start = start - start % window;
            let from = start.max(window_start);
            let to = end.min(window_start + kept);
            if from < to {
                thinned.push(Fragment {
                    offset: fragment.offset + (from - at),
                    len: to - from,
                    ..*fragment
                });
            }
            start = window_start + window;
        }
        at = end;
    }
    *fragments = thinned;
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
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, not negative"
)]
fn to_u64(count: f64) -> u64 {
    count.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::{Categories, StreamSettings};
    use crate::options::{BuildOptions, Input};

    fn sample(number: u32, stream: usize, cheap_len: u64, real_len: Option<u64>) -> Sample {
        Sample {
            number,
            stream,
            data_len: 1000,
            cheap_len,
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
            assert!(taken >= 1.min(count as usize), "{stream}: {taken}");
            assert!(taken <= 64, "{stream}: {taken}");
        }
    }

    #[test]
    fn windows_stand_for_a_large_tree() {
        let options = BuildOptions::new(Input::Directory("/".into()));
        let categories = Categories::new();
        let settings = StreamSettings::of(&options, categories.get(0));
        let fragment = |content, len| Fragment {
            content,
            offset: 0,
            len,
        };
        let fragments: Vec<_> = (0..1000)
            .map(|content| fragment(content, 1000))
            .chain([fragment(1000, 1_000_000)])
            .collect();
        let mut streams = [Stream {
            category: 0,
            settings,
            fragments,
        }];
        let sampler = Sampler::default();
        sampler.thin_to(200_000, &mut streams);
        let fragments = &streams[0].fragments;
        let kept: u64 = fragments.iter().map(|fragment| fragment.len).sum();
        assert!((180_000..=220_000).contains(&kept), "{kept}");
        let of_large = fragments.iter().filter(|f| f.content == 1000);
        assert!(of_large.count() >= 30, "windows within a long fragment");
        let weight = sampler.weights.get().expect("thinned")[0];
        assert!((9.0..11.2).contains(&weight), "{weight}");
    }
}
