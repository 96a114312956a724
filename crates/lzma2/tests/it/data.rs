//! Bytes to encode.

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// Words of a small vocabulary, as text has them.
pub(crate) fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let words: Vec<Vec<u8>> = (0..400)
        .map(|_| {
            let len = 2 + numbers.below(8);
            (0..len).map(|_| b'a' + numbers.below(26) as u8).collect()
        })
        .collect();
    let mut out = Vec::new();
    while out.len() < len {
        // Some words are much more frequent.
        let index = numbers.below(400).min(numbers.below(400));
        out.extend(&words[index]);
        out.push(if numbers.below(12) == 0 { b'\n' } else { b' ' });
    }
    out.truncate(len);
    out
}

/// Copies of earlier parts of all lengths and distances among new bytes.
pub(crate) fn copies(len: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let mut out = numbers.bytes(100);
    while out.len() < len {
        let new_len = numbers.below(20);
        out.extend(numbers.bytes(new_len));
        let len_log2 = 1 + numbers.below(10);
        let copy_len = 1 + numbers.below(1 << len_log2);
        let distance_log2 = 1 + numbers.below(20);
        let distance = 1 + numbers.below(out.len().min(1 << distance_log2));
        for _ in 0..copy_len {
            out.push(out[out.len() - distance]);
        }
    }
    out.truncate(len);
    out
}

/// This test's own machine code.
pub(crate) fn machine_code() -> Vec<u8> {
    let own = std::env::current_exe().unwrap();
    let mut code = std::fs::read(own).unwrap();
    code.truncate(3 << 20);
    code
}
