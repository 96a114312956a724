//! Sections as they are stored, for those who copy them into another image.

use durin_format::Result;
use durin_format::section::{SectionHeader, V2_HEADER_LEN};

use crate::check;
use crate::image::Image;
use crate::payload;
use crate::sections::Section;

/// A section as it is stored.
#[derive(Clone, Debug)]
pub struct RawSection {
    /// What its header says.
    pub header: SectionHeader,
    /// The header of a section that has checksums.
    pub header_bytes: Option<[u8; V2_HEADER_LEN]>,
    /// What follows the header, compressed or not.
    pub payload: Vec<u8>,
}

impl Image {
    /// Reads a section of up to `len_max` bytes into memory and verifies its XXH3, if it has one.
    ///
    /// # Errors
    /// `Corrupt` if the section is damaged, `Limit` if it is too long or memory does not suffice, `Io` if it cannot
    /// be read.
    pub fn read_section(&self, section: &Section, len_max: u64) -> Result<RawSection> {
        let (header, bytes) = self.header_of(section)?;
        let has_checksums = !self.version().has_v1_sections();
        let payload = if has_checksums {
            payload::read_verified(self.source(), section, &bytes, len_max)?
        } else {
            payload::read(self.source(), section, len_max)?
        };
        Ok(RawSection {
            header,
            header_bytes: has_checksums.then_some(bytes),
            payload,
        })
    }

    /// Checks every value of the metadata, as opening does on request.
    ///
    /// # Errors
    /// `Corrupt` for the first value that cannot be.
    pub fn check_metadata(&self) -> Result<()> {
        check::metadata_consistency(self)
    }
}
