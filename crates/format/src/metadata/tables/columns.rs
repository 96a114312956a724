//! The tables whose items are structs: a column for each field.
//!
//! All columns of one table have the same length. A field that the schema does not have is a column of zeros.

use crate::Result;
use crate::frozen::view::{Column, List, Object};

/// The columns of a struct whose fields are all integers.
macro_rules! columns {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $id:literal $field:ident: $type:ident;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Column,)*
            len: u64,
        }

        impl $name {
            /// Returns the number of items.
            #[must_use]
            pub fn len(&self) -> u64 {
                self.len
            }

            /// Returns whether there are none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            pub(super) fn resolve(object: Object<'_>) -> Result<Self> {
                let list = object.list()?;
                Ok(Self {
                    $($field: field(&list, $id, stringify!($field), $type::BITS)?,)*
                    len: list.len(),
                })
            }
        }
    };
}

columns! {
    /// `chunks`: ranges of blocks, and holes.
    ChunkColumns {
        /// The number of the block, or `hole_block_index`.
        1 block: u32;
        /// Bytes from the start of the uncompressed block.
        2 offset: u32;
        /// The length in bytes.
        3 size: u32;
    }
}

columns! {
    /// `directories`: where their entries are.
    DirectoryColumns {
        /// The entry that names the parent directory; up to 2.2 the parent's inode number.
        1 parent_entry: u32;
        /// The first entry of the directory.
        2 first_entry: u32;
        /// The entry that names the directory.
        3 self_entry: u32;
    }
}

columns! {
    /// `inodes`: attributes of inodes, and up to 2.2 of directory entries.
    InodeColumns {
        /// The index in `modes`.
        2 mode_index: u32;
        /// The index in `uids`.
        4 owner_index: u32;
        /// The index in `gids`.
        5 group_index: u32;
        /// Access time: units of the time resolution from `timestamp_base`.
        6 atime_offset: u64;
        /// Modification time: units of the time resolution from `timestamp_base`.
        7 mtime_offset: u64;
        /// Change time: units of the time resolution from `timestamp_base`.
        8 ctime_offset: u64;
        /// Birth time: reserved, never written so far.
        9 btime_offset: u64;
        /// The part of the access time below a second, in units of the sub-second resolution.
        10 atime_subsec: u64;
        /// The part of the modification time below a second, in units of the sub-second resolution.
        11 mtime_subsec: u64;
        /// The part of the change time below a second, in units of the sub-second resolution.
        12 ctime_subsec: u64;
        /// The part of the birth time below a second: reserved, never written so far.
        13 btime_subsec: u64;
        /// How many more names than one a regular file has, if the options say that it is stored.
        14 nlink_minus_one: u32;
        /// Up to 2.2: the index of the entry's name.
        1 name_index_v2_2: u32;
        /// Up to 2.2: the inode that the entry names.
        3 inode_v2_2: u32;
    }
}

columns! {
    /// `dir_entries`: names in directories.
    DirEntryColumns {
        /// The index of the name; the root's own entry has none.
        1 name_index: u32;
        /// The inode it names.
        2 inode_num: u32;
    }
}

fn field(list: &List<'_>, id: i16, name: &str, bits_max: u32) -> Result<Column> {
    list.field_column(id, bits_max)
        .map_err(|error| error.context(name))
}
