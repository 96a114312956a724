//! Reading and writing little-endian bit fields.

/// Returns the `bits`-bit little-endian field at bit `bit_offset` of `data`.
///
/// Bits beyond the end of `data` read as 0, and `bits` above 64 counts as 64:
/// range checks are made once, where a column is built, and not here.
#[inline]
#[must_use]
pub fn read(data: &[u8], bit_offset: u64, bits: u32) -> u64 {
    if bits == 0 {
        return 0;
    }
    let bits = bits.min(64);
    let Ok(byte) = usize::try_from(bit_offset / 8) else {
        return 0;
    };
    let shift = (bit_offset % 8) as u32;
    let mask = u64::MAX >> (64 - bits);
    if let Some(word) = data.get(byte..).and_then(<[u8]>::first_chunk::<8>) {
        let mut value = u64::from_le_bytes(*word) >> shift;
        if shift + bits > 64 {
            let high = data.get(byte + 8).copied().unwrap_or(0);
            value |= u64::from(high) << (64 - shift);
        }
        return value & mask;
    }
    read_near_end(data, byte, shift) & mask
}

#[cold]
fn read_near_end(data: &[u8], byte: usize, shift: u32) -> u64 {
    let tail = data.get(byte..).unwrap_or(&[]);
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(tail) {
        *to = *from;
    }
    u64::from_le_bytes(word) >> shift
}

/// Stores the low `bits` bits of `value` at bit `bit_offset` of `data`, over zero bits.
///
/// # Panics
/// If the field does not fit into `data`: the writer sized the buffer itself.
#[inline]
pub fn write(data: &mut [u8], bit_offset: u64, bits: u32, value: u64) {
    let mut at = usize::try_from(bit_offset / 8).expect("the buffer is in memory");
    let mut shift = (bit_offset % 8) as u32;
    let mut left = bits.min(64);
    let mut value = if left == 64 {
        value
    } else {
        value & ((1 << left) - 1)
    };
    while left > 0 {
        let take = (8 - shift).min(left);
        data[at] |= ((value << shift) & 0xff) as u8;
        value >>= take;
        left -= take;
        shift = 0;
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_at_every_shift_comes_back() {
        let value = 0x9e37_79b9_7f4a_7c15_u64;
        for bits in 0..=64 {
            for offset in 0..=17 {
                let mut data = vec![0; 12];
                write(&mut data, offset, bits, value);
                let want = if bits == 0 {
                    0
                } else {
                    value & (u64::MAX >> (64 - bits))
                };
                assert_eq!(read(&data, offset, bits), want, "{bits} bits at {offset}");
                // The same without the spare bytes that the fast path reads.
                let end = usize::try_from((offset + u64::from(bits)).div_ceil(8)).expect("small");
                assert_eq!(
                    read(&data[..end], offset, bits),
                    want,
                    "{bits} bits at {offset}, no tail"
                );
            }
        }
    }

    #[test]
    fn beyond_the_end_is_zero() {
        assert_eq!(read(&[0xff], 4, 16), 0x0f);
        assert_eq!(read(&[0xff], 1 << 40, 64), 0);
        assert_eq!(read(&[0xff], u64::MAX, 1), 0);
    }
}
