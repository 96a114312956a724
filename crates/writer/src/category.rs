//! What kinds of data an image has, and which of them are stored together.
//!
//! Data of one category go into blocks of their own, with their own compression, order and segmentation. A [`Stream`]
//! is what is stored of one category; streams follow each other in the image, and the blocks of one do not mix with
//! those of another.

use durin_codec::Spec;

use crate::dedupe::ContentIndex;
use crate::options::{BuildOptions, Order};

/// The place of a category in [`Categories`].
pub(crate) type CategoryIndex = u16;

/// The category of data of which nothing particular is known.
pub(crate) const DEFAULT: CategoryIndex = 0;
/// Its name.
pub(crate) const DEFAULT_NAME: &str = "<default>";

/// The names of all categories that a categorizer can find, and that of the rest.
pub const CATEGORY_NAMES: [&str; 12] = [
    DEFAULT_NAME,
    "binary/elf",
    "binary/macho-header",
    "binary/macho-section",
    "binary/pe",
    "delta",
    "fits/image",
    "fits/metadata",
    "hotness",
    "incompressible",
    "pcmaudio/metadata",
    "pcmaudio/waveform",
];

/// A kind of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Category {
    pub(crate) name: String,
    /// Compact JSON with sorted keys that tells a codec the layout of the data.
    pub(crate) metadata: Option<String>,
    /// Bytes that belong together; blocks hold a multiple of them.
    pub(crate) granularity: u32,
    /// What tells apart data of one name that should not share blocks.
    pub(crate) subcategory: String,
}

/// The categories of a build; the first is the default one.
#[derive(Debug)]
pub(crate) struct Categories {
    list: Vec<Category>,
}

impl Categories {
    /// Only the default category.
    pub(crate) fn new() -> Self {
        Self {
            list: vec![Category {
                name: DEFAULT_NAME.to_owned(),
                metadata: None,
                granularity: 1,
                subcategory: String::new(),
            }],
        }
    }

    pub(crate) fn get(&self, index: CategoryIndex) -> &Category {
        &self.list[usize::from(index)]
    }

    /// Adds a category; there are few enough.
    pub(crate) fn add(&mut self, category: Category) -> CategoryIndex {
        let index = CategoryIndex::try_from(self.list.len()).unwrap_or(DEFAULT);
        if index != DEFAULT {
            self.list.push(category);
        }
        index
    }
}

/// A byte range of a content, holes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) content: ContentIndex,
    /// If it begins a group of fragments that are alike, what all of them have, in KiB rounded up; 0 within a group.
    pub(crate) group_kib: u32,
    /// Bytes from the start of the content.
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// What is stored of one category.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) category: CategoryIndex,
    pub(crate) settings: StreamSettings,
    /// In the order of storage.
    pub(crate) fragments: Vec<Fragment>,
}

/// How the data of a category are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamSettings {
    pub(crate) compression: Spec,
    pub(crate) order: Order,
    pub(crate) window: WindowOptions,
    /// The layout of the data for codecs that need it.
    pub(crate) metadata: Option<String>,
    /// Bytes that belong together.
    pub(crate) granularity: u32,
    /// Bytes of a block of contents that are unlike each other, if the codec is one whose images are read often.
    pub(crate) mixed_block_size: u32,
}

/// How repetitions are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowOptions {
    /// The length of a window as a power of two, in units of the granularity; 0 is no search.
    pub(crate) size_bits: u32,
    /// The windows lie this power of two closer than they are long.
    pub(crate) step_bits: u32,
    pub(crate) lookback_blocks: u32,
    pub(crate) bloom_bits: u32,
}

impl StreamSettings {
    /// What the options say of a category.
    pub(crate) fn of(options: &BuildOptions, category: &Category) -> Self {
        let name = category.name.as_str();
        Self {
            compression: options.compression.of(name).clone(),
            order: options.order.of(name).clone(),
            window: WindowOptions {
                size_bits: *options.window_size.of(name),
                step_bits: *options.window_step.of(name),
                lookback_blocks: *options.max_lookback_blocks.of(name),
                bloom_bits: *options.bloom_filter_size.of(name),
            },
            metadata: category.metadata.clone(),
            granularity: category.granularity.max(1),
            mixed_block_size: 1 << options.mixed_block_size_bits.of(name),
        }
    }

    /// Bytes of a full block: as many as the options allow, but no part of what belongs together.
    pub(crate) fn block_len(&self, block_size: u32) -> u32 {
        match block_size - block_size % self.granularity {
            0 => block_size,
            len => len,
        }
    }
}
