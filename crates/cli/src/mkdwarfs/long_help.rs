//! What `--long-help` shows below the options: the levels, the compression algorithms and the categories.

use durin_writer::Categorizer;
use durin_writer::level::{LEVEL_DEFAULT, LEVEL_MAX, LevelDefaults};

use crate::common::{banner, size};

/// The tables.
pub(super) fn text() -> String {
    let tables = [levels(), algorithms(), categories(), banner::libraries()];
    tables.join("\n")
}

fn levels() -> String {
    let mut text = String::from("Compression levels:\n");
    text.push_str(&format!(
        "  {:<5}  {:<5}  {:<41}  metadata\n",
        "level", "block", "data"
    ));
    for level in 0..=LEVEL_MAX {
        let Some(row) = LevelDefaults::of(level) else {
            continue;
        };
        let (bits, data, metadata) = (
            row.block_size_bits,
            row.compression,
            row.metadata_compression,
        );
        text.push_str(&format!(
            "  {level:<5}  2^{bits:<3}  {data:<41}  {metadata}\n"
        ));
        if let Some(small) = row.small_tree {
            text.push_str(&format!(
                "         Without -S, blocks of trees with up to {} of data are 2^{}\n",
                size::display(small.data_len_max),
                small.block_size_bits
            ));
        }
        if row.mixed_block_size_bits < bits {
            text.push_str(&format!(
                "         Without -S, blocks of contents that are unlike each other end at 2^{},\n\
                 \x20        those of executables and libraries at 2^{}\n",
                row.mixed_block_size_bits, row.mixed_binary_block_size_bits
            ));
        }
    }
    let schema_of = |level| LevelDefaults::of(level).map_or("", |row| row.schema_compression);
    text.push_str(&format!(
        "  Schema and history: {}; at level 0 {}\n",
        schema_of(usize::from(LEVEL_DEFAULT)),
        schema_of(0)
    ));
    text
}

fn categories() -> String {
    let mut text = String::from("Categorizers and the categories they find:\n");
    for categorizer in Categorizer::ALL {
        let (name, found) = (categorizer.name(), categorizer.categories().join(", "));
        text.push_str(&format!("  {name:<14}  {found}\n"));
    }
    text
}

fn algorithms() -> String {
    let mut text = String::from("Compression algorithms, written as NAME[:KEY[=VALUE]]...:\n");
    for algorithm in durin_codec::algorithms() {
        let note = if algorithm.note.is_empty() {
            String::new()
        } else {
            format!("  ({})", algorithm.note)
        };
        text.push_str(&format!("  {}{note}\n", algorithm.name));
        for (key, values) in algorithm.options {
            text.push_str(&format!("      {key:<10}  {values}\n"));
        }
    }
    text
}
