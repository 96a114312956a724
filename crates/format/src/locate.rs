//! Telling the start of an image from bytes that merely look like it.
//!
//! Pure predicates over headers; the scan through the file is the reader's.
//! Source: docs/format.md, "Finding the image in a file".

use crate::section::{
    CompressionType, FILE_HEADER_V1_LEN, MAGIC, SectionHeader, SectionType, V1_HEADER_LEN,
    V2_HEADER_LEN, Version,
};

/// What a scan looks for: magic and major version.
pub const NEEDLE: [u8; 7] = *b"DWARFS\x02";

/// A place where the needle was found: which header must follow where, for it to be an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Format 2.2 or later: a second section header [`V2_HEADER_LEN`] long must stand at this distance (bytes) from
    /// the hit and satisfy [`confirms_v2`].
    V2 {
        /// Bytes from the hit to the second section header.
        second_offset: u64,
    },
    /// Format 2.0 or 2.1: a second section header [`V1_HEADER_LEN`] long must stand at this distance (bytes) from
    /// the hit and satisfy [`confirms_v1`].
    V1 {
        /// Bytes from the hit to the second section header.
        second_offset: u64,
        /// What the first section holds.
        first: SectionType,
    },
}

impl Candidate {
    /// Returns the bytes from the hit to the second section header.
    #[must_use]
    pub fn second_offset(&self) -> u64 {
        match *self {
            Self::V2 { second_offset } | Self::V1 { second_offset, .. } => second_offset,
        }
    }

    /// Returns how many bytes there must be at [`Self::second_offset`].
    #[must_use]
    pub fn second_len(&self) -> usize {
        match self {
            Self::V2 { .. } => V2_HEADER_LEN,
            Self::V1 { .. } => V1_HEADER_LEN,
        }
    }

    /// Returns whether the bytes at [`Self::second_offset`] make the hit an image.
    #[must_use]
    pub fn confirmed_by(&self, second: &[u8]) -> bool {
        match self {
            Self::V2 { .. } => second.first_chunk().is_some_and(confirms_v2),
            Self::V1 { first, .. } => second
                .first_chunk()
                .is_some_and(|second| confirms_v1(*first, second)),
        }
    }
}

/// Looks at the bytes that follow a hit of [`NEEDLE`]: 64 or more for format 2.2 and later, 16 for the older ones.
///
/// `None` if no image starts here, whatever follows.
#[must_use]
pub fn candidate(bytes: &[u8]) -> Option<Candidate> {
    let version = Version::parse(bytes.first_chunk()?).ok()?;
    if version.has_v1_sections() {
        candidate_v1(bytes, version)
    } else {
        header_follows_v2(bytes.first_chunk()?).map(|second_offset| Candidate::V2 { second_offset })
    }
}

/// Returns where the second section of an image must begin whose first header is `first`, in bytes from `first`.
///
/// `None` if `first` is not the header of section 0.
#[must_use]
pub fn header_follows_v2(first: &[u8; V2_HEADER_LEN]) -> Option<u64> {
    let header = SectionHeader::parse_v2(first).ok()?;
    if header.number != Some(0) {
        return None;
    }
    header.payload_len.checked_add(V2_HEADER_LEN as u64)
}

/// Returns whether `second` is the header of section 1.
#[must_use]
pub fn confirms_v2(second: &[u8; V2_HEADER_LEN]) -> bool {
    second.starts_with(&MAGIC)
        && SectionHeader::parse_v2(second).is_ok_and(|header| header.number == Some(1))
}

/// Returns whether `second` can be the header that follows a first section of type `first`.
#[must_use]
pub fn confirms_v1(first: SectionType, second: &[u8; V1_HEADER_LEN]) -> bool {
    let Some(header) = plausible_v1(second) else {
        return false;
    };
    match first {
        SectionType::MetadataV2Schema => header.section_type == SectionType::MetadataV2,
        _ => starts_an_image(header.section_type),
    }
}

fn candidate_v1(bytes: &[u8], version: Version) -> Option<Candidate> {
    debug_assert!(version.has_v1_sections());
    let first = plausible_v1(bytes.get(FILE_HEADER_V1_LEN..)?.first_chunk()?)?;
    starts_an_image(first.section_type).then(|| Candidate::V1 {
        // A v1 payload is shorter than 2^32 bytes.
        second_offset: (FILE_HEADER_V1_LEN + V1_HEADER_LEN) as u64 + first.payload_len,
        first: first.section_type,
    })
}

/// Images that old were written with the first four algorithms, and no section is empty.
fn plausible_v1(bytes: &[u8; V1_HEADER_LEN]) -> Option<SectionHeader> {
    let version = Version { major: 2, minor: 0 };
    let header = SectionHeader::parse_v1(bytes, version).ok()?;
    let known = u16::from(header.compression) <= u16::from(CompressionType::Lz4hc);
    (known && header.payload_len > 0).then_some(header)
}

fn starts_an_image(section_type: SectionType) -> bool {
    matches!(
        section_type,
        SectionType::Block | SectionType::MetadataV2Schema
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::section::encode_header;

    #[test]
    fn two_v2_headers_make_an_image() {
        let header = |number| {
            encode_header(
                number,
                SectionType::Block,
                CompressionType::None,
                &[1, 2, 3],
            )
        };
        let found = candidate(&header(0)).unwrap();
        assert_eq!((found.second_offset(), found.second_len()), (67, 64));
        assert!(found.confirmed_by(&header(1)));
        assert!(!found.confirmed_by(&header(2)));
        assert!(!found.confirmed_by(&[0; 64]));
        assert_eq!(candidate(&header(1)), None, "not the first section");
        assert_eq!(candidate(b"DWARFS\x02\x05 a decoy"), None);
    }

    #[test]
    fn a_length_that_overflows_is_no_image() {
        let mut header = encode_header(0, SectionType::Block, CompressionType::None, &[]);
        for byte in header.iter_mut().skip(56) {
            *byte = 0xff;
        }
        assert_eq!(candidate(&header), None);
    }

    #[test]
    fn two_v1_headers_make_an_image() {
        let image = |first: u8, compression: u8, len: u8| {
            let mut bytes = b"DWARFS\x02\x00".to_vec();
            bytes.extend([first, 0, compression, 0, len, 0, 0, 0]);
            bytes
        };
        let schema = candidate(&image(7, 2, 5)).unwrap();
        assert_eq!((schema.second_offset(), schema.second_len()), (21, 8));
        assert!(schema.confirmed_by(&[8, 0, 1, 0, 9, 0, 0, 0]));
        assert!(!schema.confirmed_by(&[7, 0, 1, 0, 9, 0, 0, 0]));
        let block = candidate(&image(0, 4, 5)).unwrap();
        assert!(block.confirmed_by(&[7, 0, 1, 0, 9, 0, 0, 0]));
        assert!(!block.confirmed_by(&[8, 0, 1, 0, 9, 0, 0, 0]));
        assert!(!block.confirmed_by(&[7, 0, 1, 0, 0, 0, 0, 0]), "empty");
        assert_eq!(candidate(&image(8, 0, 5)), None);
        assert_eq!(candidate(&image(0, 5, 5)), None, "brotli is younger");
        assert_eq!(candidate(&image(0, 0, 0)), None);
    }
}
