//! Who built the image, when and how.

use durin_format::Result;
use durin_format::history::{History, Room};
use durin_format::section::SectionType;

use crate::image::Image;
use crate::payload;

impl Image {
    /// Returns the entries of all history sections in file order; nothing if there is none.
    ///
    /// # Errors
    /// `Corrupt` if a history section is damaged. That is no reason not to use the image.
    pub fn history(&self) -> Result<History> {
        let mut all = History::default();
        let mut room = Room::default();
        for section in self.sections() {
            if section.section_type != SectionType::History {
                continue;
            }
            let source = self.source();
            let loaded = payload::load(source, self.version(), section, room.bytes(), u64::MAX)?;
            all.append(loaded.bytes(source), &mut room)
                .map_err(|error| error.at(section.location()))?;
        }
        Ok(all)
    }
}
