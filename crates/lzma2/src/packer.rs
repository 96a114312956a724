//! Encodes a part of a block: as packets where these are smaller, and as it is what does not shrink.
//!
//! Packets of noise take a hundredth more than the noise, as statistics never come to rest, and leave statistics that are
//! worse for what follows. So packets are given up, back to where they last were worth it, as soon as that has cost more
//! than to end a chunk and to begin another, or noise is in sight. From there on packets are chosen and priced as before,
//! but for nothing, until they would have saved as much; and not even that while all is `noise`. A decoder's model stays
//! as it is over what is stored, and so does ours.

use std::ops::Range;

use crate::Error;
use crate::chunks::{Chunks, DATA_LEN_MAX, PAYLOAD_LEN_MAX};
use crate::model::{MATCH_LEN_MAX, Model, Packet};
use crate::noise;
use crate::parse::{Input, Parser, WAY_LEN};
use crate::price::Prices;
use crate::range::{Mark, RangeEncoder};
use crate::short::ShortMatches;
use crate::steps::{Context, LITERAL, Step};

/// No packet takes more.
const PACKET_LEN_MAX: usize = 64;
/// Of what is before a part so much is looked through for short matches.
const BEFORE_LEN: usize = 1 << 16;

/// What it takes to store something between packets: headers of two chunks, and the beginning and end of a range.
const SWITCH_BITS: i64 = 8 * 12;
/// How many bytes packets stand for between two looks at what they save.
const LOOK_LEN: usize = 64;
/// They are worth it if they save this share.
const WORTH_SHARE: i64 = 32;
/// A model that has seen less of what is new to it tells nothing.
const LEARNING_LEN: usize = 512;
/// At least so much noise is stored as soon as it is in sight; it is looked for at this distance.
const NOISE_LEN: usize = 1536;
const NOISE_LOOK_LEN: usize = 512;
/// After noise, packets are chosen for so many bytes before the next look for noise,
const TRIAL_LEN: usize = 256;
/// and kept for as many as this while they may be worth it.
const PENDING_LEN_MAX: usize = 1 << 14;

/// Where packets were worth it last.
#[derive(Debug)]
struct Best {
    at: usize,
    saved: i64,
    model: Model,
    mark: Mark,
}

/// What encodes a part of a block as chunks.
#[derive(Debug)]
pub(crate) struct Packer {
    parser: Parser,
    short: ShortMatches,
    range: RangeEncoder,
    prices: Prices,
    /// Where the chunk of packets starts.
    start: usize,
    /// Since when packets have hardly been worth it.
    best: Option<Best>,
    /// Where packets were looked at last, and the bits they had saved by then.
    looked: (usize, i64),
    /// Where noise is looked for next.
    noise_at: usize,
    /// Whether data hardly shrink here.
    is_noisy: bool,
    /// Encodes, for nothing, what is stored.
    trial: RangeEncoder,
    /// The last packets of that, which may be worth it, with their distances.
    pending: Vec<(Step, u32)>,
    /// The context that the parser chose its packets for, if that is not the model's.
    believed: Option<Context>,
}

/// Packets that were given up.
struct Lost {
    /// Where they started.
    from: usize,
    /// What they have made of the model.
    shadow: Model,
}

impl Packer {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            parser: Parser::new(),
            short: ShortMatches::new()?,
            range: RangeEncoder::new(),
            prices: Prices::new(),
            start: 0,
            best: None,
            looked: (0, 0),
            noise_at: 0,
            is_noisy: false,
            trial: RangeEncoder::new(),
            pending: Vec::new(),
            believed: None,
        })
    }

    pub(crate) fn encode(&mut self, whole: &Input<'_>, part: Range<usize>, chunks: &mut Chunks) {
        let data = whole.data.get(..part.end).unwrap_or(whole.data);
        let input = &Input { data, ..*whole };
        self.parser.forget();
        self.believed = None;
        self.noise_at = part.start;
        self.set_noisy(false);
        self.short.reset(part.start.saturating_sub(BEFORE_LEN));
        let mut model = Model::new(chunks.shape());
        self.prices.reset(&model, input.distance_max);
        let mut at = part.start;
        self.open(at, &model);
        while let Some(lost) = self.pack(input, &mut at, &mut model, chunks) {
            self.store(input, lost, &mut at, &mut model, chunks);
        }
    }

    /// Begins a chunk of packets.
    fn open(&mut self, at: usize, model: &Model) {
        self.range.restart();
        self.start = at;
        self.looked = (at, 0);
        self.best = Some(Best {
            at,
            saved: 0,
            model: model.clone(),
            mark: self.range.mark(),
        });
    }

    /// Ends a chunk of packets.
    fn close(&mut self, input: &Input<'_>, at: usize, model: &mut Model, chunks: &mut Chunks) {
        if at == self.start {
            return;
        }
        let payload = self.range.finish();
        if payload.len() < at - self.start {
            chunks.pack(at - self.start, payload);
            return;
        }
        chunks.store(&input.data[self.start..at]);
        chunks.renew();
        *model = Model::new(chunks.shape());
        self.parser.forget();
        self.believed = None;
        self.prices.reset(model, input.distance_max);
    }

    /// Begins another chunk of packets if this one may not hold the next packet.
    fn make_room(&mut self, input: &Input<'_>, at: usize, model: &mut Model, chunks: &mut Chunks) {
        let is_full = at - self.start + MATCH_LEN_MAX as usize > DATA_LEN_MAX
            || self.range.len() + PACKET_LEN_MAX > PAYLOAD_LEN_MAX;
        if is_full {
            self.close(input, at, model, chunks);
            self.open(at, model);
        }
    }

    /// Encodes packets from `at` on, to the end of the part or until they are not worth it.
    fn pack(
        &mut self,
        input: &Input<'_>,
        at: &mut usize,
        model: &mut Model,
        chunks: &mut Chunks,
    ) -> Option<Lost> {
        while *at < input.data.len() {
            self.make_room(input, *at, model, chunks);
            let step = self.next(input, *at, model);
            model.encode(&mut self.range, input.data, *at, step.packet, step.len);
            self.encoded(step, *at, model);
            *at += step.len as usize;
            let is_due = *at - self.looked.0 >= LOOK_LEN;
            if is_due
                && self.is_lost(input, *at, model)
                && let Some(best) = self.best.take()
            {
                self.range.restore(best.mark);
                let shadow = std::mem::replace(model, best.model);
                if best.at > self.start {
                    chunks.pack(best.at - self.start, self.range.finish());
                }
                return Some(Lost {
                    from: best.at,
                    shadow,
                });
            }
        }
        self.close(input, *at, model, chunks);
        None
    }

    fn set_noisy(&mut self, is_noisy: bool) {
        self.is_noisy = is_noisy;
        self.parser
            .set_way_len(if is_noisy { TRIAL_LEN } else { WAY_LEN });
    }

    /// Looks at the packets up to `at`, and returns whether to give those up that have hardly been worth it.
    fn is_lost(&mut self, input: &Input<'_>, at: usize, model: &Model) -> bool {
        let saved = 8 * (at - self.start) as i64 - self.range.bits() as i64;
        let (looked_at, looked_saved) = self.looked;
        self.looked = (at, saved);
        if (saved - looked_saved) * WORTH_SHARE > 8 * (at - looked_at) as i64 {
            self.best = None;
            self.set_noisy(false);
            return false;
        }
        self.set_noisy(true);
        match &self.best {
            Some(best) if saved < best.saved => {
                if best.saved - saved >= SWITCH_BITS && at - best.at >= LEARNING_LEN {
                    return true;
                }
            }
            _ => {
                self.best = Some(Best {
                    at,
                    saved,
                    model: model.clone(),
                    mark: self.range.mark(),
                });
            }
        }
        if saved > looked_saved || at < self.noise_at {
            return false;
        }
        self.noise_at = at + NOISE_LOOK_LEN;
        noise::end(input, at) - at >= NOISE_LEN
    }

    /// Stores what was lost and what follows, until packets are worth it again; begins a chunk with these.
    ///
    /// The shadow goes on with all packets, as if they were encoded; `model` is what a decoder has.
    fn store(
        &mut self,
        input: &Input<'_>,
        lost: Lost,
        at: &mut usize,
        model: &mut Model,
        chunks: &mut Chunks,
    ) {
        let data = input.data;
        let Lost { from, mut shadow } = lost;
        let mut end = *at;
        self.trial.restart();
        self.pending.clear();
        let mut is_worth = false;
        let mut quiet_at = *at;
        self.set_noisy(true);
        while *at < data.len() && !is_worth {
            if *at >= quiet_at && self.pending.is_empty() {
                let next = noise::end(input, *at);
                if next > *at {
                    self.parser.forget();
                    self.short.skip(next);
                    (*at, end) = (next, next);
                    self.trial.restart();
                }
                quiet_at = *at + TRIAL_LEN;
                continue;
            }
            let step = self.next(input, *at, &shadow);
            self.pending.push((step, distance(step, &shadow.repeats)));
            shadow.encode(&mut self.trial, data, *at, step.packet, step.len);
            self.encoded(step, *at, &shadow);
            *at += step.len as usize;
            let saved = 8 * (*at - end) as i64 - self.trial.bits() as i64;
            is_worth = saved >= SWITCH_BITS;
            if saved <= 0 || *at - end > PENDING_LEN_MAX && !is_worth {
                end = *at;
                self.trial.restart();
                self.pending.clear();
            }
        }
        self.set_noisy(false);
        if !is_worth {
            end = *at;
        }
        chunks.store(&data[from..end]);
        self.open(end, model);
        if !is_worth {
            return;
        }
        self.best = None;
        let mut position = end;
        let mut pending = std::mem::take(&mut self.pending);
        for (step, distance) in pending.drain(..) {
            // The model may know so little of them that they do not fit a chunk.
            self.make_room(input, position, model, chunks);
            let step = express(step, distance, &model.repeats);
            model.encode(&mut self.range, data, position, step.packet, step.len);
            position += step.len as usize;
        }
        self.pending = pending;
        let saved = 8 * (position - self.start) as i64 - self.range.bits() as i64;
        self.looked = (position, saved);
        // Packets that are chosen already are for the context of the shadow, or still for one before that.
        self.believed.get_or_insert(Context {
            state: shadow.state,
            repeats: shadow.repeats,
        });
        self.prices.reset(model, input.distance_max);
    }

    /// Returns the packet for `at`.
    fn next(&mut self, input: &Input<'_>, at: usize, model: &Model) -> Step {
        if self.parser.is_empty() {
            self.believed = None;
            let count = if self.is_noisy {
                noise::literals(input, at)
            } else {
                noise::first_literals(input, at)
            };
            self.parser.take_literals(count);
        }
        let Self {
            parser,
            short,
            prices,
            ..
        } = self;
        let mut step = parser.next(input, short, at, model, prices);
        if let Some(believed) = &mut self.believed {
            let distance = distance(step, &believed.repeats);
            *believed = believed.after(step);
            step = express(step, distance, &model.repeats);
        }
        step
    }

    /// Brings prices up to date after the packet for `at`.
    fn encoded(&mut self, step: Step, at: usize, model: &Model) {
        let pos_state = model.shape.pos_state(at);
        match step.packet {
            Packet::Match(_) => self.prices.match_encoded(model, pos_state),
            Packet::Repeat(_) => self.prices.repeat_encoded(model, pos_state),
            Packet::Literal | Packet::ShortRepeat => {}
        }
    }
}

/// The distance that a packet means, less 1.
fn distance(step: Step, repeats: &[u32; 4]) -> u32 {
    match step.packet {
        Packet::Literal => 0,
        Packet::ShortRepeat => repeats[0],
        Packet::Repeat(index) => repeats[index as usize & 3],
        Packet::Match(distance) => distance,
    }
}

/// What a packet at `distance` is where the last four are `repeats`.
fn express(step: Step, distance: u32, repeats: &[u32; 4]) -> Step {
    let index = (0..).zip(repeats).find(|(_, repeat)| **repeat == distance);
    let packet = match (step.packet, index) {
        (Packet::Literal, _) => return LITERAL,
        (Packet::ShortRepeat, Some((0, _))) => Packet::ShortRepeat,
        (Packet::ShortRepeat, _) => return LITERAL,
        (_, Some((index, _))) => Packet::Repeat(index),
        (_, None) => Packet::Match(distance),
    };
    Step { packet, ..step }
}
