//! What packets cost, in fractions of a bit, by the model as it stands or lately stood.

use crate::model::{
    ALIGN_LOG2, DIRECT_SLOT, FULL_DISTANCE_COUNT, LEN_CLASS_COUNT, Lengths, Literal, MATCH_LEN_MAX,
    MATCH_LEN_MIN, Model, POS_STATE_COUNT, distance_slot,
};
use crate::range::{PROBABILITY_ONE, Probability};

/// A price of 1 is a bit divided by 2 to this power.
pub(crate) const BIT_SHIFT: u32 = 6;
/// Neighbouring probabilities share a price.
const INDEX_SHIFT: u32 = 2;
const TABLE_LEN: usize = (PROBABILITY_ONE >> INDEX_SHIFT) as usize;
/// Higher than any path.
pub(crate) const PRICE_MAX: u32 = 1 << 30;

const TABLE: [u32; TABLE_LEN] = table();

/// The price of a bit by its probability, from squaring: log2 without floating point, the same on every machine.
const fn table() -> [u32; TABLE_LEN] {
    let mut table = [0; TABLE_LEN];
    let mut index = 0;
    while index < TABLE_LEN {
        let mut value = ((index as u64) << INDEX_SHIFT) + (1 << (INDEX_SHIFT - 1));
        let mut bits = 0;
        let mut step = 0;
        while step < BIT_SHIFT {
            value *= value;
            bits <<= 1;
            while value >= 1 << 16 {
                value >>= 1;
                bits += 1;
            }
            step += 1;
        }
        table[index] = (11 << BIT_SHIFT) - 15 - bits;
        index += 1;
    }
    table
}

#[inline]
pub(crate) fn price0(probability: Probability) -> u32 {
    TABLE[usize::from(probability >> INDEX_SHIFT) & (TABLE_LEN - 1)]
}

#[inline]
pub(crate) fn price1(probability: Probability) -> u32 {
    let other = PROBABILITY_ONE as Probability - probability;
    TABLE[usize::from(other >> INDEX_SHIFT) & (TABLE_LEN - 1)]
}

#[inline]
fn price(probability: Probability, bit: u32) -> u32 {
    // Flips all bits below `PROBABILITY_ONE` for a 1.
    let flip = (bit as Probability).wrapping_neg() & (PROBABILITY_ONE as Probability - 1);
    TABLE[usize::from((probability ^ flip) >> INDEX_SHIFT) & (TABLE_LEN - 1)]
}

fn tree_price<const N: usize>(probabilities: &[Probability; N], bits: u32, value: u32) -> u32 {
    let mut node = value | 1 << bits;
    let mut sum = 0;
    while node > 1 {
        let bit = node & 1;
        node >>= 1;
        sum += price(probabilities[node as usize & (N - 1)], bit);
    }
    sum
}

/// Fills `prices` with `base` and the prices of all values of a tree, each node of which is looked at once.
fn tree_prices<const N: usize>(probabilities: &[Probability; N], base: u32, prices: &mut [u32]) {
    let mut nodes = [0; N];
    nodes[1] = base;
    for (node, probability) in probabilities.iter().enumerate().skip(1) {
        let pair = [0, 1].map(|bit| nodes[node] + price(*probability, bit));
        let below = if node < N / 2 {
            &mut nodes[2 * node..]
        } else {
            &mut prices[2 * node - N..]
        };
        for (target, price) in below.iter_mut().zip(pair) {
            *target = price;
        }
    }
}

fn reverse_tree_price<const N: usize>(
    probabilities: &[Probability; N],
    bits: u32,
    value: u32,
) -> u32 {
    let mut node = 1;
    let mut sum = 0;
    for shift in 0..bits {
        let bit = value >> shift & 1;
        sum += price(probabilities[node as usize & (N - 1)], bit);
        node = node << 1 | bit;
    }
    sum
}

/// The price of a literal that follows a literal.
#[inline]
pub(crate) fn literal_price(probabilities: &Literal, byte: u8) -> u32 {
    let mut node = u32::from(byte) | 0x100;
    let mut sum = 0;
    for _ in 0..8 {
        let bit = node & 1;
        node >>= 1;
        sum += price(probabilities[node as usize & 0xFF], bit);
    }
    sum
}

/// The price of a literal that follows a match which `expected` would continue.
#[inline]
pub(crate) fn matched_literal_price(probabilities: &Literal, byte: u8, expected: u8) -> u32 {
    let mut offset = 0x100;
    let mut expected = u32::from(expected);
    let mut node = u32::from(byte) | 0x100;
    let mut sum = 0;
    for _ in 0..8 {
        expected <<= 1;
        let index = offset + (expected & offset) + (node >> 8);
        let bit = node >> 7 & 1;
        // At most 0x100 + 0x100 + 0xFF.
        sum += price(probabilities[index as usize % 0x300], bit);
        node <<= 1;
        offset &= !(expected ^ node);
    }
    sum
}

pub(crate) const LEN_COUNT: usize = MATCH_LEN_MAX as usize + 1;

/// Prices of lengths by position; brought up to date for one position after some uses.
#[derive(Debug)]
pub(crate) struct LengthPrices {
    by_pos_state: Box<[[u32; LEN_COUNT]; POS_STATE_COUNT]>,
    uses_left: [u32; POS_STATE_COUNT],
}

impl LengthPrices {
    const USES: u32 = 8;

    fn new() -> Self {
        Self {
            by_pos_state: Box::new([[0; LEN_COUNT]; POS_STATE_COUNT]),
            uses_left: [0; POS_STATE_COUNT],
        }
    }

    #[inline]
    pub(crate) fn at(&self, pos_state: usize) -> &[u32; LEN_COUNT] {
        &self.by_pos_state[pos_state & (POS_STATE_COUNT - 1)]
    }

    /// Counts a use and renews the prices when they are old.
    fn used(&mut self, lengths: &Lengths, pos_state: usize) {
        let pos_state = pos_state & (POS_STATE_COUNT - 1);
        let left = &mut self.uses_left[pos_state];
        if *left > 1 {
            *left -= 1;
            return;
        }
        *left = Self::USES;
        self.renew(lengths, pos_state);
    }

    fn renew(&mut self, lengths: &Lengths, pos_state: usize) {
        let prices = &mut self.by_pos_state[pos_state];
        let low = price0(lengths.is_long);
        let long = price1(lengths.is_long);
        let mid = long + price0(lengths.is_longer);
        let high = long + price1(lengths.is_longer);
        let (_, prices) = prices.split_at_mut(MATCH_LEN_MIN as usize);
        let (low_prices, prices) = prices.split_at_mut(8);
        let (mid_prices, high_prices) = prices.split_at_mut(8);
        tree_prices(&lengths.low[pos_state], low, low_prices);
        tree_prices(&lengths.mid[pos_state], mid, mid_prices);
        tree_prices(&lengths.high, high, high_prices);
    }
}

/// All prices that are not looked up bit by bit.
#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) match_lengths: LengthPrices,
    pub(crate) repeat_lengths: LengthPrices,
    slots: [[u32; 64]; LEN_CLASS_COUNT],
    distances: [[u32; FULL_DISTANCE_COUNT]; LEN_CLASS_COUNT],
    align: [u32; 1 << ALIGN_LOG2],
    matches_left: u32,
    pos_state_count: usize,
    slot_count: u32,
}

impl Prices {
    /// How many matches use prices of distances before they are renewed.
    const MATCHES: u32 = 32;

    pub(crate) fn new() -> Self {
        Self {
            match_lengths: LengthPrices::new(),
            repeat_lengths: LengthPrices::new(),
            slots: [[0; 64]; LEN_CLASS_COUNT],
            distances: [[0; FULL_DISTANCE_COUNT]; LEN_CLASS_COUNT],
            align: [0; 1 << ALIGN_LOG2],
            matches_left: 0,
            pos_state_count: 1,
            slot_count: 64,
        }
    }

    /// Takes all prices from `model`, for distances up to `distance_max`.
    pub(crate) fn reset(&mut self, model: &Model, distance_max: u32) {
        self.pos_state_count = 1 << model.shape.pb;
        self.slot_count = distance_slot(distance_max) + 1;
        for pos_state in 0..self.pos_state_count {
            self.match_lengths.renew(&model.match_lengths, pos_state);
            self.repeat_lengths.renew(&model.repeat_lengths, pos_state);
            self.match_lengths.uses_left[pos_state] = LengthPrices::USES;
            self.repeat_lengths.uses_left[pos_state] = LengthPrices::USES;
        }
        self.renew_distances(model);
    }

    pub(crate) fn match_encoded(&mut self, model: &Model, pos_state: usize) {
        self.match_lengths.used(&model.match_lengths, pos_state);
        self.matches_left = self.matches_left.saturating_sub(1);
        if self.matches_left == 0 {
            self.renew_distances(model);
        }
    }

    pub(crate) fn repeat_encoded(&mut self, model: &Model, pos_state: usize) {
        self.repeat_lengths.used(&model.repeat_lengths, pos_state);
    }

    fn renew_distances(&mut self, model: &Model) {
        self.matches_left = Self::MATCHES;
        for (value, price) in (0..).zip(&mut self.align) {
            *price = reverse_tree_price(&model.align, ALIGN_LOG2, value);
        }
        for class in 0..LEN_CLASS_COUNT {
            let probabilities = &model.slots[class];
            let slots = &mut self.slots[class];
            for slot in 0..self.slot_count {
                let direct = if slot < DIRECT_SLOT {
                    0
                } else {
                    ((slot >> 1) - 1 - ALIGN_LOG2) << BIT_SHIFT
                };
                slots[slot as usize & 63] = direct + tree_price(probabilities, 6, slot);
            }
        }
        for distance in 0..FULL_DISTANCE_COUNT as u32 {
            let slot = distance_slot(distance);
            let low = match slot.checked_sub(4) {
                None => 0,
                Some(_) => {
                    let bits = (slot >> 1) - 1;
                    reverse_tree_price(
                        &model.special[slot as usize],
                        bits,
                        distance & ((1 << bits) - 1),
                    )
                }
            };
            for class in 0..LEN_CLASS_COUNT {
                self.distances[class][distance as usize] =
                    self.slots[class][slot as usize & 63] + low;
            }
        }
    }

    /// The price of a distance, less 1, of a match with a length of `class`.
    #[inline]
    pub(crate) fn distance(&self, distance: u32, class: usize) -> u32 {
        let class = class & (LEN_CLASS_COUNT - 1);
        if let Some(price) = self.distances[class].get(distance as usize) {
            return *price;
        }
        let slot = distance_slot(distance);
        self.slots[class][slot as usize & 63] + self.align[distance as usize & 15]
    }
}
