//! The adaptive model of LZMA: every probability that encoder and decoder keep, and what happened last.

use crate::range::{PROBABILITY_START, Probability, RangeEncoder};

pub(crate) const MATCH_LEN_MIN: u32 = 2;
pub(crate) const MATCH_LEN_MAX: u32 = 273;
/// Lengths up to this one choose the statistics of their distance.
pub(crate) const LEN_CLASS_COUNT: usize = 4;
pub(crate) const POS_STATE_COUNT: usize = 16;
/// Distances below have statistics of all their bits.
pub(crate) const FULL_DISTANCE_COUNT: usize = 128;
/// Distances of this slot and above have direct bits.
pub(crate) const DIRECT_SLOT: u32 = 14;
pub(crate) const ALIGN_LOG2: u32 = 4;

const LEN_LOW_COUNT: u32 = 8;
const LEN_MID_COUNT: u32 = 8;

/// What the last few packets were, which chooses the statistics of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u8);

impl State {
    pub(crate) const START: Self = Self(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0) & 15
    }

    /// Whether the last packet was a literal.
    #[inline]
    pub(crate) fn is_literal(self) -> bool {
        self.0 < 7
    }

    #[inline]
    pub(crate) fn after_literal(self) -> Self {
        const NEXT: [u8; 16] = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5, 0, 0, 0, 0];
        Self(NEXT[self.index()])
    }

    #[inline]
    pub(crate) fn after_match(self) -> Self {
        Self(if self.is_literal() { 7 } else { 10 })
    }

    #[inline]
    pub(crate) fn after_repeat(self) -> Self {
        Self(if self.is_literal() { 8 } else { 11 })
    }

    #[inline]
    pub(crate) fn after_short_repeat(self) -> Self {
        Self(if self.is_literal() { 9 } else { 11 })
    }
}

/// Lengths of matches, or of matches at an earlier distance.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    pub(crate) is_long: Probability,
    pub(crate) is_longer: Probability,
    pub(crate) low: [[Probability; LEN_LOW_COUNT as usize]; POS_STATE_COUNT],
    pub(crate) mid: [[Probability; LEN_MID_COUNT as usize]; POS_STATE_COUNT],
    pub(crate) high: [Probability; 256],
}

impl Lengths {
    const START: Self = Self {
        is_long: PROBABILITY_START,
        is_longer: PROBABILITY_START,
        low: [[PROBABILITY_START; LEN_LOW_COUNT as usize]; POS_STATE_COUNT],
        mid: [[PROBABILITY_START; LEN_MID_COUNT as usize]; POS_STATE_COUNT],
        high: [PROBABILITY_START; 256],
    };

    fn encode(&mut self, range: &mut RangeEncoder, len: u32, pos_state: usize) {
        let value = len - MATCH_LEN_MIN;
        let pos_state = pos_state & (POS_STATE_COUNT - 1);
        if value < LEN_LOW_COUNT {
            range.bit(&mut self.is_long, 0);
            tree(range, &mut self.low[pos_state], 3, value);
        } else if value < LEN_LOW_COUNT + LEN_MID_COUNT {
            range.bit(&mut self.is_long, 1);
            range.bit(&mut self.is_longer, 0);
            tree(range, &mut self.mid[pos_state], 3, value - LEN_LOW_COUNT);
        } else {
            range.bit(&mut self.is_long, 1);
            range.bit(&mut self.is_longer, 1);
            let rest = value - LEN_LOW_COUNT - LEN_MID_COUNT;
            tree(range, &mut self.high, 8, rest);
        }
    }
}

fn tree<const N: usize>(
    range: &mut RangeEncoder,
    probabilities: &mut [Probability; N],
    bits: u32,
    value: u32,
) {
    let mut node = 1;
    for shift in (0..bits).rev() {
        let bit = value >> shift & 1;
        range.bit(&mut probabilities[node & (N - 1)], bit);
        node = node << 1 | bit as usize;
    }
}

/// Like [`tree`], lowest bit first.
fn reverse_tree(
    range: &mut RangeEncoder,
    probabilities: &mut [Probability],
    bits: u32,
    value: u32,
) {
    let mut node = 1;
    for shift in 0..bits {
        let bit = value >> shift & 1;
        if let Some(probability) = probabilities.get_mut(node) {
            range.bit(probability, bit);
        }
        node = node << 1 | bit as usize;
    }
}

/// Returns the class of a distance: its two highest bits and how many there are below.
#[inline]
pub(crate) fn distance_slot(distance: u32) -> u32 {
    if distance < 4 {
        return distance;
    }
    let top = distance.ilog2();
    top * 2 + (distance >> (top - 1) & 1)
}

/// From this length on distances share their statistics.
pub(crate) const LEN_CLASS_LAST: u32 = MATCH_LEN_MIN + LEN_CLASS_COUNT as u32 - 1;

/// The statistics of distances by the length of the match.
#[inline]
pub(crate) fn len_class(len: u32) -> usize {
    (len.min(LEN_CLASS_LAST) - MATCH_LEN_MIN) as usize & (LEN_CLASS_COUNT - 1)
}

/// How literals and positions are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) lc: u32,
    pub(crate) lp: u32,
    pub(crate) pb: u32,
}

impl Shape {
    pub(crate) const fn new(lc: u32, lp: u32, pb: u32) -> Self {
        Self { lc, lp, pb }
    }

    /// Whether the format has it.
    pub(crate) fn is_valid(self) -> bool {
        self.lc.saturating_add(self.lp) <= 4 && self.pb <= 4
    }

    #[inline]
    pub(crate) fn pos_state(self, position: usize) -> usize {
        position & ((1 << self.pb) - 1)
    }

    #[inline]
    fn literal_index(self, position: usize, before: u8) -> usize {
        ((position & ((1 << self.lp) - 1)) << self.lc) + (usize::from(before) >> (8 - self.lc))
    }
}

pub(crate) type Literal = [Probability; 0x300];

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) shape: Shape,
    pub(crate) literals: Vec<Literal>,
    pub(crate) is_match: [[Probability; POS_STATE_COUNT]; 16],
    pub(crate) is_repeat: [Probability; 16],
    pub(crate) is_repeat_not0: [Probability; 16],
    pub(crate) is_repeat_not1: [Probability; 16],
    pub(crate) is_repeat_not2: [Probability; 16],
    pub(crate) is_repeat0_long: [[Probability; POS_STATE_COUNT]; 16],
    pub(crate) slots: [[Probability; 64]; LEN_CLASS_COUNT],
    /// By slot: a tree of the low bits of distances below [`FULL_DISTANCE_COUNT`].
    pub(crate) special: [[Probability; 32]; DIRECT_SLOT as usize],
    pub(crate) align: [Probability; 1 << ALIGN_LOG2],
    pub(crate) match_lengths: Lengths,
    pub(crate) repeat_lengths: Lengths,
    pub(crate) state: State,
    /// The last four distances, less 1.
    pub(crate) repeats: [u32; 4],
}

/// What one step of the encoder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Literal,
    ShortRepeat,
    /// At the distance of that index among the last four.
    Repeat(u32),
    /// At that distance, less 1.
    Match(u32),
}

impl Model {
    pub(crate) fn new(shape: Shape) -> Self {
        const HALF: Probability = PROBABILITY_START;
        Self {
            shape,
            literals: vec![[HALF; 0x300]; 1 << (shape.lc + shape.lp)],
            is_match: [[HALF; POS_STATE_COUNT]; 16],
            is_repeat: [HALF; 16],
            is_repeat_not0: [HALF; 16],
            is_repeat_not1: [HALF; 16],
            is_repeat_not2: [HALF; 16],
            is_repeat0_long: [[HALF; POS_STATE_COUNT]; 16],
            slots: [[HALF; 64]; LEN_CLASS_COUNT],
            special: [[HALF; 32]; DIRECT_SLOT as usize],
            align: [HALF; 1 << ALIGN_LOG2],
            match_lengths: Lengths::START,
            repeat_lengths: Lengths::START,
            state: State::START,
            repeats: [0; 4],
        }
    }

    /// The statistics of a literal at `position` after `before`.
    #[inline]
    pub(crate) fn literal(&self, position: usize, before: u8) -> &Literal {
        let index = self.shape.literal_index(position, before);
        &self.literals[index & (self.literals.len() - 1)]
    }

    /// Encodes what stands at `position` of `data` as `packet` of `len` bytes.
    pub(crate) fn encode(
        &mut self,
        range: &mut RangeEncoder,
        data: &[u8],
        position: usize,
        packet: Packet,
        len: u32,
    ) {
        let state = self.state.index();
        let pos_state = self.shape.pos_state(position) & (POS_STATE_COUNT - 1);
        let is_match = u32::from(packet != Packet::Literal);
        range.bit(&mut self.is_match[state][pos_state], is_match);
        match packet {
            Packet::Literal => self.encode_literal(range, data, position),
            Packet::Match(distance) => {
                range.bit(&mut self.is_repeat[state], 0);
                self.match_lengths.encode(range, len, pos_state);
                self.encode_distance(range, distance, len_class(len));
                self.repeats = [distance, self.repeats[0], self.repeats[1], self.repeats[2]];
                self.state = self.state.after_match();
            }
            Packet::ShortRepeat => {
                range.bit(&mut self.is_repeat[state], 1);
                range.bit(&mut self.is_repeat_not0[state], 0);
                range.bit(&mut self.is_repeat0_long[state][pos_state], 0);
                self.state = self.state.after_short_repeat();
            }
            Packet::Repeat(index) => {
                range.bit(&mut self.is_repeat[state], 1);
                self.encode_repeat(range, index, state, pos_state);
                self.repeat_lengths.encode(range, len, pos_state);
                self.state = self.state.after_repeat();
            }
        }
    }

    fn encode_literal(&mut self, range: &mut RangeEncoder, data: &[u8], position: usize) {
        let before = position.checked_sub(1).map_or(0, |at| data[at]);
        let index = self.shape.literal_index(position, before);
        let mask = self.literals.len() - 1;
        let probabilities = &mut self.literals[index & mask];
        let byte = u32::from(data[position]);
        if self.state.is_literal() {
            let mut node = 1;
            for shift in (0..8).rev() {
                let bit = byte >> shift & 1;
                range.literal_bit(&mut probabilities[node & 0xFF], bit);
                node = node << 1 | bit as usize;
            }
        } else {
            let expected = u32::from(data[position - self.repeats[0] as usize - 1]);
            let mut offset = 0x100;
            let mut expected = expected << 1;
            let mut node = 1;
            for shift in (0..8).rev() {
                let bit = byte >> shift & 1;
                let matched = expected as usize & offset;
                range.literal_bit(&mut probabilities[offset + matched + node], bit);
                node = node << 1 | bit as usize;
                // Once it is not as expected: plain statistics.
                if matched >> 8 != bit as usize {
                    offset = 0;
                }
                expected <<= 1;
            }
        }
        self.state = self.state.after_literal();
    }

    fn encode_repeat(
        &mut self,
        range: &mut RangeEncoder,
        index: u32,
        state: usize,
        pos_state: usize,
    ) {
        let [r0, r1, r2, r3] = self.repeats;
        if index == 0 {
            range.bit(&mut self.is_repeat_not0[state], 0);
            range.bit(&mut self.is_repeat0_long[state][pos_state], 1);
            return;
        }
        range.bit(&mut self.is_repeat_not0[state], 1);
        if index == 1 {
            range.bit(&mut self.is_repeat_not1[state], 0);
            self.repeats = [r1, r0, r2, r3];
            return;
        }
        range.bit(&mut self.is_repeat_not1[state], 1);
        range.bit(&mut self.is_repeat_not2[state], index - 2);
        self.repeats = if index == 2 {
            [r2, r0, r1, r3]
        } else {
            [r3, r0, r1, r2]
        };
    }

    fn encode_distance(&mut self, range: &mut RangeEncoder, distance: u32, class: usize) {
        let slot = distance_slot(distance);
        tree(range, &mut self.slots[class], 6, slot);
        if slot < 4 {
            return;
        }
        let low_bits = (slot >> 1) - 1;
        let low = distance & ((1 << low_bits) - 1);
        if slot < DIRECT_SLOT {
            reverse_tree(range, &mut self.special[slot as usize], low_bits, low);
        } else {
            range.direct(low >> ALIGN_LOG2, low_bits - ALIGN_LOG2);
            reverse_tree(range, &mut self.align, ALIGN_LOG2, low);
        }
    }
}
