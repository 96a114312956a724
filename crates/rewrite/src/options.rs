//! What a user can choose about rewriting an image.

use durin_codec::Spec;
use durin_format::history::HistoryEntry;
use durin_format::{Error, Result};
use durin_writer::mode::ChmodRule;
use durin_writer::{CATEGORY_NAMES, PackOptions, PerCategory, TimeResolution};

/// Blocks are at least this power of two bytes long.
const BLOCK_SIZE_BITS_MIN: u32 = 10;
/// Blocks are at most this power of two bytes long.
const BLOCK_SIZE_BITS_MAX: u32 = 30;

/// How an image is rewritten. Whatever no field asks to change goes along as it is.
#[derive(Clone, Debug)]
pub struct RewriteOptions {
    /// What is decompressed and compressed again.
    pub recompress: Recompress,
    /// Blocks of which categories are recompressed, if blocks are at all.
    pub categories: CategoryChoice,
    /// Has the metadata described anew in today's layout.
    pub rebuild: Option<RebuildOptions>,
    /// Has the data cut into blocks of this power of two bytes. Needs [`Self::rebuild`].
    pub block_size_bits: Option<u32>,
    /// How blocks are compressed.
    pub compression: PerCategory<Spec>,
    /// How the schema is compressed.
    pub schema_compression: Spec,
    /// How the metadata are compressed.
    pub metadata_compression: Spec,
    /// How the history is compressed.
    pub history_compression: Spec,
    /// What is appended to the history; `None` leaves all of it out.
    pub history: Option<HistoryEntry>,
    /// Whether the section index is written.
    pub section_index: bool,
    /// What stands in front of the new image.
    pub header: Header,
    /// Whether the old image is checked before anything is written.
    pub check: bool,
    /// Threads that compress, and as many that read.
    pub workers: usize,
    /// What is added to the nice value of the threads that compress.
    pub compress_niceness: i32,
    /// The most bytes that the whole process may have; `None` derives them from the machine.
    pub memory_limit: Option<u64>,
}

/// What is decompressed and compressed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recompress {
    /// Blocks.
    pub blocks: bool,
    /// Schema and metadata.
    pub metadata: bool,
}

impl Recompress {
    /// Everything.
    pub const ALL: Self = Self {
        blocks: true,
        metadata: true,
    };
    /// Blocks only.
    pub const BLOCK: Self = Self {
        blocks: true,
        metadata: false,
    };
    /// Schema and metadata only.
    pub const METADATA: Self = Self {
        blocks: false,
        metadata: true,
    };
    /// Nothing: all payloads are copied.
    pub const NONE: Self = Self {
        blocks: false,
        metadata: false,
    };
}

/// Which categories are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CategoryChoice {
    /// All.
    #[default]
    All,
    /// These.
    Only(Vec<String>),
    /// All but these.
    AllBut(Vec<String>),
}

impl CategoryChoice {
    /// Parses `[!]NAME[,NAME...]`.
    ///
    /// # Errors
    /// `InvalidInput` for an empty name.
    pub fn parse(text: &str) -> Result<Self> {
        let (is_inverted, list) = match text.strip_prefix('!') {
            Some(list) => (true, list),
            None => (false, text),
        };
        let names: Vec<String> = list.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err(Error::invalid_input(format!(
                "'{text}': the name of a category is empty"
            )));
        }
        Ok(if is_inverted {
            Self::AllBut(names)
        } else {
            Self::Only(names)
        })
    }

    /// Whether a category is meant.
    #[must_use]
    pub fn has(&self, category: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == category),
            Self::AllBut(names) => !names.iter().any(|name| name == category),
        }
    }

    /// The names in the choice.
    fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::AllBut(names) => names,
        }
    }
}

/// What stands in front of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// What stood there before.
    #[default]
    Keep,
    /// Nothing.
    Remove,
    /// These bytes.
    Replace(Vec<u8>),
}

/// How the tree is described anew.
#[derive(Clone, Debug)]
pub struct RebuildOptions {
    /// The owner of everything; as it was if missing.
    pub set_owner: Option<u32>,
    /// The group of everything; as it was if missing.
    pub set_group: Option<u32>,
    /// The time of everything in seconds since 1970; as it was if missing.
    pub set_time: Option<i64>,
    /// Whether times of access and change are kept, if the image has them.
    pub keep_all_times: bool,
    /// The unit of times, a multiple of the image's; as it was if missing.
    pub time_resolution: Option<TimeResolution>,
    /// Changes to the permission bits, applied in turn.
    pub chmod: Vec<ChmodRule>,
    /// The time of creation recorded in the metadata, in seconds since 1970.
    pub create_timestamp: Option<u64>,
    /// Which tables are packed.
    pub pack: PackOptions,
    /// Whether link counts are stored.
    pub hardlink_table: bool,
    /// Whether the names of the categories of blocks are kept.
    pub category_names: bool,
    /// Whether what is known of the data in blocks is kept.
    pub category_metadata: bool,
    /// Whether it is recorded what the metadata were like before.
    pub version_history: bool,
}

impl Default for RebuildOptions {
    /// Changes nothing but the layout.
    fn default() -> Self {
        Self {
            set_owner: None,
            set_group: None,
            set_time: None,
            keep_all_times: true,
            time_resolution: None,
            chmod: Vec::new(),
            create_timestamp: None,
            pack: PackOptions::AUTO,
            hardlink_table: true,
            category_names: true,
            category_metadata: true,
            version_history: true,
        }
    }
}

impl RewriteOptions {
    /// Recompresses what is said, without compression and without an entry in the history, of an image that is checked
    /// before.
    #[must_use]
    pub fn new(recompress: Recompress) -> Self {
        Self {
            recompress,
            categories: CategoryChoice::All,
            rebuild: None,
            block_size_bits: None,
            compression: Spec::NULL.into(),
            schema_compression: Spec::NULL,
            metadata_compression: Spec::NULL,
            history_compression: Spec::NULL,
            history: None,
            section_index: true,
            header: Header::Keep,
            check: true,
            workers: 1,
            compress_niceness: 0,
            memory_limit: None,
        }
    }

    /// Checks what single fields cannot say of themselves; `names` are the categories of the image.
    pub(crate) fn validate(&self, names: &[String]) -> Result<()> {
        if let Some(bits) = self.block_size_bits {
            if !(BLOCK_SIZE_BITS_MIN..=BLOCK_SIZE_BITS_MAX).contains(&bits) {
                return Err(Error::invalid_input(format!(
                    "block size 2^{bits}: it must lie between 2^{BLOCK_SIZE_BITS_MIN} and 2^{BLOCK_SIZE_BITS_MAX}"
                )));
            }
            if self.rebuild.is_none()
                || !self.recompress.blocks
                || self.categories != CategoryChoice::All
            {
                return Err(Error::invalid_input(
                    "changing the block size recompresses all blocks and rebuilds the metadata",
                ));
            }
        }
        let is_known =
            |name: &str| CATEGORY_NAMES.contains(&name) || names.iter().any(|known| known == name);
        let chosen = self.categories.names().iter().map(String::as_str);
        for name in chosen.chain(self.compression.names()) {
            if !is_known(name) {
                return Err(Error::invalid_input(format!(
                    "unknown category '{}' (known: {})",
                    name.escape_debug(),
                    CATEGORY_NAMES.join(", ")
                )));
            }
        }
        for (what, spec) in [
            ("blocks", self.compression.default_value()),
            ("the schema", &self.schema_compression),
            ("the metadata", &self.metadata_compression),
            ("the history", &self.history_compression),
        ] {
            if spec.requires_metadata() {
                return Err(Error::invalid_input(format!(
                    "{spec} cannot compress {what}: it needs data of a category that describes its samples"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_of_categories() {
        let check = |text: &str, expect: [bool; 2]| {
            let choice = CategoryChoice::parse(text).expect("a choice");
            assert_eq!(["a", "b/c"].map(|name| choice.has(name)), expect, "{text}");
        };
        check("a", [true, false]);
        check("b/c,a", [true, true]);
        check("!a", [false, true]);
        check("!a,b/c", [false, false]);
        for bad in ["", "!", "a,", ",a", "a,,b"] {
            assert!(CategoryChoice::parse(bad).is_err(), "{bad}");
        }
        assert!(CategoryChoice::All.has("anything"));
    }
}
