//! Images of trees that no vector has: made from plain lists, stored uncompressed.

use std::sync::Arc;

use durin_format::metadata::{Chunk, DirEntry, Directory, FsOptions, InodeData, Metadata};
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::{Image, ImageOptions};
use durin_source::MemorySource;

/// What a name stands for.
pub(crate) enum Child {
    /// A directory, by its place in the list of directories.
    Dir(usize),
    /// A symlink with its target.
    Link(&'static str),
    /// A regular file, by its place in the list of files.
    File(usize),
}

/// A tree: for each directory its entries, the root first, and the contents of the files.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) dirs: Vec<Vec<(String, Child)>>,
    pub(crate) files: Vec<Vec<u8>>,
}

const DIR: u32 = 0;
const LINK: u32 = 1;
const FILE: u32 = 2;

impl Tree {
    /// Builds the image and opens it.
    pub(crate) fn open(self) -> durin_format::Result<Image> {
        let source = Arc::new(MemorySource::new(self.build()));
        Image::open(source, &ImageOptions::default())
    }

    /// Builds the image, whose only block comes first.
    pub(crate) fn build(self) -> Vec<u8> {
        let block = self.files.concat();
        let frozen = self.metadata().freeze().unwrap();
        let sections = [
            (SectionType::Block, block),
            (SectionType::MetadataV2Schema, frozen.schema),
            (SectionType::MetadataV2, frozen.data),
        ];
        let mut image = Vec::new();
        for (number, (kind, payload)) in (0..).zip(sections) {
            image.extend_from_slice(&encode_header(
                number,
                kind,
                CompressionType::None,
                &payload,
            ));
            image.extend_from_slice(&payload);
        }
        image
    }

    /// Describes it.
    pub(crate) fn metadata(&self) -> Metadata {
        let number = |place: usize| u32::try_from(place).unwrap();
        let targets: Vec<_> = self
            .dirs
            .iter()
            .flatten()
            .filter_map(|(_, child)| match child {
                Child::Link(target) => Some(target.as_bytes().to_vec()),
                _ => None,
            })
            .collect();
        let (first_link, first_file) = (
            number(self.dirs.len()),
            number(self.dirs.len() + targets.len()),
        );
        let mut metadata = Metadata {
            modes: vec![0o040_755, 0o120_777, 0o100_644],
            uids: vec![0],
            gids: vec![0],
            block_size: 1 << 24,
            symlink_table: (0..number(targets.len())).collect(),
            options: Some(FsOptions {
                mtime_only: true,
                ..FsOptions::default()
            }),
            ..Metadata::default()
        };
        for (kind, count) in [
            (DIR, self.dirs.len()),
            (LINK, targets.len()),
            (FILE, self.files.len()),
        ] {
            let inode = InodeData {
                mode_index: kind,
                mtime_offset: 1_000_000_000,
                ..InodeData::default()
            };
            metadata.inodes.extend(std::iter::repeat_n(inode, count));
        }
        metadata.symlinks = targets;
        let mut offset = 0;
        for (place, file) in self.files.iter().enumerate() {
            metadata.chunk_table.push(number(place));
            metadata.chunks.push(Chunk {
                block: 0,
                offset,
                size: number(file.len()),
            });
            offset += number(file.len());
        }
        metadata.chunk_table.push(number(self.files.len()));

        let mut entries = vec![DirEntry::default()];
        let mut own_entry = vec![0; self.dirs.len()];
        let mut parent = vec![0; self.dirs.len()];
        let mut link = first_link;
        for (dir, children) in self.dirs.iter().enumerate() {
            metadata.directories.push(Directory {
                first_entry: number(entries.len()),
                ..Directory::default()
            });
            for (name, child) in children {
                let inode_num = match child {
                    Child::Dir(place) => {
                        own_entry[*place] = number(entries.len());
                        parent[*place] = dir;
                        number(*place)
                    }
                    Child::Link(_) => {
                        link += 1;
                        link - 1
                    }
                    Child::File(place) => first_file + number(*place),
                };
                entries.push(DirEntry {
                    name_index: number(metadata.names.len()),
                    inode_num,
                });
                metadata.names.push(name.clone().into_bytes());
            }
        }
        for (dir, directory) in metadata.directories.iter_mut().enumerate() {
            directory.self_entry = own_entry[dir];
            directory.parent_entry = own_entry[parent[dir]];
        }
        metadata.directories.push(Directory {
            first_entry: number(entries.len()),
            ..Directory::default()
        });
        metadata.dir_entries = Some(entries);
        metadata
    }
}
