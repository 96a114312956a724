//! Finding runs of zero bytes.

/// Whether all bytes of `data` are zero.
#[must_use]
pub fn is_zero(data: &[u8]) -> bool {
    let mut words = data.chunks_exact(16);
    // An `u128` at a time is what the compiler turns into vector code.
    words
        .by_ref()
        .all(|word| word.iter().fold(0, |all, byte| all | byte) == 0)
        && words.remainder().iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_anywhere_is_seen() {
        let mut data = vec![0; 67];
        assert!(is_zero(&data) && is_zero(&[]));
        for at in 0..data.len() {
            data[at] = 1;
            assert!(!is_zero(&data), "at {at}");
            data[at] = 0;
        }
    }
}
