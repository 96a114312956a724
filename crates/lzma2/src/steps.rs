//! Packets, what leads to a place, and what the model would look like there.

use crate::model::{Packet, State};

/// A packet with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) packet: Packet,
    pub(crate) len: u32,
}

/// How a place is reached: by one packet, or by a repeat at the latest distance with something before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The only packet, or the first of three; see [`code`].
    pub(crate) code: u32,
    /// The length of the last packet.
    pub(crate) len: u16,
    /// What stands before the last packet: nothing, 1 for a literal, and else a packet and a literal, with their length.
    pub(crate) before_len: u16,
}

pub(crate) const LITERAL_CODE: u32 = u32::MAX;
pub(crate) const SHORT_REPEAT_CODE: u32 = u32::MAX - 1;
const REPEAT_COUNT: u32 = 4;

/// A packet as a number: repeats by their index, then distances, and the others from above.
pub(crate) fn code(packet: Packet) -> u32 {
    match packet {
        Packet::Literal => LITERAL_CODE,
        Packet::ShortRepeat => SHORT_REPEAT_CODE,
        Packet::Repeat(index) => index,
        Packet::Match(distance) => distance + REPEAT_COUNT,
    }
}

pub(crate) fn packet(code: u32) -> Packet {
    match code {
        LITERAL_CODE => Packet::Literal,
        SHORT_REPEAT_CODE => Packet::ShortRepeat,
        0..REPEAT_COUNT => Packet::Repeat(code),
        _ => Packet::Match(code - REPEAT_COUNT),
    }
}

impl Arrival {
    pub(crate) const LITERAL: Self = Self {
        code: LITERAL_CODE,
        len: 1,
        before_len: 0,
    };

    pub(crate) fn len(self) -> usize {
        usize::from(self.len) + usize::from(self.before_len)
    }

    /// The packet before the literal before the last packet, the literal, and the last packet.
    pub(crate) fn steps(self) -> (Option<Step>, Option<Step>, Step) {
        let packet = packet(self.code);
        let len = u32::from(self.len);
        let last = Step {
            packet: Packet::Repeat(0),
            len,
        };
        match self.before_len {
            0 => (None, None, Step { packet, len }),
            1 => (None, Some(LITERAL), last),
            len => {
                let first = Step {
                    packet,
                    len: u32::from(len) - 1,
                };
                (Some(first), Some(LITERAL), last)
            }
        }
    }
}

pub(crate) const LITERAL: Step = Step {
    packet: Packet::Literal,
    len: 1,
};

/// What the model would look like at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) state: State,
    pub(crate) repeats: [u32; 4],
}

impl Context {
    pub(crate) fn after(mut self, step: Step) -> Self {
        match step.packet {
            Packet::Literal => self.state = self.state.after_literal(),
            Packet::ShortRepeat => self.state = self.state.after_short_repeat(),
            Packet::Repeat(index) => {
                self.state = self.state.after_repeat();
                let [r0, r1, r2, r3] = self.repeats;
                self.repeats = match index {
                    0 => self.repeats,
                    1 => [r1, r0, r2, r3],
                    2 => [r2, r0, r1, r3],
                    _ => [r3, r0, r1, r2],
                };
            }
            Packet::Match(distance) => {
                self.state = self.state.after_match();
                let [r0, r1, r2, _] = self.repeats;
                self.repeats = [distance, r0, r1, r2];
            }
        }
        self
    }
}
