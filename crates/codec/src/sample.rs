//! Small parts of a block that stand for all of it, and the question whether a block is worth compressing.
//!
//! Everything here depends on the bytes alone, so that a block is compressed the same way whenever it is.

use std::borrow::Cow;

use zstd_safe::{CCtx, CParameter};

/// How many parts a sample has: enough to meet each kind of data in a block of a few files.
const PART_COUNT: usize = 8;
/// Blocks up to this size are their own sample.
const SAMPLE_LEN_MIN: usize = 128 << 10;
/// The most bytes of a sample; more parts hardly change what is chosen.
const SAMPLE_LEN_MAX: usize = 512 << 10;

/// The saving below which a block is stored, as a share of it: 1/256.
///
/// What is stored costs no time, neither here nor when it is read, and needs no place in a cache of blocks.
const WORTH_SHIFT: u32 = 8;

/// Returns parts of `data`, spread evenly: a 32nd of it, within bounds.
#[must_use]
pub fn sample(data: &[u8]) -> Cow<'_, [u8]> {
    let len = (data.len() / 32).clamp(SAMPLE_LEN_MIN, SAMPLE_LEN_MAX);
    if data.len() <= len {
        return Cow::Borrowed(data);
    }
    let part_len = len / PART_COUNT;
    let stride = data.len() / PART_COUNT;
    let parts = data
        .chunks_exact(stride)
        .take(PART_COUNT)
        .flat_map(|share| {
            // The middle of each share, at a multiple of 16 so that machine code and tables keep their alignment.
            let start = ((share.len() - part_len) / 2) & !15;
            share.get(start..start + part_len).unwrap_or_default()
        });
    Cow::Owned(parts.copied().collect())
}

/// Tells blocks that do not shrink from others, at a small part of the cost of compressing them.
pub(crate) struct Probe {
    /// For samples: fast, no long matches.
    quick: CCtx<'static>,
    /// For whole blocks whose sample does not shrink: finds repetitions over any distance.
    long: Option<CCtx<'static>>,
    out: Vec<u8>,
}

impl Probe {
    /// The same for every block and algorithm; both are far faster than any setting that is worth a probe.
    const LEVEL: i32 = 1;

    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            quick: context(false)?,
            long: None,
            out: Vec::new(),
        })
    }

    /// Returns whether `data` shrinks by more than a 256th, as far as a fast look tells.
    ///
    /// A sample decides for most blocks. Where it does not shrink, all of the block is looked at, as it may repeat
    /// itself over distances that no sample shows. In doubt, also when memory is short, the answer is yes.
    pub(crate) fn is_worth_it(&mut self, data: &[u8]) -> bool {
        let sample = sample(data);
        if shrinks(&mut self.quick, &sample, &mut self.out) {
            return true;
        }
        match self.long() {
            // Its output is as large as the block, and is not kept.
            Some(long) => shrinks(long, data, &mut Vec::new()),
            None => true,
        }
    }

    /// Returns what all of `data` come to at the fastest setting that finds most repetitions over any distance, in bytes;
    /// nothing when memory is short.
    pub(crate) fn long_len(&mut self, data: &[u8]) -> Option<usize> {
        /// The 2^14 of the level find little but what is long or near: half as fast, and says much more of other encoders.
        const HASH_LOG: u32 = 19;
        const OF_THE_LEVEL: u32 = 0;
        let mut out = Vec::new();
        out.try_reserve_exact(zstd_safe::compress_bound(data.len()))
            .ok()?;
        let long = self.long()?;
        let mut set = |hash_log| long.set_parameter(CParameter::HashLog(hash_log)).ok();
        set(HASH_LOG)?;
        let len = long.compress2(&mut out, data).ok();
        long.set_parameter(CParameter::HashLog(OF_THE_LEVEL)).ok()?;
        len
    }

    fn long(&mut self) -> Option<&mut CCtx<'static>> {
        if self.long.is_none() {
            self.long = context(true);
        }
        self.long.as_mut()
    }

    /// Estimates the memory of a probe, and of trials on samples beside it, in bytes.
    pub(crate) fn bytes(block_len: usize) -> u64 {
        /// Two contexts at level 1 and the tables of an lzma encoder at level 1, rounded up.
        const STATE_BYTES: u64 = 20 << 20;
        // The output of the look at all of a block, and an entry of 8 bytes for each 128 bytes of it.
        STATE_BYTES + block_len as u64 + block_len as u64 / 16
    }
}

fn context(long: bool) -> Option<CCtx<'static>> {
    let mut context = CCtx::try_create()?;
    let mut set = |parameter| context.set_parameter(parameter).ok();
    set(CParameter::CompressionLevel(Probe::LEVEL))?;
    if long {
        set(CParameter::EnableLongDistanceMatching(true))?;
        // The library makes it fit the data.
        set(CParameter::WindowLog(30))?;
    }
    Some(context)
}

fn shrinks(context: &mut CCtx<'_>, data: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    // No room for more than what would be worth it; the library gives up at the end of it.
    let room = data.len() - (data.len() >> WORTH_SHIFT);
    if out.try_reserve_exact(room).is_err() {
        return true;
    }
    // Vectors may get more room than they ask for.
    context
        .compress2(out, data)
        .is_ok_and(|len| len < room.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn samples_are_small_and_spread() {
        for len in [0, 1, 1 << 17, (1 << 17) + 1, 1 << 20, (1 << 24) + 12345] {
            let data = vec![1; len];
            let sample = sample(&data);
            assert!(sample.len() <= SAMPLE_LEN_MAX, "{len}");
            assert!(sample.len() >= len.min(SAMPLE_LEN_MIN), "{len}");
        }
        let mut halves = vec![0; 8 << 20];
        halves.resize(16 << 20, 1);
        let sample = sample(&halves);
        let ones = sample.iter().filter(|byte| **byte == 1).count();
        assert_eq!(ones * 2, sample.len());
    }

    #[test]
    fn both_contexts_fit_the_estimate() {
        let mut probe = Probe::new().expect("memory");
        for len in [1 << 20, 32 << 20, 64 << 20] {
            let data = noise(len);
            let bound = zstd_safe::compress_bound(len);
            assert!(probe.long_len(&data).is_some_and(|out| out <= bound));
            assert!(!probe.is_worth_it(&data));
            let long = probe.long.as_ref().expect("used").sizeof();
            let used = (probe.quick.sizeof() + long + bound) as u64;
            assert!(used <= Probe::bytes(len), "{len}: {used} bytes");
        }
    }

    #[test]
    fn noise_is_not_worth_it_unless_it_repeats() {
        let mut probe = Probe::new().expect("memory");
        let noise = noise(3 << 20);
        assert!(!probe.is_worth_it(&noise));
        assert!(probe.is_worth_it(&[noise.clone(), noise.clone()].concat()));
        assert!(probe.is_worth_it(&vec![0; 1 << 20]));
        assert!(probe.is_worth_it(b"to and fro and to and fro and to and fro and"));
        // A little text in the middle of a part.
        let mut mixed = noise;
        mixed[..2 << 20].fill(b'x');
        assert!(probe.is_worth_it(&mixed));
        assert!(!probe.is_worth_it(b"abc"));
        assert!(!probe.is_worth_it(b""));
    }
}
