//! SHA-512/256 of several messages at a time, which takes a fraction of the time where the processor helps.
//!
//! In: messages in two parts, a short one and any other, or piece by piece. Out: their digests.

use durin_kernels::sha512::{Block, LANES, State, compress, is_available};
use sha2::block_api::compress512;

const BLOCK_LEN: usize = size_of::<Block>();
/// What ends a message is padded with zeros up to here, where the number of its bits begins.
const BITS_START: usize = BLOCK_LEN - 16;
/// Fewer messages than these are faster one after the other.
const TOGETHER_MIN: usize = 3;
/// Source: FIPS 180-4, 5.3.6.2.
const INITIAL: State = [
    0x2231_2194_fc2b_f72c,
    0x9f55_5fa3_c84c_64c2,
    0x2393_b86b_6f53_b151,
    0x9638_7719_5940_eabd,
    0x9628_3ee2_a88e_ffe3,
    0xbe5e_1e25_5386_3992,
    0x2b01_99fc_2c85_b8aa,
    0x0eb7_2ddc_81c5_2ca2,
];

/// How many messages are worth hashing together.
#[must_use]
pub fn together_max() -> usize {
    if is_available() { LANES } else { 1 }
}

/// A message that comes piece by piece.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    state: State,
    /// Bytes so far.
    len: u128,
    /// What does not fill a block.
    tail: Vec<u8>,
}

/// The blocks of a message or of a piece of it: most of them are where it is.
struct Message<'a> {
    /// Where the two parts meet; none if that is the end.
    seam: Option<Block>,
    middle: &'a [Block],
    end: Vec<u8>,
}

/// What is left of a message.
struct Lane<'a> {
    number: usize,
    left: [&'a [Block]; 3],
}

/// Compresses blocks of several messages; see [`compress`].
type Compress = fn(&mut [State; LANES], [&[Block]; LANES]) -> usize;

/// Returns the digest of each message. The first part of each is shorter than a block.
pub(crate) fn digests(messages: &[[&[u8]; 2]]) -> Vec<[u8; 32]> {
    digests_with(messages, compress)
}

fn digests_with(messages: &[[&[u8]; 2]], compress: Compress) -> Vec<[u8; 32]> {
    let messages: Vec<_> = messages.iter().map(Message::new).collect();
    let mut states = vec![INITIAL; messages.len()];
    compress_all(&messages, &mut states, compress);
    states.iter().map(digest).collect()
}

/// Compresses all blocks of each message into its state.
fn compress_all(messages: &[Message<'_>], states: &mut [State], compress: Compress) {
    let mut waiting = messages.iter().enumerate().map(Lane::new);
    let mut lanes: Vec<Lane<'_>> = waiting.by_ref().take(LANES).collect();
    while lanes.len() >= TOGETHER_MIN {
        let done = together(&lanes, states, compress);
        if done == 0 {
            break;
        }
        for lane in &mut lanes {
            lane.advance(done);
        }
        lanes.retain(|lane| !lane.next().is_empty());
        lanes.extend(waiting.by_ref().take(LANES - lanes.len()));
    }
    for lane in lanes.into_iter().chain(waiting) {
        if let Some(state) = states.get_mut(lane.number) {
            for blocks in lane.left {
                compress512(state, blocks);
            }
        }
    }
}

impl Hasher {
    /// A message that begins with `head`, which is shorter than a block.
    pub(crate) fn new(head: &[u8]) -> Self {
        Self {
            state: INITIAL,
            len: head.len() as u128,
            tail: head.to_vec(),
        }
    }

    /// Adds the next piece of each message.
    pub(crate) fn update_all(hashers: &mut [&mut Self], pieces: &[&[u8]]) {
        Self::update_all_with(hashers, pieces, compress);
    }

    fn update_all_with(hashers: &mut [&mut Self], pieces: &[&[u8]], compress: Compress) {
        let mut states: Vec<_> = hashers.iter().map(|hasher| hasher.state).collect();
        let messages: Vec<_> = hashers
            .iter()
            .zip(pieces)
            .map(|(hasher, piece)| Message::unfinished(&[&hasher.tail, piece]))
            .collect();
        compress_all(&messages, &mut states, compress);
        let tails: Vec<_> = messages.into_iter().map(|message| message.end).collect();
        for (((hasher, piece), state), tail) in
            hashers.iter_mut().zip(pieces).zip(states).zip(tails)
        {
            hasher.state = state;
            hasher.len += piece.len() as u128;
            hasher.tail = tail;
        }
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        let end = padded(std::mem::take(&mut self.tail), self.len);
        compress512(&mut self.state, end.as_chunks().0);
        digest(&self.state)
    }
}

/// Compresses as many blocks of each as can be done together, and returns how many.
fn together(lanes: &[Lane<'_>], states: &mut [State], compress: Compress) -> usize {
    // Where there is no message, the first one is compressed again.
    let lane = |at| lanes.get(at).or(lanes.first());
    let blocks = std::array::from_fn(|at| lane(at).map_or(&[][..], Lane::next));
    let mut now = std::array::from_fn(|at| {
        let state = lane(at).and_then(|lane| states.get(lane.number));
        state.copied().unwrap_or_default()
    });
    let done = compress(&mut now, blocks);
    for (lane, now) in lanes.iter().zip(now) {
        if let Some(state) = states.get_mut(lane.number) {
            *state = now;
        }
    }
    done
}

impl<'a> Message<'a> {
    /// A whole message, padded.
    fn new(parts: &[&'a [u8]; 2]) -> Self {
        let [head, body] = parts;
        let len = head.len() as u128 + body.len() as u128;
        let message = Self::unfinished(parts);
        Self {
            end: padded(message.end, len),
            ..message
        }
    }

    /// One of which more is to come; its end does not fill a block.
    fn unfinished([head, body]: &[&'a [u8]; 2]) -> Self {
        let (mut seam, mut begin, mut rest) = (None, *head, *body);
        if let Some((first, left)) = body.split_at_checked(BLOCK_LEN.saturating_sub(head.len())) {
            seam = [*head, first].concat().try_into().ok();
            (begin, rest) = (&[], left);
        }
        let (middle, rest) = rest.as_chunks();
        Self {
            seam,
            middle,
            end: [begin, rest].concat(),
        }
    }
}

/// The end of a message of `len` bytes, with what goes behind it.
#[expect(clippy::big_endian_bytes, reason = "SHA-512 is defined so")]
fn padded(mut end: Vec<u8>, len: u128) -> Vec<u8> {
    end.push(0x80);
    while end.len() % BLOCK_LEN != BITS_START {
        end.push(0);
    }
    end.extend((len * 8).to_be_bytes());
    end
}

impl<'a> Lane<'a> {
    fn new((number, message): (usize, &'a Message<'_>)) -> Self {
        let left = [
            message.seam.as_slice(),
            message.middle,
            message.end.as_chunks().0,
        ];
        Self { number, left }
    }

    /// The blocks that come next; none if the message has ended.
    fn next(&self) -> &'a [Block] {
        let left = self.left.into_iter().find(|blocks| !blocks.is_empty());
        left.unwrap_or_default()
    }

    /// Takes away the first of the blocks that come next.
    fn advance(&mut self, count: usize) {
        if let Some(blocks) = self.left.iter_mut().find(|blocks| !blocks.is_empty()) {
            *blocks = blocks.get(count..).unwrap_or_default();
        }
    }
}

fn digest(state: &State) -> [u8; 32] {
    let mut digest = [0; 32];
    for (to, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *to = word.to_be_bytes();
    }
    digest
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_testkit::random::Random;
    use sha2::{Digest as _, Sha512_256};

    use super::*;

    fn check(messages: &[[&[u8]; 2]]) {
        let expected: Vec<[u8; 32]> = messages
            .iter()
            .map(|parts| Sha512_256::digest(parts.concat()).into())
            .collect();
        assert_eq!(digests(messages), expected);
        // Processors without such vectors, and those that have them.
        let nothing: Compress = |_, _| 0;
        assert_eq!(digests_with(messages, nothing), expected);
        let one_block: Compress = |states, messages| {
            for (state, message) in states.iter_mut().zip(messages) {
                compress512(state, &message[..1]);
            }
            1
        };
        assert_eq!(digests_with(messages, one_block), expected);
    }

    #[test]
    fn every_length_and_number_of_messages() {
        let data = Random::new(5).bytes(2000);
        check(&[]);
        for head in [0, 24, 32, 127] {
            let all: Vec<_> = (0..600)
                .map(|len| [&data[..head], &data[head..][..len]])
                .collect();
            for messages in [&all[..1], &all[..2], &all[300..310], &all] {
                check(messages);
            }
        }
    }

    #[test]
    fn messages_that_come_in_pieces() {
        let mut random = Random::new(8);
        let data = random.bytes(1 << 17);
        let one_by_one: Compress = |_, _| 0;
        for (count, compress) in [
            (1, compress as Compress),
            (5, compress),
            (11, compress),
            (4, one_by_one),
        ] {
            let mut hashers: Vec<_> = (0..count).map(|at| Hasher::new(&data[..at * 11])).collect();
            let mut all: Vec<Vec<u8>> = (0..count).map(|at| data[..at * 11].to_vec()).collect();
            for _ in 0..9 {
                let pieces: Vec<&[u8]> = (0..count)
                    .map(|_| {
                        let mut below = |max| usize::try_from(random.below(max)).unwrap();
                        let len = [0, 1, 127, 128, 129, 5000, 1 << 16][below(7)];
                        &data[below(1 << 16)..][..len]
                    })
                    .collect();
                for (all, piece) in all.iter_mut().zip(&pieces) {
                    all.extend_from_slice(piece);
                }
                let mut hashers: Vec<_> = hashers.iter_mut().collect();
                Hasher::update_all_with(&mut hashers, &pieces, compress);
            }
            for (hasher, message) in hashers.into_iter().zip(all) {
                let expected: [u8; 32] = Sha512_256::digest(message).into();
                assert_eq!(hasher.finish(), expected);
            }
        }
    }

    #[test]
    fn messages_of_unlike_lengths() {
        let data = Random::new(6).bytes(1 << 20);
        let lens = [
            1 << 20,
            0,
            5,
            1 << 19,
            1000,
            70_000,
            3,
            128,
            256,
            1 << 18,
            9,
            1 << 20,
        ];
        let messages: Vec<_> = lens
            .iter()
            .map(|len| [&data[..24], &data[..*len]])
            .collect();
        check(&messages);
        check(&messages[..4]);
    }
}
