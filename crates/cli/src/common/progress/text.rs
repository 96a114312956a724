//! Text that fits into columns: paths are cut in the middle, and what the terminal cannot show is replaced.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The characters that the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Ascii,
    Unicode,
}

impl Charset {
    /// Returns `text` with one mark for each character that the terminal does not have.
    fn shown(self, text: &str) -> String {
        let shown = |c: char| match self {
            // Nothing may move the cursor, whatever a name holds.
            _ if c.is_control() => '?',
            Self::Ascii if !c.is_ascii() => '?',
            _ => c,
        };
        text.chars().map(shown).collect()
    }

    fn ellipsis(self) -> &'static str {
        match self {
            Self::Ascii => "...",
            Self::Unicode => "\u{2026}",
        }
    }
}

/// Returns how many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns `text` in at most `width` columns. What is too long loses its middle: both ends of a path say more.
pub(crate) fn fit(text: &str, width: usize, charset: Charset) -> String {
    let text = charset.shown(text);
    if columns(&text) <= width {
        return text;
    }
    let ellipsis = charset.ellipsis();
    let Some(room) = width.checked_sub(columns(ellipsis)) else {
        return take(text.chars(), width);
    };
    let tail_room = room * 2 / 3;
    let tail: String = take(text.chars().rev(), tail_room).chars().rev().collect();
    let head = take(text.chars(), room - columns(&tail));
    format!("{head}{ellipsis}{tail}")
}

/// As many characters as fit.
fn take(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or_default();
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_in_the_middle() {
        let check = |text: &str, width, charset, expect: &str| {
            assert_eq!(fit(text, width, charset), expect);
            assert!(columns(expect) <= width);
        };
        check("short", 5, Charset::Ascii, "short");
        check("a/long/path/to/file", 12, Charset::Ascii, "a/l...o/file");
        check(
            "a/long/path/to/file",
            12,
            Charset::Unicode,
            "a/lo\u{2026}to/file",
        );
        check("abcdef", 2, Charset::Ascii, "ab");
        check("abcdef", 0, Charset::Unicode, "");
        // Two columns each.
        check(
            "\u{4e00}\u{4e8c}\u{4e09}\u{56db}",
            5,
            Charset::Unicode,
            "\u{4e00}\u{2026}\u{56db}",
        );
        check("\u{4e00}\u{4e8c}", 10, Charset::Ascii, "??");
        check("a\x1b[2Jb", 10, Charset::Unicode, "a?[2Jb");
    }
}
