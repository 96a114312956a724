//! Room for what is decompressed.

use durin_format::{Error, Result};

use crate::pages::prepare_pages;

/// Makes room for `len` bytes in all, exactly, and moves `out` at most once.
///
/// The sizes are claims of a payload that a ceiling has passed. Where memory does not suffice for one, that is an error
/// of this payload and not the end of the program. Pages that no byte is written to stay unused.
pub(crate) fn reserve_total(out: &mut Vec<u8>, len: usize) -> Result<()> {
    out.try_reserve_exact(len.saturating_sub(out.len()))
        .map_err(|error| Error::limit(format!("no memory for {len} bytes")).with_source(error))
}

/// Makes `out` `len` zero bytes, for decoders whose safe interface wants initialized memory.
pub(crate) fn zeroed(out: &mut Vec<u8>, len: usize) -> Result<()> {
    out.clear();
    reserve_total(out, len)?;
    prepare_pages(out, len);
    out.resize(len, 0);
    Ok(())
}

/// Lets `write` fill `out` up to `want` bytes piece by piece; it returns how much of a piece it filled.
///
/// Ends early when a piece stays empty. Pages are touched only as the data come, whatever size the payload claims.
pub(crate) fn fill(
    out: &mut Vec<u8>,
    want: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize>,
) -> Result<()> {
    /// Large enough that a call costs nothing beside it, small enough to stay in a cache between clearing and writing.
    const PIECE_LEN: usize = 1 << 18;
    while out.len() < want {
        let filled = out.len();
        out.resize(want.min(filled + PIECE_LEN), 0);
        let written = write(out.get_mut(filled..).unwrap_or_default());
        out.truncate(filled + *written.as_ref().unwrap_or(&0));
        if written? == 0 {
            return Ok(());
        }
    }
    Ok(())
}
