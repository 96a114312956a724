//! From a FLAC stream to bytes, frame by frame.

use durin_format::{Error, Result};

use super::bits::BitReader;
use super::crc::crc16;
use super::parse_header;
use super::samples::SampleLayout;
use super::stream::{Channels, parse_frame_header, parse_start};
use crate::output::reserve_total;
use crate::size_prefix;

pub(crate) struct FlacDecoder {
    layout: SampleLayout,
    /// Where the next frame begins in the payload.
    next: usize,
    /// The samples of a frame; kept for their memory.
    channels: Vec<Vec<i64>>,
}

impl FlacDecoder {
    pub(crate) fn new(payload: &[u8]) -> Result<Self> {
        Self::parse(payload).map_err(|error| error.context("flac"))
    }

    fn parse(payload: &[u8]) -> Result<Self> {
        let (len, prefix_len) = size_prefix::parse(payload)?;
        let rest = payload.get(prefix_len..).unwrap_or_default();
        let (layout, header_len) = parse_header(rest)?;
        let stream_offset = prefix_len + header_len;
        let (info, start_len) = parse_start(payload.get(stream_offset..).unwrap_or_default())?;
        if (info.channel_count, info.bits) != (layout.channel_count, layout.bits) {
            return Err(Error::corrupt(format!(
                "stream of {} channels of {} bits, expected {} of {}",
                info.channel_count, info.bits, layout.channel_count, layout.bits
            )));
        }
        let expected = len / layout.frame_len() as u64;
        let right_count = info.sample_count == 0 || info.sample_count == expected;
        if !len.is_multiple_of(layout.frame_len() as u64) || !right_count {
            return Err(Error::corrupt(format!(
                "{len} bytes are not the stream's {} samples of {} channels",
                info.sample_count, layout.channel_count
            )));
        }
        Ok(Self {
            layout,
            next: stream_offset + start_len,
            channels: Vec::new(),
        })
    }

    pub(crate) fn state_bytes(&self) -> u64 {
        self.channels
            .iter()
            .map(|channel| 8 * channel.capacity() as u64)
            .sum()
    }

    /// Appends whole frames to `out` until it holds at least `want` of all `len` bytes.
    pub(crate) fn decode_to(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        want: usize,
        len: usize,
    ) -> Result<()> {
        reserve_total(out, len)?;
        while out.len() < want {
            let rest = payload.get(self.next..).unwrap_or_default();
            let samples_max = (len - out.len()) / self.layout.frame_len();
            self.next += self
                .decode_frame(rest, samples_max)
                .map_err(|error| error.context("flac"))?;
            self.layout.pack(&self.channels, out);
        }
        if out.len() == len && self.next != payload.len() {
            return Err(Error::corrupt("flac: bytes after the last frame"));
        }
        Ok(())
    }

    /// Decodes the frame at the start of `bytes` and returns how many bytes it takes.
    fn decode_frame(&mut self, bytes: &[u8], samples_max: usize) -> Result<usize> {
        let mut bits = BitReader::new(bytes);
        let header = parse_frame_header(&mut bits, bytes)?;
        let sample_bits = header.bits.unwrap_or(self.layout.bits);
        if (header.channels.count(), sample_bits) != (self.layout.channel_count, self.layout.bits) {
            return Err(Error::corrupt("frame of another kind than its stream"));
        }
        if header.sample_count > samples_max {
            return Err(Error::corrupt("more samples than the size says"));
        }
        self.channels
            .resize_with(self.layout.channel_count, Vec::new);
        for (index, channel) in self.channels.iter_mut().enumerate() {
            let extra = u32::from(header.channels.is_side(index));
            decode_subframe(&mut bits, sample_bits + extra, header.sample_count, channel)?;
        }
        bits.align();
        let body_len = bits.byte_offset();
        if bits.read(16)? != u64::from(crc16(bytes.get(..body_len).unwrap_or_default())) {
            return Err(Error::corrupt("frame with a wrong checksum"));
        }
        if let [first, second] = self.channels.as_mut_slice() {
            join_stereo(header.channels, first, second);
        }
        Ok(bits.byte_offset())
    }
}

/// Turns what a frame stores of two channels into left and right.
fn join_stereo(channels: Channels, first: &mut [i64], second: &mut [i64]) {
    for (first, second) in first.iter_mut().zip(second) {
        match channels {
            Channels::Independent(_) => return,
            Channels::LeftSide => *second = first.wrapping_sub(*second),
            Channels::SideRight => *first = first.wrapping_add(*second),
            Channels::MidSide => {
                // The side has the bit that the mid, half a sum, has lost.
                let sum = (*first << 1) | (*second & 1);
                (*first, *second) = (
                    sum.wrapping_add(*second) >> 1,
                    sum.wrapping_sub(*second) >> 1,
                );
            }
        }
    }
}

/// Replaces `samples` by the `count` that the next subframe holds.
fn decode_subframe(
    bits: &mut BitReader<'_>,
    sample_bits: u32,
    count: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    samples.clear();
    samples.reserve(count);
    let kind = bits.read_u32(7)?;
    let wasted = match bits.read(1)? {
        0 => 0,
        _ => bits.read_unary()? + 1,
    };
    let wasted = u32::try_from(wasted)
        .ok()
        .filter(|wasted| *wasted < sample_bits)
        .ok_or_else(|| Error::corrupt("subframe without any bits"))?;
    let sample_bits = sample_bits - wasted;
    match kind {
        0 => samples.resize(count, bits.read_signed(sample_bits)?),
        1 => read_plain(bits, sample_bits, count, samples)?,
        8..=12 => {
            let coefficients = FIXED[kind as usize - 8];
            read_start(bits, sample_bits, coefficients.len(), count, samples)?;
            read_residual(bits, coefficients.len(), count, samples)?;
            predict(samples, coefficients, 0);
        }
        32..=63 => decode_lpc(bits, sample_bits, kind as usize - 31, count, samples)?,
        _ => return Err(Error::corrupt(format!("subframe of reserved kind {kind}"))),
    }
    if wasted > 0 {
        samples.iter_mut().for_each(|sample| *sample <<= wasted);
    }
    Ok(())
}

/// The fixed predictors by order, coefficients of the oldest sample first.
const FIXED: [&[i64]; 5] = [&[], &[1], &[-1, 2], &[1, -3, 3], &[-1, 4, -6, 4]];

const LPC_ORDER_MAX: usize = 32;

fn decode_lpc(
    bits: &mut BitReader<'_>,
    sample_bits: u32,
    order: usize,
    count: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    read_start(bits, sample_bits, order, count, samples)?;
    let precision = bits.read_u32(4)? + 1;
    let shift = bits.read_signed(5)?;
    let shift = u32::try_from(shift)
        .ok()
        .filter(|_| precision < 16)
        .ok_or_else(|| Error::corrupt("predictor with invalid precision or shift"))?;
    let mut coefficients = [0; LPC_ORDER_MAX];
    let coefficients = coefficients.get_mut(..order).unwrap_or_default();
    // Stored with that of the newest sample first.
    for coefficient in coefficients.iter_mut().rev() {
        *coefficient = bits.read_signed(precision)?;
    }
    read_residual(bits, order, count, samples)?;
    predict(samples, coefficients, shift);
    Ok(())
}

/// Reads the samples that a predictor of order `order` starts from.
fn read_start(
    bits: &mut BitReader<'_>,
    sample_bits: u32,
    order: usize,
    count: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    if order > count {
        return Err(Error::corrupt("predictor of more samples than there are"));
    }
    read_plain(bits, sample_bits, order, samples)
}

fn read_plain(
    bits: &mut BitReader<'_>,
    sample_bits: u32,
    count: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    for _ in 0..count {
        samples.push(bits.read_signed(sample_bits)?);
    }
    Ok(())
}

/// Reads what a predictor of order `order` leaves of the rest of `count` samples.
fn read_residual(
    bits: &mut BitReader<'_>,
    order: usize,
    count: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    let param_bits = match bits.read(2)? {
        0 => 4,
        1 => 5,
        _ => return Err(Error::corrupt("residual of a reserved kind")),
    };
    let escape = (1 << param_bits) - 1;
    let partition_log2 = bits.read_u32(4)?;
    let partition_len = count >> partition_log2;
    if partition_len << partition_log2 != count || partition_len < order {
        return Err(Error::corrupt("residual that cannot be divided so"));
    }
    for partition in 1..=1_usize << partition_log2 {
        let end = partition * partition_len;
        let param = bits.read_u32(param_bits)?;
        if param == escape {
            let plain_bits = bits.read_u32(5)?;
            read_plain(bits, plain_bits, end - samples.len(), samples)?;
        } else {
            read_rice(bits, param, end, samples)?;
        }
    }
    Ok(())
}

fn read_rice(
    bits: &mut BitReader<'_>,
    low_bits: u32,
    end: usize,
    samples: &mut Vec<i64>,
) -> Result<()> {
    while samples.len() < end {
        let high = bits.read_unary()?;
        // Residuals have 32 bits.
        if high > u64::from(u32::MAX >> low_bits) {
            return Err(Error::corrupt("residual of more than 32 bits"));
        }
        let folded = (high << low_bits) | bits.read(low_bits)?;
        samples.push((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed());
    }
    Ok(())
}

/// Adds to each sample after the first `coefficients.len()` what these predict from the ones before.
fn predict(samples: &mut [i64], coefficients: &[i64], shift: u32) {
    // A loop for each of the orders that encoders like, so that the compiler unrolls the sum.
    macro_rules! of_order {
        ($($order:literal)*) => {
            match coefficients.len() {
                0 => {}
                $($order => predict_of_order::<$order>(samples, coefficients, shift),)*
                _ => predict_of_any_order(samples, coefficients, shift),
            }
        };
    }
    of_order!(1 2 3 4 5 6 7 8 9 10 11 12);
}

fn predict_of_order<const ORDER: usize>(samples: &mut [i64], coefficients: &[i64], shift: u32) {
    let Some(coefficients) = coefficients.first_chunk::<ORDER>() else {
        return;
    };
    let Some((start, rest)) = samples.split_first_chunk_mut::<ORDER>() else {
        return;
    };
    let mut recent = *start;
    for sample in rest {
        *sample = sample.wrapping_add(weighted_sum(&recent, coefficients) >> shift);
        recent.rotate_left(1);
        recent[ORDER - 1] = *sample;
    }
}

fn predict_of_any_order(samples: &mut [i64], coefficients: &[i64], shift: u32) {
    let order = coefficients.len();
    for index in order..samples.len() {
        let (before, rest) = samples.split_at_mut(index);
        let recent = before.get(index - order..).unwrap_or_default();
        if let Some(sample) = rest.first_mut() {
            *sample = sample.wrapping_add(weighted_sum(recent, coefficients) >> shift);
        }
    }
}

/// Wraps around where hostile samples would not fit.
#[inline]
fn weighted_sum(samples: &[i64], coefficients: &[i64]) -> i64 {
    samples
        .iter()
        .zip(coefficients)
        .fold(0, |sum: i64, (sample, coefficient)| {
            sum.wrapping_add(sample.wrapping_mul(*coefficient))
        })
}
