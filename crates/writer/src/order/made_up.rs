//! Made-up sketches and digests, friendly and hostile ones: few for tests, a million for `cargo xtask order`.

use std::sync::atomic::AtomicBool;

use durin_format::events::Quiet;

use super::{nilsimsa, similarity};
use crate::context::{Context, Failure};
use crate::options::{BuildOptions, Input, NilsimsaOptions};
use crate::sketch::{SKETCH_WORDS, Sketch};
use crate::stats::Stats;
use crate::tree::count_of;

/// Contents to be put in order, as an order sees them.
#[derive(Debug)]
pub struct MadeUp {
    /// What they are like.
    pub name: &'static str,
    contents: Contents,
}

#[derive(Debug)]
enum Contents {
    Sketches(Vec<Sketch>),
    Digests(Vec<nilsimsa::Item>),
}

impl MadeUp {
    /// Returns `count` sketches of each kind.
    #[must_use]
    pub fn sketches(count: u32) -> Vec<Self> {
        let of = |(name, sketches)| Self {
            name,
            contents: Contents::Sketches(sketches),
        };
        adversaries(count).into_iter().map(of).collect()
    }

    /// Returns `count` digests of each kind.
    #[must_use]
    pub fn digests(count: u32) -> Vec<Self> {
        let scattered = |n: u64| (n ^ n >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        let all = 0..u64::from(count);
        let strangers = all.clone().map(|n| digest(scattered(n), n)).collect();
        let families = all
            .map(|n| digest(scattered(n % 1000), scattered(n) & 0x00ff_00ff))
            .collect();
        [("strangers", strangers), ("families", families)]
            .map(|(name, digests)| Self {
                name,
                contents: Contents::Digests(digests),
            })
            .into()
    }

    /// Puts them in order with a number of threads, and returns their places in that order.
    #[must_use]
    pub fn order(&self, threads: usize) -> Vec<u32> {
        match &self.contents {
            Contents::Sketches(sketches) => order_sketches(threads, sketches),
            Contents::Digests(digests) => {
                order_digests(threads, digests, NilsimsaOptions::default())
            }
        }
    }
}

/// Orders sketches that have no names in common.
pub(super) fn order_sketches(threads: usize, sketches: &[Sketch]) -> Vec<u32> {
    let names: Vec<_> = (0..sketches.len())
        .map(|place| format!("{place}").into_bytes())
        .collect();
    let items = sketches.iter().zip(&names);
    let items: Vec<_> = items
        .map(|(sketch, name)| similarity::Item {
            words: sketch.words(),
            name: Some(name),
            len: 0,
        })
        .collect();
    order_items(threads, &items)
}

pub(super) fn order_items(threads: usize, items: &[similarity::Item<'_>]) -> Vec<u32> {
    with_context(threads, |context| {
        let placed = similarity::order(context, items).into_iter();
        placed.map(|placed| placed.item).collect()
    })
}

pub(super) fn order_digests(
    threads: usize,
    digests: &[nilsimsa::Item],
    options: NilsimsaOptions,
) -> Vec<u32> {
    with_context(threads, |context| {
        nilsimsa::order(context, digests, options)
    })
}

fn with_context<T>(threads: usize, work: impl FnOnce(Context<'_>) -> T) -> T {
    let mut options = BuildOptions::new(Input::Directory("/".into()));
    options.scanner_workers = threads;
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    let failure = Failure::default();
    work(Context::new(&options, &stats, &Quiet, &cancel, &failure))
}

/// A digest of a family, with some bits changed.
pub(super) fn digest(family: u64, changed_bits: u64) -> nilsimsa::Item {
    let word = |n: u64| {
        family
            .wrapping_mul(4)
            .wrapping_add(n + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let mut digest = [0, 1, 2, 3].map(word);
    digest[0] ^= changed_bits;
    nilsimsa::Item {
        digest,
        len: 100 + family % 1000,
    }
}

/// A sketch whose first hashes are `common + 0..` and whose others only `own` has.
pub(super) fn sketch(common: u32, common_count: u32, own: u32) -> Sketch {
    let mut words = [0; SKETCH_WORDS];
    for (at, word) in (0..).zip(&mut words) {
        let seed = if at < common_count { common } else { own };
        *word = (seed * 16 + at + 1).wrapping_mul(0x9e37_79b1);
    }
    Sketch::of_words(words)
}

/// Sketches as of a tree with many versions: some unlike all others, most like several.
pub(super) fn versions(count: u32) -> Vec<Sketch> {
    let scattered = |n: u32| (n ^ n >> 15).wrapping_mul(0x2c1b_3c6d) >> 7;
    let one = |n| {
        sketch(
            scattered(n) % (count / 8 + 1),
            scattered(n + 77) % 17,
            count + n,
        )
    };
    (0..count).map(one).collect()
}

/// The worst that hashes can do: equal sketches, one hash in common, likeness from one to the next only.
fn adversaries(count: u32) -> [(&'static str, Vec<Sketch>); 5] {
    let chain = |n: u32| {
        let words = std::array::from_fn(|at| (n + count_of(at) + 1).wrapping_mul(0x9e37_79b1));
        Sketch::of_words(words)
    };
    let all = 0..count;
    [
        ("many versions", versions(count)),
        ("all equal", all.clone().map(|_| sketch(1, 16, 0)).collect()),
        (
            "one hash in common",
            all.clone().map(|n| sketch(0, 1, n + 1)).collect(),
        ),
        ("a chain", all.clone().map(chain).collect()),
        ("all empty", all.map(|_| Sketch::default()).collect()),
    ]
}
