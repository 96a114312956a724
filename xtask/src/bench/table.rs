//! Tables for the terminal, for Markdown and for programs.

use anyhow::{Result, bail};
use serde_json::{Map, Value};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Markdown,
    Json,
}

impl Format {
    pub(crate) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "text" => Self::Text,
            "markdown" => Self::Markdown,
            "json" => Self::Json,
            _ => bail!("--format=text, markdown or json"),
        })
    }
}

/// Makes headings.
pub(crate) fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A table: the first column is text, all others are figures.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Leaves out columns of figures in which no row has any.
    pub(crate) fn without_empty_columns(&mut self) {
        for column in (1..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row[column] == "-") {
                self.columns.remove(column);
                for row in &mut self.rows {
                    row.remove(column);
                }
            }
        }
    }

    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Markdown => self.markdown(),
            Format::Json => format!("{}\n", self.json()),
        }
    }

    fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                widest.max(self.columns[column].len())
            })
            .collect();
        let line = |cells: &[&str]| {
            let padded = cells
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(index, (cell, width))| {
                    if index == 0 {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                });
            format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        let mut out = format!("{}\n", self.title);
        out += &line(&self.columns.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &self.rows {
            out += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        out
    }

    fn markdown(&self) -> String {
        let escaped = |cells: &[String]| -> Vec<String> {
            cells.iter().map(|cell| cell.replace('|', "\\|")).collect()
        };
        let mut out = format!(
            "### {}\n\n| {} |\n|---|",
            self.title,
            escaped(&self.columns).join(" | ")
        );
        out += &"--:|".repeat(self.columns.len().saturating_sub(1));
        out.push('\n');
        for row in &self.rows {
            out += &format!("| {} |\n", escaped(row).join(" | "));
        }
        out
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            let object: Map<_, _> = cells
                .map(|(column, cell)| (column.clone(), Value::from(cell.as_str())))
                .collect();
            Value::from(object)
        });
        let mut table = Map::new();
        table.insert("title".to_owned(), Value::from(self.title.as_str()));
        table.insert("rows".to_owned(), rows.collect());
        Value::from(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_write() {
        let table = Table {
            title: "Sizes".to_owned(),
            columns: columns(&["tool", "bytes"]),
            rows: vec![
                vec!["a|b".to_owned(), "1,000".to_owned()],
                vec!["longer".to_owned(), "5".to_owned()],
            ],
        };
        let check = |format, expect: &str| assert_eq!(table.render(format), expect);
        check(
            Format::Text,
            "Sizes\ntool    bytes\na|b     1,000\nlonger      5\n",
        );
        check(
            Format::Markdown,
            "### Sizes\n\n| tool | bytes |\n|---|--:|\n| a\\|b | 1,000 |\n| longer | 5 |\n",
        );
        check(
            Format::Json,
            "{\"rows\":[{\"bytes\":\"1,000\",\"tool\":\"a|b\"},{\"bytes\":\"5\",\"tool\":\"longer\"}],\"title\":\"Sizes\"}\n",
        );
        assert!(Format::parse("html").is_err());
    }
}
