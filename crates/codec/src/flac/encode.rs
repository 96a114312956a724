//! From bytes to a FLAC stream: blocks, and how the two channels of stereo sound are stored.

use durin_format::Result;

use super::bits::BitWriter;
use super::crc::crc16;
use super::encode_header;
use super::lpc::windows;
use super::samples::SampleLayout;
use super::stream::{
    Channels, FrameHeader, START_LEN, StreamInfo, StreamStats, write_frame_header, write_start,
};
use super::subframe::{Effort, Subframe};
use crate::encoder::Encoder;
use crate::size_prefix;

/// What a level stands for.
///
/// The steps are those that users know from the `flac` program.
#[derive(Clone, Copy, Debug)]
struct Level {
    block_len: usize,
    lpc_order_max: usize,
    stereo: Stereo,
    partition_log2_max: u32,
    /// See [`windows`].
    window_parts_max: usize,
}

/// How the form of stereo sound is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stereo {
    /// Always left and right.
    Separate,
    /// By what looks shorter.
    Estimate,
    /// By writing all forms.
    Search,
}

const LEVELS: [Level; 9] = [
    level(1152, 0, Stereo::Separate, 3, 1),
    level(1152, 0, Stereo::Estimate, 3, 1),
    level(1152, 0, Stereo::Search, 3, 1),
    level(4096, 6, Stereo::Separate, 4, 1),
    level(4096, 8, Stereo::Estimate, 4, 1),
    level(4096, 8, Stereo::Search, 5, 1),
    level(4096, 8, Stereo::Search, 6, 2),
    level(4096, 12, Stereo::Search, 6, 2),
    level(4096, 12, Stereo::Search, 6, 3),
];

/// The finest partitions when every order is tried.
const PARTITION_LOG2_EXHAUSTIVE: u32 = 8;

const fn level(
    block_len: usize,
    lpc_order_max: usize,
    stereo: Stereo,
    partition_log2_max: u32,
    window_parts_max: usize,
) -> Level {
    Level {
        block_len,
        lpc_order_max,
        stereo,
        partition_log2_max,
        window_parts_max,
    }
}

pub(crate) struct FlacEncoder {
    layout: SampleLayout,
    level: Level,
    effort: Effort,
    /// Windows for a whole block and, while it is made, for the shorter last one.
    windows: Vec<Vec<f64>>,
    /// The samples of all channels; kept for their memory.
    channels: Vec<Vec<i32>>,
}

impl FlacEncoder {
    pub(super) fn new(layout: SampleLayout, level: u32, exhaustive: bool) -> Self {
        let level = LEVELS[(level as usize).min(LEVELS.len() - 1)];
        let partition_log2_max = if exhaustive {
            PARTITION_LOG2_EXHAUSTIVE
        } else {
            level.partition_log2_max
        };
        Self {
            layout,
            level,
            effort: Effort {
                lpc_order_max: level.lpc_order_max,
                partition_log2_max,
                exhaustive,
            },
            windows: windows(level.block_len, level.window_parts_max),
            channels: Vec::new(),
        }
    }

    /// Writes the frame of samples `range` of all channels.
    fn encode_frame(&self, range: std::ops::Range<usize>, number: u32, out: &mut Vec<u8>) {
        let sample_count = range.len();
        let last_windows;
        let windows = if sample_count == self.level.block_len {
            &self.windows
        } else {
            last_windows = windows(sample_count, self.level.window_parts_max);
            &last_windows
        };
        let block: Vec<&[i32]> = self
            .channels
            .iter()
            .map(|channel| &channel[range.clone()])
            .collect();
        let (channels, subframes) = self.choose(&block, windows);

        let start = out.len();
        let header = FrameHeader {
            sample_count,
            channels,
            bits: Some(self.layout.bits),
        };
        write_frame_header(&header, number, out);
        let mut bits = BitWriter::new(out);
        for subframe in &subframes {
            subframe.write(&mut bits);
        }
        bits.finish();
        let [low, high] = crc16(&out[start..]).to_le_bytes();
        out.extend([high, low]);
    }

    fn choose(&self, block: &[&[i32]], windows: &[Vec<f64>]) -> (Channels, Vec<Subframe>) {
        let bits = self.layout.bits;
        let plain = |samples: &[i32]| Subframe::choose(samples, bits, windows, self.effort);
        let side = |samples: &[i32]| Subframe::choose(samples, bits + 1, windows, self.effort);
        let [left, right] = *block else {
            let subframes = block.iter().map(|samples| plain(samples)).collect();
            return (Channels::Independent(block.len()), subframes);
        };
        let middle_and_side = match self.level.stereo {
            Stereo::Separate => None,
            _ => mid_side(left, right),
        };
        let Some((mids, sides)) = middle_and_side else {
            return (Channels::Independent(2), vec![plain(left), plain(right)]);
        };
        if self.level.stereo == Stereo::Estimate {
            return match estimate(left, right, &mids, &sides) {
                Channels::LeftSide => (Channels::LeftSide, vec![plain(left), side(&sides)]),
                Channels::SideRight => (Channels::SideRight, vec![side(&sides), plain(right)]),
                Channels::MidSide => (Channels::MidSide, vec![plain(&mids), side(&sides)]),
                independent => (independent, vec![plain(left), plain(right)]),
            };
        }
        let (left, right) = (plain(left), plain(right));
        let (mid, side) = (plain(&mids), side(&sides));
        match shortest([left.bits, right.bits, mid.bits, side.bits]) {
            Channels::LeftSide => (Channels::LeftSide, vec![left, side]),
            Channels::SideRight => (Channels::SideRight, vec![side, right]),
            Channels::MidSide => (Channels::MidSide, vec![mid, side]),
            independent => (independent, vec![left, right]),
        }
    }
}

impl Encoder for FlacEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.layout.unpack(data, &mut self.channels)?;
        let sample_count = data.len() / self.layout.frame_len();
        out.clear();
        size_prefix::write(data.len() as u64, out);
        out.extend(encode_header(&self.layout));

        // The start of the stream tells sizes that are known at the end.
        let stream_offset = out.len();
        out.resize(stream_offset + START_LEN, 0);
        let mut stats = StreamStats {
            block_len: u32::try_from(self.level.block_len).unwrap_or(0),
            frame_len_min: usize::MAX,
            frame_len_max: 0,
        };
        let block_len = self.level.block_len;
        for (number, start) in (0_u32..).zip((0..sample_count).step_by(block_len)) {
            let frame_offset = out.len();
            let end = sample_count.min(start + block_len);
            self.encode_frame(start..end, number, out);
            let frame_len = out.len() - frame_offset;
            stats.frame_len_min = stats.frame_len_min.min(frame_len);
            stats.frame_len_max = stats.frame_len_max.max(frame_len);
        }
        let info = StreamInfo {
            channel_count: self.layout.channel_count,
            bits: self.layout.bits,
            sample_count: sample_count as u64,
        };
        let mut stream_start = Vec::with_capacity(START_LEN);
        write_start(&info, &stats, &mut stream_start);
        out[stream_offset..stream_offset + START_LEN].copy_from_slice(&stream_start);
        Ok(())
    }
}

/// Returns half the sum and the difference of two channels, unless the difference takes more than 32 bits.
fn mid_side(left: &[i32], right: &[i32]) -> Option<(Vec<i32>, Vec<i32>)> {
    let pairs = || left.iter().zip(right);
    let sides: Option<Vec<i32>> = pairs().map(|(l, r)| l.checked_sub(*r)).collect();
    // Half of what two numbers have in common and half of what they have not: a sum without its overflow.
    let mids = pairs().map(|(l, r)| (l & r) + ((l ^ r) >> 1)).collect();
    Some((mids, sides?))
}

/// Picks by the absolute second differences, which grow as the length does.
fn estimate(left: &[i32], right: &[i32], mid: &[i32], side: &[i32]) -> Channels {
    shortest([left, right, mid, side].map(|samples| {
        let bend = |window: &[i32]| match *window {
            [a, b, c] => (i64::from(a) - 2 * i64::from(b) + i64::from(c)).unsigned_abs(),
            _ => 0,
        };
        let sum: u64 = samples.windows(3).map(bend).sum();
        let count = samples.len().max(1) as u64;
        // The bits of a sample, in sixteenths.
        let mean = (sum * 16 / count).max(1);
        u64::from(mean.ilog2()) * 16 + ((mean << 4 >> mean.ilog2()) & 15)
    }))
}

/// Picks by the sizes of left, right, mid and side.
fn shortest([left, right, mid, side]: [u64; 4]) -> Channels {
    let forms = [
        (left + right, Channels::Independent(2)),
        (left + side, Channels::LeftSide),
        (side + right, Channels::SideRight),
        (mid + side, Channels::MidSide),
    ];
    let (_, shortest) = forms
        .into_iter()
        .reduce(|best, form| if form.0 < best.0 { form } else { best })
        .unwrap_or((0, Channels::Independent(2)));
    shortest
}
