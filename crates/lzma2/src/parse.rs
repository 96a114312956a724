//! Chooses packets: the cheapest way through the next few kilobytes, by prices.
//!
//! Each place that a packet can lead to remembers the cheapest way there. From every place on the way literals, repeats,
//! and matches of every length are tried, and pairs that often go together: a literal before, or between, repeats.

use std::ops::RangeInclusive;

use crate::bytes::equal_len;
use crate::finder::{Finder, Found};
use crate::model::{
    LEN_CLASS_LAST, MATCH_LEN_MAX, MATCH_LEN_MIN, Model, POS_STATE_COUNT, Packet, State, len_class,
};
use crate::noise;
use crate::price::{
    BIT_SHIFT, LEN_COUNT, PRICE_MAX, Prices, literal_price, matched_literal_price, price0, price1,
};
use crate::short::{Candidate, LEN_KNOWN_MAX, ShortMatches, TABLE_COUNT};
use crate::steps::{Arrival, Context, LITERAL, SHORT_REPEAT_CODE, Step, code};

/// How far a way is followed at most before it is encoded.
pub(crate) const WAY_LEN: usize = 1 << 12;
/// This share of a way is dropped that was cut off there: it had to come to just that place, which the best way may not do.
const DROPPED_SHARE: usize = 8;
const PLACE_COUNT: usize = WAY_LEN + 2 * MATCH_LEN_MAX as usize + 8;

/// A way ends where noise begins, which is looked for at this distance.
const NOISE_LOOK_LEN: usize = 64;

/// All lengths of a packet are tried up to this one,
const SHORT_LEN_MAX: usize = 64;
/// and behind that so many of the greatest.
const LONG_LENS: usize = 16;

/// What is parsed, and by which rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) finder: &'a Finder,
    /// Matches reach back so far at most.
    pub(crate) distance_max: u32,
    /// A match of this length is taken without looking for better ones.
    pub(crate) nice_len: u32,
}

impl Input<'_> {
    /// How many bytes at `at` are those of `found`, up to `room`.
    #[inline]
    pub(crate) fn len_of(&self, found: Found, at: usize, room: usize) -> u32 {
        let len = (found.len as usize).min(room);
        if (len as u32) < self.finder.len_known_max() {
            return len as u32;
        }
        equal_len(self.data, found.start as usize, at, len, room) as u32
    }
}

/// A match by its length and its distance, less 1.
#[derive(Clone, Copy, Debug)]
struct Match {
    len: u32,
    distance: u32,
}

/// The most matches of a position: of the short tables and of the finder.
const MATCH_COUNT: usize = TABLE_COUNT + 2;

#[derive(Debug)]
pub(crate) struct Parser {
    prices: Box<[u32; PLACE_COUNT]>,
    arrivals: Vec<Arrival>,
    contexts: Vec<Context>,
    /// The last place that something leads to.
    last: usize,
    matches: [Match; MATCH_COUNT],
    match_count: usize,
    /// How far a way is followed.
    way_len: usize,
    /// What was chosen and is not encoded yet, the next one last.
    steps: Vec<Step>,
}

impl Parser {
    pub(crate) fn new() -> Self {
        let context = Context {
            state: State::START,
            repeats: [0; 4],
        };
        Self {
            prices: Box::new([0; PLACE_COUNT]),
            arrivals: vec![Arrival::LITERAL; PLACE_COUNT],
            contexts: vec![context; PLACE_COUNT],
            last: 0,
            matches: [Match {
                len: 0,
                distance: 0,
            }; MATCH_COUNT],
            match_count: 0,
            way_len: WAY_LEN,
            steps: Vec::new(),
        }
    }

    /// Drops the rest of a way: the model is no longer what it was chosen for.
    pub(crate) fn forget(&mut self) {
        self.steps.clear();
    }

    /// Follows ways up to `len` bytes from now on, and no farther than `WAY_LEN`.
    pub(crate) fn set_way_len(&mut self, len: usize) {
        self.way_len = len.min(WAY_LEN);
    }

    /// Makes the next `count` packets literals; there are none that were chosen and are not encoded yet.
    pub(crate) fn take_literals(&mut self, count: usize) {
        self.steps.extend(std::iter::repeat_n(LITERAL, count));
    }

    /// Whether the next packet has yet to be chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the packet for `position`, the end of the one before.
    #[inline]
    pub(crate) fn next(
        &mut self,
        input: &Input<'_>,
        short: &mut ShortMatches,
        position: usize,
        model: &Model,
        prices: &Prices,
    ) -> Step {
        if self.steps.is_empty() {
            self.parse(input, short, position, model, prices);
        }
        self.steps.pop().unwrap_or(LITERAL)
    }

    /// Chooses the next packets from `position` on, at least one.
    fn parse(
        &mut self,
        input: &Input<'_>,
        short: &mut ShortMatches,
        position: usize,
        model: &Model,
        prices: &Prices,
    ) {
        self.last = 0;
        self.prices[0] = 0;
        self.contexts[0] = Context {
            state: model.state,
            repeats: model.repeats,
        };
        let mut place = 0;
        let mut look_at = NOISE_LOOK_LEN;
        loop {
            if place > 0 {
                if place == self.last || place >= self.way_len {
                    break;
                }
                if self.is_hopeless(place) {
                    place += 1;
                    continue;
                }
                self.contexts[place] = self.context(place);
                if place >= look_at {
                    look_at = place + NOISE_LOOK_LEN;
                    if noise::first_literals(input, position + place) > 0 {
                        break;
                    }
                }
            }
            let at = position + place;
            let room = (input.data.len() - at).min(MATCH_LEN_MAX as usize);
            self.find(input, short, at, room);
            let longest = match self.match_count {
                0 => 0,
                count => self.matches[count - 1].len,
            };
            if place == 0 {
                if let Some(step) = self.obvious(input, at, room, longest, model) {
                    self.steps.push(step);
                    return;
                }
            } else if longest >= input.nice_len {
                break;
            }
            self.expand(input, place, at, room, model, prices);
            place += 1;
        }
        self.collect(place);
        if place >= self.way_len && place < self.last {
            self.drop_end(self.way_len - self.way_len / DROPPED_SHARE);
        }
    }

    /// Whether the next place is reached for so little more that a way on from this one hardly wins.
    ///
    /// Most places within matches are like that: the match that leads here leads farther, too.
    fn is_hopeless(&self, place: usize) -> bool {
        /// A sixteenth of a bit. A quarter makes 0.04% more bytes, and takes as long.
        const MARGIN: u32 = 1 << (BIT_SHIFT - 4);
        self.prices[place + 1] <= self.prices[place] + MARGIN
    }

    fn context(&self, place: usize) -> Context {
        let arrival = self.arrivals[place];
        let mut context = self.contexts[place - arrival.len()];
        let (first, literal, last) = arrival.steps();
        for step in [first, literal].into_iter().flatten() {
            context = context.after(step);
        }
        context.after(last)
    }

    /// Takes the way to `place`, backwards.
    fn collect(&mut self, place: usize) {
        let mut place = place;
        while place > 0 {
            let arrival = self.arrivals[place];
            let (first, literal, last) = arrival.steps();
            self.steps.push(last);
            self.steps.extend(literal.into_iter().chain(first));
            place -= arrival.len();
        }
    }

    /// Leaves the first steps, as many as go no farther than `kept`; one in any case.
    fn drop_end(&mut self, kept: usize) {
        let mut way = 0;
        let is_kept = |step: &&Step| {
            way += step.len as usize;
            way <= kept
        };
        // The last step comes first.
        let count = self.steps.iter().rev().take_while(is_kept).count().max(1);
        self.steps.drain(..self.steps.len() - count);
    }

    /// A repeat or match that is long enough to be taken at once.
    fn obvious(
        &self,
        input: &Input<'_>,
        at: usize,
        room: usize,
        longest: u32,
        model: &Model,
    ) -> Option<Step> {
        let mut best = 0;
        let mut best_index = 0;
        for (index, distance) in (0..).zip(model.repeats) {
            let len = repeat_len(input.data, at, distance, room);
            if len > best {
                (best, best_index) = (len, index);
            }
        }
        if best >= input.nice_len {
            return Some(Step {
                packet: Packet::Repeat(best_index),
                len: best,
            });
        }
        if longest < input.nice_len {
            return None;
        }
        let Match { len, distance } = self.matches[self.match_count - 1];
        Some(Step {
            packet: Packet::Match(distance),
            len,
        })
    }

    /// Collects the matches at `at`: each is longer than the one before, and farther away.
    fn find(&mut self, input: &Input<'_>, short: &mut ShortMatches, at: usize, room: usize) {
        self.match_count = 0;
        let mut longest = 1;
        for Candidate { start, len } in short.at(input, at) {
            let distance = (at as u32).wrapping_sub(start).wrapping_sub(1);
            if len <= longest || distance >= input.distance_max {
                continue;
            }
            let mut len = len as usize;
            if len as u32 == LEN_KNOWN_MAX {
                len = equal_len(input.data, start as usize, at, len, room);
            }
            self.add(&mut longest, len.min(room) as u32, distance);
        }
        let [farthest, nearer] = input.finder.at(at);
        for found in [nearer, farthest].into_iter().flatten() {
            let distance = at as u32 - found.start - 1;
            if distance < input.distance_max {
                self.add(&mut longest, input.len_of(found, at, room), distance);
            }
        }
    }

    #[inline]
    fn add(&mut self, longest: &mut u32, len: u32, distance: u32) {
        if len <= *longest {
            return;
        }
        *longest = len;
        // A nearer match that is longer, too, makes those before it useless.
        while self.match_count > 0 && self.matches[self.match_count - 1].distance >= distance {
            self.match_count -= 1;
        }
        self.matches[self.match_count] = Match { len, distance };
        self.match_count += 1;
    }

    /// Says that `arrival` leads to `place` at `price`.
    #[inline]
    fn reach(&mut self, place: usize, price: u32, arrival: Arrival) {
        if price < self.prices[place] {
            self.prices[place] = price;
            self.arrivals[place] = arrival;
        }
    }

    /// Says that a packet leads to places behind `place` at a price of `base` and that of its length.
    #[inline]
    fn reach_all(
        &mut self,
        place: usize,
        lens: RangeInclusive<u32>,
        base: u32,
        lengths: &[u32; LEN_COUNT],
        code: u32,
    ) {
        let (first, last) = (*lens.start() as usize, *lens.end() as usize);
        if last > first.max(SHORT_LEN_MAX) + LONG_LENS {
            // What ends in the middle of a long packet hardly ever wins.
            self.reach_each(place, first..=SHORT_LEN_MAX, base, lengths, code);
            self.reach_each(place, last - LONG_LENS..=last, base, lengths, code);
        } else {
            self.reach_each(place, first..=last, base, lengths, code);
        }
    }

    #[inline]
    fn reach_each(
        &mut self,
        place: usize,
        lens: RangeInclusive<usize>,
        base: u32,
        lengths: &[u32; LEN_COUNT],
        code: u32,
    ) {
        let (first, last) = (*lens.start(), *lens.end());
        let Some(lengths) = lengths.get(first..=last) else {
            return;
        };
        let targets = &mut self.prices[place + first..=place + last];
        let arrivals = &mut self.arrivals[place + first..=place + last];
        let targets = targets.iter_mut().zip(arrivals);
        for (len, ((target, arrival), length)) in (first as u16..).zip(targets.zip(lengths)) {
            let price = base + length;
            if price < *target {
                *target = price;
                *arrival = Arrival {
                    code,
                    len,
                    before_len: 0,
                };
            }
        }
    }

    /// Makes places up to `place` known, as not reached yet.
    #[inline]
    fn extend(&mut self, place: usize) {
        if self.last < place {
            self.prices[self.last + 1..=place].fill(PRICE_MAX);
            self.last = place;
        }
    }

    /// Tries everything that can follow at `place`.
    #[expect(
        clippy::too_many_lines,
        reason = "one decision after the other on the same prices"
    )]
    fn expand(
        &mut self,
        input: &Input<'_>,
        place: usize,
        at: usize,
        room: usize,
        model: &Model,
        prices: &Prices,
    ) {
        let data = input.data;
        let Context { state, repeats } = self.contexts[place];
        let s = state.index();
        let pos_state = model.shape.pos_state(at) & (POS_STATE_COUNT - 1);
        let price = self.prices[place];
        let byte = data[at];
        let before = at.checked_sub(1).map_or(0, |at| data[at]);
        let expected = at
            .checked_sub(repeats[0] as usize + 1)
            .map(|start| data[start]);
        let is_match = model.is_match[s][pos_state];
        let match_price = price + price1(is_match);
        let repeat_price = match_price + price1(model.is_repeat[s]);

        self.extend(place + 1);
        let literal = model.literal(at, before);
        let literal_cost = match expected {
            Some(expected) if !state.is_literal() => matched_literal_price(literal, byte, expected),
            _ => literal_price(literal, byte),
        };
        let literal_price = price + price0(is_match) + literal_cost;
        let mut is_literal = false;
        if literal_price < self.prices[place + 1] {
            self.prices[place + 1] = literal_price;
            self.arrivals[place + 1] = Arrival::LITERAL;
            is_literal = true;
        }
        if expected == Some(byte) {
            let price = repeat_price
                + price0(model.is_repeat_not0[s])
                + price0(model.is_repeat0_long[s][pos_state]);
            if price <= self.prices[place + 1] {
                self.prices[place + 1] = price;
                self.arrivals[place + 1] = Arrival {
                    code: SHORT_REPEAT_CODE,
                    ..Arrival::LITERAL
                };
                is_literal = true;
            }
        }
        if room < MATCH_LEN_MIN as usize {
            return;
        }
        let pair = Pair {
            data,
            model,
            prices,
            len_max: input.nice_len as usize,
        };
        if !is_literal && expected != Some(byte) {
            let context = self.contexts[place].after(LITERAL);
            if let Some((len, price)) = pair.repeat0(context, at + 1, literal_price) {
                let arrival = Arrival {
                    code: 0,
                    len: len as u16,
                    before_len: 1,
                };
                let target = place + 1 + len as usize;
                self.extend(target);
                self.reach(target, price, arrival);
            }
        }
        let mut len_start = MATCH_LEN_MIN;
        for (index, distance) in (0_u32..).zip(repeats) {
            let len_max = repeat_len(data, at, distance, room);
            if len_max < MATCH_LEN_MIN {
                continue;
            }
            let base = repeat_price + repeat_index_price(model, index, s, pos_state);
            let lengths = prices.repeat_lengths.at(pos_state);
            self.extend(place + len_max as usize);
            let packet = Packet::Repeat(index);
            self.reach_all(place, MATCH_LEN_MIN..=len_max, base, lengths, index);
            if index == 0 {
                len_start = len_max + 1;
            }
            let step = Step {
                packet,
                len: len_max,
            };
            let price = base + lengths[len_max as usize];
            self.try_literal_repeat(&pair, place, at, step, price);
        }
        let match_price = match_price + price0(model.is_repeat[s]);
        let lengths = prices.match_lengths.at(pos_state);
        let mut len = len_start;
        for index in 0..self.match_count {
            let Match {
                len: len_max,
                distance,
            } = self.matches[index];
            if len > len_max {
                continue;
            }
            self.extend(place + len_max as usize);
            let packet = Packet::Match(distance);
            // Short matches have distances of their own.
            while len <= len_max.min(LEN_CLASS_LAST - 1) {
                let base = match_price + prices.distance(distance, len_class(len));
                self.reach_all(place, len..=len, base, lengths, code(packet));
                len += 1;
            }
            let base = match_price + prices.distance(distance, len_class(len_max));
            if len <= len_max {
                self.reach_all(place, len..=len_max, base, lengths, code(packet));
                len = len_max + 1;
            }
            let price = base + lengths[len_max as usize];
            let step = Step {
                packet,
                len: len_max,
            };
            self.try_literal_repeat(&pair, place, at, step, price);
        }
    }

    /// Tries a literal and a repeat after `step`, which leads from `place` and makes the way cost `price`.
    fn try_literal_repeat(
        &mut self,
        pair: &Pair<'_>,
        place: usize,
        at: usize,
        step: Step,
        price: u32,
    ) {
        let len = step.len as usize;
        let literal_at = at + len;
        let data = pair.data;
        let context = self.contexts[place].after(step);
        let distance = context.repeats[0] as usize + 1;
        // Most steps end where the bytes differ, and two more have to be equal.
        let Some([_, a, b]) = data.get(literal_at..literal_at + 3) else {
            return;
        };
        let start = literal_at - distance;
        let [expected, c, d] = data[start..start + 3] else {
            return;
        };
        if (*a, *b) != (c, d) {
            return;
        }
        let model = pair.model;
        let pos_state = model.shape.pos_state(literal_at) & (POS_STATE_COUNT - 1);
        let literal = model.literal(literal_at, data[literal_at - 1]);
        let price = price
            + price0(model.is_match[context.state.index()][pos_state])
            + matched_literal_price(literal, data[literal_at], expected);
        let context = context.after(LITERAL);
        if let Some((repeat_len, price)) = pair.repeat0(context, literal_at + 1, price) {
            let arrival = Arrival {
                code: code(step.packet),
                len: repeat_len as u16,
                before_len: step.len as u16 + 1,
            };
            let target = place + len + 1 + repeat_len as usize;
            self.extend(target);
            self.reach(target, price, arrival);
        }
    }
}

/// For trying pairs of packets.
struct Pair<'a> {
    data: &'a [u8],
    model: &'a Model,
    prices: &'a Prices,
    len_max: usize,
}

impl Pair<'_> {
    /// The length and price of the repeat at the latest distance, if there is one at `at`.
    fn repeat0(&self, context: Context, at: usize, price: u32) -> Option<(u32, u32)> {
        let room = (self.data.len() - at).min(self.len_max);
        let len = repeat_len(self.data, at, context.repeats[0], room);
        if len < MATCH_LEN_MIN {
            return None;
        }
        let model = self.model;
        let state = context.state.index();
        let pos_state = model.shape.pos_state(at) & (POS_STATE_COUNT - 1);
        let price = price
            + price1(model.is_match[state][pos_state])
            + price1(model.is_repeat[state])
            + repeat_index_price(model, 0, state, pos_state)
            + self.prices.repeat_lengths.at(pos_state)[len as usize];
        Some((len, price))
    }
}

#[inline]
fn repeat_index_price(model: &Model, index: u32, state: usize, pos_state: usize) -> u32 {
    if index == 0 {
        return price0(model.is_repeat_not0[state])
            + price1(model.is_repeat0_long[state][pos_state]);
    }
    let price = price1(model.is_repeat_not0[state]);
    if index == 1 {
        return price + price0(model.is_repeat_not1[state]);
    }
    let last = model.is_repeat_not2[state];
    price
        + price1(model.is_repeat_not1[state])
        + if index == 2 {
            price0(last)
        } else {
            price1(last)
        }
}

/// How many bytes at `at` repeat those at that distance, less 1.
#[inline]
pub(crate) fn repeat_len(data: &[u8], at: usize, distance: u32, room: usize) -> u32 {
    match at.checked_sub(distance as usize + 1) {
        Some(start) => equal_len(data, start, at, 0, room) as u32,
        None => 0,
    }
}
