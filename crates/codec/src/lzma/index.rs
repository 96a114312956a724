//! The uncompressed size of `.xz` streams, from the index at the end of each.
//!
//! Source: "The .xz File Format" 1.2.1, sections 2 to 4.

use durin_format::{Error, Result};

const FOOTER_LEN: usize = 12;
const HEADER_LEN: u64 = 12;
const CRC_LEN: usize = 4;

/// Returns the sum of what the indexes of all streams of `payload` say, found from its end backwards.
pub(crate) fn uncompressed_len(payload: &[u8]) -> Result<u64> {
    let mut rest = payload;
    let mut total = 0_u64;
    loop {
        rest = without_padding(rest);
        let (stream_len, uncompressed_len) = last_stream(rest)?;
        total = total
            .checked_add(uncompressed_len)
            .ok_or_else(|| corrupt("sizes of more than 64 bits"))?;
        let start = usize::try_from(stream_len)
            .ok()
            .and_then(|len| rest.len().checked_sub(len))
            .ok_or_else(|| corrupt("an index tells of more than there is"))?;
        rest = rest.get(..start).unwrap_or_default();
        if rest.is_empty() {
            return Ok(total);
        }
    }
}

/// Strips what may stand between and after streams: zero bytes, four at a time.
fn without_padding(mut bytes: &[u8]) -> &[u8] {
    while let Some((rest, [0, 0, 0, 0])) = bytes.split_last_chunk() {
        bytes = rest;
    }
    bytes
}

/// Returns the length of the stream that ends with `bytes` and its uncompressed size.
fn last_stream(bytes: &[u8]) -> Result<(u64, u64)> {
    let (body, footer) = bytes
        .split_last_chunk::<FOOTER_LEN>()
        .ok_or_else(|| corrupt("no room for a stream"))?;
    let [_, _, _, _, size @ .., _, _, b'Y', b'Z'] = footer else {
        return Err(corrupt("no stream footer at the end"));
    };
    let index_len = (u64::from(u32::from_le_bytes(*size)) + 1) * 4;
    let index = usize::try_from(index_len)
        .ok()
        .and_then(|len| body.len().checked_sub(len))
        .and_then(|start| body.get(start..))
        .ok_or_else(|| corrupt("the index is longer than the payload"))?;
    let (blocks_len, uncompressed_len) = index_sums(index)?;
    let stream_len = blocks_len
        .checked_add(HEADER_LEN + index_len + FOOTER_LEN as u64)
        .ok_or_else(|| corrupt("sizes of more than 64 bits"))?;
    Ok((stream_len, uncompressed_len))
}

/// Returns the length of all blocks and the sum of their uncompressed sizes.
fn index_sums(index: &[u8]) -> Result<(u64, u64)> {
    let mut fields = index
        .len()
        .checked_sub(CRC_LEN)
        .and_then(|len| index.get(..len))
        .unwrap_or_default();
    if take_number(&mut fields)? != 0 {
        return Err(corrupt("no index before the footer"));
    }
    let record_count = take_number(&mut fields)?;
    let (mut blocks_len, mut uncompressed_len) = (0_u64, 0_u64);
    // Each record takes bytes, so that a huge count ends with them.
    for _ in 0..record_count {
        let block_len = take_number(&mut fields)?.checked_next_multiple_of(4);
        let data_len = take_number(&mut fields)?;
        let sums = block_len
            .and_then(|len| blocks_len.checked_add(len))
            .zip(uncompressed_len.checked_add(data_len));
        (blocks_len, uncompressed_len) =
            sums.ok_or_else(|| corrupt("sizes of more than 64 bits"))?;
    }
    if fields.len() > 3 || fields.iter().any(|byte| *byte != 0) {
        return Err(corrupt("the index is longer than its records"));
    }
    Ok((blocks_len, uncompressed_len))
}

/// Takes a base 128 number of up to 63 bits.
fn take_number(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes
            .split_first()
            .ok_or_else(|| corrupt("the index ends early"))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(corrupt("a number of the index is too long"))
}

fn corrupt(what: &str) -> Error {
    Error::corrupt(what).context("lzma")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Spec;

    fn stream(len: usize) -> Vec<u8> {
        let mut encoder = Spec::parse("lzma:level=1")
            .unwrap()
            .encoder(len, None)
            .unwrap();
        let mut out = Vec::new();
        encoder.encode(&vec![5; len], &mut out).unwrap();
        out
    }

    #[test]
    fn adds_up_streams_and_passes_padding() {
        let mut payload = stream(1000);
        assert_eq!(uncompressed_len(&payload).unwrap(), 1000);
        payload.extend([0; 8]);
        payload.extend(stream(300_000));
        payload.extend([0; 4]);
        assert_eq!(uncompressed_len(&payload).unwrap(), 301_000);
        payload.push(0);
        assert!(uncompressed_len(&payload).is_err());
    }

    #[test]
    fn refuses_what_is_no_stream() {
        for payload in [&b""[..], b"YZ", &[0; 64], &[b'Z'; 64]] {
            assert!(uncompressed_len(payload).is_err());
        }
    }
}
