//! Reading and comparing several bytes at once.

/// The next 8 bytes at `at`, first one highest; zeros after the end.
#[inline]
pub(crate) fn key8(data: &[u8], at: usize) -> u64 {
    match data.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => highest_first(*bytes),
        None => key8_at_end(data, at),
    }
}

#[cold]
fn key8_at_end(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    for (target, source) in bytes.iter_mut().zip(data.get(at..).unwrap_or_default()) {
        *target = *source;
    }
    highest_first(bytes)
}

#[inline]
fn highest_first(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes).swap_bytes()
}

/// The next 8 bytes at `at`, first one lowest.
#[inline]
pub(crate) fn word8(data: &[u8], at: usize) -> Option<u64> {
    let bytes = data.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// How many bytes are equal at `a` and at `b`, up to `len_max`; neither range may pass the end of `data`.
///
/// The first `known` are equal already.
#[inline]
pub(crate) fn equal_len(data: &[u8], a: usize, b: usize, known: usize, len_max: usize) -> usize {
    let (Some(left), Some(right)) = (
        data.get(a + known..a + len_max),
        data.get(b + known..b + len_max),
    ) else {
        return known;
    };
    let mut len = known;
    let (words, left_rest) = left.as_chunks();
    let (other_words, right_rest) = right.as_chunks();
    for (word, other) in words.iter().zip(other_words) {
        let different = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if different != 0 {
            return len + (different.trailing_zeros() >> 3) as usize;
        }
        len += size_of::<u64>();
    }
    let rest = left_rest.iter().zip(right_rest);
    len + rest.take_while(|(left, right)| left == right).count()
}
