//! Detail levels: what is told about an image.

use std::collections::BTreeSet;
/// The help for `--detail`.
pub(crate) const HELP: &str = "\
Detail levels, each with what the ones below it show:
  1  version, metadata_summary
  2  history, frozen_analysis
  3  frozen_details, metadata_details, section_details
  4  directory_tree, frozen_layout
  5  chunk_details
  6  metadata_full_dump
  7  schema_raw_dump
A list such as 'version,section_details' shows just these.

Exit status: 0 no errors found; 1 errors; 2 --print-header without a header.";

/// One thing that can be told about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Feature {
    Version,
    MetadataSummary,
    History,
    FrozenAnalysis,
    FrozenDetails,
    MetadataDetails,
    SectionDetails,
    DirectoryTree,
    FrozenLayout,
    ChunkDetails,
    MetadataFullDump,
    SchemaRawDump,
}

/// The features with their names, and the lowest level that shows them.
const FEATURES: [(Feature, &str, u8); 12] = [
    (Feature::Version, "version", 1),
    (Feature::MetadataSummary, "metadata_summary", 1),
    (Feature::History, "history", 2),
    (Feature::FrozenAnalysis, "frozen_analysis", 2),
    (Feature::FrozenDetails, "frozen_details", 3),
    (Feature::MetadataDetails, "metadata_details", 3),
    (Feature::SectionDetails, "section_details", 3),
    (Feature::DirectoryTree, "directory_tree", 4),
    (Feature::FrozenLayout, "frozen_layout", 4),
    (Feature::ChunkDetails, "chunk_details", 5),
    (Feature::MetadataFullDump, "metadata_full_dump", 6),
    (Feature::SchemaRawDump, "schema_raw_dump", 7),
];

const LEVEL_MAX: u8 = 7;

/// The set of features to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Detail(BTreeSet<Feature>);

impl Detail {
    /// Parses a level or a list of features.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(level) = text.parse::<u8>() {
            if level > LEVEL_MAX {
                return Err(format!("the detail level is between 0 and {LEVEL_MAX}"));
            }
            let shown = FEATURES.iter().filter(|(_, _, lowest)| *lowest <= level);
            return Ok(Self(shown.map(|(feature, _, _)| *feature).collect()));
        }
        text.split(',')
            .map(feature)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether `feature` is to be shown.
    pub(crate) fn shows(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }
}

fn feature(name: &str) -> Result<Feature, String> {
    FEATURES
        .iter()
        .find(|(_, known, _)| *known == name)
        .map(|(feature, _, _)| *feature)
        .ok_or_else(|| {
            let mut text = format!("'{name}' is neither a level nor one of");
            for (_, known, _) in &FEATURES {
                text.push_str(&format!(" {known}"));
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_cumulative() {
        let count = |level: &str| Detail::parse(level).map(|detail| detail.0.len());
        let counts: Vec<_> = ["0", "1", "2", "3", "4", "5", "6", "7"]
            .into_iter()
            .map(count)
            .collect();
        assert_eq!(counts, [0, 2, 4, 7, 9, 10, 11, 12].map(Ok));
    }

    #[test]
    fn lists_name_features() {
        let detail = Detail::parse("version,schema_raw_dump");
        assert_eq!(
            detail,
            Ok(Detail([Feature::Version, Feature::SchemaRawDump].into()))
        );
        for text in ["8", "", "version,", "colour"] {
            assert!(Detail::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_help_names_each_feature_at_its_level() {
        for (_, name, level) in FEATURES {
            let line = HELP
                .lines()
                .find(|line| line.trim_start().starts_with(&level.to_string()));
            assert!(line.is_some_and(|line| line.contains(name)), "{name}");
        }
    }
}
