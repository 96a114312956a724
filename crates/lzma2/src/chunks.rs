//! LZMA2: packets in chunks, and what does not shrink as it is.

use crate::model::{MATCH_LEN_MAX, Model, Packet, Shape};
use crate::parse::{Input, Parser};
use crate::price::Prices;
use crate::range::RangeEncoder;
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

/// Encodes a block as the chunks of one LZMA2 stream.
#[derive(Debug)]
pub(crate) struct Chunks<'a> {
    pub(crate) parser: &'a mut Parser,
    pub(crate) short: &'a mut ShortMatches,
    pub(crate) range: &'a mut RangeEncoder,
    pub(crate) prices: &'a mut Prices,
}

impl Chunks<'_> {
    pub(crate) fn encode(&mut self, input: &Input<'_>, shape: Shape, out: &mut Vec<u8>) {
        let data = input.data;
        self.parser.forget();
        let mut needs = Needs::Everything;
        let mut model = Model::new(shape);
        let mut start = 0;
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
        out.push(END);
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
