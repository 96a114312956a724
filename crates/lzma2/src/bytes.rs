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
    let mut len = known;
    while len + 8 <= len_max {
        let (Some(left), Some(right)) = (word8(data, a + len), word8(data, b + len)) else {
            break;
        };
        let different = left ^ right;
        if different != 0 {
            return len + (different.trailing_zeros() >> 3) as usize;
        }
        len += 8;
    }
    while len < len_max {
        match (data.get(a + len), data.get(b + len)) {
            (Some(left), Some(right)) if left == right => len += 1,
            _ => break,
        }
    }
    len
}
