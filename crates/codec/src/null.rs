//! `null`: the payload is the data.

use durin_format::Result;

use crate::encoder::Encoder;

pub(crate) struct NullEncoder;

impl Encoder for NullEncoder {
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(data);
        Ok(())
    }
}

/// Appends to `out` until it holds the first `want` bytes of `payload`, which is at least as long.
pub(crate) fn decode_to(payload: &[u8], out: &mut Vec<u8>, want: usize) {
    if let Some(rest) = payload.get(out.len()..want) {
        out.extend_from_slice(rest);
    }
}
