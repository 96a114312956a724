//! `good/datadata.dwarfs`, taken apart by hand in docs/format.md, "Worked example".

use durin_format::frozen::schema::{Field, Layout, Schema};
use durin_format::history::History;
use durin_format::metadata::tables::Tables;
use durin_format::section::{CompressionType, SectionType};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::image::Image;

const DATA: [u8; 77] = [
    0xb7, 0x5d, 0xef, 0x0f, 0x16, 0x1d, 0xcf, 0xb0, 0xef, 0xd1, 0x00, 0x00, 0x50, 0x55, 0xbe, 0xe7,
    0xd1, 0x58, 0x11, 0xfb, 0x1e, 0x3d, 0x5f, 0x89, 0x7f, 0x07, 0x04, 0xaa, 0x12, 0x09, 0x02, 0x02,
    0xe8, 0x03, 0x64, 0xed, 0x41, 0xa4, 0x81, 0x02, 0x6c, 0x69, 0x62, 0x64, 0x77, 0x61, 0x72, 0x66,
    0x73, 0x20, 0x76, 0x30, 0x2e, 0x31, 0x33, 0x2e, 0x30, 0x64, 0x61, 0x74, 0x61, 0x2e, 0x64, 0x77,
    0x61, 0x72, 0x66, 0x73, 0xb0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
];

fn open(vectors: &Vectors) -> Image {
    Image::open(&vectors.image("good", "datadata")).unwrap()
}

fn field(id: i16, layout: u16, offset: i16) -> Field {
    Field { id, layout, offset }
}

#[test]
fn container() {
    let image = open(&require!(Vectors::find()));
    assert_eq!(image.version.to_string(), "2.5");
    let sections: Vec<_> = image
        .sections
        .iter()
        .map(|section| {
            (
                section.header.section_type,
                section.offset,
                section.header.payload_len,
            )
        })
        .collect();
    assert_eq!(
        sections,
        [
            (SectionType::Block, 0, 4778),
            (SectionType::MetadataV2Schema, 4842, 904),
            (SectionType::MetadataV2, 5810, 77),
            (SectionType::History, 5951, 280),
            (SectionType::SectionIndex, 6295, 40),
        ]
    );
    let first = &image.sections[0].header;
    assert_eq!(first.number, Some(0));
    assert_eq!(first.compression, CompressionType::None);
    let checksums = first.checksums.unwrap();
    assert_eq!(checksums.xxh3_64, 0xbeb8_0b2f_a2ab_b06a);
    assert_eq!(checksums.sha2_512_256[..4], [0xb8, 0x36, 0x7c, 0x27]);
}

#[test]
fn schema() {
    let image = open(&require!(Vectors::find()));
    let schema = Schema::parse(&image.payload(SectionType::MetadataV2Schema)).unwrap();
    assert_eq!((schema.layouts.len(), schema.root), (39, 38));
    let layout = |bits, fields: &[Field]| Layout {
        size: 0,
        bits,
        fields: fields.to_vec(),
    };
    assert_eq!(schema.layouts[0], layout(5, &[]));
    assert_eq!(schema.layouts[3], layout(13, &[field(3, 2, 0)]));
    assert_eq!(
        schema.layouts[4],
        layout(6, &[field(1, 0, -1), field(2, 1, 0), field(3, 3, 0)])
    );
    assert_eq!(
        schema.layouts[7],
        layout(7, &[field(1, 0, -2), field(2, 5, 0), field(3, 6, 0)])
    );
    assert_eq!(
        schema.layouts[30],
        layout(19, &[field(1, 28, 0), field(3, 29, -10)])
    );
    let root = &schema.layouts[38];
    assert_eq!((root.size, root.bits, root.fields.len()), (27, 211, 22));
    assert_eq!(root.field(15), Some(&field(15, 19, -80)));
    assert_eq!(root.field(30), Some(&field(30, 37, -202)));
    assert_eq!(root.field(28), None);
}

#[test]
fn tables() {
    let image = open(&require!(Vectors::find()));
    let data = image.payload(SectionType::MetadataV2);
    assert_eq!(data, DATA);
    let schema = Schema::parse(&image.payload(SectionType::MetadataV2Schema)).unwrap();
    let tables = Tables::resolve(&schema, &data).unwrap();

    let all = |column: &durin_format::frozen::view::Column| column.iter(&data).collect::<Vec<_>>();
    assert_eq!(all(&tables.chunks.block), [0]);
    assert_eq!(all(&tables.chunks.offset), [0]);
    assert_eq!(all(&tables.chunks.size), [4778]);
    assert_eq!(all(&tables.directories.parent_entry), [0, 0]);
    assert_eq!(all(&tables.directories.first_entry), [1, 2]);
    assert_eq!(tables.directories.self_entry.bits(), 0);
    assert_eq!(all(&tables.inodes.mode_index), [0, 1]);
    assert_eq!(all(&tables.inodes.mtime_offset), [0, 0]);
    assert_eq!(all(&tables.chunk_table), [0, 1]);
    assert_eq!(all(&tables.uids), [1000]);
    assert_eq!(all(&tables.gids), [100]);
    assert_eq!(all(&tables.modes), [0o040_755, 0o100_644]);
    assert!(tables.entry_table_v2_2.is_empty() && tables.symlink_table.is_empty());
    assert_eq!(tables.timestamp_base, 1_761_073_255);
    assert_eq!(tables.block_size, 1 << 20);
    assert_eq!(tables.total_fs_size, 4778);
    assert_eq!(tables.devices.unwrap().len(), 0);
    let options = tables.options.unwrap();
    assert!(options.mtime_only && !options.packed_chunk_table && !options.inodes_have_nlink);
    assert_eq!(options.time_resolution_sec, None);
    let dir_entries = tables.dir_entries.unwrap();
    assert_eq!(all(&dir_entries.inode_num), [0, 1]);
    assert_eq!(all(&dir_entries.name_index), [0, 0]);
    assert_eq!(tables.shared_files_table.unwrap().len(), 0);
    assert_eq!(tables.total_hardlink_size, Some(0));
    assert_eq!(tables.dwarfs_version.as_deref(), Some("libdwarfs v0.13.0"));
    assert_eq!(tables.create_timestamp, Some(1_761_073_290));
    let mut buf = Vec::new();
    assert_eq!((tables.names.len(), tables.symlinks.len()), (1, 0));
    assert_eq!(
        tables.names.get(&data, 0, &mut buf).unwrap(),
        b"data.dwarfs"
    );
    assert!(tables.names.is_compact() && !tables.names.is_packed_index());
    assert_eq!(tables.preferred_path_separator, Some(47));
    assert!(tables.features.unwrap().is_empty());
    assert!(tables.category_names.is_none() && tables.block_categories.is_none());
    let cache = tables.size_cache.unwrap();
    assert_eq!((cache.min_chunk_count, cache.size.len()), (128, 0));
    assert!(tables.hole_block_index.is_none() && tables.total_allocated_fs_size.is_none());
}

#[test]
fn history() {
    let image = open(&require!(Vectors::find()));
    let history = History::parse(&image.payload(SectionType::History)).unwrap();
    let [entry] = history.entries.as_slice() else {
        panic!("one entry");
    };
    let version = &entry.version;
    assert_eq!((version.major, version.minor, version.patch), (0, 13, 0));
    assert!(version.is_release);
    assert_eq!(entry.timestamp, Some(1_761_073_290));
    assert_eq!(entry.library_versions.as_ref().unwrap().len(), 12);
}
