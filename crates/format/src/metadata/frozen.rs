//! From the owned metadata to the two sections that hold it, and back.

use super::model::Metadata;
use crate::error::Result;
use crate::frozen::schema::{Schema, Style};
use crate::frozen::{Alignment, Widths, solve, thaw, write};

/// The metadata as it stands in an image, before compression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// The payload of the section `METADATA_V2_SCHEMA`.
    pub schema: Vec<u8>,
    /// The payload of the section `METADATA_V2`.
    pub data: Vec<u8>,
}

/// Which layout to choose; each style means the same to readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreezeStyle {
    /// How arrays are aligned.
    pub alignment: Alignment,
    /// How wide fields are.
    pub widths: Widths,
    /// How the schema is written.
    pub schema: Style,
}

impl FreezeStyle {
    /// The style that makes a new image smaller: narrow if the metadata is stored as it is, else easy to compress.
    #[must_use]
    pub fn for_image(is_compressed: bool) -> Self {
        Self {
            widths: if is_compressed {
                Widths::Bytes
            } else {
                Widths::Bits
            },
            ..Self::default()
        }
    }
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
        let root = solve::solve(self, style.alignment, style.widths);
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::{
        Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, StringTable,
    };
    use super::*;

    /// The worked example of docs/format.md: a directory with one file.
    fn example() -> Metadata {
        let directory = |first_entry| Directory {
            first_entry,
            ..Directory::default()
        };
        let inode = |mode_index| InodeData {
            mode_index,
            ..InodeData::default()
        };
        let entry = |inode_num| DirEntry {
            name_index: 0,
            inode_num,
        };
        let strings = |buffer: &[u8], index: &[u32]| StringTable {
            buffer: buffer.to_vec(),
            index: index.to_vec(),
            ..StringTable::default()
        };
        Metadata {
            chunks: vec![Chunk {
                block: 0,
                offset: 0,
                size: 4778,
            }],
            directories: vec![directory(1), directory(2)],
            inodes: [inode(0), inode(1)].into_iter().collect(),
            chunk_table: vec![0, 1],
            uids: vec![1000],
            gids: vec![100],
            modes: vec![0o040_755, 0o100_644],
            timestamp_base: 1_761_073_255,
            block_size: 1 << 20,
            total_fs_size: 4778,
            devices: Some(Vec::new()),
            options: Some(FsOptions {
                mtime_only: true,
                ..FsOptions::default()
            }),
            dir_entries: Some(vec![entry(0), entry(1)]),
            shared_files_table: Some(Vec::new()),
            total_hardlink_size: Some(0),
            dwarfs_version: Some(b"libdwarfs v0.13.0".to_vec()),
            create_timestamp: Some(1_761_073_290),
            compact_names: Some(strings(b"data.dwarfs", &[0, 11])),
            compact_symlinks: Some(strings(b"", &[0])),
            preferred_path_separator: Some(47),
            features: Some(BTreeSet::new()),
            reg_file_size_cache: Some(InodeSizeCache {
                min_chunk_count: 128,
                ..InodeSizeCache::default()
            }),
            ..Metadata::default()
        }
    }

    #[test]
    fn whole_bytes_say_the_same() {
        let style = FreezeStyle::for_image(true);
        let mut metadata = example();
        metadata.chunks = (0..100)
            .map(|n| Chunk {
                block: n % 3,
                offset: n << 9,
                size: 70_000 + n,
            })
            .collect();
        let wide = metadata.freeze_as(style).unwrap();
        let narrow = metadata.freeze_as(FreezeStyle::for_image(false)).unwrap();
        assert_eq!(narrow, metadata.freeze().unwrap());
        // 2 bits, 16 and 17 become 8, 16 and 24.
        assert!(wide.data.len() >= narrow.data.len() + 100 * (48 - 35) / 8);
        let thawed = Metadata::thaw(&wide.schema, &wide.data).unwrap();
        assert_eq!(thawed, metadata);
    }

    #[test]
    fn the_worked_example_freezes_to_its_bytes() {
        let expect = b"\
            \xb7\x5d\xef\x0f\x16\x1d\xcf\xb0\xef\xd1\x00\x00\x50\x55\xbe\xe7\
            \xd1\x58\x11\xfb\x1e\x3d\x5f\x89\x7f\x07\x04\xaa\x12\x09\x02\x02\
            \xe8\x03\x64\xed\x41\xa4\x81\x02libdwarfs v0.13.0data.dwarfs\xb0\
            \x00\x00\x00\x00\x00\x00\x00\x00";
        let frozen = example().freeze().unwrap();
        assert_eq!(frozen.data, expect);
        let schema = Schema::parse(&frozen.schema).unwrap();
        let root = schema.layout(schema.root).unwrap();
        assert_eq!((schema.layouts.len(), root.size, root.bits), (39, 27, 211));
        assert_eq!(root.field(30).unwrap().offset, -202);
        assert_eq!(root.field(5), None);
        assert_eq!(
            Metadata::thaw(&frozen.schema, &frozen.data).unwrap(),
            example()
        );
    }

    #[test]
    fn nothing_freezes_to_nothing() {
        let frozen = Metadata::default().freeze().unwrap();
        assert_eq!(frozen.data, [0; 8]);
        let thawed = Metadata::thaw(&frozen.schema, &[]).unwrap();
        assert_eq!(thawed, Metadata::default());
    }

    #[test]
    fn maps_are_aligned_for_their_type() {
        let metadata = Metadata {
            dwarfs_version: Some(b"v".to_vec()),
            reg_file_size_cache: Some(InodeSizeCache {
                size_lookup: BTreeMap::from([(0x41, 0x42)]),
                ..InodeSizeCache::default()
            }),
            block_category_metadata: Some(BTreeMap::from([(0x43, 0x44)])),
            ..Metadata::default()
        };
        let data = metadata.freeze().unwrap().data;
        // 7 bits a key and value: 0x42 << 7 | 0x41 and 0x44 << 7 | 0x43.
        let place = |pair: [u8; 2]| data.windows(2).position(|bytes| bytes == pair).unwrap();
        assert_eq!(place([0x41, 0x21]) % 8, 0);
        assert_eq!(place([0x43, 0x22]) % 4, 0);
        assert_eq!(place([0x43, 0x22]) - place([0x41, 0x21]), 4);
    }

    #[test]
    fn a_thawed_image_cut_short_is_corrupt() {
        let frozen = example().freeze().unwrap();
        // The last 8 bytes are padding.
        let used_len = frozen.data.len() - 8;
        for len in 0..used_len {
            assert!(Metadata::thaw(&frozen.schema, &frozen.data[..len]).is_err());
        }
        assert!(Metadata::thaw(&frozen.schema, &frozen.data[..used_len]).is_ok());
    }
}
