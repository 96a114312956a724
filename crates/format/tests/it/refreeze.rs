//! What the reference froze, thawed and frozen again, is what the reference wrote: schema and data, byte for byte.
//!
//! This pins the layout of all releases from 0.2 on: widths, order, alignment, and what is left out.

use std::path::Path;

use durin_format::frozen::Alignment;
use durin_format::frozen::schema::Style;
use durin_format::metadata::{FreezeStyle, Metadata};
use durin_testkit::vectors::Vectors;

use crate::image::{Stored, metadata_sections};

/// Returns how the release that wrote this did.
fn style_of(stored: &Stored, metadata: &Metadata) -> FreezeStyle {
    FreezeStyle {
        alignment: match metadata.dir_entries {
            Some(_) => Alignment::Current,
            None => Alignment::Legacy,
        },
        schema: match stored.schema.first() {
            Some(0x45) => Style::VersionFirst,
            _ => Style::Ascending,
        },
        ..FreezeStyle::default()
    }
}

fn thaw(image: &Path) -> (Stored, Metadata) {
    let stored = metadata_sections(image).unwrap();
    let metadata = Metadata::thaw(&stored.schema, &stored.data).unwrap();
    (stored, metadata)
}

#[test]
fn every_image_of_the_reference_freezes_to_the_same_bytes() {
    let vectors = durin_testkit::require!(Vectors::find());
    for image in [vectors.images("good"), vectors.images("generated")].concat() {
        let (stored, metadata) = thaw(&image);
        let frozen = metadata.freeze_as(style_of(&stored, &metadata)).unwrap();
        assert!(
            frozen.schema == stored.schema,
            "schema of {}",
            image.display()
        );
        assert!(frozen.data == stored.data, "data of {}", image.display());
    }
}

#[test]
fn every_layout_of_other_writers_thaws_to_what_freezes_again() {
    let vectors = durin_testkit::require!(Vectors::find());
    for image in vectors.images("handmade") {
        let (_, metadata) = thaw(&image);
        let frozen = metadata.freeze().unwrap();
        let again = Metadata::thaw(&frozen.schema, &frozen.data).unwrap();
        assert!(again == metadata, "{}", image.display());
    }
}

#[test]
fn byte_sized_and_wide_layouts_hold_the_same_metadata() {
    let vectors = durin_testkit::require!(Vectors::find());
    let metadata = |name| thaw(&vectors.image("handmade", name)).1;
    let narrow = metadata("simple-32");
    assert!(!narrow.inodes.is_empty());
    for name in ["simple-wide", "simple-bytesized"] {
        assert!(metadata(name) == narrow, "{name}");
    }
}

#[test]
fn damaged_metadata_is_refused_or_freezes_again() {
    let vectors = durin_testkit::require!(Vectors::find());
    let mut refused_count = 0;
    for image in [vectors.images("badfs"), vectors.images("evil")].concat() {
        let Some(stored) = metadata_sections(&image) else {
            continue;
        };
        let Ok(metadata) = Metadata::thaw(&stored.schema, &stored.data) else {
            refused_count += 1;
            continue;
        };
        let frozen = metadata.freeze().unwrap();
        let again = Metadata::thaw(&frozen.schema, &frozen.data).unwrap();
        assert!(again == metadata, "{}", image.display());
    }
    assert!(refused_count >= 100, "only {refused_count} images refused");
}
