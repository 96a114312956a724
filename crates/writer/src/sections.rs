//! Sections on their way to the output: one after the other, with the index of all at the end.
//!
//! Whoever makes an image writes through a [`SectionWriter`], from the first byte to the last without going back.

use std::io::Write;

use durin_codec::{Encoded, Encoder, encode_if_smaller};
use durin_format::index::{IndexEntry, encode as encode_index};
use durin_format::limits::{INDEX_OFFSET_MAX, SECTION_COUNT_MAX, metadata_bytes_max};
use durin_format::section::{
    CompressionType, Contents, SectionType, V2_HEADER_LEN, encode_header, encode_headers,
};
use durin_format::{Error, Result};

use crate::tree::count_of;

/// A section, complete but for its place in the file.
#[derive(Clone, Debug)]
pub struct Section {
    /// What it holds.
    pub section_type: SectionType,
    /// The header as it is written.
    pub header: [u8; V2_HEADER_LEN],
    /// What follows the header.
    pub payload: Vec<u8>,
    /// Bytes before compression.
    pub data_len: u64,
}

/// A section whose header is still to be made.
#[derive(Debug)]
pub struct Unsealed {
    /// Counts sections from 0.
    pub number: u32,
    /// What it holds.
    pub section_type: SectionType,
    /// What follows the header.
    pub encoded: Encoded,
    /// Bytes before compression.
    pub data_len: u64,
}

impl Unsealed {
    /// Adds the header.
    #[must_use]
    pub fn seal(self) -> Section {
        let header = encode_header(
            self.number,
            self.section_type,
            self.encoded.compression,
            &self.encoded.payload,
        );
        self.with(header)
    }

    /// Adds the headers of several sections, which is faster than one by one.
    #[must_use]
    pub fn seal_all(sections: Vec<Self>) -> Vec<Section> {
        let contents: Vec<_> = sections
            .iter()
            .map(|section| Contents {
                number: section.number,
                section_type: section.section_type,
                compression: section.encoded.compression,
                payload: &section.encoded.payload,
            })
            .collect();
        let headers = encode_headers(&contents);
        let sealed = sections.into_iter().zip(headers);
        sealed
            .map(|(section, header)| section.with(header))
            .collect()
    }

    fn with(self, header: [u8; V2_HEADER_LEN]) -> Section {
        Section {
            section_type: self.section_type,
            header,
            payload: self.encoded.payload,
            data_len: self.data_len,
        }
    }
}

impl Section {
    /// Adds the header for the section with this number.
    #[must_use]
    pub fn new(number: u32, section_type: SectionType, encoded: Encoded, data_len: u64) -> Self {
        let unsealed = Unsealed {
            number,
            section_type,
            encoded,
            data_len,
        };
        unsealed.seal()
    }

    /// Compresses `data`, where that makes it smaller and readers still believe it, and adds the header for the section
    /// with this number.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn encode(
        number: u32,
        section_type: SectionType,
        encoder: &mut dyn Encoder,
        kind: CompressionType,
        data: Vec<u8>,
    ) -> Result<Self> {
        let data_len = data.len() as u64;
        let encoded = encode_if_smaller(encoder, kind, &data, &mut Vec::new())?;
        let is_believed = |encoded: &Encoded| {
            section_type != SectionType::MetadataV2
                || data_len <= metadata_bytes_max(encoded.payload.len() as u64)
        };
        let encoded = encoded.filter(is_believed).unwrap_or(Encoded {
            compression: CompressionType::None,
            payload: data,
        });
        Ok(Self::new(number, section_type, encoded, data_len))
    }
}

/// The output and what has been written to it.
pub struct SectionWriter<'a> {
    output: &'a mut dyn Write,
    index: Vec<IndexEntry>,
    /// Bytes from the start of the first section.
    offset: u64,
    /// Bytes in front of the first section.
    prefix_len: u64,
}

impl<'a> SectionWriter<'a> {
    /// Begins an image.
    pub fn new(output: &'a mut dyn Write) -> Self {
        Self {
            output,
            index: Vec::new(),
            offset: 0,
            prefix_len: 0,
        }
    }

    /// Writes bytes in front of the image; to be called before the first section.
    ///
    /// # Errors
    /// `Io` if the output refuses.
    pub fn prefix(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        self.prefix_len += bytes.len() as u64;
        Ok(())
    }

    /// Returns the number of the next section.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        count_of(self.index.len())
    }

    /// Returns the bytes written, those in front of the image included.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.prefix_len + self.offset
    }

    /// Writes the next section.
    ///
    /// # Errors
    /// `Io` if the output refuses, `Limit` for more sections than readers take.
    pub fn section(&mut self, section: &Section) -> Result<()> {
        // With the index.
        if self.index.len() + 1 >= SECTION_COUNT_MAX {
            return Err(Error::limit(format!(
                "more than {SECTION_COUNT_MAX} sections: larger blocks are needed"
            )));
        }
        self.index.push(IndexEntry {
            section_type: section.section_type,
            offset: self.offset,
        });
        self.write(&section.header)?;
        self.write(&section.payload)?;
        self.offset += (section.header.len() + section.payload.len()) as u64;
        Ok(())
    }

    /// Writes the section index, which is the end of the image, and returns whether it did: an image that is too large
    /// for one goes without, as readers allow.
    ///
    /// # Errors
    /// `Io` if the output refuses.
    pub fn section_index(&mut self) -> Result<bool> {
        if self.offset > INDEX_OFFSET_MAX {
            return Ok(false);
        }
        let number = self.next_number();
        let mut entries = std::mem::take(&mut self.index);
        entries.push(IndexEntry {
            section_type: SectionType::SectionIndex,
            offset: self.offset,
        });
        let payload = encode_index(&entries);
        let kind = CompressionType::None;
        let header = encode_header(number, SectionType::SectionIndex, kind, &payload);
        self.write(&header)?;
        self.write(&payload)?;
        self.offset += (header.len() + payload.len()) as u64;
        Ok(true)
    }

    /// Hands everything over to whatever is behind the output.
    ///
    /// # Errors
    /// `Io` if the output refuses.
    pub fn finish(self) -> Result<()> {
        self.output.flush().map_err(cannot_write)
    }

    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.output.write_all(data).map_err(cannot_write)
    }
}

impl std::fmt::Debug for SectionWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SectionWriter")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::io("cannot write the image", error)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_codec::Spec;
    use durin_format::ErrorKind;

    use super::*;

    #[test]
    fn metadata_that_no_reader_would_believe_is_stored_as_it_is() {
        let spec = Spec::parse("zstd:level=1").unwrap();
        let encode = |kind, len| {
            let mut encoder = spec.encoder(len, None).unwrap();
            let data = vec![0; len];
            Section::encode(0, kind, &mut *encoder, CompressionType::Zstd, data).unwrap()
        };
        let (long, short) = (65 << 20, 1 << 20);
        assert_eq!(encode(SectionType::MetadataV2, long).payload.len(), long);
        assert!(encode(SectionType::MetadataV2, short).payload.len() < 1000);
        assert!(encode(SectionType::History, long).payload.len() < 100_000);
    }

    #[test]
    fn no_more_sections_than_readers_take() {
        let encoded = Encoded {
            compression: CompressionType::None,
            payload: Vec::new(),
        };
        let section = Section::new(0, SectionType::Block, encoded, 0);
        let mut output = std::io::sink();
        let mut writer = SectionWriter::new(&mut output);
        let entry = IndexEntry {
            section_type: SectionType::Block,
            offset: 0,
        };
        // One more, and the index.
        writer.index = vec![entry; SECTION_COUNT_MAX - 2];
        writer.section(&section).unwrap();
        let error = writer.section(&section).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
