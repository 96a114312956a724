//! The glob syntax of filters and patterns, translated to a regular expression over bytes.
//!
//! A match covers the whole path, in which `/` separates components; nothing here reads a directory.
//!
//! | token | matches |
//! |---|---|
//! | `?` | one character except `/` |
//! | `*` | any run of characters except `/`; at least one where it is a whole component |
//! | `**` | anything, `/` included; a component `**/` also matches nothing |
//! | `[abc]` `[a-z]` `[!a-z]` | one character of a set, never `/`; `]` first in the set is literal |
//! | `{a,b,c}` | alternatives, which may nest |
//! | `\x` | the character x |
//!
//! Names need not be UTF-8: where a token stands for one character, it also accepts any single byte above 0x7F.
//!
//! ```
//! use durin_glob::{Case, Glob};
//!
//! let glob = Glob::parse("src/**/*.{c,h}", Case::Sensitive)?;
//! assert!(glob.is_match(b"src/main.c") && glob.is_match(b"src/a/b/c.h"));
//! assert!(!glob.is_match(b"src/main.rs"));
//! # Ok::<(), durin_glob::GlobError>(())
//! ```
#![forbid(unsafe_code)]

mod translate;

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

/// Whether letters of either case match each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `a` and `A` differ.
    Sensitive,
    /// `a` and `A` match each other, as do other letters that Unicode folds.
    Insensitive,
}

/// One parsed pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    regex: Regex,
}

/// Why a text is not a pattern; the display form is a whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobError {
    message: String,
}

impl Glob {
    /// Parses `pattern`.
    ///
    /// # Errors
    /// Unmatched brackets or braces, `/` inside brackets, a range whose ends are in the wrong order,
    /// a backslash at the end, and patterns whose automaton would be unreasonably large.
    pub fn parse(pattern: &str, case: Case) -> Result<Self, GlobError> {
        let fail = |reason: &str| GlobError {
            message: format!("bad pattern '{pattern}': {reason}"),
        };
        let text = translate::to_regex(pattern).map_err(fail)?;
        RegexBuilder::new(&text)
            .case_insensitive(case == Case::Insensitive)
            .build()
            .map(|regex| Self { regex })
            .map_err(|_| fail("too large"))
    }

    /// Whether the pattern matches the whole of `path`.
    #[must_use]
    pub fn is_match(&self, path: &[u8]) -> bool {
        self.regex.is_match(path)
    }
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for GlobError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::parse(pattern, Case::Sensitive).expect("the pattern is good");
        for path in yes {
            assert!(glob.is_match(path.as_bytes()), "{pattern} takes {path}");
        }
        for path in no {
            assert!(!glob.is_match(path.as_bytes()), "{pattern} refuses {path}");
        }
    }

    #[test]
    fn literals_cover_the_whole_path() {
        check("a.b", &["a.b"], &["a+b", "a.bc", "xa.b", "a.b/c", "A.b"]);
        check("a\nb", &["a\nb"], &["a b"]);
        check("", &[""], &["a"]);
        check("\\*\\[\\{\\\\", &["*[{\\"], &["a[{\\"]);
    }

    #[test]
    fn single_characters() {
        check("?", &["a", "\u{e9}", "\n"], &["", "/", "ab"]);
        check("a?c", &["abc"], &["a/c", "ac"]);
    }

    #[test]
    fn one_star_stays_in_a_component() {
        check("*", &["a", "abc"], &["", "a/b"]);
        check("a/*/b", &["a/x/b"], &["a//b", "a/b", "a/x/y/b"]);
        check("a/*", &["a/x"], &["a/", "a"]);
        check("a*", &["a", "abc"], &["a/b"]);
        check("*.c", &[".c", "x.c"], &["d/x.c"]);
    }

    #[test]
    fn two_stars_cross_components() {
        check("**", &["", "a", "a/b/c"], &[]);
        check("**/b", &["b", "a/b", "x/y/b"], &["ab", "b/c"]);
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
        check("a/**", &["a/", "a/b/c"], &["a", "b/a/c"]);
        check("a**b", &["ab", "a/x/b"], &["a/x/c"]);
    }

    #[test]
    fn classes() {
        check("[abc]", &["a", "c"], &["d", "ab", ""]);
        check("[a-cx]", &["b", "x"], &["d", "-"]);
        check("[!a-c]", &["d", "\u{e9}"], &["b", "/"]);
        check("[]x]", &["]", "x"], &["y"]);
        check("[!]x]", &["y"], &["]", "x"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[+-9]", &["+", "5", "."], &["/"]);
        check("[\\]a]", &["]", "a"], &["\\"]);
        check("[&&a][~^]", &["&~", "a^"], &["b^"]);
    }

    #[test]
    fn alternatives() {
        check("{a,b}c", &["ac", "bc"], &["c", "a"]);
        check("x{,.gz}", &["x", "x.gz"], &["x.g"]);
        check("{a,b{c,d}e}", &["a", "bce", "bde"], &["be", "b"]);
        check("{*,x}/b", &["q/b", "x/b"], &["/b"]);
        check("{**/,}a", &["a", "x/y/a"], &["xa"]);
        check("a,b", &["a,b"], &["a", "b"]);
        check("{[,],\\,}", &[","], &[""]);
    }

    #[test]
    fn case_and_foreign_bytes() {
        let glob = Glob::parse("\u{c9}*.JPG", Case::Insensitive).expect("good");
        assert!(glob.is_match("\u{e9}t\u{e9}.jpg".as_bytes()));
        let glob = Glob::parse("a?[!x]*", Case::Sensitive).expect("good");
        assert!(glob.is_match(b"a\xff\xfe\x80z"));
    }

    #[test]
    fn bad_patterns_say_why() {
        for (pattern, reason) in [
            ("[a", "'[' without ']'"),
            ("a]", "']' without '['"),
            ("{a,b", "'{' without '}'"),
            ("a}", "'}' without '{'"),
            ("[a/b]", "'/' between '[' and ']'"),
            ("[z-a]", "range with its ends in the wrong order"),
            ("[!]", "'[' without ']'"),
            ("a\\", "'\\' at the end"),
            ("[a\\", "'[' without ']'"),
        ] {
            let error = Glob::parse(pattern, Case::Sensitive).expect_err(pattern);
            assert_eq!(
                error.to_string(),
                format!("bad pattern '{pattern}': {reason}")
            );
        }
        assert!(Glob::parse(&"{".repeat(100_000), Case::Sensitive).is_err());
        let deep = "{".repeat(1000) + &"}".repeat(1000);
        assert!(Glob::parse(&deep, Case::Sensitive).is_err());
    }
}
