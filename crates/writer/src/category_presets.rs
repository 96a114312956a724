//! How categories are stored if the user does not say it.
//!
//! Source: CLI reference, "Level presets".

use durin_codec::Spec;
use durin_format::Result;

use crate::categorize::{Categorizer, IncompressibleOptions};
use crate::options::Order;
use crate::per_category::PerCategory;

/// The lowest level at which categories are told apart unasked: below it speed is what counts.
const CATEGORIZE_LEVEL_MIN: usize = 3;

/// The lowest level with lzma. It alone has the filter that `delta` is for, and takes so long that it is worth looking
/// closely at what need not be compressed.
const LZMA_LEVEL_MIN: usize = 7;

/// Returns the categorizers that work at a level if the user names none.
#[must_use]
pub fn usual_categorizers(level: usize) -> Vec<Categorizer> {
    match level {
        ..CATEGORIZE_LEVEL_MIN => Vec::new(),
        CATEGORIZE_LEVEL_MIN..LZMA_LEVEL_MIN => Categorizer::USUAL.to_vec(),
        _ => Categorizer::WITH_DELTA.to_vec(),
    }
}

/// Returns how a level finds what is incompressible if the user does not say it.
///
/// Source: docs/levels.md, "What does not shrink".
#[must_use]
pub fn usual_incompressible(level: usize) -> IncompressibleOptions {
    let usual = IncompressibleOptions::default();
    if level < LZMA_LEVEL_MIN {
        return usual;
    }
    IncompressibleOptions {
        fragments: true,
        ratio: 0.998,
        zstd_level: 3,
        ..usual
    }
}

/// The options that have presets for categories.
#[derive(Debug)]
pub struct CategoryPresets<'a> {
    /// How blocks are compressed.
    pub compression: &'a mut PerCategory<Spec>,
    /// In which order contents are stored.
    pub order: &'a mut PerCategory<Order>,
    /// How long windows are.
    pub window_size: &'a mut PerCategory<u32>,
}

impl CategoryPresets<'_> {
    /// Sets what a level has for single categories.
    ///
    /// # Errors
    /// None: the texts of the presets are valid.
    pub fn apply(self, level: usize) -> Result<()> {
        self.compression.preset("incompressible", Spec::NULL);
        self.order.preset("incompressible", Order::Path);
        if level == 0 {
            return Ok(());
        }
        let (flac, window) = match level {
            ..=4 => ("flac:level=3", 0),
            5..=7 => ("flac:level=5", 20),
            _ => ("flac:level=8", 16),
        };
        self.compression
            .preset("pcmaudio/waveform", Spec::parse(flac)?);
        self.window_size.preset("pcmaudio/waveform", window);
        self.compression
            .preset("fits/image", Spec::parse("ricepp")?);
        self.window_size.preset("fits/image", 0);
        for category in ["pcmaudio/waveform", "fits/image"] {
            self.order.preset(category, Order::Revpath);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::LEVEL_MAX;

    #[test]
    fn every_level_has_presets() {
        for level in 0..=LEVEL_MAX {
            let mut compression = PerCategory::new(Spec::NULL);
            let mut order = PerCategory::new(Order::Path);
            let mut window_size = PerCategory::new(12);
            let presets = CategoryPresets {
                compression: &mut compression,
                order: &mut order,
                window_size: &mut window_size,
            };
            presets.apply(level).expect("valid presets");
            assert!(compression.of("incompressible").is_null());
            let sound = compression.of("pcmaudio/waveform");
            assert_eq!(sound.requires_metadata(), level > 0, "level {level}");
            assert!(!compression.is_chosen("pcmaudio/waveform"));
        }
    }
}
