//! Every good image: what is parsed is right, and what is encoded again has the same bytes.

use std::collections::BTreeMap;

use durin_format::frozen::schema::{Schema, Style};
use durin_format::frozen::view::Column;
use durin_format::fsst::SymbolTable;
use durin_format::history::History;
use durin_format::index::{self, IndexEntry};
use durin_format::metadata::tables::{MapView, StringsView, Tables};
use durin_format::metadata::{Metadata, StringTable};
use durin_format::section::SectionType;
use durin_format::{Result, dump, json};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::image::Image;

/// Calls `check` with each good image, its schema and its metadata.
fn for_each_image(check: impl Fn(&Image, &[u8], &[u8])) {
    let vectors = require!(Vectors::find());
    let paths = vectors.with_manifest();
    for path in &paths {
        let image = Image::open(path).unwrap();
        let schema = image.payload(SectionType::MetadataV2Schema);
        let data = image.payload(SectionType::MetadataV2);
        check(&image, &schema, &data);
    }
    assert!(paths.len() > 100, "{} images", paths.len());
}

#[test]
fn schemas_come_back_in_one_of_both_orders() {
    for_each_image(|image, bytes, _| {
        let schema = Schema::parse(bytes).unwrap();
        let styles = [Style::Ascending, Style::VersionFirst];
        let found = styles
            .iter()
            .filter(|style| schema.encode(**style) == bytes);
        assert_eq!(
            found.count(),
            1,
            "{}\n{}",
            image.name,
            dump::schema(&schema)
        );
    });
}

#[test]
fn tables_in_place_are_what_thawing_gives() {
    for_each_image(|image, schema, data| {
        let metadata = Metadata::thaw(schema, data).unwrap();
        let mut tables = Tables::resolve(&Schema::parse(schema).unwrap(), data).unwrap();
        same_tables(&image.name, &tables, data, &metadata);
        same_strings(&image.name, &tables, data, &metadata);
        tables.names.unpack_index(data).unwrap();
        tables.symlinks.unpack_index(data).unwrap();
        same_strings(&image.name, &tables, data, &metadata);
    });
}

#[test]
fn every_metadata_can_be_printed() {
    for_each_image(|image, schema, data| {
        let metadata = Metadata::thaw(schema, data).unwrap();
        let text = dump::metadata(&metadata);
        assert!(text.contains(&format!("\nblock_size: {}\n", metadata.block_size)));
        let value = json::metadata_json(&metadata);
        let inodes = value.get("inodes").and_then(|inodes| inodes.as_array());
        assert_eq!(
            inodes.unwrap().len(),
            metadata.inodes.len(),
            "{}",
            image.name
        );
    });
}

#[test]
fn indices_say_what_walking_finds() {
    for_each_image(|image, _, _| {
        let walked: Vec<IndexEntry> = image
            .sections
            .iter()
            .map(|section| IndexEntry {
                section_type: section.header.section_type,
                offset: section.offset,
            })
            .collect();
        for payload in image.payloads(SectionType::SectionIndex) {
            assert_eq!(index::parse(&payload).unwrap(), walked, "{}", image.name);
            assert_eq!(index::encode(&walked), payload, "{}", image.name);
        }
        assert_eq!(
            image.offset > 0,
            image.name.contains("prefix"),
            "{}",
            image.name
        );
    });
}

#[test]
fn histories_come_back() {
    let mut entry_counts = BTreeMap::new();
    let vectors = require!(Vectors::find());
    for path in vectors.with_manifest() {
        let image = Image::open(&path).unwrap();
        for payload in image.payloads(SectionType::History) {
            let history = History::parse(&payload).unwrap();
            // A history without entries may also be stored without the list.
            if !history.entries.is_empty() {
                assert_eq!(history.encode(), payload, "{}", image.name);
            }
            assert_eq!(History::parse(&history.encode()).unwrap(), history);
            let text = dump::history(&history);
            assert_eq!(text.is_empty(), history.entries.is_empty());
            *entry_counts.entry(image.name.clone()).or_insert(0) += history.entries.len();
        }
    }
    assert!(entry_counts.len() > 20, "{entry_counts:?}");
    assert_eq!(entry_counts.get("datadata"), Some(&1));
}

#[test]
fn hostile_schemas_are_refused_or_harmless() {
    let vectors = require!(Vectors::find());
    let mut refused = Vec::new();
    for path in vectors.images("evil") {
        let Ok(image) = Image::open(&path) else {
            continue;
        };
        let schemas = image.payloads(SectionType::MetadataV2Schema);
        let datas = image.payloads(SectionType::MetadataV2);
        for (schema, data) in schemas.iter().zip(&datas) {
            let resolved = Schema::parse(schema).and_then(|schema| Tables::resolve(&schema, data));
            match resolved {
                Ok(tables) => crate::damage::touch_everything(tables, data),
                Err(_) => refused.push(image.name.clone()),
            }
        }
    }
    refused.dedup();
    for name in [
        "data-half",
        "fsst-short",
        "schema-bad-ref",
        "schema-neg-bits",
        "schema-no-root",
        "schema-off-far",
        "schema-version-2",
    ] {
        assert!(
            refused.iter().any(|refused| refused == name),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn images_damaged_by_fuzzing_are_refused_or_harmless() {
    let vectors = require!(Vectors::find());
    let mut resolved = 0;
    for path in vectors.images("badfs") {
        let Ok(image) = Image::open(&path) else {
            continue;
        };
        let schemas = image.payloads(SectionType::MetadataV2Schema);
        let datas = image.payloads(SectionType::MetadataV2);
        for (schema, data) in schemas.iter().zip(&datas) {
            let tables = Schema::parse(schema).and_then(|schema| Tables::resolve(&schema, data));
            if let Ok(tables) = tables {
                crate::damage::touch_everything(tables, data);
                resolved += 1;
            }
        }
    }
    // These have damage that only a comparison of the tables with each other shows.
    assert!(resolved > 20, "{resolved}");
}

fn column(name: &str, column: Column, data: &[u8], expect: impl IntoIterator<Item = u64>) {
    let values: Vec<u64> = column.iter(data).collect();
    assert_eq!(values.len() as u64, column.len());
    assert_eq!(values, expect.into_iter().collect::<Vec<_>>(), "{name}");
}

fn map<V: Copy + Into<u64>>(name: &str, view: &MapView, data: &[u8], expect: &BTreeMap<u32, V>) {
    let pairs: Vec<(u32, u64)> = expect.iter().map(|(k, v)| (*k, (*v).into())).collect();
    assert_eq!(view.iter(data).collect::<Vec<_>>(), pairs, "{name}");
    for (key, value) in pairs {
        assert_eq!(view.get(data, key), Some(value), "{name}");
        if !expect.contains_key(&(key + 1)) {
            assert_eq!(view.get(data, key + 1), None, "{name}");
        }
    }
}

fn same_structs(name: &str, tables: &Tables, data: &[u8], metadata: &Metadata) {
    macro_rules! columns {
        ($columns:expr, $items:expr, [$($field:ident),*]) => {
            $(column(
                &format!("{name}: {}.{}", stringify!($items), stringify!($field)),
                $columns.$field,
                data,
                $items.iter().map(|item| u64::from(item.$field)),
            );)*
        };
    }
    columns!(tables.chunks, metadata.chunks, [block, offset, size]);
    columns!(
        tables.directories,
        metadata.directories,
        [parent_entry, first_entry, self_entry]
    );
    columns!(
        tables.inodes,
        metadata.inodes,
        [
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
            inode_v2_2
        ]
    );
    assert_eq!(tables.dir_entries.is_some(), metadata.dir_entries.is_some());
    if let (Some(columns), Some(items)) = (&tables.dir_entries, &metadata.dir_entries) {
        columns!(columns, items, [name_index, inode_num]);
    }
}

fn same_tables(name: &str, tables: &Tables, data: &[u8], metadata: &Metadata) {
    same_structs(name, tables, data, metadata);
    macro_rules! lists {
        ($($field:ident),*) => {
            $(column(
                &format!("{name}: {}", stringify!($field)),
                tables.$field,
                data,
                metadata.$field.iter().map(|item| u64::from(*item)),
            );)*
        };
    }
    macro_rules! optional_lists {
        ($($field:ident),*) => {
            $(assert_eq!(tables.$field.is_some(), metadata.$field.is_some());
            column(
                &format!("{name}: {}", stringify!($field)),
                tables.$field.unwrap_or_default(),
                data,
                metadata.$field.iter().flatten().map(|item| u64::from(*item)),
            );)*
        };
    }
    macro_rules! values {
        ($($field:ident),*) => { $(assert_eq!(tables.$field, metadata.$field, "{name}");)* };
    }
    lists!(
        chunk_table,
        entry_table_v2_2,
        symlink_table,
        uids,
        gids,
        modes
    );
    optional_lists!(
        devices,
        shared_files_table,
        block_categories,
        large_hole_size
    );
    values!(
        timestamp_base,
        block_size,
        total_fs_size,
        options,
        total_hardlink_size,
        create_timestamp,
        preferred_path_separator,
        metadata_version_history,
        hole_block_index,
        total_allocated_fs_size
    );
    same_texts(name, tables, metadata);
    let caches = (&tables.size_cache, &metadata.reg_file_size_cache);
    if let (Some(view), Some(cache)) = caches {
        assert_eq!(view.min_chunk_count, cache.min_chunk_count);
        map(name, &view.size, data, &cache.size_lookup);
        map(name, &view.allocated, data, &cache.allocated_size_lookup);
    }
    assert_eq!(caches.0.is_some(), caches.1.is_some());
    let maps = (
        &tables.block_category_metadata,
        &metadata.block_category_metadata,
    );
    if let (Some(view), Some(pairs)) = maps {
        map(name, view, data, pairs);
    }
    assert_eq!(maps.0.is_some(), maps.1.is_some());
}

fn same_texts(name: &str, tables: &Tables, metadata: &Metadata) {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    let texts = |list: &Option<Vec<Vec<u8>>>| -> Option<Vec<String>> {
        list.as_ref().map(|list| list.iter().map(text).collect())
    };
    assert_eq!(
        tables.dwarfs_version,
        metadata.dwarfs_version.as_ref().map(text),
        "{name}"
    );
    assert_eq!(
        tables.category_names,
        texts(&metadata.category_names),
        "{name}"
    );
    assert_eq!(
        tables.category_metadata_json,
        texts(&metadata.category_metadata_json),
        "{name}"
    );
    let features = metadata.features.as_ref();
    let features = features.map(|set| set.iter().map(text).collect());
    assert_eq!(tables.features, features, "{name}");
}

fn same_strings(name: &str, tables: &Tables, data: &[u8], metadata: &Metadata) {
    let cases = [
        (&tables.names, &metadata.names, &metadata.compact_names),
        (
            &tables.symlinks,
            &metadata.symlinks,
            &metadata.compact_symlinks,
        ),
    ];
    for (view, plain, compact) in cases {
        let expect = match compact {
            Some(table) => unpack(table).unwrap(),
            None => plain.clone(),
        };
        assert_eq!(view.is_compact(), compact.is_some(), "{name}");
        assert_eq!(all_strings(view, data).unwrap(), expect, "{name}");
    }
}

fn all_strings(view: &StringsView, data: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut buf = Vec::new();
    (0..view.len())
        .map(|index| {
            let text = view.get(data, index, &mut buf)?.to_vec();
            assert_eq!(view.decoded_len(data, index)?, text.len() as u64);
            Ok(text)
        })
        .collect()
}

/// The strings of an owned table, independent of [`StringsView`].
fn unpack(table: &StringTable) -> Result<Vec<Vec<u8>>> {
    let symbols = table
        .symtab
        .as_deref()
        .map(SymbolTable::parse)
        .transpose()?;
    let mut offsets = vec![0];
    if table.packed_index {
        for len in &table.index {
            offsets.push(offsets.last().unwrap() + *len as usize);
        }
    } else {
        offsets = table.index.iter().map(|offset| *offset as usize).collect();
    }
    let string = |pair: &[usize]| {
        let stored = &table.buffer[pair[0]..pair[1]];
        let mut out = Vec::new();
        match &symbols {
            Some(symbols) => symbols.decode(stored, &mut out)?,
            None => out.extend_from_slice(stored),
        }
        Ok(out)
    };
    offsets.windows(2).map(string).collect()
}
