//! The uncompressed size in front of BROTLI, FLAC and RICEPP payloads: a little-endian base 128 number.

use durin_format::{Error, Result};

/// Returns the number at the start of `payload` and how many bytes it takes.
pub(crate) fn parse(payload: &[u8]) -> Result<(u64, usize)> {
    let mut value = 0_u64;
    for (index, (&byte, shift)) in payload.iter().zip((0..64).step_by(7)).enumerate() {
        let group = u64::from(byte & 0x7F);
        if shift == 63 && group > 1 {
            break;
        }
        value |= group << shift;
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(Error::corrupt(if payload.len() < 10 {
        "the payload ends within its size"
    } else {
        "the size of the payload has more than 64 bits"
    }))
}

/// Appends `value`.
pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn returns_what_was_written() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            assert_eq!(parse(&bytes).unwrap(), (value, bytes.len()));
            bytes.pop();
            assert!(parse(&bytes).is_err());
        }
        assert!(parse(&[0x80; 20]).is_err());
    }
}
