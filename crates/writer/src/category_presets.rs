//! How categories are stored if the user does not say it.
//!
//! Source: CLI reference, "Level presets".

use durin_codec::Spec;
use durin_format::Result;

use crate::categorize::Categorizer;
use crate::level::LevelDefaults;
use crate::options::Order;
use crate::per_category::PerCategory;

/// The lowest level at which categories are told apart unasked: below it speed is what counts.
const CATEGORIZE_LEVEL_MIN: usize = 3;

/// Categories of files that are mostly machine code.
const MACHINE_CODE: [&str; 3] = ["binary/elf", "binary/pe", "binary/macho-section"];

/// Returns the categorizers that work at a level if the user names none.
#[must_use]
pub fn usual_categorizers(level: usize) -> Vec<Categorizer> {
    if level < CATEGORIZE_LEVEL_MIN {
        Vec::new()
    } else {
        Categorizer::USUAL.to_vec()
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
    pub fn apply(mut self, level: usize) -> Result<()> {
        self.compression.preset("incompressible", Spec::NULL);
        self.order.preset("incompressible", Order::Path);
        if level == 0 {
            return Ok(());
        }
        self.machine_code(level)?;
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

    /// What the user chooses for all data holds for machine code as well.
    fn machine_code(&mut self, level: usize) -> Result<()> {
        let preset = LevelDefaults::of(level).and_then(|level| level.code_compression);
        if let Some(preset) = preset.filter(|_| !self.compression.default_is_chosen()) {
            for category in MACHINE_CODE {
                self.compression.preset(category, Spec::parse(preset)?);
            }
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

    #[test]
    fn machine_code_goes_its_own_way_unless_the_user_has_chosen() {
        let data =
            |level: usize| Spec::parse(LevelDefaults::of(level).expect("a level").compression);
        for (level, is_chosen, is_special) in
            [(6, false, false), (7, false, true), (7, true, false)]
        {
            let preset = data(level).expect("valid");
            let mut compression = PerCategory::new(preset.clone());
            if is_chosen {
                compression.set_default(preset.clone());
            }
            let presets = CategoryPresets {
                compression: &mut compression,
                order: &mut PerCategory::new(Order::Path),
                window_size: &mut PerCategory::new(12),
            };
            presets.apply(level).expect("valid presets");
            assert_eq!(
                *compression.of("binary/elf") != preset,
                is_special,
                "level {level}"
            );
        }
    }
}
