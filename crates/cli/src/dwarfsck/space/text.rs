//! The space report as text.

use super::{BlockSum, Group, Named, Space, Totals, Usage};
use crate::common::{escape, ratio, size};

/// Lines of each list; the JSON has more.
const LINES_MAX: usize = 20;
/// Groups of each list, which take several lines.
const GROUPS_MAX: usize = 8;
/// Paths of each group.
const PATHS_MAX: usize = 3;

/// The whole report, with directories down to `depth`.
pub(in crate::dwarfsck) fn report(space: &Space, depth: usize) -> String {
    let mut text = totals(&space.totals);
    let directories = space.tree.directories(depth);
    let named = directories.iter().map(|index| Named {
        name: space.tree.path(*index),
        usage: space.tree.nodes[*index].usage,
    });
    let named: Vec<_> = named.collect();
    usages(&mut text, "directories", &named);
    usages(&mut text, "extensions", &space.kinds);
    sums(&mut text, "categories", &space.categories);
    sums(&mut text, "codecs", &space.codecs);
    usages(&mut text, "largest files", &space.largest);
    groups(&mut text, "equal files", &space.duplicates);
    groups(&mut text, "files alike", &space.clusters);
    tables(&mut text, space);
    text
}

fn totals(totals: &Totals) -> String {
    let mut text = "space:\n".to_owned();
    let mut line = |sign: &str, bytes: u64, name: &str| {
        text.push_str(&format!("  {sign} {:>11}  {name}\n", size::display(bytes)));
    };
    line(" ", totals.size, &format!("in {} files", totals.entries));
    let less = [
        (totals.hard_links, "further hard links"),
        (totals.holes, "holes"),
        (totals.duplicates, "further equal files"),
        (totals.shared, "data that several files or places share"),
    ];
    for (bytes, name) in less.into_iter().filter(|(bytes, _)| *bytes > 0) {
        line("-", bytes, name);
    }
    if totals.unused > 0 {
        line("+", totals.unused, "in blocks that nothing refers to");
    }
    let packed = |stored, size| format!("compressed to {}", ratio::display(stored, size));
    line("=", totals.blocks, "in blocks");
    line(
        " ",
        totals.blocks_stored,
        &format!(
            "{} in the image",
            packed(totals.blocks_stored, totals.blocks)
        ),
    );
    line(
        "+",
        totals.metadata_stored,
        &format!(
            "of metadata, {} from {}",
            packed(totals.metadata_stored, totals.metadata),
            size::display(totals.metadata)
        ),
    );
    line("+", totals.rest, "headers, history, index");
    let share = ratio::display(totals.image, totals.size);
    line(
        "=",
        totals.image,
        &format!("the image, {share} of the files"),
    );
    text
}

fn heading(text: &mut String, title: &str, count: usize, count_max: usize) {
    let more = if count > count_max {
        format!(" (the first {count_max} of {count})")
    } else {
        String::new()
    };
    text.push_str(&format!("{title}{more}:\n"));
}

/// Size, stored size, their ratio.
fn columns(size: u64, stored: u64) -> String {
    format!(
        "  {:>11} to {:>11} {:>9}",
        size::display(size),
        size::display(stored),
        ratio::display(stored, size)
    )
}

fn usages(text: &mut String, title: &str, all: &[Named]) {
    if all.is_empty() {
        return;
    }
    heading(text, title, all.len(), LINES_MAX);
    for Named { name, usage } in all.iter().take(LINES_MAX) {
        let Usage { files, size, .. } = *usage;
        let columns = columns(size, usage.stored_bytes());
        text.push_str(&format!("{columns} {files:>9}  {}\n", escape::bytes(name)));
    }
}

fn sums(text: &mut String, title: &str, all: &[BlockSum]) {
    if all.is_empty() {
        return;
    }
    heading(text, title, all.len(), LINES_MAX);
    for sum in all.iter().take(LINES_MAX) {
        let columns = columns(sum.size, sum.stored);
        let name = escape::bytes(sum.name.as_bytes());
        text.push_str(&format!("{columns} {:>9}  {name}\n", sum.blocks));
    }
}

fn groups(text: &mut String, title: &str, all: &[Group]) {
    if all.is_empty() {
        return;
    }
    heading(text, title, all.len(), GROUPS_MAX);
    for group in all.iter().take(GROUPS_MAX) {
        text.push_str(&format!(
            "  {:>11} saved, {} files of {}\n",
            size::display(group.saved),
            group.files,
            size::display(group.size)
        ));
        for path in group.paths.iter().take(PATHS_MAX) {
            text.push_str(&format!("               {}\n", escape::bytes(path)));
        }
    }
}

fn tables(text: &mut String, space: &Space) {
    let rows: Vec<_> = space.tables.iter().filter(|row| row.bits > 0).collect();
    heading(text, "metadata tables", rows.len(), LINES_MAX);
    for row in rows.iter().take(LINES_MAX) {
        let bytes = row.bits.div_ceil(8);
        text.push_str(&format!(
            "  {:>11} {:>9}  {}\n",
            size::display(bytes),
            ratio::display(bytes, space.totals.metadata),
            row.name
        ));
    }
}
