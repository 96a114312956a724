//! A rolling hash over the bytes before each position, to choose a few positions by content.

/// How far the hash moves with each byte, in bits: 64 divided by it is the number of bytes that the hash depends on.
const SHIFT: u32 = 4;

/// What each byte adds: 256 numbers of which only their irregularity matters, made by the SplitMix64 generator.
const ADDENDS: [u64; 256] = addends();

const fn addends() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state: u64 = 0;
    let mut at = 0;
    while at < table.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[at] = mixed ^ (mixed >> 31);
        at += 1;
    }
    table
}

/// Takes bytes into `hash` until it falls below `limit`, and returns how many it took; nothing if it took them all.
///
/// The upper bits of the hash, and so whether it is below the limit, depend on the last 16 bytes.
#[inline]
#[must_use]
pub fn next_below(data: &[u8], hash: &mut u64, limit: u64) -> Option<usize> {
    let mut at = *hash;
    for (index, byte) in data.iter().enumerate() {
        at = (at << SHIFT).wrapping_add(ADDENDS[usize::from(*byte)]);
        if at < limit {
            *hash = at;
            return Some(index + 1);
        }
    }
    *hash = at;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All hashes of `data` below `limit`, from one call after the other.
    fn hashes(mut data: &[u8], limit: u64) -> Vec<u64> {
        let mut hash = 0;
        let mut found = Vec::new();
        while let Some(taken) = next_below(data, &mut hash, limit) {
            found.push(hash);
            data = &data[taken..];
        }
        found
    }

    fn text(len: u32) -> Vec<u8> {
        let bytes = (0..len).flat_map(|n| (n.wrapping_mul(0x9e37_79b1) >> 7).to_le_bytes());
        bytes.collect()
    }

    #[test]
    fn finds_what_a_plain_loop_finds() {
        let data = text(4096);
        let mut hash: u64 = 0;
        let mut all = Vec::new();
        for byte in &data {
            hash = (hash << SHIFT).wrapping_add(ADDENDS[usize::from(*byte)]);
            all.push(hash);
        }
        for limit in [0, 1 << 50, 1 << 57, u64::MAX] {
            let below: Vec<u64> = all.iter().copied().filter(|hash| *hash < limit).collect();
            assert_eq!(hashes(&data, limit), below, "{limit}");
        }
        // About one position in 128 is below 2^57.
        let share = hashes(&data, 1 << 57).len();
        assert!((64..256).contains(&share), "{share}");
    }

    #[test]
    fn what_lies_further_back_does_not_count() {
        let data = text(4096);
        let (mut a, mut b) = (0, u64::MAX);
        let found = |hash: &mut u64| next_below(&data[..16], hash, 0);
        assert_eq!((found(&mut a), found(&mut b)), (None, None));
        assert_eq!(a, b, "sixteen bytes push everything else out");
    }
}
