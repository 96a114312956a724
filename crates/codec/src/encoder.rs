//! Compressing: the trait that each algorithm implements and the rule of when to store instead.

use durin_format::section::CompressionType;
use durin_format::{ErrorKind, Result};

/// A compressor with its memory, for use by one thread at a time and for any number of blocks.
///
/// What it makes depends on the data and the options only, not on what it compressed before.
pub trait Encoder: Send {
    /// Compresses `data` and replaces the contents of `out` by the payload.
    ///
    /// # Errors
    /// `InvalidInput` when the data cannot be represented, `Limit` when they are too large or memory does not suffice.
    fn encode(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Returns whether `data` may shrink by so much that compressing them is worth the time.
    ///
    /// Only encoders that have been told to choose (`tune`) ever say no.
    fn is_worth_it(&mut self, data: &[u8]) -> bool {
        let _ = data;
        true
    }
}

/// A payload and how it is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The type for the section's header.
    pub compression: CompressionType,
    /// The bytes that follow the section's header.
    pub payload: Vec<u8>,
}

/// Compresses the contents of a section, or keeps them as they are where that is not smaller.
///
/// FLAC and RICEPP payloads are always kept, because their header tells a later recompression the layout of the samples.
/// Data that do not have that layout, which happens where a file is cut short or its header lies, are stored.
///
/// # Errors
/// Those of [`Encoder::encode`].
pub fn encode_section(
    encoder: &mut dyn Encoder,
    kind: CompressionType,
    data: Vec<u8>,
) -> Result<Encoded> {
    let encoded = encode_if_smaller(encoder, kind, &data, &mut Vec::new())?;
    Ok(encoded.unwrap_or(Encoded {
        compression: CompressionType::None,
        payload: data,
    }))
}

/// As [`encode_section`], but returns nothing where the data are to be stored as they are.
///
/// The encoder writes into `scratch`, whose memory serves for the next data again.
///
/// # Errors
/// Those of [`Encoder::encode`].
pub fn encode_if_smaller(
    encoder: &mut dyn Encoder,
    kind: CompressionType,
    data: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Option<Encoded>> {
    if kind == CompressionType::None || !encoder.is_worth_it(data) {
        return Ok(None);
    }
    let keeps_layout = matches!(kind, CompressionType::Flac | CompressionType::Ricepp);
    match encoder.encode(data, scratch) {
        Err(error) if keeps_layout && error.kind() == ErrorKind::InvalidInput => return Ok(None),
        result => result?,
    }
    if scratch.len() >= data.len() && !keeps_layout {
        return Ok(None);
    }
    // Encoders reserve for the worst case, and payloads wait in queues: what waits is as large as it must be.
    Ok(Some(Encoded {
        compression: kind,
        payload: scratch.as_slice().to_vec(),
    }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Spec;

    fn section(spec: &str, metadata: Option<&str>, data: &[u8]) -> CompressionType {
        let spec = Spec::parse(spec).unwrap();
        let mut encoder = spec.encoder(data.len(), metadata).unwrap();
        encode_section(encoder.as_mut(), spec.compression_type(), data.to_vec())
            .unwrap()
            .compression
    }

    #[test]
    fn stores_what_does_not_shrink() {
        assert_eq!(section("zstd", None, b""), CompressionType::None);
        assert_eq!(section("zstd", None, b"abc"), CompressionType::None);
        assert_eq!(section("lz4hc", None, &[7; 1000]), CompressionType::Lz4);
        assert_eq!(section("null", None, &[7; 1000]), CompressionType::None);
    }

    #[test]
    fn keeps_sample_layouts() {
        let image =
            r#"{"bytes_per_sample":2,"component_count":1,"endianness":"big","unused_lsb_count":0}"#;
        assert_eq!(
            section("ricepp", Some(image), &[1, 2]),
            CompressionType::Ricepp
        );
        // Half a pixel: no image.
        assert_eq!(
            section("ricepp", Some(image), &[1, 2, 3]),
            CompressionType::None
        );
    }
}
