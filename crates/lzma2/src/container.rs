//! The `.xz` stream around LZMA2 data: one block, CRC64.
//!
//! Source: "The .xz File Format" 1.2.1, sections 2 to 4.

use crate::crc::{crc32, crc64};
use crate::filter::Filter;

const MAGIC: [u8; 6] = [0xFD, b'7', b'z', b'X', b'Z', 0];
const END_MAGIC: [u8; 2] = *b"YZ";
const FLAGS_CRC64: [u8; 2] = [0, 4];
const LZMA2_ID: u8 = 0x21;

/// Writes what stands before the data of the block, and returns where the block starts.
pub(crate) fn begin(filter: Option<Filter>, dict_len: u32, out: &mut Vec<u8>) -> usize {
    out.extend(MAGIC);
    out.extend(FLAGS_CRC64);
    out.extend(crc32(&FLAGS_CRC64).to_le_bytes());
    let start = out.len();
    let filter_count = 1 + u8::from(filter.is_some());
    // The length of the header in units of 4 bytes, less 1; it is known once the filters are written.
    out.extend([0, filter_count - 1]);
    if let Some(filter) = filter {
        let property = filter.property();
        out.extend([filter.id(), u8::from(property.is_some())]);
        out.extend(property);
    }
    out.extend([LZMA2_ID, 1, dict_code(dict_len)]);
    pad(start, out);
    out[start] = ((out.len() - start) / 4) as u8;
    let crc = crc32(&out[start..]);
    out.extend(crc.to_le_bytes());
    start
}

/// Ends the block that started at `start` and the stream; `data` is what the block stands for.
pub(crate) fn end(start: usize, data: &[u8], out: &mut Vec<u8>) {
    let mut block_len = out.len() - start;
    pad(start, out);
    let crc = crc64(data).to_le_bytes();
    block_len += crc.len();
    out.extend(crc);
    let index_start = out.len();
    out.push(0);
    number(1, out);
    number(block_len as u64, out);
    number(data.len() as u64, out);
    pad(index_start, out);
    let crc = crc32(&out[index_start..]);
    out.extend(crc.to_le_bytes());
    let index_len = out.len() - index_start;
    let mut footer = Vec::with_capacity(6);
    footer.extend(((index_len / 4 - 1) as u32).to_le_bytes());
    footer.extend(FLAGS_CRC64);
    out.extend(crc32(&footer).to_le_bytes());
    out.extend(footer);
    out.extend(END_MAGIC);
}

/// Zeros up to a multiple of 4 from `start`.
fn pad(start: usize, out: &mut Vec<u8>) {
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, 0);
}

/// Base 128, lowest first.
fn number(value: u64, out: &mut Vec<u8>) {
    let mut rest = value;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The smallest size that the format can say and that is not less than `len`: 2 or 3 times a power of two.
pub(crate) fn dict_code(len: u32) -> u8 {
    (0..40)
        .find(|code| u64::from(2 | code & 1_u32) << (code / 2 + 11) >= u64::from(len))
        .unwrap_or(40) as u8
}
