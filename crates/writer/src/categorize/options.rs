//! Which categorizers work, and how.

use std::collections::BTreeSet;
use std::path::PathBuf;

use durin_format::{Error, Result};

/// Something that tells data of some kind from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Categorizer {
    /// Astronomical images of 16 bits.
    Fits,
    /// Sampled sound.
    PcmAudio,
    /// Programs and libraries.
    Binary,
    /// Values of a fixed length that change little, such as pixels.
    Delta,
    /// What no compression makes smaller.
    Incompressible,
    /// Files that the user has listed.
    Hotness,
}

impl Categorizer {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Fits,
        Self::PcmAudio,
        Self::Binary,
        Self::Delta,
        Self::Incompressible,
        Self::Hotness,
    ];

    /// Those that work if a user wants categories and does not say which, in the order in which they are asked.
    pub const USUAL: [Self; 4] = [
        Self::Fits,
        Self::PcmAudio,
        Self::Binary,
        Self::Incompressible,
    ];

    /// The same for compressors that have a Delta filter: what it makes small may look incompressible.
    pub const WITH_DELTA: [Self; 5] = [
        Self::Fits,
        Self::PcmAudio,
        Self::Binary,
        Self::Delta,
        Self::Incompressible,
    ];

    /// The name that a user knows it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::PcmAudio => "pcmaudio",
            Self::Binary => "binary",
            Self::Incompressible => "incompressible",
            Self::Delta => "delta",
            Self::Hotness => "hotness",
        }
    }

    /// The names of the categories it finds.
    #[must_use]
    pub fn categories(self) -> &'static [&'static str] {
        match self {
            Self::Fits => &["fits/image", "fits/metadata"],
            Self::PcmAudio => &["pcmaudio/waveform", "pcmaudio/metadata"],
            Self::Binary => &[
                "binary/elf",
                "binary/pe",
                "binary/macho-header",
                "binary/macho-section",
            ],
            Self::Incompressible => &["incompressible"],
            Self::Delta => &["delta"],
            Self::Hotness => &["hotness"],
        }
    }

    /// Parses a comma-separated list; an empty one and `none` are no categorizers.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown name, and for one that comes twice.
    pub fn parse_list(list: &str) -> Result<Vec<Self>> {
        if list.is_empty() || list == "none" {
            return Ok(Vec::new());
        }
        let mut categorizers = Vec::new();
        for name in list.split(',') {
            let known = Self::ALL.into_iter().find(|known| known.name() == name);
            let Some(categorizer) = known else {
                let names = Self::ALL.map(Self::name).join(", ");
                return Err(Error::invalid_input(format!(
                    "unknown categorizer '{name}' (known: {names})"
                )));
            };
            if categorizers.contains(&categorizer) {
                return Err(Error::invalid_input(format!(
                    "categorizer '{name}' is given twice"
                )));
            }
            categorizers.push(categorizer);
        }
        Ok(categorizers)
    }
}

/// Which categorizers work, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategorizeOptions {
    /// The first that claims data wins.
    pub categorizers: Vec<Categorizer>,
    /// How `incompressible` works.
    pub incompressible: IncompressibleOptions,
    /// The files for `hotness`, as paths relative to the input; a leading `/` is ignored.
    pub hot_paths: BTreeSet<PathBuf>,
}

/// How it is found out what cannot be compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IncompressibleOptions {
    /// Smaller files are not tried: what cannot be compressed alone may well repeat what others have. docs/levels.md has the
    /// figures.
    pub min_input_size: u64,
    /// Bytes that are tried at once.
    pub block_size: u64,
    /// Whether such blocks are told apart within a file; otherwise it is all or nothing.
    pub fragments: bool,
    /// What cannot be made smaller than this share of its size is incompressible.
    pub ratio: f64,
    /// The level of the trial.
    pub zstd_level: i32,
}

impl Eq for IncompressibleOptions {}

impl Default for IncompressibleOptions {
    fn default() -> Self {
        Self {
            min_input_size: 4096,
            block_size: 1 << 20,
            fragments: false,
            ratio: 0.99,
            zstd_level: -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::CATEGORY_NAMES;

    #[test]
    fn lists() {
        let parse = |list| Categorizer::parse_list(list).map_err(|error| error.to_string());
        assert_eq!(parse(""), Ok(Vec::new()));
        assert_eq!(parse("none"), Ok(Vec::new()));
        let named = vec![Categorizer::Hotness, Categorizer::Fits];
        assert_eq!(parse("hotness,fits"), Ok(named));
        for (list, message) in [
            ("fits,", "unknown categorizer ''"),
            ("libmagic", "unknown categorizer 'libmagic' (known: fits,"),
            ("fits,fits", "given twice"),
        ] {
            let error = parse(list).expect_err("a wrong list");
            assert!(error.contains(message), "{list}: {error}");
        }
    }

    #[test]
    fn every_category_has_a_categorizer() {
        let mut names: Vec<_> = Categorizer::ALL
            .iter()
            .flat_map(|categorizer| categorizer.categories())
            .copied()
            .chain([crate::category::DEFAULT_NAME])
            .collect();
        names.sort_unstable();
        assert_eq!(names, CATEGORY_NAMES);
    }
}
