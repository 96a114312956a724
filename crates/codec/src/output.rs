//! Room for what is decompressed.

use durin_format::{Error, Result};

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
    out.resize(len, 0);
    Ok(())
}
