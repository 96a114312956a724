//! Names from images and trees in text output: control characters must not reach the terminal.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `bytes` as text: control characters as `\n`, `\t` or `\xNN`, a backslash doubled, bytes that are not UTF-8 as `\xNN`.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut text, character);
        }
        for byte in chunk.invalid() {
            push_hex(&mut text, u32::from(*byte));
        }
    }
    text
}

/// As [`bytes`], for a path of this system.
pub(crate) fn path(path: &Path) -> String {
    bytes(path.as_os_str().as_bytes())
}

fn push_escaped(text: &mut String, character: char) {
    match character {
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\\' => text.push_str("\\\\"),
        '\0'..='\x1f' | '\x7f' => push_hex(text, u32::from(character)),
        // C1 controls start escape sequences on some terminals, and bidirectional overrides reorder what is read.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            text.extend(character.escape_unicode());
        }
        _ => text.push(character),
    }
}

fn push_hex(text: &mut String, value: u32) {
    text.push_str(&format!("\\x{value:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_text_and_escapes_the_rest() {
        let check = |input: &[u8], expect: &str| assert_eq!(bytes(input), expect);
        check(b"plain name.txt", "plain name.txt");
        check("f\u{fc}r".as_bytes(), "f\u{fc}r");
        check(b"a\nb\tc\\d", "a\\nb\\tc\\\\d");
        check(b"\x1b[31m", "\\x1b[31m");
        check(b"bad\xff", "bad\\xff");
        check("\u{9b}31m".as_bytes(), "\\u{9b}31m");
        check("\u{202e}gpj".as_bytes(), "\\u{202e}gpj");
    }
}
