//! How fast anchors are found: `cargo bench --profile fast -p durin-kernels`.

#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "rounded figures for the terminal"
)]

use std::time::Instant;

use durin_kernels::anchors::{Density, find};
use durin_testkit::random::Random;

/// What a thread of `mkdwarfs` reads before it looks for anchors in it.
const LEN: usize = 1 << 20;
const TIMES: usize = 64;

fn main() {
    let data = Random::new(5).bytes(LEN);
    for (bits, reach) in [
        (12, 1 << 15),
        (10, 8129),
        (10, 4033),
        (8, 961),
        (7, 449),
        (6, 193),
        (6, 65),
        (5, 97),
    ] {
        let mut anchors = Vec::new();
        let begin = Instant::now();
        for _ in 0..TIMES {
            anchors.clear();
            find(&data, Density { bits, reach }, |place, hash| {
                anchors.push((place, hash));
            });
        }
        let ns = begin.elapsed().as_secs_f64() * 1e9 / (LEN * TIMES) as f64;
        let count = anchors.len();
        println!("2^{bits}, {reach}: {ns:.2} ns a byte, {count} anchors");
    }
}
