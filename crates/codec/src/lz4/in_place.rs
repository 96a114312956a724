//! Decoding a block from the end of the memory that it is decoded to.

#![expect(
    unsafe_code,
    reason = "the safe wrapper takes slices, which cannot overlap"
)]

use ::lz4::liblz4::LZ4_decompress_safe;

/// How many bytes more than its output the memory must have so that no byte of a block is written over before it was read.
///
/// Source: `LZ4_DECOMPRESS_INPLACE_MARGIN` of `lz4.h`.
pub(super) fn margin(len: usize) -> usize {
    (len >> 8) + 32
}

/// Decodes the block from `start` to the end of `memory` to the beginning of it, at most `len` bytes; returns how many there
/// are. `None` if the block is malformed, or stands for more.
///
/// Where there is less room than [`margin`] says, a block may be written over before it is read, which makes it another one.
pub(super) fn decode(memory: &mut [u8], start: usize, len: usize) -> Option<usize> {
    let block_len = i32::try_from(memory.len().checked_sub(start)?).ok()?;
    let capacity = i32::try_from(len.min(memory.len())).ok()?;
    let output = memory.as_mut_ptr();
    // SAFETY: `start` is inside of `memory` or at its end, as the subtraction has shown. Whatever the bytes of the block are,
    // the library reads none but those from `start` on, of which `block_len` are in `memory`, and writes none but the first
    // `capacity`, which are, too: it compares each place with these ends before it is used, and never relies on a byte that
    // it has read being the same later. That input and output overlap is what `lz4.h` calls decompression in place.
    let found = unsafe {
        LZ4_decompress_safe(
            output.add(start).cast_const().cast(),
            output.cast(),
            block_len,
            capacity,
        )
    };
    usize::try_from(found).ok()
}
