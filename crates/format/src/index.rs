//! The section index: types and offsets of all sections, so that opening an image touches few of them.
//!
//! Source: docs/format.md, "Section index".

use crate::cursor::Cursor;
use crate::limits::INDEX_OFFSET_MAX;
use crate::section::SectionType;
use crate::{Error, Result};

/// Bytes of one entry.
pub const ENTRY_LEN: usize = 8;

/// Fewest entries of an index that can be used: schema, metadata and the index itself.
const ENTRY_COUNT_MIN: usize = 3;

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// What the section holds.
    pub section_type: SectionType,
    /// Bytes from the first section of the image to the header of this one; at most 2^48 - 1.
    pub offset: u64,
}

impl IndexEntry {
    /// Takes one entry apart.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        let code = (bits >> 48) as u16;
        Self {
            section_type: SectionType::from(code),
            offset: bits & INDEX_OFFSET_MAX,
        }
    }

    /// Returns the stored form; an offset beyond 48 bits has none.
    #[must_use]
    pub fn to_bits(self) -> Option<u64> {
        let fits = self.offset <= INDEX_OFFSET_MAX;
        fits.then(|| u64::from(u16::from(self.section_type)) << 48 | self.offset)
    }
}

/// Parses the payload of a section of type `SECTION_INDEX`.
///
/// What is returned has at least three entries, the first at offset 0, offsets that strictly increase (a section has
/// at least its header), and the index itself as its last entry and nowhere else.
///
/// # Errors
/// `Corrupt` if the payload is anything else. A reader then walks the headers instead.
pub fn parse(payload: &[u8]) -> Result<Vec<IndexEntry>> {
    if !payload.len().is_multiple_of(ENTRY_LEN) || payload.len() < ENTRY_COUNT_MIN * ENTRY_LEN {
        return Err(Error::corrupt(format!(
            "section index: expected three or more entries of {ENTRY_LEN} bytes, found {} bytes",
            payload.len()
        )));
    }
    let mut cursor = Cursor::new(payload);
    let mut entries: Vec<IndexEntry> = Vec::with_capacity(payload.len() / ENTRY_LEN);
    while !cursor.is_empty() {
        let entry = IndexEntry::from_bits(cursor.u64()?);
        let in_order = match entries.last() {
            None => entry.offset == 0,
            Some(before) => entry.offset > before.offset,
        };
        if !in_order {
            return Err(Error::corrupt(format!(
                "section index: offset {} of entry {} is out of order",
                entry.offset,
                entries.len()
            )));
        }
        let is_last = cursor.is_empty();
        if is_last != (entry.section_type == SectionType::SectionIndex) {
            return Err(Error::corrupt(format!(
                "section index: entry {} has type {}",
                entries.len(),
                entry.section_type.name()
            )));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Builds the payload.
///
/// # Panics
/// If an offset is above [`INDEX_OFFSET_MAX`]: an image of 256 TiB and more goes without an index.
#[must_use]
pub fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(entries.len() * ENTRY_LEN);
    for entry in entries {
        let bits = entry.to_bits().expect("offsets of an index have 48 bits");
        payload.extend_from_slice(&bits.to_le_bytes());
    }
    payload
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    /// The index of `good/datadata.dwarfs`. Source: docs/format.md, "Worked example".
    const DATADATA: [u8; 40] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0xea, 0x12, 0, 0, 0, 0, 7, 0, 0xb2, 0x16, 0, 0, 0, 0, 8, 0, 0x3f,
        0x17, 0, 0, 0, 0, 10, 0, 0x97, 0x18, 0, 0, 0, 0, 9, 0,
    ];

    #[test]
    fn a_real_index_comes_back() {
        let entries = parse(&DATADATA).unwrap();
        let seen: Vec<_> = entries
            .iter()
            .map(|e| (e.section_type.name(), e.offset))
            .collect();
        assert_eq!(
            seen,
            [
                ("BLOCK", 0),
                ("METADATA_V2_SCHEMA", 4842),
                ("METADATA_V2", 5810),
                ("HISTORY", 5951),
                ("SECTION_INDEX", 6295)
            ]
        );
        assert_eq!(encode(&entries), DATADATA);
    }

    #[test]
    fn a_wrong_index_is_refused() {
        assert!(parse(&[]).is_err());
        assert!(parse(&DATADATA[..39]).is_err(), "odd length");
        assert!(parse(&DATADATA[..32]).is_err(), "index entry missing");
        assert!(parse(&DATADATA[8..]).is_err(), "first offset is not 0");
        let mut decreasing = DATADATA;
        decreasing[17] = 0;
        assert!(parse(&decreasing).is_err());
    }

    #[test]
    fn offsets_beyond_48_bits_have_no_index() {
        let entry = IndexEntry {
            section_type: SectionType::Block,
            offset: 1 << 48,
        };
        assert_eq!(entry.to_bits(), None);
    }
}
