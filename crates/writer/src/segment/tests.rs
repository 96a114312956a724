//! Whatever is found, chunks joined are the input; and what should be found is.

mod groups;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use durin_format::Result;
use durin_kernels::anchors;
use durin_testkit::random::Random;

use super::chunks::{ChunkKind, Chunks, FragmentKey};
use super::cut::{Anchor, Bounds, Cutter, Data, Sink};
use super::history::Reread;
use super::index::IndexLimits;
use super::rules::Rules;
use crate::category::WindowOptions;
use crate::dedupe::ContentIndex;
use crate::tree::count_of;

/// Contents that a test may change while they are cut.
#[derive(Clone, Default)]
struct Input(Rc<RefCell<Vec<Vec<u8>>>>);

impl Reread for Input {
    fn reread(&mut self, content: ContentIndex, offset: u64, target: &mut [u8]) -> bool {
        let contents = self.0.borrow();
        let start = offset as usize;
        let data = contents[content as usize].get(start..start + target.len());
        if let Some(data) = data {
            target.copy_from_slice(data);
        }
        data.is_some()
    }
}

#[derive(Default)]
struct Blocks(Vec<Arc<Vec<u8>>>);

impl Sink for Blocks {
    fn begin(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn block(&mut self, number: u32, data: Arc<Vec<u8>>) -> Result<()> {
        assert_eq!(number as usize, self.0.len());
        self.0.push(data);
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Setup {
    block_bits: u32,
    /// Other than that of full blocks.
    early_bits: Option<u32>,
    size_bits: u32,
    step_bits: u32,
    lookback_blocks: u32,
    granularity: usize,
    entries_max: usize,
    history_bytes: u64,
    hash_bytes: u64,
    run_len: usize,
}

const SETUP: Setup = Setup {
    block_bits: 16,
    early_bits: None,
    size_bits: 9,
    step_bits: 2,
    lookback_blocks: u32::MAX,
    granularity: 1,
    entries_max: 1 << 20,
    history_bytes: u64::MAX,
    hash_bytes: u64::MAX,
    run_len: 1 << 20,
};

/// What a test looks at.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    stored: u64,
    matches: u64,
    chunks: usize,
    rereads: u64,
    touched: u64,
    small: u64,
    layout: Vec<Vec<ChunkKind>>,
}

impl Setup {
    fn rules(&self) -> Rules {
        let window = WindowOptions {
            size_bits: self.size_bits,
            step_bits: self.step_bits,
            lookback_blocks: self.lookback_blocks,
            bloom_bits: 4,
        };
        let block = 1 << self.block_bits;
        let block_len = block - block % self.granularity;
        Rules::new(window, self.granularity, block_len, 4)
    }

    fn cut(&self, contents: &[Vec<u8>]) -> Outcome {
        self.cut_while(contents, |_, _| ())
    }

    /// Cuts contents, calls `act` before each, and checks that the chunks are what the contents were then.
    fn cut_while(
        &self,
        contents: &[Vec<u8>],
        mut act: impl FnMut(usize, &mut Vec<Vec<u8>>),
    ) -> Outcome {
        let input = Input(Rc::new(RefCell::new(contents.to_vec())));
        let rules = self.rules();
        let mut cutter = self.cutter(&input, contents);
        cutter.begin_stream(rules).unwrap();
        let mut were = Vec::new();
        for content in 0..contents.len() {
            act(content, &mut input.0.borrow_mut());
            let bytes = input.0.borrow()[content].clone();
            self.cut_content(&mut cutter, rules, count_of(content), &bytes);
            were.push(bytes);
        }
        cutter.finish().unwrap();
        for block in cutter.sink.0.iter().rev().skip(1) {
            assert_eq!(block.len(), rules.block_len);
        }
        self.check(&cutter, &were)
    }

    fn cutter(&self, input: &Input, contents: &[Vec<u8>]) -> Cutter<Input, Blocks> {
        let bounds = Bounds {
            early_bits: self.early_bits.unwrap_or(self.block_bits),
            index: IndexLimits {
                entries_max: self.entries_max,
                room: 4,
            },
            history_bytes: self.history_bytes,
            hash_bytes: self.hash_bytes,
            data_len: contents.iter().map(|content| content.len() as u64).sum(),
            streams: 1,
        };
        let chunks = Chunks::for_contents(count_of(contents.len()));
        Cutter::new(bounds, input.clone(), Blocks::default(), chunks)
    }

    fn cut_content(
        &self,
        cutter: &mut Cutter<Input, Blocks>,
        rules: Rules,
        content: ContentIndex,
        bytes: &[u8],
    ) {
        for (number, piece) in bytes.chunks(self.run_len).enumerate() {
            // As if other pieces were before it in its run.
            let base = 77;
            let mut list = Vec::new();
            if let Some(density) = rules.density {
                anchors::find(piece, density, |at, hash| {
                    let at = count_of(base + at);
                    list.push(Anchor { at, hash });
                });
            }
            let data = Data {
                fragment: FragmentKey { content, offset: 0 },
                offset: (number * self.run_len) as u64,
                bytes: piece,
                base,
                anchors: &list,
            };
            cutter.cut(&data, bytes.len() < rules.block_len).unwrap();
        }
    }

    fn check(&self, cutter: &Cutter<Input, Blocks>, were: &[Vec<u8>]) -> Outcome {
        let blocks = &cutter.sink.0;
        let mut layout = Vec::new();
        for (content, bytes) in (0..).zip(were) {
            let mut joined = Vec::new();
            let mut kinds = Vec::new();
            for chunk in cutter.chunks.of(content) {
                let kind = chunk.kind();
                kinds.push(kind);
                if let ChunkKind::Data {
                    block,
                    offset,
                    size,
                } = kind
                {
                    let (offset, size) = (offset as usize, size as usize);
                    assert!(size > 0);
                    joined.extend_from_slice(&blocks[block as usize][offset..offset + size]);
                }
            }
            assert!(joined == *bytes, "content {content}");
            layout.push(kinds);
        }
        let stored = blocks.iter().map(|block| block.len() as u64).sum();
        let all: u64 = were.iter().map(|content| content.len() as u64).sum();
        assert_eq!(stored + cutter.found.bytes, all);
        Outcome {
            stored,
            matches: cutter.found.matches,
            chunks: cutter.chunks.len(),
            rereads: cutter.history.rereads,
            touched: cutter.spread.touched,
            small: cutter.spread.files,
            layout,
        }
    }
}

/// Changes some places of some data: other bytes, further bytes, missing bytes.
fn edit(random: &mut Random, data: &[u8], count: usize) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..count {
        let at = random.below(data.len() as u64 + 1) as usize;
        let len = random.below(100) as usize;
        let end = data.len().min(at + len);
        let with = match random.below(3) {
            0 => random.bytes(end - at),
            1 => random.bytes(len),
            _ => Vec::new(),
        };
        let range = if random.below(2) == 0 {
            at..at
        } else {
            at..end
        };
        data.splice(range, with);
    }
    data
}

#[test]
fn any_edits_with_any_setup() {
    let mut random = Random::new(1);
    let mut matches = 0;
    for round in 0..60 {
        let setup = Setup {
            block_bits: 10 + random.below(15) as u32,
            early_bits: [None, Some(9)][round % 2],
            size_bits: random.below(13) as u32,
            step_bits: random.below(4) as u32,
            lookback_blocks: [u32::MAX, 0, 1, 3][random.below(4) as usize],
            granularity: [1, 1, 2, 3, 4, 24][random.below(6) as usize],
            entries_max: 16 << random.below(14),
            history_bytes: [0, 5000, u64::MAX][random.below(3) as usize],
            hash_bytes: [0, u64::MAX][random.below(2) as usize],
            run_len: [5000, 1 << 16, 1 << 20][random.below(3) as usize],
        };
        let len = 1 + random.below(150_000) as usize;
        let mut contents = vec![match round % 3 {
            0 => random.bytes(len),
            1 => random.text(len),
            _ => random.bytes(len).iter().map(|byte| byte / 254).collect(),
        }];
        for _ in 0..6 {
            let from = random.below(contents.len() as u64) as usize;
            let edits = random.below(8) as usize;
            let next = edit(&mut random, &contents[from].clone(), edits);
            contents.push(next);
        }
        contents.push(contents.concat());
        matches += setup.cut(&contents).matches;
    }
    assert!(matches > 300, "{matches}");
}

#[test]
fn memory_and_input_give_the_same() {
    let mut random = Random::new(2);
    let first = random.bytes(400_000);
    let mut contents = vec![first];
    for _ in 0..12 {
        let last = contents.last().unwrap().clone();
        contents.push(edit(&mut random, &last, 20));
    }
    let from_memory = SETUP.cut(&contents);
    assert_eq!(from_memory.rereads, 0);
    assert!(from_memory.stored < 600_000, "{}", from_memory.stored);
    for (history_bytes, hash_bytes) in [(0, 0), (0, u64::MAX), (100_000, 5000), (300_000, 0)] {
        let reread = Setup {
            history_bytes,
            hash_bytes,
            ..SETUP
        };
        let outcome = reread.cut(&contents);
        assert!(outcome.rereads > 0);
        assert_eq!(outcome.layout, from_memory.layout, "{history_bytes}");
    }
}

#[test]
fn a_file_that_changes_makes_no_other_wrong() {
    let mut random = Random::new(3);
    let base = random.bytes(300_000);
    let contents: Vec<_> = (0..8).map(|_| edit(&mut random, &base, 5)).collect();
    let setup = Setup {
        history_bytes: 0,
        ..SETUP
    };
    let undisturbed = setup.cut(&contents);
    // What is already stored changes, becomes shorter, or vanishes. `cut_while` checks what the others become.
    let outcome = setup.cut_while(&contents, |content, input| {
        if content > 0 {
            let changed = random.bytes(20_000);
            input[content - 1][100_000..120_000].copy_from_slice(&changed);
            input[content - 1].truncate(150_000);
        }
    });
    assert!(outcome.stored > undisturbed.stored);
    let outcome = setup.cut_while(&contents, |content, input| {
        for earlier in &mut input[..content] {
            earlier.clear();
        }
    });
    assert!(outcome.stored > 7 * 300_000 / 2, "{}", outcome.stored);
}

/// What divides new data has to be longer than what only goes on behind another repetition.
#[test]
fn short_repetitions_are_taken_beside_others() {
    let setup = Setup {
        size_bits: 8,
        ..SETUP
    };
    let mut random = Random::new(21);
    let base = random.bytes(1 << 17);
    let short = |number: usize| base[number * 500..][..130].to_vec();
    let long = |number: usize| base[(1 << 16) + number * 500..][..300].to_vec();
    let mut cut = |between: &mut dyn FnMut(&mut Random, usize) -> Vec<u8>| {
        let pieces = (0..100).map(|number| [between(&mut random, number), short(number)].concat());
        let content = pieces.collect::<Vec<_>>().concat();
        let rest = random.bytes(1 << 16);
        setup.cut(&[base.clone(), [content, rest].concat()]).matches
    };
    assert_eq!(cut(&mut |random, _| random.bytes(300)), 0);
    // All of the long ones, and those short ones that have an anchor.
    let beside = cut(&mut |_, number| long(number));
    assert!(beside > 140, "{beside}");
}

/// As images of machines that lie at other offsets each.
#[test]
fn shifted_copies_are_found() {
    let mut random = Random::new(4);
    let base = random.bytes(600_000);
    let mut contents = vec![base.clone()];
    let shifts = [1, 2, 3, 511, 512, 1023, 2048, 3333, 4094, 4095];
    for shift in shifts {
        let mut shifted = random.bytes(shift);
        shifted.extend_from_slice(&base);
        contents.push(shifted);
    }
    let outcome = SETUP.cut(&contents);
    let new: usize = base.len() + shifts.iter().sum::<usize>();
    assert_eq!(outcome.stored, new as u64, "not a byte twice");
}

#[test]
fn repetitions_of_the_promised_length_are_found_wherever_they_are() {
    let mut random = Random::new(5);
    let base = random.bytes(200_000);
    let mut contents = vec![base.clone()];
    let mut repeated = 0;
    for at in (0..190_000).step_by(4999) {
        let mut content = random.bytes(3000 + at % 7);
        content.extend_from_slice(&base[at..at + 512]);
        content.extend(random.bytes(1000));
        repeated += 512;
        contents.push(content);
    }
    // In one file that is too large to be bounded.
    let setup = Setup {
        block_bits: 15,
        ..SETUP
    };
    let outcome = setup.cut(&[contents[0].clone(), contents[1..].concat()]);
    let all: usize = contents.iter().map(Vec::len).sum();
    assert_eq!(outcome.stored, (all - repeated) as u64);
    assert_eq!(outcome.matches, (repeated / 512) as u64);
}

/// Time must not grow with the square of the data, and few chunks must do.
#[test]
fn constant_and_periodic_data() {
    let mut random = Random::new(6);
    let pattern = random.bytes(300);
    let one_of_few: Vec<u8> = random.bytes(1 << 16).iter().map(|b| b / 200).collect();
    for (name, data) in [
        ("zeros", vec![0; 8 << 20]),
        ("one value", vec![77; 8 << 20]),
        ("short period", pattern[..3].repeat(2_700_000)),
        ("longer period", pattern.repeat(28_000)),
        ("long period", random.bytes(5000).repeat(1600)),
        ("few values", one_of_few.repeat(128)),
    ] {
        let setup = Setup {
            block_bits: 20,
            ..SETUP
        };
        let started = std::time::Instant::now();
        let outcome = setup.cut(&[data.clone(), data.clone()]);
        let len = data.len() as u64;
        assert!(outcome.chunks < 400, "{name}: {} chunks", outcome.chunks);
        assert!(
            outcome.stored < len / 4,
            "{name}: {} stored",
            outcome.stored
        );
        assert!(started.elapsed().as_secs() < 10, "{name}");
    }
}

/// Many places for each anchor, with long repetitions that are not worth it.
#[test]
fn work_is_bounded() {
    let mut random = Random::new(7);
    let part = random.bytes(1500);
    let mut contents = Vec::new();
    for _ in 0..2000 {
        let mut content = random.bytes(40);
        content.extend_from_slice(&part);
        content.extend(random.bytes(40));
        content.extend_from_slice(&part[..700]);
        contents.push(content);
    }
    let started = std::time::Instant::now();
    let outcome = SETUP.cut(&contents);
    assert!(started.elapsed().as_secs() < 10);
    let average = outcome.touched * 100 / outcome.small;
    assert!(average <= 130, "{average}");
    // What would take many of the files into a further block is stored again.
    assert!(outcome.matches > 300 && outcome.stored < 4_200_000);
}

#[test]
fn a_small_index_finds_long_repetitions_still() {
    let mut random = Random::new(8);
    let base = random.bytes(2 << 20);
    let contents = [base.clone(), edit(&mut random, &base, 10)];
    let mut last = 0;
    for entries_max in [1 << 20, 1 << 12, 1 << 10] {
        let setup = Setup {
            entries_max,
            block_bits: 18,
            ..SETUP
        };
        let stored = setup.cut(&contents).stored;
        assert!(
            stored >= last && stored < 3 << 20,
            "{entries_max}: {stored}"
        );
        last = stored;
    }
    assert!(last > 2 << 20);
}

#[test]
fn lookback_bounds_the_distance() {
    let mut random = Random::new(9);
    let parts: Vec<_> = (0..4).map(|_| random.bytes(1 << 16)).collect();
    // Just behind the end of their blocks, so that the open block is not the last one that was filled.
    let contents = [
        parts.concat(),
        parts[3].clone(),
        parts[0].clone(),
        vec![1; 9],
    ];
    let stored = |lookback_blocks| {
        let setup = Setup {
            lookback_blocks,
            ..SETUP
        };
        setup.cut(&contents).stored
    };
    let all = (6 << 16) + 9;
    assert_eq!(stored(u32::MAX), (4 << 16) + 9);
    assert_eq!(stored(2), (5 << 16) + 9);
    assert_eq!(stored(1), all);
    assert_eq!(stored(0), all);
}

#[test]
fn a_small_content_takes_nothing_from_a_block_that_has_little_of_it() {
    const LEN: usize = 40_000;
    let mut random = Random::new(11);
    let known = random.bytes(1 << 16);
    // New data with `count` repetitions of 600 bytes.
    let mut content = |count: usize| {
        let mut content = random.bytes(LEN);
        for number in 0..count {
            let (from, to) = (number * 5_000 + 1_234, number * 4_000 + 567);
            content[to..to + 600].copy_from_slice(&known[from..from + 600]);
        }
        content
    };
    let contents = [known.clone(), content(1), content(2), content(8)];
    // The last one has 4,800 bytes of the first block, which is more than a sixteenth.
    let found = |parts_max| {
        let rules = Rules {
            parts_max,
            ..SETUP.rules()
        };
        let input = Input(Rc::new(RefCell::new(contents.to_vec())));
        let mut cutter = SETUP.cutter(&input, &contents);
        cutter.begin_stream(rules).unwrap();
        let mut found = Vec::new();
        for (number, bytes) in (0..).zip(&contents) {
            SETUP.cut_content(&mut cutter, rules, number, bytes);
            found.push(cutter.found.matches);
        }
        cutter.finish().unwrap();
        SETUP.check(&cutter, &contents);
        found
    };
    assert_eq!(found(usize::MAX), [0, 1, 3, 11]);
    assert_eq!(found(16), [0, 0, 0, 8]);
}

#[test]
fn units_stay_whole() {
    let mut random = Random::new(10);
    let base = random.bytes(12 * 9000);
    let mut contents = vec![base.clone()];
    // Shifted by bytes that are no whole unit, and edited.
    for shift in [12, 24, 5, 30] {
        let mut next = random.bytes(shift);
        next.extend_from_slice(&base);
        next.truncate(next.len() / 12 * 12);
        contents.push(next);
    }
    let setup = Setup {
        granularity: 12,
        size_bits: 7,
        run_len: 1 << 15,
        ..SETUP
    };
    let outcome = setup.cut(&contents);
    assert!(outcome.stored < 3 * base.len() as u64 / 2);
    for chunks in &outcome.layout {
        for chunk in chunks {
            let ChunkKind::Data { size, .. } = chunk else {
                panic!("no holes");
            };
            assert_eq!(size % 12, 0);
        }
    }
}
