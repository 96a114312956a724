//! What the encoder writes, read by liblzma.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod crew;
mod data;
mod repetitive;
mod round_trip;
mod stored;

use std::sync::Arc;

use durin_lzma2::{Crew, Encoder, Given, Options};
use liblzma::stream::{Action, Status, Stream};

const PLAIN: Options = Options {
    dict_len: 1 << 26,
    given: Given::all(3, 0, 2),
    nice_len: 64,
    filter: None,
};

fn encoder() -> Encoder {
    Encoder::new(Arc::new(Crew::alone()))
}

fn encode(data: &[u8], options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    encoder().xz(data, options, &mut out).unwrap();
    out
}

/// Decodes one stream and checks that it ends with `xz`.
fn decode(xz: &[u8], len: usize) -> Vec<u8> {
    let mut stream = Stream::new_stream_decoder(1 << 31, 0).unwrap();
    let mut out = Vec::with_capacity(len + 1);
    let status = stream.process_vec(xz, &mut out, Action::Finish).unwrap();
    assert_eq!(status, Status::StreamEnd);
    assert_eq!(stream.total_in(), xz.len() as u64);
    out
}

#[track_caller]
fn check(data: &[u8], options: &Options) -> usize {
    let xz = encode(data, options);
    assert!(decode(&xz, data.len()) == data, "{options:?}");
    xz.len()
}
