//! Pieces of HTML: text, tables and their cells.

use crate::common::{escape, ratio, size};

/// Characters of a path that are shown.
const PATH_LEN_MAX: usize = 240;

/// A name from the image as visible text, cut if it is very long.
pub(super) fn shown(name: &[u8]) -> String {
    cut(escape::bytes(name), PATH_LEN_MAX)
}

/// `text` or its beginning and its end.
pub(super) fn cut(text: String, len_max: usize) -> String {
    let len = text.chars().count();
    if len <= len_max {
        return text;
    }
    let end: String = text.chars().skip(len - len_max / 2).collect();
    let mut cut: String = text.chars().take(len_max / 2).collect();
    cut.push('\u{2026}');
    cut.push_str(&end);
    cut
}

/// Text as HTML, also between quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            character => html.push(character),
        }
    }
    html
}

/// A part of the page with an anchor.
pub(super) fn section(id: &str, title: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n{content}</section>\n"
    )
}

/// How a column is sorted and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Text,
    Number,
    /// Not to be sorted by: a drawing, or steps of an account.
    Bars,
    Step,
    StepNumber,
}

/// What is in a cell.
pub(super) enum Cell {
    /// Text that is not HTML yet.
    Text(String),
    Name(Vec<u8>),
    Names(Vec<Vec<u8>>),
    Count(u64),
    Bytes(u64),
    /// Bytes that are not known.
    Unknown,
    /// Stored bytes of bytes.
    Ratio(u64, u64),
    /// Bytes before compression and after it, and how many the whole width stands for.
    Bars(u64, u64, u64),
}

impl Cell {
    fn html(&self) -> String {
        let number =
            |value: &str, text: &str| format!("<td class=\"n\" data-v=\"{value}\">{text}</td>");
        match self {
            Self::Text(text) => format!("<td>{}</td>", escaped(text)),
            Self::Name(name) => format!("<td><code>{}</code></td>", escaped(&shown(name))),
            Self::Names(names) => {
                let names = names.iter().map(|name| escaped(&shown(name)));
                let items = names.map(|name| format!("<li><code>{name}</code></li>"));
                format!("<td><ul>{}</ul></td>", items.collect::<String>())
            }
            Self::Count(count) => number(&count.to_string(), &count.to_string()),
            Self::Bytes(bytes) => number(&bytes.to_string(), &size::display(*bytes)),
            Self::Unknown => number("-1", "unknown"),
            Self::Ratio(stored, whole) => {
                let value = millionths(*stored, *whole).to_string();
                number(&value, &ratio::display(*stored, *whole))
            }
            Self::Bars(whole, stored, all) => {
                let bar = |class: &str, bytes: u64| {
                    let percent = size::four_digits(millionths(bytes, *all).min(1_000_000), 10_000);
                    format!("<i class=\"{class}\" style=\"width:{percent}%\"></i>")
                };
                let raw = if *whole > 0 {
                    bar("raw", *whole)
                } else {
                    String::new()
                };
                let stored = bar("stored", *stored);
                format!(
                    "<td class=\"bar\"><span class=\"bars\" aria-hidden=\"true\">{raw}{stored}</span></td>"
                )
            }
        }
    }
}

/// `part / whole` in millionths.
pub(super) fn millionths(part: u64, whole: u64) -> u64 {
    let millionths = u128::from(part) * 1_000_000 / u128::from(whole.max(1));
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

/// A table that scrolls by itself.
pub(super) fn table(
    label: &str,
    columns: &[(&str, Column)],
    rows: impl Iterator<Item = Vec<Cell>>,
) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<thead><tr>"
    );
    for (name, column) in columns {
        let attributes = match column {
            Column::Text => "",
            Column::Number => " class=\"n\"",
            Column::StepNumber => " class=\"n\" data-fixed",
            Column::Bars | Column::Step => " data-fixed",
        };
        html.push_str(&format!("<th scope=\"col\"{attributes}>{name}</th>"));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let cells: String = row.iter().map(Cell::html).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let hostile = b"</script><script>alert('1')//\"&\x1b\xff";
        assert_eq!(
            Cell::Name(hostile.to_vec()).html(),
            "<td><code>&lt;/script&gt;&lt;script&gt;alert(&#39;1&#39;)//&quot;&amp;\\x1b\\xff</code></td>"
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(cut("abcdefgh".to_owned(), 8), "abcdefgh");
        assert_eq!(cut("abcdefghi".to_owned(), 4), "ab\u{2026}hi");
        assert!(shown(&[b'a'; 10_000]).len() < 300);
    }

    #[test]
    fn bars_are_parts_of_the_largest() {
        let html = Cell::Bars(50, 1, 200).html();
        assert!(
            html.contains("width:25%") && html.contains("width:0.5%"),
            "{html}"
        );
        assert!(Cell::Bars(5, 5, 0).html().contains("width:100%"));
    }
}
