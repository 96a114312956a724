//! The space report as JSON.

use durin_format::json::string;
use serde_json::{Value, json};

use super::{BlockSum, Group, Named, Space, Usage};

/// Directories and extensions that are listed at most.
const ROWS_MAX: usize = 1000;

/// The whole report, with directories down to `depth`.
pub(in crate::dwarfsck) fn report(space: &Space, depth: usize) -> Value {
    let totals = &space.totals;
    let directories = space.tree.directories(depth);
    let directory = |index: &usize| {
        let name = space.tree.path(*index);
        usage("path", &name, &space.tree.nodes[*index].usage)
    };
    let rows = |key, all: &[Named]| -> Value {
        let rows = all.iter().take(ROWS_MAX);
        rows.map(|named| usage(key, &named.name, &named.usage))
            .collect()
    };
    let tables = space.tables.iter().filter(|row| row.bits > 0);
    json!({
        "totals": {
            "files": totals.entries,
            "size": totals.size,
            "hard_links": totals.hard_links,
            "holes": totals.holes,
            "duplicates": totals.duplicates,
            "shared": totals.shared,
            "unused": totals.unused,
            "blocks": totals.blocks,
            "blocks_stored": totals.blocks_stored,
            "metadata": totals.metadata,
            "metadata_stored": totals.metadata_stored,
            "rest": totals.rest,
            "image": totals.image,
        },
        "directories": directories.iter().take(ROWS_MAX).map(directory).collect::<Value>(),
        "extensions": rows("name", &space.kinds),
        "categories": space.categories.iter().map(sum).collect::<Value>(),
        "codecs": space.codecs.iter().map(sum).collect::<Value>(),
        "largest": rows("path", &space.largest),
        "duplicates": space.duplicates.iter().map(group).collect::<Value>(),
        "clusters": space.clusters.iter().map(group).collect::<Value>(),
        "tables": tables
            .map(|row| json!({ "name": row.name, "items": row.items, "bits": row.bits }))
            .collect::<Value>(),
    })
}

fn usage(key: &str, name: &[u8], usage: &Usage) -> Value {
    json!({
        key: string(name),
        "files": usage.files,
        "size": usage.size,
        "stored": usage.stored_bytes(),
    })
}

fn sum(sum: &BlockSum) -> Value {
    json!({
        "name": sum.name,
        "blocks": sum.blocks,
        "size": sum.size,
        "stored": sum.stored,
    })
}

fn group(group: &Group) -> Value {
    json!({
        "files": group.files,
        "size": group.size,
        "saved": group.saved,
        "paths": group.paths.iter().map(|path| string(path)).collect::<Value>(),
    })
}
