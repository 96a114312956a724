//! Manual pages: made from the definition of the options, shown on the terminal or written to files.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use clap::Command;
use durin_format::Error;

use super::exit::Failure;
use super::{man_text, output, terminal};

/// The pager used when `PAGER` is not set.
const PAGER_DEFAULT: &str = "less -R";

/// Columns by which the text below a heading is indented.
const INDENT: usize = 7;

/// The manual page of `command` for `man(1)`.
pub(crate) fn page(command: &Command) -> Result<String, Failure> {
    // The short help leaves out options that the page must explain, too.
    let complete = command
        .clone()
        .mut_args(|argument| argument.hide_short_help(false))
        // The page's own heading puts a `v` before it.
        .version(env!("CARGO_PKG_VERSION"));
    let mut roff = Vec::new();
    clap_mangen::Man::new(complete)
        .render(&mut roff)
        .map_err(|error| Error::io("cannot make the manual page", error))?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

/// A page that is a document of its own, too: name, chapter, what it is about, text.
type Document = (&'static str, u8, &'static str, &'static str);

const DOCUMENTS: [Document; 3] = [
    (
        "dwarfs-format",
        5,
        "the format of DwarFS images",
        include_str!("../../../../docs/format.md"),
    ),
    (
        "dwarfs-env",
        7,
        "environment variables of mkdwarfs, dwarfs, dwarfsck, dwarfsextract and durin",
        include_str!("../../../../docs/environment.md"),
    ),
    (
        "mkdwarfs-script",
        7,
        "scripts that decide what mkdwarfs packs",
        include_str!("../../../../docs/scripting.md"),
    ),
];

/// Writes the page of each of `commands` to `NAME.1` in the directory `dir`, which is created if needed, and those of the
/// documents beside them.
pub(crate) fn write_pages(dir: &Path, commands: &[Command]) -> Result<(), Failure> {
    let failed = |source| {
        Error::io(
            format!(
                "cannot write manual pages to '{}'",
                super::escape::path(dir)
            ),
            source,
        )
    };
    fs::create_dir_all(dir).map_err(failed)?;
    for command in commands {
        let name = format!("{}.1", command.get_name());
        fs::write(dir.join(name), page(command)?).map_err(failed)?;
    }
    for (name, chapter, about, text) in DOCUMENTS {
        let page = man_text::page(name, chapter, about, text);
        fs::write(dir.join(format!("{name}.{chapter}")), page).map_err(failed)?;
    }
    Ok(())
}

/// Shows the manual of `command`: through a pager on a terminal, plainly otherwise.
pub(crate) fn show(command: &Command) -> Result<(), Failure> {
    let text = plain_text(&page(command)?, terminal::text_width());
    if std::io::stdout().is_terminal() && shown_by_pager(&text) {
        return Ok(());
    }
    output::print(&text)
}

/// Runs the pager; false when there is none, or it could not be started.
fn shown_by_pager(text: &str) -> bool {
    let pager = std::env::var("PAGER")
        .ok()
        .filter(|pager| !pager.is_empty());
    let pager = pager.as_deref().unwrap_or(PAGER_DEFAULT);
    if pager == "cat" {
        return false;
    }
    let child = Process::new("/bin/sh")
        .args(["-c", pager])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        // The user may leave the pager before it has read everything.
        drop(input.write_all(text.as_bytes()));
    }
    // 127 is the shell's "no such command".
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// Renders the few requests of roff that our pages use as text of at most `width` columns.
fn plain_text(roff: &str, width: usize) -> String {
    let mut page = PlainText {
        text: String::new(),
        width,
        indent: INDENT,
        tag_follows: false,
        paragraph: String::new(),
    };
    for line in roff.lines() {
        page.line(line);
    }
    page.end_paragraph();
    page.text
}

struct PlainText {
    text: String,
    width: usize,
    indent: usize,
    /// The next line names the item that the lines after it explain.
    tag_follows: bool,
    paragraph: String,
}

impl PlainText {
    fn line(&mut self, line: &str) {
        let (request, rest) = line.split_once(' ').unwrap_or((line, ""));
        match request {
            ".TH" | ".ie" | ".el" | ".nf" | ".fi" => {}
            ".SH" | ".SS" => self.heading(&unescape(rest)),
            ".TP" => {
                self.end_paragraph();
                self.text.push('\n');
                self.indent = INDENT;
                self.tag_follows = true;
            }
            ".RS" => {
                self.end_paragraph();
                self.indent += INDENT;
            }
            ".RE" => {
                self.end_paragraph();
                self.indent = self.indent.saturating_sub(INDENT).max(INDENT);
            }
            ".br" => self.end_paragraph(),
            ".IP" => {
                self.end_paragraph();
                self.paragraph.push('-');
            }
            ".PP" | ".sp" | ".P" => {
                self.end_paragraph();
                self.text.push('\n');
            }
            _ if request.starts_with('.') => {}
            _ if line.trim().is_empty() => {
                self.end_paragraph();
                self.text.push('\n');
            }
            _ if self.tag_follows => {
                self.push_wrapped(&unescape(line));
                self.tag_follows = false;
                self.indent = 2 * INDENT;
            }
            // What starts with a space is laid out already, such as a table.
            _ if line.starts_with(' ') => {
                self.end_paragraph();
                self.push_laid_out(&unescape(line));
            }
            _ => {
                if !self.paragraph.is_empty() {
                    self.paragraph.push(' ');
                }
                self.paragraph.push_str(&unescape(line));
            }
        }
    }

    fn heading(&mut self, title: &str) {
        self.end_paragraph();
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(title.trim_matches('"'));
        self.text.push('\n');
        self.indent = INDENT;
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if !paragraph.is_empty() {
            self.push_wrapped(&paragraph);
        }
    }

    /// Adds a line of a table; what is too long for the page goes on below its last column.
    fn push_laid_out(&mut self, line: &str) {
        let mut rest = line.to_owned();
        loop {
            let room = self.width.saturating_sub(self.indent);
            let too_long = rest.char_indices().nth(room).map(|(at, _)| at);
            let last_space = too_long.and_then(|end| rest[..end].rfind(' '));
            let column = rest.trim_end().rfind("  ").map_or(0, |at| at + 2);
            self.text.push_str(&" ".repeat(self.indent));
            match last_space.filter(|at| *at > column) {
                Some(at) => {
                    self.text.push_str(rest[..at].trim_end());
                    self.text.push('\n');
                    rest = format!("{}{}", " ".repeat(column), &rest[at + 1..]);
                }
                None => {
                    self.text.push_str(&rest);
                    self.text.push('\n');
                    return;
                }
            }
        }
    }

    fn push_wrapped(&mut self, text: &str) {
        let margin = " ".repeat(self.indent);
        let mut column = 0;
        for word in text.split_whitespace() {
            let word_len = word.chars().count();
            if column > 0 && column + 1 + word_len > self.width {
                self.text.push('\n');
                column = 0;
            }
            if column == 0 {
                self.text.push_str(&margin);
                column = self.indent;
            } else {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(word);
            column += word_len;
        }
        self.text.push('\n');
    }
}

/// Removes font changes and resolves the escapes of roff.
fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let (replacement, skip) = match after.as_bytes() {
            [b'f', _, ..] => ("", 2),
            [b'*', b'(', b'A', b'q', ..] => ("'", 4),
            [b'(', b'a', b'q', ..] => ("'", 3),
            [b'-', ..] => ("-", 1),
            [b'\\', ..] => ("\\", 1),
            [b'e', ..] => ("\\", 1),
            [b' ', ..] => (" ", 1),
            _ => ("", after.chars().next().map_or(0, char::len_utf8)),
        };
        text.push_str(replacement);
        rest = after.get(skip..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_headings_items_and_escapes() {
        let roff = ".TH x 1\n.SH NAME\nx \\- does things\n.SH OPTIONS\n.TP\n\\fB\\-f\\fR, \\fB\\-\\-force\\fR\nOverwrite it, \\*(Aqnow\\*(Aq\n.TP\nnext\nlast";
        assert_eq!(
            plain_text(roff, 80),
            "NAME\n       x - does things\n\nOPTIONS\n\n       -f, --force\n              Overwrite it, 'now'\n\n       next\n              last\n"
        );
    }

    #[test]
    fn tables_stay_laid_out() {
        let table = "text\n  key    value\n  longer one two three\n  other  one two three";
        assert_eq!(
            plain_text(table, 22),
            "       text\n         key    value\n         longer one\n         two three\n         other  one\n                two\n                three\n"
        );
    }

    #[test]
    fn wraps_at_the_width() {
        assert_eq!(
            plain_text("aaa bbb ccc", 15),
            "       aaa bbb\n       ccc\n"
        );
    }
}
