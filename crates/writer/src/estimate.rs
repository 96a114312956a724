//! What a build would come to, without building.
//!
//! Everything is done as for an image, up to the blocks and with the metadata: scan, deduplication, order, segmentation.
//! Only the blocks, which take nearly all of the time at the higher levels, are not all compressed as asked: `sampler`.
//!
//! Of a tree too large to read in a reasonable time, windows of the stored order stand for the whole.
//! The estimate depends on the tree and the options only, but for the processor time.

use std::time::Duration;

use crate::category::{Fragment, Stream};
use crate::report::Report;
use crate::sampler::{Expected, Sampler, to_f64, to_u64};

/// Bytes that are read of a tree at most, for the estimate itself.
const INPUT_MAX: u64 = 16 << 30;
/// Windows of a stream that stand for all of it.
const WINDOWS: u64 = 64;

/// What a build is expected to come to.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The figures of all that was done; what depends on blocks as written is an estimate.
    pub report: Report,
    /// The estimate itself.
    pub expected: Expected,
    /// The share of the data that was read; 1 unless there is a lot.
    pub input_share: f64,
}

impl Estimate {
    /// Completes the report of a build whose blocks were sampled; `cpu_besides` was spent on other things than those.
    pub(crate) fn of(sampler: &Sampler, report: Report, cpu_besides: Duration) -> Self {
        let all = sampler.predict();
        let data = to_f64(report.block_bytes.max(1));
        let cpu_besides = cpu_besides.mul_f64(all.data_bytes.max(1.0) / data);
        let expected = all.expected(report.image_bytes, cpu_besides);
        Self {
            expected,
            input_share: (data / all.data_bytes.max(1.0)).min(1.0),
            report: Report {
                image_bytes: expected.image_bytes,
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

/// Leaves windows of each stream if there is more than can be read in a reasonable time.
pub(crate) fn thin_streams(sampler: &Sampler, streams: &mut [Stream]) {
    sampler.weigh(thin_to(INPUT_MAX, streams));
}

/// Returns the bytes of the whole for a byte of what is left of each stream.
fn thin_to(input_max: u64, streams: &mut [Stream]) -> Vec<f64> {
    let len = |stream: &Stream| stream.fragments.iter().map(|f| f.len).sum::<u64>();
    let data_len: u64 = streams.iter().map(len).sum();
    let weight = |stream: &mut Stream| {
        let whole = len(stream);
        if data_len > input_max {
            thin(&mut stream.fragments, whole, input_max, data_len);
        }
        to_f64(whole.max(1)) / to_f64(len(stream).max(1))
    };
    streams.iter_mut().map(weight).collect()
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
                    group_kib: 0,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::{Categories, StreamSettings};
    use crate::options::{BuildOptions, Input};

    #[test]
    fn windows_stand_for_a_large_tree() {
        let options = BuildOptions::new(Input::Directory("/".into()));
        let categories = Categories::new();
        let settings = StreamSettings::of(&options, categories.get(0));
        let fragment = |content, len| Fragment {
            content,
            group_kib: 0,
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
        let weights = thin_to(200_000, &mut streams);
        let fragments = &streams[0].fragments;
        let kept: u64 = fragments.iter().map(|fragment| fragment.len).sum();
        assert!((180_000..=220_000).contains(&kept), "{kept}");
        let of_large = fragments.iter().filter(|f| f.content == 1000);
        assert!(of_large.count() >= 30, "windows within a long fragment");
        assert!((9.0..11.2).contains(&weights[0]), "{weights:?}");
    }
}
