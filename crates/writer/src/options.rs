//! What a user chose for one build.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durin_codec::Spec;
use durin_format::digest::Digest;
use durin_format::history::HistoryEntry;
use durin_format::{Error, Result};

use crate::categorize::CategorizeOptions;
use crate::category::CATEGORY_NAMES;
use crate::filter::Filter;
use crate::mode::ChmodRule;
use crate::per_category::PerCategory;
use crate::script::{Hooks, Script};
use crate::tree::printable;

/// The smallest block that can be asked for, as a power of two.
pub(crate) const BLOCK_SIZE_BITS_MIN: u32 = 10;
/// The largest block that can be asked for, as a power of two.
pub(crate) const BLOCK_SIZE_BITS_MAX: u32 = 30;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The blocks of trees that have little data: few large ones take no more memory than many smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallTree {
    /// The most data, in bytes: files that are equal count once, and holes do not count.
    pub data_len_max: u64,
    /// The size of a block, as a power of two.
    pub block_size_bits: u32,
}

/// Everything that decides how an image is built, and all that decides its bytes.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// What is packed.
    pub input: Input,
    /// Which entries are left out.
    pub filter: Filter,
    /// A script that is asked after the filter, and has the last word on attributes and order.
    pub script: Option<Arc<dyn Script>>,
    /// Whether directories without entries are left out, once the filter has done its work.
    pub remove_empty_dirs: bool,
    /// Files that are never packed, as pairs of device and inode number: the image being written, for one.
    pub exclude_ids: Vec<(u64, u64)>,
    /// The size of a block, as a power of two.
    pub block_size_bits: u32,
    /// What holds instead for trees that have little data.
    pub small_tree: Option<SmallTree>,
    /// The size at which blocks of contents that are unlike each other end, as a power of two; those of contents that are
    /// alike, and all but those with zstd, are as large as `block_size_bits` says.
    pub mixed_block_size_bits: PerCategory<u32>,
    /// How blocks are compressed.
    pub compression: PerCategory<Spec>,
    /// How the schema of the metadata is compressed.
    pub schema_compression: Spec,
    /// How the metadata is compressed.
    pub metadata_compression: Spec,
    /// How the history is compressed.
    pub history_compression: Spec,
    /// In which order contents are stored.
    pub order: PerCategory<Order>,
    /// Contents larger than this are not compared with others: they are stored first, the largest first.
    pub max_similarity_size: Option<u64>,
    /// How long repetitions are that are surely found, as a power of two; 0 searches for none.
    pub window_size: PerCategory<u32>,
    /// By which power of two the anchors to find them by lie closer than that.
    pub window_step: PerCategory<u32>,
    /// How many of the last blocks are searched for repetitions, the open one included; `u32::MAX` is all of them.
    pub max_lookback_blocks: PerCategory<u32>,
    /// How much room the index of anchors has: 4 is filled up to two thirds, each step more halves that.
    pub bloom_filter_size: PerCategory<u32>,
    /// What tells equal files from different ones; `None` stores each file for itself.
    pub file_hash: Option<Digest>,
    /// Whether character and block devices are packed. A list as the input turns this on.
    pub with_devices: bool,
    /// Whether fifos and sockets are packed. A list as the input turns this on.
    pub with_specials: bool,
    /// Whether holes are stored as such; otherwise as zeros.
    pub sparse_files: bool,
    /// Whether every file becomes one hole of its size; then no file is opened. Needs `sparse_files`.
    pub hollow: bool,
    /// The owner of every entry instead of its own.
    pub set_owner: Option<u32>,
    /// The group of every entry instead of its own.
    pub set_group: Option<u32>,
    /// The time of every entry instead of its own, in seconds since 1970.
    pub set_time: Option<i64>,
    /// Whether the times of access and of change are kept too.
    pub keep_all_times: bool,
    /// The unit in which times are stored.
    pub time_resolution: TimeResolution,
    /// Changes to the permission bits, applied in turn.
    pub chmod: Vec<ChmodRule>,
    /// The time of creation recorded in the metadata, in seconds since 1970.
    pub create_timestamp: Option<u64>,
    /// What the history section says; `None` leaves the section out.
    pub history: Option<HistoryEntry>,
    /// Whether the section index is written.
    pub section_index: bool,
    /// Which tables of the metadata are packed.
    pub pack: PackOptions,
    /// Whether link counts are stored.
    pub hardlink_table: bool,
    /// What is looked for to tell categories of data apart.
    pub categorize: CategorizeOptions,
    /// Whether the metadata name the categories of blocks.
    pub category_names: bool,
    /// Whether the metadata tell more about blocks of categories whose data have a layout.
    pub category_metadata: bool,
    /// Bytes in front of the image.
    pub header: Vec<u8>,
    /// Threads that compress.
    pub workers: usize,
    /// Threads that scan, hash and read.
    pub scanner_workers: usize,
    /// What is added to the nice value of the threads that compress.
    pub compress_niceness: i32,
    /// The most bytes that the whole process may have; `None` derives them from the machine. See the module `memory`.
    pub memory_limit: Option<u64>,
}

/// What is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A directory and all below it.
    Directory(PathBuf),
    /// The listed paths and the directories that lead to them.
    List {
        /// What relative paths are relative to; the current directory if missing. Absolute paths must lie below it.
        root: Option<PathBuf>,
        /// The paths, in the order of the list.
        paths: Vec<PathBuf>,
    },
}

impl fmt::Display for Input {
    /// Shows the root, made printable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.root().as_os_str().as_bytes()))
    }
}

impl Input {
    /// Returns what paths of the image are relative to.
    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Directory(path) => path,
            Self::List { root, .. } => root.as_deref().unwrap_or(Path::new(".")),
        }
    }
}

/// In which order contents are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the scan finds them: directory by directory, or as listed.
    None,
    /// By path, component by component.
    Path,
    /// By base name, then by the names of the parents upwards.
    Revpath,
    /// Along the paths, and contents that are much alike next to each other.
    Similarity,
    /// By clusters of Nilsimsa digests.
    Nilsimsa(NilsimsaOptions),
    /// As listed (paths relative to the input; a leading `/` is ignored), then the others by path.
    Explicit(Vec<PathBuf>),
}

/// Limits of the clustering by Nilsimsa digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NilsimsaOptions {
    /// Clusters that a set of digests is divided into, at most.
    pub max_children: u32,
    /// Members of a cluster that is not divided further.
    pub max_cluster_size: u32,
}

impl Default for NilsimsaOptions {
    fn default() -> Self {
        Self {
            max_children: 16_384,
            max_cluster_size: 16_384,
        }
    }
}

/// The unit of stored times: a divisor or a multiple of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeResolution {
    ns: u64,
}

impl TimeResolution {
    /// One second.
    pub const SECOND: Self = Self { ns: SECOND_NS };

    /// Takes a unit in nanoseconds.
    ///
    /// # Errors
    /// `InvalidInput` if it is 0, neither divides a second nor is a multiple of it, or exceeds 2^32 - 1 seconds.
    pub fn from_ns(ns: u64) -> Result<Self> {
        let divides = ns > 0 && ns < SECOND_NS && SECOND_NS.is_multiple_of(ns);
        let multiple = ns >= SECOND_NS && ns.is_multiple_of(SECOND_NS);
        let fits = ns / SECOND_NS <= u64::from(u32::MAX);
        if (divides || multiple) && fits {
            Ok(Self { ns })
        } else {
            Err(Error::invalid_input(format!(
                "time resolution of {ns} ns: it must divide one second, or be whole seconds up to 2^32 - 1"
            )))
        }
    }

    /// The unit in nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        self.ns
    }

    /// Whole seconds per unit, at least 1.
    #[must_use]
    pub fn seconds(self) -> u32 {
        u32::try_from(self.ns / SECOND_NS)
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// Nanoseconds per unit, if that is less than a second.
    #[must_use]
    pub fn subsec_multiplier(self) -> Option<u32> {
        u32::try_from(self.ns).ok().filter(|_| self.ns < SECOND_NS)
    }
}

impl Default for TimeResolution {
    fn default() -> Self {
        Self::SECOND
    }
}

/// Which tables of the metadata are packed, and how names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOptions {
    /// Store differences in the chunk table.
    pub chunk_table: bool,
    /// Store differences in the directory table and leave the parents to the reader.
    pub directories: bool,
    /// Store how many files share a content instead of which.
    pub shared_files: bool,
    /// Compress names.
    pub names: bool,
    /// Store lengths of names instead of offsets.
    pub names_index: bool,
    /// Compress symlink targets.
    pub symlinks: bool,
    /// Store lengths of symlink targets instead of offsets.
    pub symlinks_index: bool,
    /// Keep compressed strings even where they are larger.
    pub force: bool,
    /// Store strings in plain tables, which releases before format 2.3 had.
    pub plain: bool,
}

impl PackOptions {
    /// Nothing packed.
    pub const NONE: Self = Self {
        chunk_table: false,
        directories: false,
        shared_files: false,
        names: false,
        names_index: false,
        symlinks: false,
        symlinks_index: false,
        force: false,
        plain: false,
    };
    /// Names and symlinks compressed where that makes them smaller.
    pub const AUTO: Self = Self {
        names: true,
        symlinks: true,
        ..Self::NONE
    };
    /// Everything packed.
    pub const ALL: Self = Self {
        chunk_table: true,
        directories: true,
        shared_files: true,
        names: true,
        names_index: true,
        symlinks: true,
        symlinks_index: true,
        force: false,
        plain: false,
    };

    /// Parses a comma-separated list: `auto` or `none` alone, or any of `all`, `chunk_table`, `directories`,
    /// `shared_files`, `names`, `names_index`, `symlinks`, `symlinks_index`, `force` and `plain`.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown name, and for `auto` or `none` among others.
    pub fn parse(list: &str) -> Result<Self> {
        match list {
            "auto" => return Ok(Self::AUTO),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let mut pack = Self::NONE;
        for name in list.split(',') {
            let switch = match name {
                "all" => {
                    let Self { force, plain, .. } = pack;
                    pack = Self {
                        force,
                        plain,
                        ..Self::ALL
                    };
                    continue;
                }
                "chunk_table" => &mut pack.chunk_table,
                "directories" => &mut pack.directories,
                "shared_files" => &mut pack.shared_files,
                "names" => &mut pack.names,
                "names_index" => &mut pack.names_index,
                "symlinks" => &mut pack.symlinks,
                "symlinks_index" => &mut pack.symlinks_index,
                "force" => &mut pack.force,
                "plain" => &mut pack.plain,
                "auto" | "none" => {
                    return Err(Error::invalid_input(format!("'{name}' must stand alone")));
                }
                _ => {
                    return Err(Error::invalid_input(format!(
                        "unknown metadata packing '{name}': auto, none, or a list of all, chunk_table, directories, \
                         shared_files, names, names_index, symlinks, symlinks_index, force, plain"
                    )));
                }
            };
            *switch = true;
        }
        Ok(pack)
    }
}

impl Default for PackOptions {
    fn default() -> Self {
        Self::AUTO
    }
}

impl BuildOptions {
    /// Packs `input` with everything else as the programs have it, except that nothing is compressed and nothing is
    /// recorded of who built the image when.
    #[must_use]
    pub fn new(input: Input) -> Self {
        Self {
            input,
            filter: Filter::default(),
            script: None,
            remove_empty_dirs: false,
            exclude_ids: Vec::new(),
            block_size_bits: 24,
            small_tree: None,
            mixed_block_size_bits: 24.into(),
            compression: Spec::NULL.into(),
            schema_compression: Spec::NULL,
            metadata_compression: Spec::NULL,
            history_compression: Spec::NULL,
            order: Order::Path.into(),
            max_similarity_size: None,
            window_size: 0.into(),
            window_step: 0.into(),
            max_lookback_blocks: u32::MAX.into(),
            bloom_filter_size: 4.into(),
            file_hash: Digest::parse("xxh3-128").ok(),
            with_devices: false,
            with_specials: false,
            sparse_files: true,
            hollow: false,
            set_owner: None,
            set_group: None,
            set_time: None,
            keep_all_times: false,
            time_resolution: TimeResolution::SECOND,
            chmod: Vec::new(),
            create_timestamp: None,
            history: None,
            section_index: true,
            pack: PackOptions::AUTO,
            hardlink_table: true,
            categorize: CategorizeOptions::default(),
            category_names: true,
            category_metadata: true,
            header: Vec::new(),
            workers: 1,
            scanner_workers: 1,
            compress_niceness: 0,
            memory_limit: None,
        }
    }

    /// Checks what single fields cannot say of themselves.
    pub(crate) fn validate(&self) -> Result<()> {
        if self.hollow && !self.sparse_files {
            return Err(Error::invalid_input(
                "a hollow image consists of holes, which were ruled out",
            ));
        }
        let of_small_tree = self.small_tree.map(|small| small.block_size_bits);
        let mixed = &self.mixed_block_size_bits;
        let of_mixed = mixed.names().map(|category| mixed.of(category));
        for bits in [self.block_size_bits, *mixed.default_value()]
            .into_iter()
            .chain(of_mixed.copied())
            .chain(of_small_tree)
        {
            if !(BLOCK_SIZE_BITS_MIN..=BLOCK_SIZE_BITS_MAX).contains(&bits) {
                return Err(Error::invalid_input(format!(
                    "block size 2^{bits}: it must lie between 2^{BLOCK_SIZE_BITS_MIN} and 2^{BLOCK_SIZE_BITS_MAX}",
                )));
            }
        }
        self.validate_categories()?;
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

    /// The script, if it has the hook that `has` picks.
    pub(crate) fn script_with(&self, has: impl Fn(Hooks) -> bool) -> Option<&dyn Script> {
        self.script.as_deref().filter(|script| has(script.hooks()))
    }

    /// All options that are numbers of categories.
    fn numbers(&self) -> [&PerCategory<u32>; 5] {
        [
            &self.mixed_block_size_bits,
            &self.window_size,
            &self.window_step,
            &self.max_lookback_blocks,
            &self.bloom_filter_size,
        ]
    }

    /// Whether the user has said how this category is stored.
    pub(crate) fn is_configured(&self, category: &str) -> bool {
        category == "hotness"
            || self.compression.is_chosen(category)
            || self.order.is_chosen(category)
            || (self.numbers().iter()).any(|number| number.is_chosen(category))
    }

    /// Checks that all categories named by options exist, and have what their compression needs.
    fn validate_categories(&self) -> Result<()> {
        let named = (self.compression.names())
            .chain(self.order.names())
            .chain(self.numbers().into_iter().flat_map(PerCategory::names));
        for name in named {
            if !CATEGORY_NAMES.contains(&name) {
                return Err(Error::invalid_input(format!(
                    "unknown category '{name}' (known: {})",
                    CATEGORY_NAMES.join(", ")
                )));
            }
        }
        for name in self.compression.names() {
            let spec = self.compression.of(name);
            if spec.requires_metadata() && !matches!(name, "pcmaudio/waveform" | "fits/image") {
                return Err(Error::invalid_input(format!(
                    "{spec} cannot compress category '{name}': it needs data of a category that describes its samples"
                )));
            }
        }
        Ok(())
    }

    /// The size of the blocks of a tree with so many bytes of data, as a power of two.
    pub(crate) fn block_size_bits_of(&self, data_len: u64) -> u32 {
        match self.small_tree {
            Some(small) if data_len <= small.data_len_max => small.block_size_bits,
            _ => self.block_size_bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_resolutions() {
        let unit = |ns| TimeResolution::from_ns(ns).map(|u| (u.seconds(), u.subsec_multiplier()));
        assert_eq!(unit(1).ok(), Some((1, Some(1))));
        assert_eq!(unit(100_000_000).ok(), Some((1, Some(100_000_000))));
        assert_eq!(unit(SECOND_NS).ok(), Some((1, None)));
        assert_eq!(unit(300 * SECOND_NS).ok(), Some((300, None)));
        assert_eq!(unit(4_294_967_295 * SECOND_NS).ok(), Some((u32::MAX, None)));
        for bad in [0, 3, 300_000_000, SECOND_NS + 1, 4_294_967_296 * SECOND_NS] {
            assert!(unit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn packing_lists() {
        let parse = |list| PackOptions::parse(list).ok();
        assert_eq!(parse("auto"), Some(PackOptions::AUTO));
        assert_eq!(parse("none"), Some(PackOptions::NONE));
        assert_eq!(parse("all"), Some(PackOptions::ALL));
        let force = PackOptions {
            force: true,
            ..PackOptions::ALL
        };
        assert_eq!(parse("force,all"), Some(force));
        let named = PackOptions {
            names_index: true,
            shared_files: true,
            ..PackOptions::NONE
        };
        assert_eq!(parse("shared_files,names_index"), Some(named));
        for bad in ["", "none,plain", "names,auto", "nmes"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
