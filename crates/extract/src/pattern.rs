//! The paths a user asks for.

use durin_format::{Error, Result};
use durin_glob::{Case, Glob};

/// A union of glob patterns.
///
/// A pattern that starts with `i:` ignores case; a leading `:` only ends such prefixes, for patterns that begin with one.
#[derive(Clone, Debug)]
pub struct PatternSet {
    globs: Vec<Glob>,
}

impl PatternSet {
    /// Parses patterns; a path matches if it matches any of them.
    ///
    /// # Errors
    /// `InvalidInput` naming the pattern and what is wrong with it.
    pub fn parse(patterns: &[impl AsRef<str>]) -> Result<Self> {
        let globs = patterns
            .iter()
            .map(|pattern| parse_one(pattern.as_ref()))
            .collect::<Result<_>>()?;
        Ok(Self { globs })
    }

    /// Whether a path of the image, without leading `/`, is asked for.
    #[must_use]
    pub fn is_match(&self, path: &[u8]) -> bool {
        self.globs.iter().any(|glob| glob.is_match(path))
    }
}

fn parse_one(pattern: &str) -> Result<Glob> {
    let (text, case) = match (pattern.strip_prefix("i:"), pattern.strip_prefix(':')) {
        (Some(text), _) => (text, Case::Insensitive),
        (None, Some(text)) => (text, Case::Sensitive),
        (None, None) => (pattern, Case::Sensitive),
    };
    Glob::parse(text, case)
        .map_err(|error| Error::invalid_input(format!("pattern '{pattern}': {error}")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn check(patterns: &[&str], path: &str, expected: bool) {
        let set = PatternSet::parse(patterns).unwrap();
        assert_eq!(
            set.is_match(path.as_bytes()),
            expected,
            "{patterns:?} {path}"
        );
    }

    #[test]
    fn prefixes() {
        check(&["i:*.TXT"], "a.txt", true);
        check(&["*.TXT"], "a.txt", false);
        check(&[":i:*.txt"], "i:a.txt", true);
        check(&["::a"], ":a", true);
    }

    #[test]
    fn any_of_them() {
        check(&["a", "b/*"], "b/c", true);
        check(&["a", "b/*"], "c", false);
    }

    #[test]
    fn the_broken_one_is_named() {
        let error = PatternSet::parse(&["a", "b["]).unwrap_err();
        assert!(error.to_string().contains("'b['"), "{error}");
    }
}
