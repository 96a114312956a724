//! LZMA2: packets in chunks, and what does not shrink as it is.

use std::ops::Range;

use crate::Error;
use crate::crew::Crew;
use crate::model::{MATCH_LEN_MAX, Model, Packet, Shape};
use crate::parse::{Input, Parser};
use crate::price::Prices;
use crate::range::RangeEncoder;
use crate::shapes::Given;
use crate::short::ShortMatches;

/// A chunk stands for at most so many bytes,
const DATA_LEN_MAX: usize = 1 << 21;
/// and takes at most so many.
const PAYLOAD_LEN_MAX: usize = 1 << 16;
/// No packet takes more.
const PACKET_LEN_MAX: usize = 64;
const STORED_LEN_MAX: usize = 1 << 16;

const END: u8 = 0;
const STORED_FIRST: u8 = 1;
const STORED: u8 = 2;
const PACKED: u8 = 0x80;
const PACKED_NEW_STATE: u8 = 0xA0;
const PACKED_NEW_SHAPE: u8 = 0xC0;
const PACKED_FIRST: u8 = 0xE0;

/// What the next chunk has to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    State,
    Shape,
    Everything,
}

/// A block is encoded in parts of about this length, by as many threads.
///
/// Each begins with new statistics, which costs some kilobytes where the data stay the same, and saves as much where they
/// change; and with the shape that suits it.
const PART_LEN: usize = 8 << 20;
/// Of what is before a part so much is looked through for short matches.
const BEFORE_LEN: usize = 1 << 16;

/// Encodes a block as one LZMA2 stream.
pub(crate) fn encode(
    input: &Input<'_>,
    given: Given,
    crew: &Crew,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let len = input.data.len();
    let count = len.div_ceil(PART_LEN).max(1);
    let part_len = len.div_ceil(count);
    let encode = |packer: &mut Packer, number: usize| {
        let start = number * part_len;
        let part = start..len.min(start + part_len);
        let shape = given.choose(input, part.clone());
        let mut out = Vec::new();
        packer.encode(input, part, shape, &mut out);
        out
    };
    for part in crew.each(count, count, Packer::new, encode)? {
        out.extend(part);
    }
    out.push(END);
    Ok(())
}

/// What encodes a part of a block as chunks.
#[derive(Debug)]
pub(crate) struct Packer {
    parser: Parser,
    short: ShortMatches,
    range: RangeEncoder,
    prices: Prices,
}

impl Packer {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            parser: Parser::new(),
            short: ShortMatches::new()?,
            range: RangeEncoder::new(),
            prices: Prices::new(),
        })
    }

    fn encode(&mut self, whole: &Input<'_>, part: Range<usize>, shape: Shape, out: &mut Vec<u8>) {
        let data = whole.data.get(..part.end).unwrap_or(whole.data);
        let input = &Input { data, ..*whole };
        self.parser.forget();
        self.short.reset(part.start.saturating_sub(BEFORE_LEN));
        let mut needs = if part.start == 0 {
            Needs::Everything
        } else {
            Needs::Shape
        };
        let mut model = Model::new(shape);
        let mut start = part.start;
        self.prices.reset(&model, input.distance_max);
        while start < data.len() {
            let end = self.chunk(input, start, &mut model);
            let payload = self.range.finish();
            if payload.len() < end - start {
                let control = match needs {
                    Needs::Nothing => PACKED,
                    Needs::State => PACKED_NEW_STATE,
                    Needs::Shape => PACKED_NEW_SHAPE,
                    Needs::Everything => PACKED_FIRST,
                };
                let (data_len, payload_len) = (end - start - 1, payload.len() - 1);
                out.push(control | (data_len >> 16) as u8);
                out.extend(high_and_low(data_len));
                out.extend(high_and_low(payload_len));
                if matches!(needs, Needs::Shape | Needs::Everything) {
                    out.push(((shape.pb * 5 + shape.lp) * 9 + shape.lc) as u8);
                }
                out.extend_from_slice(payload);
                needs = Needs::Nothing;
            } else {
                store(&data[start..end], needs == Needs::Everything, out);
                needs = match needs {
                    Needs::Everything | Needs::Shape => Needs::Shape,
                    _ => Needs::State,
                };
                model = Model::new(shape);
                self.parser.forget();
                self.prices.reset(&model, input.distance_max);
            }
            start = end;
        }
    }

    /// Encodes packets from `start` on until the chunk is full, and returns where it ends.
    fn chunk(&mut self, input: &Input<'_>, start: usize, model: &mut Model) -> usize {
        let Self {
            parser,
            short,
            range,
            prices,
        } = self;
        range.restart();
        let mut at = start;
        while at < input.data.len() {
            let is_full = at - start + MATCH_LEN_MAX as usize > DATA_LEN_MAX
                || range.len() + PACKET_LEN_MAX > PAYLOAD_LEN_MAX;
            if is_full {
                break;
            }
            let step = parser.next(input, short, at, model, prices);
            let pos_state = model.shape.pos_state(at);
            model.encode(range, input.data, at, step.packet, step.len);
            match step.packet {
                Packet::Match(_) => prices.match_encoded(model, pos_state),
                Packet::Repeat(_) => prices.repeat_encoded(model, pos_state),
                Packet::Literal | Packet::ShortRepeat => {}
            }
            at += step.len as usize;
        }
        at
    }
}

fn store(data: &[u8], is_first: bool, out: &mut Vec<u8>) {
    let mut control = if is_first { STORED_FIRST } else { STORED };
    for piece in data.chunks(STORED_LEN_MAX) {
        out.push(control);
        out.extend(high_and_low(piece.len() - 1));
        out.extend_from_slice(piece);
        control = STORED;
    }
}

/// The low 16 bits.
fn high_and_low(value: usize) -> [u8; 2] {
    [(value >> 8) as u8, value as u8]
}
