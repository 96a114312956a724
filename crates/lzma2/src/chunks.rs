//! LZMA2: packets in chunks, and what does not shrink as it is.

use crate::Error;
use crate::crew::Crew;
use crate::model::Shape;
use crate::packer::Packer;
use crate::parse::Input;
use crate::shapes::Given;

/// A chunk stands for at most so many bytes,
pub(crate) const DATA_LEN_MAX: usize = 1 << 21;
/// and takes at most so many.
pub(crate) const PAYLOAD_LEN_MAX: usize = 1 << 16;
const STORED_LEN_MAX: usize = 1 << 16;

const END: u8 = 0;
const STORED_FIRST: u8 = 1;
const STORED: u8 = 2;
const PACKED: u8 = 0x80;
const PACKED_NEW_STATE: u8 = 0xA0;
const PACKED_NEW_SHAPE: u8 = 0xC0;
const PACKED_FIRST: u8 = 0xE0;

/// What the next chunk of packets has to set up.
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

/// Most parts become this share of their length, or less.
const USUAL_SHARE: usize = 2;

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
        let mut chunks = Chunks::new(shape, start == 0);
        chunks.out.reserve(part.len() / USUAL_SHARE);
        packer.encode(input, part, &mut chunks);
        chunks.out
    };
    let parts = crew.each(count, count, Packer::new, encode)?;
    out.reserve(parts.iter().map(Vec::len).sum::<usize>() + 1);
    for part in parts {
        out.extend(part);
    }
    out.push(END);
    Ok(())
}

/// The chunks of a part.
#[derive(Debug)]
pub(crate) struct Chunks {
    shape: Shape,
    needs: Needs,
    out: Vec<u8>,
}

impl Chunks {
    fn new(shape: Shape, is_first: bool) -> Self {
        Self {
            shape,
            needs: if is_first {
                Needs::Everything
            } else {
                Needs::Shape
            },
            out: Vec::new(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds packets that stand for `len` bytes.
    pub(crate) fn pack(&mut self, len: usize, payload: &[u8]) {
        debug_assert!(len <= DATA_LEN_MAX && payload.len() <= PAYLOAD_LEN_MAX);
        let control = match self.needs {
            Needs::Nothing => PACKED,
            Needs::State => PACKED_NEW_STATE,
            Needs::Shape => PACKED_NEW_SHAPE,
            Needs::Everything => PACKED_FIRST,
        };
        self.out.push(control | ((len - 1) >> 16) as u8);
        self.out.extend(high_and_low(len - 1));
        self.out.extend(high_and_low(payload.len() - 1));
        if matches!(self.needs, Needs::Shape | Needs::Everything) {
            let Shape { lc, lp, pb } = self.shape;
            self.out.push(((pb * 5 + lp) * 9 + lc) as u8);
        }
        self.out.extend_from_slice(payload);
        self.needs = Needs::Nothing;
    }

    /// Adds bytes as they are, which leaves the model as it is.
    pub(crate) fn store(&mut self, data: &[u8]) {
        for piece in data.chunks(STORED_LEN_MAX) {
            let control = if self.needs == Needs::Everything {
                self.needs = Needs::Shape;
                STORED_FIRST
            } else {
                STORED
            };
            self.out.push(control);
            self.out.extend(high_and_low(piece.len() - 1));
            self.out.extend_from_slice(piece);
        }
    }

    /// The next packets are those of a model that starts anew.
    pub(crate) fn renew(&mut self) {
        if self.needs == Needs::Nothing {
            self.needs = Needs::State;
        }
    }
}

/// The low 16 bits.
fn high_and_low(value: usize) -> [u8; 2] {
    [(value >> 8) as u8, value as u8]
}
