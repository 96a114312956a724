//! The metadata as a tree of names and values, for those who print it.
//!
//! Lists and maps are walked lazily, so that a printer decides how much of the tree exists at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::inodes::Inodes;
use super::model::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
    MetadataHistoryEntry, StringTable,
};

/// One value of the tree.
pub(crate) enum Shape<'a> {
    /// An optional without a value: printers leave it out.
    Unset,
    Flag(bool),
    Number(u64),
    Bytes(&'a [u8]),
    List(Box<dyn Iterator<Item = Self> + 'a>),
    Pairs(Box<dyn Iterator<Item = (u64, u64)> + 'a>),
    /// In the order in which the format lays them out.
    Fields(Vec<(&'static str, Self)>),
}

/// Something that has a place in the tree.
pub(crate) trait Describe {
    fn describe(&self) -> Shape<'_>;
}

impl Describe for bool {
    fn describe(&self) -> Shape<'_> {
        Shape::Flag(*self)
    }
}

impl Describe for u8 {
    fn describe(&self) -> Shape<'_> {
        Shape::Number(u64::from(*self))
    }
}

impl Describe for u32 {
    fn describe(&self) -> Shape<'_> {
        Shape::Number(u64::from(*self))
    }
}

impl Describe for u64 {
    fn describe(&self) -> Shape<'_> {
        Shape::Number(*self)
    }
}

/// A string; lists of small numbers do not occur.
impl Describe for Vec<u8> {
    fn describe(&self) -> Shape<'_> {
        Shape::Bytes(self)
    }
}

impl<T: Describe> Describe for Option<T> {
    fn describe(&self) -> Shape<'_> {
        self.as_ref().map_or(Shape::Unset, Describe::describe)
    }
}

impl Describe for BTreeSet<Vec<u8>> {
    fn describe(&self) -> Shape<'_> {
        Shape::List(Box::new(self.iter().map(Describe::describe)))
    }
}

impl<V: Copy + Into<u64>> Describe for BTreeMap<u32, V> {
    fn describe(&self) -> Shape<'_> {
        let pairs = self
            .iter()
            .map(|(key, value)| (u64::from(*key), (*value).into()));
        Shape::Pairs(Box::new(pairs))
    }
}

/// Lists, of all but `u8`.
macro_rules! describe_list {
    ($($item:ty),*) => {
        $(impl Describe for Vec<$item> {
            fn describe(&self) -> Shape<'_> {
                Shape::List(Box::new(self.iter().map(Describe::describe)))
            }
        })*
    };
}

describe_list!(
    u32,
    u64,
    Vec<u8>,
    Chunk,
    Directory,
    DirEntry,
    MetadataHistoryEntry
);

impl Describe for Inodes {
    fn describe(&self) -> Shape<'_> {
        Shape::List(Box::new(self.iter().map(describe_inode)))
    }
}

/// What [`describe_struct`] would make, of a value that is not kept.
fn describe_inode<'a>(inode: InodeData) -> Shape<'a> {
    macro_rules! numbers {
        ($($field:ident),* $(,)?) => {{
            let InodeData { $($field),* } = inode;
            Shape::Fields(vec![$((stringify!($field), Shape::Number($field.into()))),*])
        }};
    }
    numbers!(
        mode_index,
        owner_index,
        group_index,
        atime_offset,
        mtime_offset,
        ctime_offset,
        btime_offset,
        atime_subsec,
        mtime_subsec,
        ctime_subsec,
        btime_subsec,
        nlink_minus_one,
        name_index_v2_2,
        inode_v2_2,
    )
}

macro_rules! describe_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Describe for $type {
            fn describe(&self) -> Shape<'_> {
                // Names all fields, so that a new one cannot be forgotten.
                let Self { $($field),* } = self;
                Shape::Fields(vec![$((stringify!($field), $field.describe())),*])
            }
        }
    };
}

describe_struct!(Metadata {
    chunks,
    directories,
    inodes,
    chunk_table,
    entry_table_v2_2,
    symlink_table,
    uids,
    gids,
    modes,
    names,
    symlinks,
    timestamp_base,
    chunk_inode_offset,
    link_inode_offset,
    block_size,
    total_fs_size,
    devices,
    options,
    dir_entries,
    shared_files_table,
    total_hardlink_size,
    dwarfs_version,
    create_timestamp,
    compact_names,
    compact_symlinks,
    preferred_path_separator,
    features,
    category_names,
    block_categories,
    reg_file_size_cache,
    category_metadata_json,
    block_category_metadata,
    metadata_version_history,
    hole_block_index,
    large_hole_size,
    total_allocated_fs_size,
});

describe_struct!(Chunk {
    block,
    offset,
    size
});

describe_struct!(Directory {
    parent_entry,
    first_entry,
    self_entry
});

describe_struct!(DirEntry {
    name_index,
    inode_num
});

describe_struct!(FsOptions {
    mtime_only,
    time_resolution_sec,
    packed_chunk_table,
    packed_directories,
    packed_shared_files_table,
    subsecond_resolution_nsec_multiplier,
    has_btime,
    inodes_have_nlink,
});

describe_struct!(StringTable {
    buffer,
    symtab,
    index,
    packed_index
});

describe_struct!(InodeSizeCache {
    size_lookup,
    min_chunk_count,
    allocated_size_lookup
});

describe_struct!(MetadataHistoryEntry {
    major,
    minor,
    dwarfs_version,
    block_size,
    options
});
