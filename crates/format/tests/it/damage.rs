//! Schema and data with every byte changed: whatever comes of it, nothing panics, hangs or reads outside.

use std::hint::black_box;

use durin_format::frozen::schema::Schema;
use durin_format::metadata::tables::{StringsView, Tables};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::image::{Stored, metadata_sections};

/// How many items of a table are looked at: a hostile table may have 2^32 that take no room.
const ITEM_COUNT_MAX: usize = 1000;

/// Reads from every view, at its start and behind its end.
pub(crate) fn touch_everything(mut tables: Tables, data: &[u8]) {
    drop(tables.names.unpack_index(data));
    drop(tables.symlinks.unpack_index(data));
    touch_strings(&tables.names, data);
    touch_strings(&tables.symlinks, data);
    let dir_entries = tables.dir_entries.unwrap_or_default();
    let inodes = &tables.inodes;
    let columns = [
        tables.chunks.block,
        tables.chunks.offset,
        tables.chunks.size,
        tables.directories.parent_entry,
        tables.directories.first_entry,
        tables.directories.self_entry,
        inodes.mode_index,
        inodes.owner_index,
        inodes.group_index,
        inodes.atime_offset,
        inodes.mtime_offset,
        inodes.ctime_offset,
        inodes.nlink_minus_one,
        inodes.name_index_v2_2,
        inodes.inode_v2_2,
        tables.chunk_table,
        tables.entry_table_v2_2,
        tables.symlink_table,
        tables.uids,
        tables.gids,
        tables.modes,
        tables.devices.unwrap_or_default(),
        dir_entries.name_index,
        dir_entries.inode_num,
        tables.shared_files_table.unwrap_or_default(),
        tables.block_categories.unwrap_or_default(),
        tables.large_hole_size.unwrap_or_default(),
    ];
    for column in columns {
        let values = column.iter(data).take(ITEM_COUNT_MAX);
        let all_fit = values
            .into_iter()
            .all(|value| column.bits() == 64 || value >> column.bits() == 0);
        assert!(all_fit);
        assert_eq!(column.get(data, column.len()), None);
        assert_eq!(column.get(data, u64::MAX), None);
        if !column.is_empty() {
            assert!(column.get(data, column.len() - 1).is_some());
        }
    }
    let cache = tables.size_cache.unwrap_or_default();
    for map in [
        cache.size,
        cache.allocated,
        tables.block_category_metadata.unwrap_or_default(),
    ] {
        black_box(map.iter(data).take(ITEM_COUNT_MAX).count());
        black_box((map.get(data, 0), map.get(data, 77), map.get(data, u32::MAX)));
    }
}

fn touch_strings(view: &StringsView, data: &[u8]) {
    let mut buf = Vec::new();
    for index in (0..view.len()).take(ITEM_COUNT_MAX) {
        if let Ok(text) = view.get(data, index, &mut buf) {
            assert!(text.len() <= 8 * 4096);
            let len = text.len() as u64;
            assert_eq!(view.decoded_len(data, index).unwrap(), len);
        }
    }
    for index in [view.len(), u64::MAX] {
        assert!(view.get(data, index, &mut buf).is_err());
    }
}

fn try_all(schema: &[u8], data: &[u8]) -> bool {
    let tables = Schema::parse(schema).and_then(|schema| Tables::resolve(&schema, data));
    tables.map(|tables| touch_everything(tables, data)).is_ok()
}

/// Every byte set to others, and every cut; returns how many of how many were not refused.
fn damage(bytes: &[u8], try_one: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let mut accepted = 0;
    let mut tried = 0;
    let mut count = |ok: bool| {
        accepted += usize::from(ok);
        tried += 1;
    };
    for at in 0..bytes.len() {
        count(try_one(&bytes[..at]));
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255, bytes[at], !bytes[at]] {
            let mut changed = bytes.to_vec();
            changed[at] ^= change;
            count(try_one(&changed));
        }
    }
    (accepted, tried)
}

/// Images that between them have every kind of table.
const IMAGES: [(&str, &str); 7] = [
    ("good", "datadata"),
    ("good", "compat-v0.2.3"),
    ("handmade", "names-fsst"),
    ("handmade", "names-packed"),
    ("handmade", "simple-bytesized"),
    ("handmade", "cache"),
    ("handmade", "holes"),
];

fn stored(vectors: &Vectors, (folder, name): (&str, &str)) -> Stored {
    metadata_sections(&vectors.image(folder, name)).unwrap()
}

#[test]
fn damaged_schemas() {
    let vectors = require!(Vectors::find());
    for name in IMAGES {
        let Stored { schema, data } = stored(&vectors, name);
        assert!(try_all(&schema, &data), "{name:?}");
        let (accepted, tried) = damage(&schema, |schema| try_all(schema, &data));
        assert!(
            accepted < tried / 2,
            "{name:?}: {accepted} of {tried} accepted"
        );
    }
}

#[test]
fn damaged_data() {
    let vectors = require!(Vectors::find());
    for name in IMAGES {
        let Stored { schema, mut data } = stored(&vectors, name);
        // The root and the first tables: where lengths and distances are.
        data.truncate(4096);
        damage(&data, |data| try_all(&schema, data));
    }
}
