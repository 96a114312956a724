//! LZMA: `.xz` streams, written as one stream of one block with CRC64.

use std::fmt;
use std::num::NonZeroU8;
use std::sync::Arc;

use durin_format::{Error, Result};
use durin_lzma2::{Crew, EncoderBytes, Given};
use liblzma::stream::{Action, CONCATENATED, Status, Stream};
use liblzma_sys as sys;

use crate::encoder::Encoder;
use crate::options::Options;
use crate::output::{fill, reserve_total};
use crate::sample::Probe;
use crate::spec::EncoderMemory;
use filters::{BINARIES, Filter};
use ours::Ours;
use stream::{Compressor, Container, Settings};
use tune::{Choices, Model};

mod delta;
mod filters;
mod index;
mod ours;
mod stream;
mod tune;

pub use delta::DeltaTrial;
pub(crate) use index::uncompressed_len;

const LEVEL_DEFAULT: u32 = 9;
/// From this level on packets are chosen by their prices, mode `normal`.
const LEVEL_NORMAL_MIN: u32 = 4;

const MODES: [(&str, sys::lzma_mode); 2] = [
    ("fast", sys::LZMA_MODE_FAST),
    ("normal", sys::LZMA_MODE_NORMAL),
];

const MATCH_FINDERS: [(&str, sys::lzma_match_finder); 5] = [
    ("hc3", sys::LZMA_MF_HC3),
    ("hc4", sys::LZMA_MF_HC4),
    ("bt2", sys::LZMA_MF_BT2),
    ("bt3", sys::LZMA_MF_BT3),
    ("bt4", sys::LZMA_MF_BT4),
];

/// Names are kept rather than what they stand for: the latter can be neither compared nor shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LzmaOptions {
    level: u32,
    dict_log2: Option<u32>,
    extreme: bool,
    binary: Option<&'static str>,
    delta: Option<NonZeroU8>,
    mode: Option<&'static str>,
    match_finder: Option<&'static str>,
    nice: Option<u32>,
    depth: Option<u32>,
    /// How many bits of the byte before, and of the position, choose the statistics of literals; of the position for
    /// matches.
    lc: Option<u32>,
    lp: Option<u32>,
    pb: Option<u32>,
    /// Chooses for each block what is not given: `lc`, `lp`, `pb` and the filter.
    tune: bool,
}

impl LzmaOptions {
    pub(crate) fn parse(options: &mut Options<'_>) -> Result<Self> {
        Ok(Self {
            level: options.u32("level", 0..=9)?.unwrap_or(LEVEL_DEFAULT),
            dict_log2: options.u32("dict_size", 12..=30)?,
            extreme: options.flag("extreme")?,
            binary: options.choice("binary", &names(&BINARIES))?,
            delta: options
                .u32("delta", 1..=255)?
                .and_then(|distance| NonZeroU8::try_from(u8::try_from(distance).ok()?).ok()),
            mode: options.choice("mode", &names(&MODES))?,
            match_finder: options.choice("mf", &names(&MATCH_FINDERS))?,
            nice: options.u32("nice", 0..=273)?,
            depth: options.u32("depth", 0..=u32::MAX)?,
            lc: options.u32("lc", 0..=4)?,
            lp: options.u32("lp", 0..=4)?,
            pb: options.u32("pb", 0..=4)?,
            tune: options.flag("tune")?,
        })
    }

    pub(crate) fn encoder(&self, block_len: usize, crew: &Arc<Crew>) -> Result<LzmaEncoder> {
        // Find out now whether the options go together.
        let settings = self.settings(block_len.min(1 << 12), self.model(), None);
        Compressor::new().start(&settings, Container::Xz)?;
        Ok(LzmaEncoder {
            options: self.clone(),
            ours: self
                .is_for_ours(block_len)
                .then(|| Ours::new(crew, self.tune.then(|| self.given()))),
            compressor: Compressor::new(),
            trials: Compressor::new(),
            probe: if self.tune { Probe::new() } else { None },
        })
    }

    /// The dictionary for `len` bytes of data: never larger than they are, so that memory is as small as it can be.
    fn dict_len(&self, len: usize) -> u32 {
        /// Dictionary sizes of levels 0 to 9, as log2.
        const BY_LEVEL_LOG2: [u32; 10] = [18, 20, 21, 22, 22, 23, 23, 24, 25, 26];
        const LEN_MIN: u32 = 1 << 12;
        let by_level = BY_LEVEL_LOG2.get(self.level as usize).copied();
        let asked = 1 << self.dict_log2.or(by_level).unwrap_or(26);
        u32::try_from(len)
            .map_or(asked, |len| asked.min(len))
            .max(LEN_MIN)
    }

    /// The filters that the user wants to be tried.
    fn filters(&self) -> impl Iterator<Item = Filter> {
        let binary = find(&BINARIES, self.binary);
        binary.into_iter().chain(self.delta.map(Filter::delta))
    }

    /// Whether blocks are compressed by our encoder: it is what `normal` means unless a way to search is asked for.
    fn is_for_ours(&self, block_len: usize) -> bool {
        let is_normal = match self.mode {
            Some(mode) => mode == "normal",
            None => self.level >= LEVEL_NORMAL_MIN || self.extreme,
        };
        is_normal
            && self.match_finder.is_none()
            && self.depth.is_none()
            && self.filters().all(|filter| filter.ours().is_some())
            && block_len <= durin_lzma2::BLOCK_LEN_MAX
    }

    /// Source: for the library, the column "CompMem" in the manual page of xz.
    pub(crate) fn encoder_memory(&self, block_len: usize) -> EncoderMemory {
        if self.is_for_ours(block_len) {
            let EncoderBytes { tables, thread } =
                EncoderBytes::of(block_len, self.tune || self.filters().next().is_some());
            let (probe, look) = if self.tune {
                // The filtered block that is looked at.
                let look = block_len.min(tune::LOOK_LEN_MAX) as u64;
                (Probe::bytes(block_len), look)
            } else {
                (0, 0)
            };
            // The dictionary of the decoder that checks the result.
            let check = u64::from(self.dict_len(block_len));
            return EncoderMemory {
                own: probe + thread.max(check).max(look),
                shared: tables,
                helper: thread,
            };
        }
        let dict_len = u64::from(self.dict_len(block_len));
        let chained = match self.match_finder {
            Some(name) => name.starts_with("hc"),
            None => self.level <= 3 && !self.extreme,
        };
        // The window, half as much again, the hash table and one or two links a position.
        let bytes_per_position = if chained { 8 } else { 12 };
        let tune = if self.tune {
            Probe::bytes(block_len)
        } else {
            0
        };
        EncoderMemory::own(dict_len * bytes_per_position + (8 << 20) + tune)
    }

    fn settings(&self, len: usize, model: Model, filter: Option<Filter>) -> Settings {
        let extreme = if self.extreme {
            sys::LZMA_PRESET_EXTREME
        } else {
            0
        };
        Settings {
            preset: self.level | extreme,
            dict_len: Some(self.dict_len(len)),
            mode: find(&MODES, self.mode),
            match_finder: find(&MATCH_FINDERS, self.match_finder),
            nice: self.nice(filter),
            depth: self.depth,
            lc: model.lc,
            lp: model.lp,
            pb: model.pb,
            filter,
        }
    }

    /// The match length that ends a search; `None` is the level's.
    fn nice(&self, filter: Option<Filter>) -> Option<u32> {
        /// Lower levels differ by it, and so does `extreme`.
        const LEVEL_TUNED_MIN: u32 = 6;
        /// Text and tables of versions are smaller by it, machine code hardly, which is most of the time.
        const TUNED: u32 = 128;
        const TUNED_MACHINE_CODE: u32 = 48;
        if let Some(nice) = self.nice {
            // The library knows no shorter one than 2.
            return (nice > 0).then_some(nice.max(2));
        }
        if !self.tune || self.extreme || self.level < LEVEL_TUNED_MIN {
            return None;
        }
        let is_machine_code = filter.is_some_and(|filter| filter.distance().is_none());
        Some(if is_machine_code {
            TUNED_MACHINE_CODE
        } else {
            TUNED
        })
    }

    /// What the user has decided.
    fn given(&self) -> Given {
        Given {
            lc: self.lc,
            lp: self.lp,
            pb: self.pb,
        }
    }

    /// What is used unless a block has a better one.
    fn model(&self) -> Model {
        if self.tune {
            return Model::DEFAULT.around(self.given());
        }
        Model::DEFAULT.but(self.given())
    }
}

impl fmt::Display for LzmaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let name = |value: Option<&str>| value.map(str::to_owned);
        write!(f, "lzma:level={}", self.level)?;
        show(f, "dict_size", number(self.dict_log2))?;
        if self.extreme {
            f.write_str(":extreme")?;
        }
        show(f, "binary", name(self.binary))?;
        show(
            f,
            "delta",
            number(self.delta.map(|distance| distance.get().into())),
        )?;
        show(f, "mode", name(self.mode))?;
        show(f, "mf", name(self.match_finder))?;
        show(f, "nice", number(self.nice))?;
        show(f, "depth", number(self.depth))?;
        show(f, "lc", number(self.lc))?;
        show(f, "lp", number(self.lp))?;
        show(f, "pb", number(self.pb))?;
        if self.tune {
            f.write_str(":tune")?;
        }
        Ok(())
    }
}

fn show(f: &mut fmt::Formatter<'_>, key: &str, value: Option<String>) -> fmt::Result {
    match value {
        Some(value) => write!(f, ":{key}={value}"),
        None => Ok(()),
    }
}

fn names<T>(table: &[(&'static str, T)]) -> Vec<(&'static str, &'static str)> {
    table.iter().map(|(name, _)| (*name, *name)).collect()
}

fn find<T: Copy>(table: &[(&str, T)], name: Option<&str>) -> Option<T> {
    let (_, value) = table.iter().find(|(known, _)| Some(*known) == name)?;
    Some(*value)
}

pub(crate) struct LzmaEncoder {
    options: LzmaOptions,
    ours: Option<Ours>,
    compressor: Compressor,
    trials: Compressor,
    probe: Option<Probe>,
}

impl LzmaEncoder {
    fn encode_with(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
        model: Model,
        filter: Option<Filter>,
    ) -> Result<()> {
        let settings = self.options.settings(data.len(), model, filter);
        if let Some(ours) = &mut self.ours {
            ours.compress(&settings, data, out)?;
            // Images are the only copy of somebody's data: what our encoder writes is believed when the library has
            // decoded it, which takes some percent of the time. Should that ever fail, the library encodes, too.
            if holds(out, data) {
                return Ok(());
            }
        }
        self.compressor
            .compress(&settings, Container::Xz, data, out)
    }

    /// What `data` are compressed with, whose filter is not the user's choice.
    fn model(&mut self, data: &[u8]) -> Result<Model> {
        let options = &self.options;
        if !options.tune {
            return Ok(options.model());
        }
        let choices = Choices {
            given: options.given(),
            by_part: self.ours.is_some(),
            filters: options.filters().next().is_none(),
        };
        tune::choose(data, &choices, &mut self.trials, self.probe.as_mut())
    }
}

/// Bytes that are decoded and compared at a time.
const PIECE_LEN: usize = 1 << 16;

/// Whether the library decodes `payload` to `data`.
fn holds(payload: &[u8], data: &[u8]) -> bool {
    let Ok(mut decoder) = LzmaDecoder::new() else {
        return false;
    };
    let mut piece = vec![0; PIECE_LEN];
    let mut rest = data;
    while !decoder.finished {
        let Ok(len) = decoder.process(payload, &mut piece) else {
            return false;
        };
        match (rest.split_at_checked(len), piece.get(..len)) {
            (Some((expected, after)), Some(found)) if expected == found => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

impl Encoder for LzmaEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let model = self.model(data)?;
        self.encode_with(data, out, model, model.filter)?;
        for filter in self.options.clone().filters() {
            let mut filtered = Vec::new();
            self.encode_with(data, &mut filtered, model, Some(filter))?;
            if filtered.len() < out.len() {
                *out = filtered;
            }
        }
        Ok(())
    }

    fn is_worth_it(&mut self, data: &[u8]) -> bool {
        self.probe
            .as_mut()
            .is_none_or(|probe| probe.is_worth_it(data))
    }
}

pub(crate) struct LzmaDecoder {
    stream: Stream,
    finished: bool,
}

/// Enough for the largest dictionary that an option can ask for, 1 GiB. Pages that no data reach stay unused.
const DECODER_BYTES_MAX: u64 = (1 << 30) + (1 << 24);

impl LzmaDecoder {
    pub(crate) fn new() -> Result<Self> {
        let stream =
            Stream::new_stream_decoder(DECODER_BYTES_MAX, CONCATENATED).map_err(decode_error)?;
        Ok(Self {
            stream,
            finished: false,
        })
    }

    /// Appends to `out` until it holds `want` of all `len` bytes.
    pub(crate) fn decode_to(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        want: usize,
        len: usize,
    ) -> Result<()> {
        reserve_total(out, len)?;
        fill(out, want, |piece| self.process(payload, piece))?;
        if out.len() < want {
            return Err(Error::corrupt("lzma: fewer bytes than the index says"));
        }
        // What follows the last byte of data: checks, index and padding.
        while out.len() == len && !self.finished {
            self.process(payload, &mut [])?;
        }
        Ok(())
    }

    /// Decodes the next bytes into `target` and returns how many; fails when nothing moves.
    fn process(&mut self, payload: &[u8], target: &mut [u8]) -> Result<usize> {
        let (in_before, out_before) = (self.stream.total_in(), self.stream.total_out());
        let consumed = usize::try_from(in_before).unwrap_or(usize::MAX);
        let rest = payload.get(consumed..).unwrap_or_default();
        let status = self
            .stream
            .process(rest, target, Action::Finish)
            .map_err(decode_error)?;
        self.finished = status == Status::StreamEnd;
        let written = self.stream.total_out() - out_before;
        if !self.finished && written == 0 && self.stream.total_in() == in_before {
            return Err(Error::corrupt(
                "lzma: the stream does not end with its data",
            ));
        }
        Ok(usize::try_from(written).unwrap_or(target.len()))
    }
}

fn decode_error(error: liblzma::stream::Error) -> Error {
    use liblzma::stream::Error as E;
    match error {
        E::Mem => Error::limit("lzma: no memory for the dictionary"),
        E::MemLimit => Error::limit(format!(
            "lzma: decoding takes more memory than DECODER_BYTES_MAX = {DECODER_BYTES_MAX}"
        )),
        E::Options => {
            Error::unsupported("lzma: filters that this release of liblzma does not know")
        }
        _ => Error::corrupt(format!("lzma: {error}")),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn tune_ends_searches_sooner_in_machine_code_alone() {
        let nice = |spec: &str, filter| {
            let mut options = Options::parse(spec).unwrap();
            LzmaOptions::parse(&mut options).unwrap().nice(filter)
        };
        let x86 = find(&BINARIES, Some("x86"));
        let delta = NonZeroU8::new(4).map(Filter::delta);
        assert_eq!(nice("lzma:tune", x86), Some(48));
        for filter in [None, delta] {
            assert_eq!(nice("lzma:tune", filter), Some(128));
        }
        for filter in [None, delta, x86] {
            assert_eq!(nice("lzma:level=9", filter), None);
            assert_eq!(nice("lzma:level=5:tune", filter), None);
            assert_eq!(nice("lzma:extreme:tune", filter), None);
            assert_eq!(nice("lzma:nice=0:tune", filter), None);
            assert_eq!(nice("lzma:nice=1", filter), Some(2));
            assert_eq!(nice("lzma:nice=64:tune", filter), Some(64));
        }
    }

    #[test]
    fn only_what_decodes_to_the_data_holds_it() {
        let data: Vec<u8> = (0..200_000_u32)
            .map(|n| (n / 7).wrapping_mul(n).to_le_bytes()[1])
            .collect();
        let options = durin_lzma2::Options {
            dict_len: 1 << 20,
            given: Given::all(3, 0, 2),
            nice_len: 64,
            filter: None,
        };
        let mut payload = Vec::new();
        let mut encoder = durin_lzma2::Encoder::new(Arc::new(Crew::alone()));
        encoder.xz(&data, &options, &mut payload).unwrap();
        assert!(holds(&payload, &data));
        assert!(!holds(&payload, &data[1..]) && !holds(&payload, &[]));
        let mut longer = data.clone();
        longer.push(0);
        assert!(!holds(&payload, &longer));
        assert!(!holds(&payload[..payload.len() / 2], &data));
        let middle = payload.len() / 2;
        payload[middle] ^= 1;
        assert!(!holds(&payload, &data));
    }
}
