//! Blocks end before groups that would not fit.

use super::*;

#[test]
fn groups_end_blocks() {
    let mut random = Random::new(11);
    let mut first_of_groups = 0;
    for round in 0..40 {
        let setup = Setup {
            history_bytes: [0, u64::MAX][round % 2],
            block_bits: 14,
            early_bits: [None, Some(12)][round / 2 % 2],
            ..SETUP
        };
        let mut contents = Vec::new();
        let mut groups = Vec::new();
        for _ in 0..30 {
            groups.push(contents.len());
            let len = 100 + random.below(5000) as usize;
            let base = random.bytes(len);
            for _ in 0..=random.below(4) {
                contents.push(edit(&mut random, &base, 2));
            }
        }
        let input = Input(Rc::new(RefCell::new(contents.clone())));
        let rules = Rules {
            ends_early: round % 8 < 6,
            mixed_len: 1 << setup.early_bits.unwrap_or(setup.block_bits),
            ..setup.rules()
        };
        let mut cutter = setup.cutter(&input, &contents);
        cutter.begin_stream(rules).unwrap();
        for (content, bytes) in contents.iter().enumerate() {
            if let Ok(group) = groups.binary_search(&content) {
                let end = groups.get(group + 1).copied().unwrap_or(contents.len());
                let len = contents[content..end].iter().map(Vec::len).sum::<usize>();
                let blocks = cutter.sink.0.len();
                cutter.begin_group(count_of(content), len as u64).unwrap();
                first_of_groups += cutter.sink.0.len() - blocks;
            }
            setup.cut_content(&mut cutter, rules, count_of(content), bytes);
        }
        cutter.finish().unwrap();
        let blocks = &cutter.sink.0;
        let full = blocks.iter().filter(|block| block.len() == rules.block_len);
        let is_full = full.count() + 1 >= blocks.len();
        assert_eq!(is_full, !rules.ends_early, "{:?}", blocks.len());
        for block in &blocks[..blocks.len() - 1] {
            assert!(block.len() >= rules.mixed_len / 4 * 3, "{}", block.len());
        }
        setup.check(&cutter, &contents);
    }
    assert!(first_of_groups > 50, "{first_of_groups}");
}
