//! Random values come back from their encoded form, and random damage is an error at worst.

use std::collections::{BTreeMap, BTreeSet};

use durin_format::fsst::SymbolTable;
use durin_format::metadata::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
    MetadataHistoryEntry, StringTable,
};
use durin_format::thrift::{Reader, Type, Writer};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Small numbers more often than large ones, so that widths differ.
fn number() -> impl Strategy<Value = u32> {
    (0..=32_u32, any::<u32>()).prop_map(|(bits, value)| value.checked_shr(bits).unwrap_or(0))
}

fn long_number() -> impl Strategy<Value = u64> {
    (0..=64_u32, any::<u64>()).prop_map(|(bits, value)| value.checked_shr(bits).unwrap_or(0))
}

fn numbers() -> impl Strategy<Value = Vec<u32>> {
    vec(number(), 0..20)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(text(), 0..8)
}

prop_compose! {
    fn chunk()(block in number(), offset in number(), size in number()) -> Chunk {
        Chunk { block, offset, size }
    }
}

prop_compose! {
    fn directory()(parent_entry in number(), first_entry in number(), self_entry in number()) -> Directory {
        Directory { parent_entry, first_entry, self_entry }
    }
}

prop_compose! {
    fn inode()(
        [mode_index, owner_index, group_index, nlink_minus_one, name_index_v2_2, inode_v2_2] in
            [number(), number(), number(), number(), number(), number()],
        [atime_offset, mtime_offset, ctime_offset, btime_offset] in
            [long_number(), long_number(), long_number(), long_number()],
        [atime_subsec, mtime_subsec, ctime_subsec, btime_subsec] in
            [long_number(), long_number(), long_number(), long_number()],
    ) -> InodeData {
        InodeData {
            mode_index, owner_index, group_index, atime_offset, mtime_offset, ctime_offset, btime_offset,
            atime_subsec, mtime_subsec, ctime_subsec, btime_subsec, nlink_minus_one, name_index_v2_2, inode_v2_2,
        }
    }
}

prop_compose! {
    fn dir_entry()(name_index in number(), inode_num in number()) -> DirEntry {
        DirEntry { name_index, inode_num }
    }
}

prop_compose! {
    fn options()(
        [mtime_only, packed_chunk_table, packed_directories] in any::<[bool; 3]>(),
        [packed_shared_files_table, has_btime, inodes_have_nlink] in any::<[bool; 3]>(),
        time_resolution_sec in option::of(number()),
        subsecond_resolution_nsec_multiplier in option::of(number()),
    ) -> FsOptions {
        FsOptions {
            mtime_only, time_resolution_sec, packed_chunk_table, packed_directories, packed_shared_files_table,
            subsecond_resolution_nsec_multiplier, has_btime, inodes_have_nlink,
        }
    }
}

prop_compose! {
    fn string_table()(
        buffer in text(), symtab in option::of(text()), index in numbers(), packed_index in any::<bool>(),
    ) -> StringTable {
        StringTable { buffer, symtab, index, packed_index }
    }
}

fn sizes() -> impl Strategy<Value = BTreeMap<u32, u64>> {
    btree_map(number(), long_number(), 0..8)
}

prop_compose! {
    fn size_cache()(
        size_lookup in sizes(), min_chunk_count in long_number(), allocated_size_lookup in sizes(),
    ) -> InodeSizeCache {
        InodeSizeCache { size_lookup, min_chunk_count, allocated_size_lookup }
    }
}

prop_compose! {
    fn history_entry()(
        major in any::<u8>(), minor in any::<u8>(), dwarfs_version in option::of(text()),
        block_size in number(), options in option::of(options()),
    ) -> MetadataHistoryEntry {
        MetadataHistoryEntry { major, minor, dwarfs_version, block_size, options }
    }
}

prop_compose! {
    /// The fields that are not optional.
    fn plain_fields()(
        chunks in vec(chunk(), 0..20),
        directories in vec(directory(), 0..20),
        inodes in vec(inode(), 0..20),
        [chunk_table, entry_table_v2_2, symlink_table, uids, gids, modes] in
            [numbers(), numbers(), numbers(), numbers(), numbers(), numbers()],
        names in texts(),
        symlinks in texts(),
        [timestamp_base, total_fs_size] in [long_number(), long_number()],
        [chunk_inode_offset, link_inode_offset, block_size] in [number(), number(), number()],
    ) -> Metadata {
        Metadata {
            inodes: inodes.into_iter().collect(),
            chunks, directories, chunk_table, entry_table_v2_2, symlink_table, uids, gids, modes, names,
            symlinks, timestamp_base, chunk_inode_offset, link_inode_offset, block_size, total_fs_size,
            ..Metadata::default()
        }
    }
}

prop_compose! {
    fn metadata()(
        plain in plain_fields(),
        options in option::of(options()),
        dir_entries in option::of(vec(dir_entry(), 0..20)),
        [shared_files_table, block_categories] in [option::of(numbers()), option::of(numbers())],
        [devices, large_hole_size] in
            [option::of(vec(long_number(), 0..8)), option::of(vec(long_number(), 0..8))],
        [total_hardlink_size, create_timestamp, total_allocated_fs_size] in
            [option::of(long_number()), option::of(long_number()), option::of(long_number())],
        [preferred_path_separator, hole_block_index] in [option::of(number()), option::of(number())],
        (dwarfs_version, features) in
            (option::of(text()), option::of(btree_set(text(), 0..4).prop_map(BTreeSet::from))),
        [compact_names, compact_symlinks] in [option::of(string_table()), option::of(string_table())],
        [category_names, category_metadata_json] in [option::of(texts()), option::of(texts())],
        (reg_file_size_cache, block_category_metadata) in
            (option::of(size_cache()), option::of(btree_map(number(), number(), 0..8))),
        metadata_version_history in option::of(vec(history_entry(), 0..4)),
    ) -> Metadata {
        Metadata {
            options, dir_entries, shared_files_table, block_categories, devices, large_hole_size,
            total_hardlink_size, create_timestamp, total_allocated_fs_size, preferred_path_separator,
            hole_block_index, dwarfs_version, features, compact_names, compact_symlinks, category_names,
            category_metadata_json, reg_file_size_cache, block_category_metadata, metadata_version_history,
            ..plain
        }
    }
}

/// A Compact value whose fields and elements have types that only the bytes tell.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bool(bool),
    I16(i16),
    I32(i32),
    I64(i64),
    Binary(Vec<u8>),
    Numbers(Vec<i32>),
    Map(Vec<(i16, Vec<u8>)>),
    Struct(Vec<(i16, Self)>),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        text().prop_map(Value::Binary),
        vec(any::<i32>(), 0..20).prop_map(Value::Numbers),
        vec((any::<i16>(), text()), 0..4).prop_map(Value::Map),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        vec((any::<i16>(), inner), 0..6).prop_map(Value::Struct)
    })
}

fn write_fields(writer: &mut Writer, fields: &[(i16, Value)]) {
    let mut last_id = 0;
    for (id, value) in fields {
        match value {
            Value::Bool(value) => writer.bool_field(&mut last_id, *id, *value),
            Value::I16(value) => writer.i16_field(&mut last_id, *id, *value),
            Value::I32(value) => writer.i32_field(&mut last_id, *id, *value),
            Value::I64(value) => writer.i64_field(&mut last_id, *id, *value),
            Value::Binary(value) => writer.binary_field(&mut last_id, *id, value),
            Value::Numbers(items) => {
                writer.list_field(&mut last_id, *id, Type::I32, items.len());
                items.iter().for_each(|item| writer.i32(*item));
            }
            Value::Map(pairs) => {
                writer.map_field(&mut last_id, *id, Type::I16, Type::Binary, pairs.len());
                for (key, value) in pairs {
                    writer.i16(*key);
                    writer.binary(value);
                }
            }
            Value::Struct(fields) => {
                writer.field(&mut last_id, *id, Type::Struct);
                write_fields(writer, fields);
            }
        }
    }
    writer.stop();
}

fn read_fields(reader: &mut Reader<'_>) -> durin_format::Result<Vec<(i16, Value)>> {
    let mut fields = Vec::new();
    let mut last_id = 0;
    while let Some((id, kind)) = reader.next_field(&mut last_id)? {
        let value = match kind {
            Type::True | Type::False => Value::Bool(kind.as_bool().unwrap()),
            Type::I16 => Value::I16(reader.read_i16()?),
            Type::I32 => Value::I32(reader.read_i32()?),
            Type::I64 => Value::I64(reader.read_i64()?),
            Type::Binary => Value::Binary(reader.read_binary()?.to_vec()),
            Type::List => {
                let (_, count) = reader.list_header()?;
                Value::Numbers(
                    (0..count)
                        .map(|_| reader.read_i32())
                        .collect::<Result<_, _>>()?,
                )
            }
            Type::Map => {
                let count = reader.map_header()?.map_or(0, |(_, _, count)| count);
                let pair = |_| Ok((reader.read_i16()?, reader.read_binary()?.to_vec()));
                Value::Map((0..count).map(pair).collect::<durin_format::Result<_>>()?)
            }
            Type::Struct => Value::Struct(read_fields(reader)?),
            other => panic!("{other:?} was not written"),
        };
        fields.push((id, value));
    }
    Ok(fields)
}

proptest! {
    #[test]
    fn compact_structs_come_back(fields in vec((any::<i16>(), value()), 0..8)) {
        let mut writer = Writer::new();
        write_fields(&mut writer, &fields);
        let bytes = writer.into_bytes();

        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(read_fields(&mut reader).unwrap(), fields);
        prop_assert_eq!(reader.remaining(), 0);

        let mut reader = Reader::new(&bytes);
        reader.skip(Type::Struct).unwrap();
        prop_assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn arbitrary_bytes_are_skipped_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        drop(Reader::new(&bytes).skip(Type::Struct));
    }

    #[test]
    fn metadata_thaws_as_it_was_frozen(metadata in metadata()) {
        let frozen = metadata.freeze().unwrap();
        prop_assert_eq!(Metadata::thaw(&frozen.schema, &frozen.data).unwrap(), metadata);
    }

    #[test]
    fn damaged_metadata_does_no_harm(
        metadata in metadata(),
        flips in vec((any::<prop::sample::Index>(), 0..8_u32), 1..6),
    ) {
        let frozen = metadata.freeze().unwrap();
        let (mut schema, mut data) = (frozen.schema.clone(), frozen.data.clone());
        for (place, bit) in &flips {
            *place.get_mut(&mut schema) ^= 1 << bit;
            *place.get_mut(&mut data) ^= 1 << bit;
        }
        drop(Metadata::thaw(&frozen.schema, &data));
        drop(Metadata::thaw(&schema, &frozen.data));
    }

    #[test]
    fn strings_come_back_from_fsst(texts in vec(vec(b'a'..b'f', 0..40), 0..60), other in text()) {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let table = SymbolTable::train(texts.iter().copied());
        prop_assert_eq!(&SymbolTable::parse(&table.serialize()).unwrap(), &table);
        let mut encoder = table.encoder();
        for text in texts.iter().copied().chain([other.as_slice()]) {
            let (mut codes, mut decoded) = (Vec::new(), Vec::new());
            encoder.encode(text, &mut codes);
            prop_assert!(codes.len() <= 2 * text.len());
            table.decode(&codes, &mut decoded).unwrap();
            prop_assert_eq!(decoded, text);
        }
    }
}
