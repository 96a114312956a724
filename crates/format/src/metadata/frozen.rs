//! From the owned metadata to the two sections that hold it, and back.

use super::model::Metadata;
use crate::error::Result;
use crate::frozen::schema::{Schema, Style};
use crate::frozen::{Alignment, solve, thaw, write};

/// The metadata as it stands in an image, before compression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// The payload of the section `METADATA_V2_SCHEMA`.
    pub schema: Vec<u8>,
    /// The payload of the section `METADATA_V2`.
    pub data: Vec<u8>,
}

/// Which of the reference's habits to follow; each style means the same to readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreezeStyle {
    /// How arrays are aligned.
    pub alignment: Alignment,
    /// How the schema is written.
    pub schema: Style,
}

impl Metadata {
    /// Returns the metadata as the newest releases of the reference would store it, as narrow as possible.
    ///
    /// Takes time linear in the items and little memory beyond the result.
    ///
    /// # Errors
    /// `Limit` when the layout is too large for a schema, which these types cannot be.
    pub fn freeze(&self) -> Result<Frozen> {
        self.freeze_as(FreezeStyle::default())
    }

    /// Returns the metadata as some release of the reference stored it.
    ///
    /// # Errors
    /// As [`freeze`](Self::freeze).
    pub fn freeze_as(&self, style: FreezeStyle) -> Result<Frozen> {
        let root = solve::solve(self, style.alignment);
        Ok(Frozen {
            schema: root.to_schema()?.encode(style.schema),
            data: write::write(self, &root, style.alignment),
        })
    }

    /// Reads the whole metadata from the payloads of its two sections, in any valid layout.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` when the schema is, `Corrupt` when a value is not inside `data` or a set or map does
    /// not ascend, `Limit` when there are more items or longer strings than `data` makes plausible, see
    /// [`limits::THAW_ITEM_COUNT_MAX`](crate::limits::THAW_ITEM_COUNT_MAX).
    pub fn thaw(schema: &[u8], data: &[u8]) -> Result<Self> {
        let schema = Schema::parse(schema)?;
        thaw::thaw(&schema, data).map_err(|error| error.context("metadata"))
    }
}
