//! How far two byte strings agree.

/// Bytes compared at once; a power of two that the compiler turns into a few vector instructions.
const STEP: usize = 32;

/// Returns how many first bytes of `a` and `b` are equal.
#[must_use]
pub fn prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let mut at = 0;
    for (x, y) in a.chunks_exact(STEP).zip(b.chunks_exact(STEP)) {
        if x != y {
            break;
        }
        at += STEP;
    }
    let rest = a[at..].iter().zip(&b[at..]);
    at + rest.take_while(|(x, y)| x == y).count()
}

/// Returns how many last bytes of `a` and `b` are equal.
#[must_use]
pub fn suffix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[a.len() - len..], &b[b.len() - len..]);
    let mut at = 0;
    for (x, y) in a.rchunks_exact(STEP).zip(b.rchunks_exact(STEP)) {
        if x != y {
            break;
        }
        at += STEP;
    }
    let rest = a[..len - at].iter().rev().zip(b[..len - at].iter().rev());
    at + rest.take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_place() {
        for len in [0, 1, 31, 32, 33, 64, 100] {
            let a = vec![7; len];
            assert_eq!((prefix(&a, &a), suffix(&a, &a)), (len, len));
            for at in 0..len {
                let mut b = a.clone();
                b[at] = 8;
                assert_eq!(prefix(&a, &b), at, "{len}");
                assert_eq!(suffix(&a, &b), len - at - 1, "{len}");
                assert_eq!(prefix(&a, &b[..at]), at, "{len}");
                assert_eq!(suffix(&a, &b[at + 1..]), len - at - 1, "{len}");
            }
        }
    }
}
