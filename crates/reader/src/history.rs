//! Who built the image, when and how.

use durin_format::history::History;
use durin_format::section::SectionType;
use durin_format::{Result, limits};

use crate::image::Image;
use crate::payload;

impl Image {
    /// Returns the entries of all history sections in file order; nothing if there is none.
    ///
    /// # Errors
    /// `Corrupt` if a history section is damaged. That is no reason not to use the image.
    pub fn history(&self) -> Result<History> {
        let mut all = History {
            entries: Vec::new(),
        };
        for section in self.sections() {
            if section.section_type != SectionType::History {
                continue;
            }
            let source = self.source();
            let loaded = payload::load(
                source,
                self.version(),
                section,
                limits::HISTORY_BYTES_MAX,
                u64::MAX,
            )?;
            let history = History::parse(loaded.bytes(source))
                .map_err(|error| error.at(section.location()))?;
            all.entries.extend(history.entries);
        }
        Ok(all)
    }
}
