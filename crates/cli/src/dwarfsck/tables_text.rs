//! The tables of the metadata: how large they are, and how well they are packed.

use durin_format::frozen::view::Column;
use durin_format::metadata::tables::{StringsView, Tables};
use durin_reader::{Image, Info};
use serde_json::{Value, json};

use crate::common::{ratio, size};

/// One table, or one field of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) items: u64,
    /// Bits of all items; of strings those of the characters.
    pub(super) bits: u64,
}

/// `frozen_analysis`: the tables by size.
pub(super) fn analysis(image: &Image) -> String {
    let (tables, data) = image.tables();
    let mut rows = rows(tables, data);
    rows.retain(|row| row.items > 0 && row.bits > 0);
    let total = data.len() as u64;
    let mut text = format!("metadata tables, {} in all:\n", size::display(total));
    for Row { name, items, bits } in rows {
        text.push_str(&format!(
            "  {:>11} {:>8} {items:>12} items {:>10} bits/item  {name}\n",
            size::display(bits.div_ceil(8)),
            ratio::display(bits.div_ceil(8), total),
            size::four_digits(bits, items)
        ));
    }
    text
}

/// `frozen_details`: all tables and fields by name, those that take nothing, too.
pub(super) fn details(image: &Image) -> String {
    let (tables, data) = image.tables();
    let mut rows = rows(tables, data);
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let mut text = String::from("packed tables:\n");
    for Row { name, items, bits } in rows {
        let bits_per_item = if items > 0 {
            size::four_digits(bits, items)
        } else {
            "0".to_owned()
        };
        text.push_str(&format!(
            "  {:>12} bytes {items:>12} items {bits_per_item:>10} bits/item  {name}\n",
            bits.div_ceil(8)
        ));
    }
    text
}

/// The tables as JSON: all, or only those that take space.
pub(super) fn json(image: &Image, with_empty: bool) -> Value {
    let (tables, data) = image.tables();
    rows(tables, data)
        .into_iter()
        .filter(|row| with_empty || row.bits > 0)
        .map(|row| json!({ "name": row.name, "items": row.items, "bits": row.bits }))
        .collect()
}

/// `metadata_details`: the lengths of all tables, and where the kinds of inodes begin.
pub(super) fn lengths(info: &Info) -> String {
    let mut text = String::from("table lengths:\n");
    for (name, len) in &info.tables {
        text.push_str(&format!("  {len:>12}  {name}\n"));
    }
    text.push_str("inode offsets:\n");
    for (name, inode) in &info.inode_offsets {
        text.push_str(&format!("  {inode:>12}  {name}\n"));
    }
    text
}

/// All tables; the largest first, and of equals in the order of the format.
pub(super) fn rows(tables: &Tables, data: &[u8]) -> Vec<Row> {
    let mut rows: Vec<Row> = columns(tables)
        .into_iter()
        .map(|(name, column)| Row {
            name: name.to_owned(),
            items: column.len(),
            bits: column.len().saturating_mul(u64::from(column.bits())),
        })
        .collect();
    rows.push(strings("names", &tables.names, data));
    rows.push(strings("symlinks", &tables.symlinks, data));
    rows.sort_by_key(|row| std::cmp::Reverse(row.bits));
    rows
}

fn strings(name: &str, view: &StringsView, data: &[u8]) -> Row {
    let bytes = if view.is_compact() {
        view.buffer_len()
    } else {
        // What cannot be read is reported by the check, not here.
        (0..view.len())
            .filter_map(|index| view.stored_len(data, index).ok())
            .sum()
    };
    let kind = if view.is_compact() { "compact_" } else { "" };
    Row {
        name: format!("{kind}{name}"),
        items: view.len(),
        bits: bytes.saturating_mul(8),
    }
}

fn columns(tables: &Tables) -> Vec<(&'static str, Column)> {
    let inodes = &tables.inodes;
    let mut columns = vec![
        ("chunks.block", tables.chunks.block),
        ("chunks.offset", tables.chunks.offset),
        ("chunks.size", tables.chunks.size),
        ("directories.parent_entry", tables.directories.parent_entry),
        ("directories.first_entry", tables.directories.first_entry),
        ("directories.self_entry", tables.directories.self_entry),
        ("inodes.mode_index", inodes.mode_index),
        ("inodes.owner_index", inodes.owner_index),
        ("inodes.group_index", inodes.group_index),
        ("inodes.atime_offset", inodes.atime_offset),
        ("inodes.mtime_offset", inodes.mtime_offset),
        ("inodes.ctime_offset", inodes.ctime_offset),
        ("inodes.atime_subsec", inodes.atime_subsec),
        ("inodes.mtime_subsec", inodes.mtime_subsec),
        ("inodes.ctime_subsec", inodes.ctime_subsec),
        ("inodes.nlink_minus_one", inodes.nlink_minus_one),
        ("inodes.name_index_v2_2", inodes.name_index_v2_2),
        ("inodes.inode_v2_2", inodes.inode_v2_2),
        ("chunk_table", tables.chunk_table),
        ("entry_table_v2_2", tables.entry_table_v2_2),
        ("symlink_table", tables.symlink_table),
        ("uids", tables.uids),
        ("gids", tables.gids),
        ("modes", tables.modes),
    ];
    if let Some(entries) = &tables.dir_entries {
        columns.push(("dir_entries.name_index", entries.name_index));
        columns.push(("dir_entries.inode_num", entries.inode_num));
    }
    let optional = [
        ("devices", tables.devices),
        ("shared_files_table", tables.shared_files_table),
        ("block_categories", tables.block_categories),
        ("large_hole_size", tables.large_hole_size),
    ];
    columns.extend(
        optional
            .into_iter()
            .filter_map(|(name, column)| column.map(|column| (name, column))),
    );
    columns
}
