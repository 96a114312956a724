//! Chooses how literals and positions of a part are modelled, by encoding a sample of it in several ways.
//!
//! The packets are what a hasty look finds among the matches that are known already. They are not those that will be
//! chosen, but literals stand in the same places for the most part, and these make the difference.

use std::ops::Range;

use crate::model::{MATCH_LEN_MAX, MATCH_LEN_MIN, Model, Packet, Shape};
use crate::parse::{Input, repeat_len};
use crate::range::RangeEncoder;
use crate::steps::{LITERAL, Step};

/// The library's default, which suits most machine code; text; letters beside numbers of four bytes; numbers and
/// instructions of four bytes, of two, and those of four whose bytes say nothing about each other.
const SHAPES: [Shape; 7] = [
    Shape::new(3, 0, 2),
    Shape::new(4, 0, 0),
    Shape::new(3, 0, 0),
    Shape::new(4, 0, 2),
    Shape::new(2, 2, 2),
    Shape::new(1, 1, 1),
    Shape::new(0, 2, 2),
];

/// How many pieces a sample has, spread over the part: fewer and longer ones miss what is rare.
const PIECE_COUNT_MAX: usize = 32;
const PIECE_COUNT_MIN: usize = 4;
const PIECE_LEN: usize = 1 << 14;
/// A sample is this share of a small part: more takes longer than it saves.
const SAMPLE_SHARE: usize = 4;
/// This share of the pieces only teach the models where there is more than the sample: large models learn slowly.
const LEARNING_SHARE: usize = 4;

/// What is given of how literals and positions are modelled; the rest is chosen for each part of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// How many bits of the byte before choose the statistics of a literal.
    pub lc: Option<u32>,
    /// How many bits of the position choose the statistics of a literal; `lc + lp` is at most 4.
    pub lp: Option<u32>,
    /// How many bits of the position choose the statistics of packets; at most 4.
    pub pb: Option<u32>,
}

impl Given {
    /// Nothing is chosen.
    #[must_use]
    pub const fn all(lc: u32, lp: u32, pb: u32) -> Self {
        Self {
            lc: Some(lc),
            lp: Some(lp),
            pb: Some(pb),
        }
    }

    /// `shape` with what is given.
    fn apply(self, shape: Shape) -> Shape {
        Shape {
            lc: self.lc.unwrap_or(shape.lc),
            lp: self.lp.unwrap_or(shape.lp),
            pb: self.pb.unwrap_or(shape.pb),
        }
    }

    pub(crate) fn is_valid(self) -> bool {
        self.apply(Shape::new(0, 0, 0)).is_valid()
    }

    /// All shapes that may be chosen, each once.
    fn shapes(self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for shape in SHAPES {
            let shape = self.apply(shape);
            if shape.is_valid() && !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        shapes
    }

    /// Returns the shape that suits `part` best, as far as a sample tells.
    pub(crate) fn choose(self, input: &Input<'_>, part: Range<usize>) -> Shape {
        let shapes = self.shapes();
        let first = shapes.first().copied().unwrap_or(SHAPES[0]);
        if shapes.len() < 2 {
            return first;
        }
        let mut trials: Vec<Trial> = shapes.into_iter().map(Trial::new).collect();
        let count = part.len() / (PIECE_LEN * SAMPLE_SHARE);
        let count = count.clamp(PIECE_COUNT_MIN, PIECE_COUNT_MAX);
        let stride = part.len().div_ceil(count);
        for number in 0..count {
            let share_end = part.end.min(part.start + (number + 1) * stride);
            let start = part.start + number * stride + stride.saturating_sub(PIECE_LEN) / 2;
            encode(input, start..share_end.min(start + PIECE_LEN), &mut trials);
            let is_learning = number < count / LEARNING_SHARE && stride > PIECE_LEN;
            for trial in &mut trials {
                trial.end_piece(is_learning);
            }
        }
        let best = trials.iter().min_by_key(|trial| trial.len);
        best.map_or(first, |best| best.model.shape)
    }
}

/// One way to encode the sample.
struct Trial {
    model: Model,
    range: RangeEncoder,
    /// What has come out, in bytes.
    len: usize,
}

impl Trial {
    fn new(shape: Shape) -> Self {
        Self {
            model: Model::new(shape),
            range: RangeEncoder::new(),
            len: 0,
        }
    }

    fn end_piece(&mut self, is_learning: bool) {
        if !is_learning {
            self.len += self.range.len();
        }
        self.range.restart();
    }
}

fn encode(input: &Input<'_>, piece: Range<usize>, trials: &mut [Trial]) {
    let mut at = piece.start;
    while at < piece.end {
        let step = trials
            .first()
            .map_or(LITERAL, |trial| hasty(input, at, &trial.model.repeats));
        for Trial { model, range, .. } in &mut *trials {
            model.encode(range, input.data, at, step.packet, step.len);
        }
        at += step.len as usize;
    }
}

/// The longest match, rather one at a distance that was used lately.
fn hasty(input: &Input<'_>, at: usize, repeats: &[u32; 4]) -> Step {
    let room = (input.data.len() - at).min(MATCH_LEN_MAX as usize);
    let mut best = LITERAL;
    for (index, distance) in (0_u32..).zip(*repeats) {
        let len = repeat_len(input.data, at, distance, room);
        if len >= MATCH_LEN_MIN && len > best.len {
            let packet = Packet::Repeat(index);
            best = Step { packet, len };
        } else if index == 0 && len == 1 {
            let packet = Packet::ShortRepeat;
            best = Step { packet, len };
        }
    }
    let [longest, _] = input.finder.at(at);
    let Some(found) = longest else {
        return best;
    };
    let distance = at as u32 - found.start - 1;
    let len = input.len_of(found, at, room);
    // What is far away has to be longer than a repeat, and than the literals in its place.
    let far = u32::from(distance > 1 << 12) + u32::from(distance > 1 << 20);
    let packet = Packet::Match(distance);
    if distance < input.distance_max && len > (best.len + 1).max(MATCH_LEN_MIN + far) {
        best = Step { packet, len };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::Crew;
    use crate::finder::Finder;

    fn choose(data: &[u8], given: Given) -> Shape {
        let mut finder = Finder::default();
        finder.fill(data, &Crew::alone()).expect("memory");
        let input = Input {
            data,
            finder: &finder,
            distance_max: 1 << 26,
            nice_len: 64,
        };
        given.choose(&input, 0..data.len())
    }

    /// Numbers of four bytes, every second of which has a range of its own.
    fn numbers(len: usize) -> Vec<u8> {
        let mut state = 3_u32;
        let mut data = Vec::new();
        while data.len() < len {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [_, a, b, c] = state.to_le_bytes();
            data.extend([a, b & 31, c, 32 + (a ^ c) % 32]);
        }
        data
    }

    /// Letters, about each of which the one before says something.
    fn text(len: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut letter = 0;
        let mut data = Vec::new();
        while data.len() < len {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            letter = (letter * 3 + (state >> 29) as u8) % 26;
            data.push(b'a' + letter);
        }
        data
    }

    #[test]
    fn shapes_suit_what_is_in_a_part() {
        let numbers = choose(&numbers(3 << 20), Given::default());
        assert!(numbers.lp == 2 && numbers.pb == 2, "{numbers:?}");
        let text = choose(&text(3 << 20), Given::default());
        assert_eq!((text.lc, text.lp), (4, 0), "{text:?}");
    }

    #[test]
    fn what_is_given_stays() {
        let given = Given {
            lp: Some(1),
            pb: Some(3),
            ..Given::default()
        };
        let shape = choose(&text(100_000), given);
        assert_eq!((shape.lp, shape.pb), (1, 3));
        assert!(shape.lc <= 3);
        for lp in 0..=4 {
            let given = Given {
                lp: Some(lp),
                ..Given::default()
            };
            assert_eq!(choose(&text(1000), given).lp, lp);
        }
    }

    #[test]
    fn any_data_have_a_shape() {
        for data in [&b""[..], b"a", b"abababab", &[0; 100_000]] {
            choose(data, Given::default());
        }
    }
}
