//! Settings that suit one block: how literals and matches are modelled, and a filter for machine code.
//!
//! Our encoder models each part of a block as it suits that, so that only a filter is chosen for it here.
//!
//! In: a block. Out: what compressed a sample of it best. The sample is compressed some times by the fastest encoder,
//! which together costs about a 50th of compressing a block of 16 MiB at level 9. Which candidates are tried follows from
//! counts: text gets no filter, and a filter is tried only where there are instructions that it changes, or bytes that are
//! close to those some bytes before.
//!
//! A sample does not show that a block repeats itself, as versions of a program do. A filter makes the calls of one
//! function alike, and those of a function that has moved different from what they were. So a fast look at the whole block
//! decides on a filter for machine code; docs/levels.md has what it says of blocks beside what became of them.

use durin_format::Result;
use durin_lzma2 as lzma2;

use super::delta;
use super::filters::Filter;
use super::stream::{Compressor, Container, Settings};
use crate::sample::{Probe, sample};

/// What a block is compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) lc: u32,
    pub(super) lp: u32,
    pub(super) pb: u32,
    pub(super) filter: Option<Filter>,
}

impl Model {
    /// The library's default.
    pub(super) const DEFAULT: Self = Self::new(3, 0, 2);

    pub(super) const fn new(lc: u32, lp: u32, pb: u32) -> Self {
        Self {
            lc,
            lp,
            pb,
            filter: None,
        }
    }

    pub(super) fn but(self, given: lzma2::Given) -> Self {
        Self {
            lc: given.lc.unwrap_or(self.lc),
            lp: given.lp.unwrap_or(self.lp),
            pb: given.pb.unwrap_or(self.pb),
            ..self
        }
    }

    /// As [`Self::but`], where what is not given makes room for what is.
    pub(super) fn around(self, given: lzma2::Given) -> Self {
        let model = self.but(given);
        let lc_max = LC_LP_MAX.saturating_sub(model.lp);
        Self {
            lc: given.lc.unwrap_or(model.lc.min(lc_max)),
            ..model
        }
    }

    pub(super) fn with(self, filter: Filter) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }
}

/// The most that `lc` and `lp` are together.
const LC_LP_MAX: u32 = 4;

/// Text has no alignment, and its letters say much about the next one.
const TEXT_MODELS: [Model; 2] = [Model::new(4, 0, 0), Model::new(3, 0, 0)];
/// Without alignment; instructions and numbers of 4 bytes; of 2 bytes.
const BINARY_MODELS: [Model; 3] = [
    Model::new(4, 0, 0),
    Model::new(2, 2, 2),
    Model::new(3, 1, 1),
];

/// A filter changes all of a block and makes decoding slower: where the sample decides, it has to save this share, 1/256.
const FILTER_SHIFT: u32 = 8;
/// Samples of code miss what filters do to all of it by some percent: the whole is looked at unless they become larger by
/// this share, 1/64.
const LOOK_SHIFT: u32 = 6;
/// The look finds most of what repeats, but has less use for what a filter makes of the rest than this encoder has: what
/// the sample says counts for an eighth.
const SAMPLE_SHARE: i64 = 8;
/// What both have to save together, as a share: 1/512.
const SAVED_SHARE_MIN: i64 = 512;
/// In the whole of a block that is machine code, matches count for more than literals: what suits a sample better than the
/// default has to do so by this share of it, 1/128.
const BINARY_SHIFT: u32 = 7;
/// A filter is tried if there are this many instructions for it among the bytes: one in 512.
const CODE_SHIFT: u32 = 9;
/// A block is text if at most one byte in 64 cannot be part of it.
const TEXT_SHIFT: u32 = 6;

/// Returns the best model for `data`, as far as there is a choice.
///
/// Without `probe` the sample alone decides on a filter.
pub(super) fn choose(
    data: &[u8],
    choices: &Choices,
    compressor: &mut Compressor,
    probe: Option<&mut Probe>,
) -> Result<Model> {
    let sample = sample(data);
    let given = choices.given;
    let default = Model::DEFAULT.around(given);
    let is_text = is_text(&sample);
    let mut filters: Vec<Filter> = Vec::new();
    let mut distance = None;
    if choices.filters && !is_text {
        filters.extend(machine_code(&sample).map(Filter::Ours));
        distance = delta::likely(&sample);
    }
    if choices.by_part && filters.is_empty() && distance.is_none() {
        return Ok(default);
    }
    let mut trials = Trials::new(&sample, compressor);
    let mut best = (default, trials.len_with(default)?);
    if is_text {
        let models = TEXT_MODELS.map(|model| model.but(given));
        return Ok(trials.better(best, 0, models)?.0);
    }
    // Also if a part gets a model of its own later: a filter has to save more than another model does.
    let models = BINARY_MODELS.map(|model| model.but(given));
    best = trials.better(best, best.1 >> BINARY_SHIFT, models)?;
    let (unfiltered, len) = best;
    let filtered = filters.into_iter().map(|filter| unfiltered.with(filter));
    let worst = (unfiltered, len + (len >> LOOK_SHIFT));
    let (filtered, filtered_len) = trials.better(worst, 0, filtered)?;
    if let Some(filter) = filtered.filter.and_then(Filter::ours) {
        let lens = Lens {
            plain: len,
            filtered: filtered_len,
        };
        let looked_at = probe.filter(|_| data.len() > sample.len());
        let looked_at = looked_at.and_then(|probe| look(filter, data, probe));
        if looked_at.map_or_else(|| lens.are_clear(), |looked_at| lens.pay(looked_at)) {
            best = (filtered, filtered_len.min(len));
        }
    }
    if let Some(distance) = distance {
        let filtered = delta::MODELS.map(|model| model.but(given).with(Filter::delta(distance)));
        best = trials.better(best, len >> delta::SHIFT, filtered)?;
    }
    Ok(best.0)
}

/// What data come to without and with a filter, in bytes.
#[derive(Clone, Copy, Debug)]
struct Lens {
    plain: usize,
    filtered: usize,
}

impl Lens {
    /// Whether the filter pays where there is nothing but this sample.
    fn are_clear(self) -> bool {
        self.filtered < self.plain - (self.plain >> FILTER_SHIFT)
    }

    /// Whether the filter pays, by this sample and a look at the whole.
    fn pay(self, whole: Self) -> bool {
        whole.change() + self.change() / SAMPLE_SHARE < -ONE / SAVED_SHARE_MIN
    }

    /// By which share of [`ONE`] the filter makes the data larger.
    fn change(self) -> i64 {
        let [plain, filtered] =
            [self.plain, self.filtered].map(|len| i64::try_from(len).unwrap_or(i64::MAX / ONE));
        (filtered - plain) * ONE / plain.max(1)
    }
}

/// The unit of shares.
const ONE: i64 = 1 << 20;

/// Of very large blocks so much is looked at, in bytes: versions lie next to each other.
pub(super) const LOOK_LEN_MAX: usize = 64 << 20;

/// Returns what `data` come to without and with a filter, at a setting that is fast; nothing when memory is short.
fn look(filter: lzma2::Filter, data: &[u8], probe: &mut Probe) -> Option<Lens> {
    let data = data.get(..LOOK_LEN_MAX).unwrap_or(data);
    let mut filtered = Vec::new();
    filtered.try_reserve_exact(data.len()).ok()?;
    filtered.extend_from_slice(data);
    filter.apply(&mut filtered);
    Some(Lens {
        plain: probe.long_len(data)?,
        filtered: probe.long_len(&filtered)?,
    })
}

/// What there is to choose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices {
    /// What the user has decided.
    pub(super) given: lzma2::Given,
    /// Whether the encoder chooses for each part of a block what is not given.
    pub(super) by_part: bool,
    /// Whether filters may be chosen.
    pub(super) filters: bool,
}

/// Compresses as fast as possible.
pub(super) struct Trials<'a> {
    sample: &'a [u8],
    compressor: &'a mut Compressor,
    out: Vec<u8>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(sample: &'a [u8], compressor: &'a mut Compressor) -> Self {
        Self {
            sample,
            compressor,
            out: Vec::new(),
        }
    }

    /// Returns the best of `models` with its size, if it saves more than `least` bytes, and otherwise `best`.
    pub(super) fn better(
        &mut self,
        mut best: (Model, usize),
        least: usize,
        models: impl IntoIterator<Item = Model>,
    ) -> Result<(Model, usize)> {
        let limit = best.1 - least.min(best.1);
        let first = best.0;
        for model in models {
            if model == first || model.lc + model.lp > LC_LP_MAX {
                continue;
            }
            let len = self.len_with(model)?;
            if len < limit.min(best.1) {
                best = (model, len);
            }
        }
        Ok(best)
    }

    /// Returns the size of the sample with `model`.
    pub(super) fn len_with(&mut self, model: Model) -> Result<usize> {
        /// Hash chains of 4 bytes and a greedy parser, in a dictionary that fits caches.
        const LEVEL: u32 = 1;
        const DICT_LEN_MIN: usize = 1 << 12;
        let settings = Settings {
            preset: LEVEL,
            dict_len: u32::try_from(self.sample.len().max(DICT_LEN_MIN)).ok(),
            mode: None,
            match_finder: None,
            nice: None,
            depth: None,
            lc: model.lc,
            lp: model.lp,
            pb: model.pb,
            filter: model.filter,
        };
        self.compressor
            .compress(&settings, Container::Raw, self.sample, &mut self.out)?;
        Ok(self.out.len())
    }
}

fn is_text(data: &[u8]) -> bool {
    let odd = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B);
    data.iter().filter(odd).count() <= data.len() >> TEXT_SHIFT
}

/// Returns the filters for whose calls and branches there is evidence.
fn machine_code(data: &[u8]) -> impl Iterator<Item = lzma2::Filter> {
    let enough = data.len() >> CODE_SHIFT;
    let x86 = data
        .windows(5)
        .filter(|code| matches!(code, [0xE8 | 0xE9, .., 0 | 0xFF]))
        .count();
    let mut words = [0_usize; 3];
    for code in data.chunks_exact(4) {
        if let [a, b, _, d] = *code {
            words[0] += usize::from(d == 0xEB);
            words[1] += usize::from(a >> 2 == 0x12 && d & 3 == 1);
            words[2] += usize::from(matches!((a, b), (0x40, 0..=0x3F) | (0x7F, 0xC0..)));
        }
    }
    let thumb = data
        .chunks_exact(2)
        .zip(data.chunks_exact(2).skip(1))
        .filter(|(first, second)| matches!((first, second), ([_, 0xF0..=0xF7], [_, 0xF8..=0xFF])))
        .count();
    let [arm, powerpc, sparc] = words;
    [
        (lzma2::Filter::X86, x86),
        (lzma2::Filter::Arm, arm),
        (lzma2::Filter::ArmThumb, thumb),
        (lzma2::Filter::PowerPc, powerpc),
        (lzma2::Filter::Sparc, sparc),
    ]
    .into_iter()
    .filter(move |(_, count)| *count > enough)
    .map(|(filter, _)| filter)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "tests"
)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;

    fn choose(data: &[u8], choices: &Choices) -> Result<Model> {
        super::choose(data, choices, &mut Compressor::new(), Probe::new().as_mut())
    }

    const FREE: Choices = Choices {
        given: lzma2::Given {
            lc: None,
            lp: None,
            pb: None,
        },
        by_part: false,
        filters: true,
    };

    /// A call of one of a few functions after some other bytes.
    fn calls(instruction: impl Fn(u32, u32) -> Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut state = 5_u32;
        while out.len() < 200_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let target = (state >> 28) * 0x1000;
            let position = out.len() as u32;
            out.extend(instruction(position, target));
            out.extend([0x48, 0x89, (state >> 20) as u8 & 3, 0x10]);
        }
        out
    }

    #[test]
    fn finds_the_machine() {
        use lzma2::Filter::{Arm, PowerPc, X86};
        let filter = |filter| Some(Filter::Ours(filter));
        let x86 = calls(|position, target| {
            let mut code = vec![0xE8];
            code.extend(target.wrapping_sub(position + 5).to_le_bytes());
            code
        });
        assert_eq!(choose(&x86, &FREE).unwrap().filter, filter(X86));
        let arm = calls(|position, target| {
            let [a, b, c, _] = (target.wrapping_sub(position + 8) >> 2).to_le_bytes();
            vec![a, b, c, 0xEB]
        });
        assert_eq!(choose(&arm, &FREE).unwrap().filter, filter(Arm));
        let powerpc = calls(|position, target| {
            let distance = target.wrapping_sub(position) & 0x03FF_FFFC;
            (0x4800_0001 | distance)
                .to_le_bytes()
                .into_iter()
                .rev()
                .collect()
        });
        assert_eq!(choose(&powerpc, &FREE).unwrap().filter, filter(PowerPc));
    }

    #[test]
    fn pixels_get_a_delta_filter() {
        let distance = NonZeroU8::new(3).unwrap();
        let mut state = 9_u32;
        let mut random = |range: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % range
        };
        let mut pixels = vec![30, 90, 200];
        for at in 0..600_000 {
            let wander = pixels[at] + 4 - random(9) as i32;
            pixels.push(wander.clamp(0, 255));
        }
        let pixels: Vec<u8> = pixels.into_iter().map(|pixel| pixel as u8).collect();
        let model = choose(&pixels, &FREE).unwrap();
        assert_eq!(model.filter, Some(Filter::delta(distance)));
        let unfiltered = Choices {
            filters: false,
            ..FREE
        };
        assert_eq!(choose(&pixels, &unfiltered).unwrap().filter, None);
    }

    #[test]
    fn versions_whose_functions_have_moved_get_no_filter() {
        // Eight versions of 400 functions, whose calls keep their distances while their addresses change.
        let mut state = 5_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let mut data = Vec::new();
        let functions: Vec<Vec<u8>> = (0..400)
            .map(|_| {
                let mut code = Vec::new();
                while code.len() < 600 {
                    code.push(0xE8);
                    code.extend(((random() & 0xFF) * 64).to_le_bytes());
                    code.extend((0..7).map(|_| random() as u8));
                }
                code
            })
            .collect();
        for version in 0..8 {
            for (number, function) in functions.iter().enumerate() {
                data.extend(function);
                if number % 40 == 0 {
                    data.extend(vec![0xCC; version * 16]);
                }
            }
        }
        assert_eq!(choose(&data, &FREE).unwrap().filter, None);
    }

    /// Blocks of real programs, scaled: the encoder made all but the last two of them smaller with a filter.
    #[test]
    fn the_whole_counts_for_more_than_a_sample() {
        let lens = |filtered| Lens {
            plain: 100_000,
            filtered,
        };
        for (sample, whole, pays) in [
            (94_990, 97_530, true),
            (99_970, 98_790, true),
            (93_950, 100_120, true),
            (93_780, 103_220, false),
            (99_480, 100_280, false),
        ] {
            assert_eq!(lens(sample).pay(lens(whole)), pays, "{sample}, {whole}");
        }
        assert!(lens(99_600).are_clear());
        assert!(!lens(99_700).are_clear());
    }

    #[test]
    fn what_is_given_stays() {
        let mut state = 7_u64;
        let mut word = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ["see ", "the ", "manual ", "of ", "everything; ", "and "][(state >> 40) as usize % 6]
        };
        let text: String = (0..30_000).map(&mut word).collect();
        let model = choose(text.as_bytes(), &FREE).unwrap();
        assert_eq!((model.pb, model.filter), (0, None));
        let by_part = Choices {
            by_part: true,
            ..FREE
        };
        assert_eq!(choose(text.as_bytes(), &by_part).unwrap(), Model::DEFAULT);
        let given = lzma2::Given {
            lp: Some(1),
            pb: Some(3),
            ..FREE.given
        };
        let choices = Choices { given, ..FREE };
        let model = choose(text.as_bytes(), &choices).unwrap();
        assert_eq!((model.lp, model.pb), (1, 3));
        assert!(model.lc <= 3);
    }

    #[test]
    fn any_data_have_a_model() {
        for data in [&b""[..], b"a", &[0; 100_000], &[0xE8; 70_000]] {
            choose(data, &FREE).unwrap();
        }
    }
}
