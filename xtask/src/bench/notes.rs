//! Experiments that decided something (`benchmarks/record/notes.toml`): their tables, for the documents that tell of them.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::table::{Format, Table};
use crate::workspace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteFile {
    note: Vec<Note>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    name: String,
    /// How it was measured.
    how: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The tables as Markdown, by the names of their places.
pub(super) fn sections() -> Result<Vec<(String, String)>> {
    let path = workspace::benchmarks().join("record").join("notes.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: NoteFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let section = |note: Note| {
        let is_whole = |row: &Vec<String>| row.len() == note.columns.len();
        ensure!(
            note.rows.iter().all(is_whole),
            "{}: a row is short",
            note.name
        );
        let table = Table {
            title: String::new(),
            columns: note.columns,
            rows: note.rows,
        };
        // They have no headings: the text around them leads to them.
        let rows = table.render(Format::Markdown);
        let rows = rows.trim_start_matches(['#', ' ', '\n']);
        Ok((
            format!("note-{}", note.name),
            format!("{rows}\nMeasured: {}.", note.how),
        ))
    };
    file.note.into_iter().map(section).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn each_note_is_a_table_that_says_how() {
        for (name, text) in sections().unwrap() {
            assert!(name.starts_with("note-"));
            assert!(
                text.starts_with("| ") && text.contains("\nMeasured: "),
                "{text}"
            );
        }
    }
}
