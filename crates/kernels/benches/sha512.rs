//! SHA-512 of one message after the other, and side by side: `cargo bench --profile fast -p durin-kernels --bench sha512`.

#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "rounded figures for the terminal"
)]

use std::time::Instant;

use durin_kernels::sha512::{LANES, State, compress};
use durin_testkit::random::Random;
use sha2::block_api::compress512;

/// A block of an image of level 1.
const LEN: usize = 1 << 20;
const TIMES: usize = 16;

fn main() {
    let data = Random::new(5).bytes(LEN * LANES);
    let blocks = data.as_chunks().0;
    let messages = std::array::from_fn(|lane| &blocks[lane * LEN / 128..][..LEN / 128]);
    let mut states = [State::default(); LANES];
    report("one after the other", || {
        for (state, message) in states.iter_mut().zip(messages) {
            compress512(state, message);
        }
    });
    if compress(&mut states, messages) == 0 {
        println!("this processor does not do it side by side");
        return;
    }
    report("side by side", || {
        compress(&mut states, messages);
    });
}

fn report(what: &str, mut work: impl FnMut()) {
    let begin = Instant::now();
    (0..TIMES).for_each(|_| work());
    let ns = begin.elapsed().as_secs_f64() * 1e9 / (LEN * LANES * TIMES) as f64;
    println!("{what}: {ns:.2} ns a byte");
}
