//! The parts of the page that are text and tables.

use durin_format::history::HistoryEntry;
use durin_reader::Info;

use super::element::{Cell, Column, cut, escaped, section, table};
use crate::common::{escape, ratio, size};
use crate::dwarfsck::metadata_text;
use crate::dwarfsck::space::{Group, Named, Space};

/// Rows of a list.
const ROWS_MAX: usize = 100;
/// Depth of the directories in the list.
const DEPTH: usize = 3;
/// Paths of a group.
const PATHS_MAX: usize = 5;
/// Characters of a command line in the history.
const ARGUMENTS_LEN_MAX: usize = 2000;

/// The figures that matter most.
pub(super) fn tiles(space: &Space, info: &Info) -> String {
    let totals = &space.totals;
    let tile = |value: &str, name: &str| {
        format!("<div class=\"tile\"><b>{value}</b><span class=\"soft\">{name}</span></div>\n")
    };
    let created = [
        info.created_by
            .as_ref()
            .map(|program| format!("by {}", escape::bytes(program.as_bytes()))),
        info.created_on
            .map(|time| format!("on {}", metadata_text::local_time(time))),
    ];
    let created: Vec<String> = created.into_iter().flatten().collect();
    let created = if created.is_empty() {
        String::new()
    } else {
        format!("created {}, ", cut(created.join(" "), 200))
    };
    let version = info.version;
    let text = format!("DwarFS {}.{}", version.major, version.minor);
    format!(
        "<p class=\"soft\">{}{text}</p>\n<div class=\"tiles\">\n{}{}{}{}{}</div>\n",
        escaped(&created),
        tile(&size::display(totals.size), "in files"),
        tile(&size::display(totals.image), "image"),
        tile(&ratio::display(totals.image, totals.size), "of the files"),
        tile(&totals.entries.to_string(), "files"),
        tile(&space.blocks.len().to_string(), "blocks"),
    )
}

/// Links to the parts.
pub(super) fn jumps() -> String {
    let links = [
        ("map-section", "Map"),
        ("totals", "Totals"),
        ("directories", "Directories"),
        ("extensions", "Extensions"),
        ("categories", "Categories"),
        ("blocks", "Blocks"),
        ("largest", "Largest files"),
        ("equal", "Equal files"),
        ("alike", "Files alike"),
        ("tables", "Metadata"),
        ("history", "History"),
    ];
    let links = links.map(|(id, name)| format!("<a href=\"#{id}\">{name}</a> "));
    format!(
        "<nav class=\"jump\" aria-label=\"Parts\">{}</nav>\n",
        links.concat()
    )
}

/// From the files to the image.
pub(super) fn totals(space: &Space) -> String {
    let totals = &space.totals;
    let steps = [
        ("files", totals.size),
        ("- further hard links", totals.hard_links),
        ("- holes", totals.holes),
        ("- further equal files", totals.duplicates),
        ("- data that several files or places share", totals.shared),
        ("+ in blocks that nothing refers to", totals.unused),
        ("= blocks before compression", totals.blocks),
        ("blocks in the image", totals.blocks_stored),
        ("+ metadata", totals.metadata_stored),
        ("+ headers, history, index", totals.rest),
        ("= image", totals.image),
    ];
    let all = totals.size.max(totals.image).max(totals.blocks);
    let rows = steps
        .into_iter()
        .filter(|(name, bytes)| *bytes > 0 || name.starts_with('='))
        .map(|(name, bytes)| {
            vec![
                Cell::Text(name.to_owned()),
                Cell::Bytes(bytes),
                Cell::Bars(0, bytes, all),
            ]
        });
    let columns = [
        ("", Column::Step),
        ("Bytes", Column::StepNumber),
        ("", Column::Bars),
    ];
    section(
        "totals",
        "From the files to the image",
        &table("Totals", &columns, rows),
    )
}

/// Files, bytes before and after, by a name.
fn usages(label: &str, name: &str, all: &[Named]) -> String {
    let columns = [
        (name, Column::Text),
        ("Files", Column::Number),
        ("Bytes", Column::Number),
        ("Stored", Column::Number),
        ("Left", Column::Number),
        ("", Column::Bars),
    ];
    let shown = &all[..all.len().min(ROWS_MAX)];
    let most = shown
        .iter()
        .map(|named| named.usage.size)
        .max()
        .unwrap_or(0);
    let rows = shown.iter().map(|Named { name, usage }| {
        let stored = usage.stored_bytes();
        vec![
            Cell::Name(name.clone()),
            Cell::Count(usage.files),
            Cell::Bytes(usage.size),
            Cell::Bytes(stored),
            Cell::Ratio(stored, usage.size),
            Cell::Bars(usage.size, stored, most),
        ]
    });
    count_text(all.len(), shown.len()) + &table(label, &columns, rows)
}

fn count_text(count: usize, shown: usize) -> String {
    if count > shown {
        format!("<p class=\"soft\">The {shown} that take most, of {count}.</p>\n")
    } else {
        String::new()
    }
}

/// Directories near the root.
pub(super) fn directories(space: &Space) -> String {
    let named = |index: &usize| Named {
        name: space.tree.path(*index),
        usage: space.tree.nodes[*index].usage,
    };
    let all = space.tree.directories(DEPTH);
    let shown: Vec<Named> = all.iter().take(ROWS_MAX).map(named).collect();
    let content = count_text(all.len(), shown.len()) + &usages("Directories", "Directory", &shown);
    section("directories", "Directories", &content)
}

/// Files by extension.
pub(super) fn extensions(space: &Space) -> String {
    section(
        "extensions",
        "Extensions",
        &usages("Extensions", "Extension", &space.kinds),
    )
}

/// Files that take most.
pub(super) fn largest(space: &Space) -> String {
    section(
        "largest",
        "Largest files",
        &usages("Largest files", "File", &space.largest),
    )
}

/// Equal files, and files that are alike.
pub(super) fn groups(space: &Space) -> String {
    let equal = groups_table("Equal files", "Bytes each", &space.duplicates);
    let alike = groups_table("Files alike", "Bytes together", &space.clusters);
    section("equal", "Equal files", &equal)
        + &section(
            "alike",
            "Files alike",
            &("<p class=\"soft\">Each shares at least a third with another of its group.</p>\n"
                .to_owned()
                + &alike),
        )
}

fn groups_table(label: &str, bytes: &str, groups: &[Group]) -> String {
    if groups.is_empty() {
        return "<p>There are none.</p>\n".to_owned();
    }
    let columns = [
        ("Saved", Column::Number),
        ("Files", Column::Number),
        (bytes, Column::Number),
        ("Paths", Column::Text),
    ];
    let rows = groups.iter().take(ROWS_MAX).map(|group| {
        vec![
            Cell::Bytes(group.saved),
            Cell::Count(group.files),
            Cell::Bytes(group.size),
            Cell::Names(group.paths.iter().take(PATHS_MAX).cloned().collect()),
        ]
    });
    table(label, &columns, rows)
}

/// Tables of the metadata.
pub(super) fn tables(space: &Space) -> String {
    let columns = [
        ("Table", Column::Text),
        ("Items", Column::Number),
        ("Bytes", Column::Number),
        ("", Column::Bars),
    ];
    let shown: Vec<_> = space.tables.iter().filter(|row| row.bits > 0).collect();
    let bytes = |bits: u64| bits.div_ceil(8);
    let most = shown.iter().map(|row| bytes(row.bits)).max().unwrap_or(0);
    let rows = shown.iter().map(|row| {
        vec![
            Cell::Text(row.name.clone()),
            Cell::Count(row.items),
            Cell::Bytes(bytes(row.bits)),
            Cell::Bars(0, bytes(row.bits), most),
        ]
    });
    let content = format!(
        "<p class=\"soft\">{} in the image.</p>\n{}",
        size::display(space.totals.metadata_stored),
        table("Metadata", &columns, rows)
    );
    section("tables", "Tables of the metadata", &content)
}

/// Who made and changed the image.
pub(super) fn history(info: &Info) -> String {
    let entries = &info.history.entries;
    if entries.is_empty() {
        return section("history", "History", "<p>There is none.</p>\n");
    }
    let item = |entry: &HistoryEntry| {
        let text = |text: &str, len_max| escaped(&cut(escape::bytes(text.as_bytes()), len_max));
        let HistoryEntry { version, .. } = entry;
        let release = match &version.git_desc {
            Some(description) => description.clone(),
            None => format!("v{}.{}.{}", version.major, version.minor, version.patch),
        };
        let time = entry
            .timestamp
            .map(|seconds| format!("{}: ", metadata_text::local_time(seconds)))
            .unwrap_or_default();
        let origin = format!(
            "{time}{release} on {}, {}",
            entry.system_id, entry.compiler_id
        );
        let arguments = entry
            .arguments
            .as_ref()
            .map(|arguments| arguments.join(" "));
        let arguments = arguments
            .map(|arguments| format!("<code>{}</code>", text(&arguments, ARGUMENTS_LEN_MAX)));
        format!(
            "<li>{}{}</li>\n",
            text(&origin, 300),
            arguments.unwrap_or_default()
        )
    };
    let items: String = entries.iter().take(ROWS_MAX).map(item).collect();
    section(
        "history",
        "History",
        &format!("<ol class=\"history\">\n{items}</ol>\n"),
    )
}
