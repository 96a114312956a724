//! Which entries of the input are left out.
//!
//! Rules are tried in order and the first that matches decides; what no rule matches is taken.
//! A pattern that ends in `/` matches directories only, any other everything else only.
//! A pattern that begins with `/` starts at the root of the input, any other at any directory.

use std::fs;
use std::path::{Path, PathBuf};

use durin_format::{Error, Result};
use durin_glob::{Case, Glob};

/// How deep rule files may name each other.
const MERGE_DEPTH_MAX: usize = 64;

/// The rules, in order.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    verdict: Verdict,
    for_dirs: bool,
    glob: Glob,
}

/// What a filter says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The entry is packed.
    Include,
    /// The entry is left out, and all below it if it is a directory.
    Exclude,
}

/// What the filter said of one entry of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The path from the root of the input, without a leading `/`.
    pub path: Vec<u8>,
    /// Whether the entry is a directory.
    pub is_dir: bool,
    /// What becomes of it.
    pub verdict: Verdict,
}

impl Filter {
    /// Takes the rules in order, each as [`Filter::add`] does.
    ///
    /// # Errors
    /// As [`Filter::add`].
    pub fn parse(rules: &[impl AsRef<str>]) -> Result<Self> {
        let mut filter = Self::default();
        for rule in rules {
            filter.add(rule.as_ref())?;
        }
        Ok(filter)
    }

    /// Adds a rule: `+ PATTERN` includes, `- PATTERN` excludes, `+i` and `-i` ignore letter case,
    /// `. FILE` takes rules from a file, where `#` begins a comment line.
    ///
    /// # Errors
    /// `InvalidInput` for a bad rule or pattern and for files that name each other in a circle; `Io` for a file that
    /// cannot be read.
    pub fn add(&mut self, rule: &str) -> Result<()> {
        self.add_nested(rule, &mut Vec::new())
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Decides about `path`, which is relative to the root of the input and has no leading `/`.
    #[must_use]
    pub fn verdict(&self, path: &[u8], is_dir: bool) -> Verdict {
        self.rules
            .iter()
            .find(|rule| rule.for_dirs == is_dir && rule.glob.is_match(path))
            .map_or(Verdict::Include, |rule| rule.verdict)
    }

    /// `open` are the rule files that are being read.
    fn add_nested(&mut self, rule: &str, open: &mut Vec<PathBuf>) -> Result<()> {
        let bad =
            |reason: &str| Error::invalid_input(format!("bad filter rule '{rule}': {reason}"));
        let (sign, argument) = rule
            .split_once([' ', '\t'])
            .ok_or_else(|| bad("a sign, a space and a pattern are needed"))?;
        let argument = argument.trim_start();
        let (verdict, case) = match sign {
            "+" => (Verdict::Include, Case::Sensitive),
            "-" => (Verdict::Exclude, Case::Sensitive),
            "+i" => (Verdict::Include, Case::Insensitive),
            "-i" => (Verdict::Exclude, Case::Insensitive),
            "." => return self.merge(Path::new(argument), open),
            _ => return Err(bad("it must begin with '+', '-', '+i', '-i' or '.'")),
        };
        let (body, for_dirs) = match argument.strip_suffix('/') {
            Some(body) => (body, true),
            None => (argument, false),
        };
        let pattern = match body.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None => format!("**/{body}"),
        };
        if body.is_empty() || pattern.is_empty() {
            return Err(bad("the pattern is empty"));
        }
        let glob = Glob::parse(&pattern, case).map_err(|error| bad(&error.to_string()))?;
        self.rules.push(Rule {
            verdict,
            for_dirs,
            glob,
        });
        Ok(())
    }

    fn merge(&mut self, path: &Path, open: &mut Vec<PathBuf>) -> Result<()> {
        let name = path.display();
        // A pipe such as `/dev/stdin` has no other name; the depth ends whatever names itself without one.
        let real_path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if open.contains(&real_path) || open.len() >= MERGE_DEPTH_MAX {
            return Err(Error::invalid_input(format!(
                "filter rules of '{name}' include themselves"
            )));
        }
        let text = fs::read_to_string(path)
            .map_err(|error| Error::io(format!("cannot read filter rules from '{name}'"), error))?;
        open.push(real_path);
        for (index, line) in text.lines().enumerate() {
            let rule = line.trim_start();
            if !rule.is_empty() && !rule.starts_with('#') {
                self.add_nested(rule, open)
                    .map_err(|error| error.context(format_args!("{name}, line {}", index + 1)))?;
            }
        }
        open.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(rules: &[&str]) -> Filter {
        Filter::parse(rules).expect("good rules")
    }

    /// Paths that end in `/` are directories.
    fn check(rules: &[&str], included: &[&str], excluded: &[&str]) {
        let filter = filter(rules);
        for (paths, verdict) in [(included, Verdict::Include), (excluded, Verdict::Exclude)] {
            for path in paths {
                let name = path.trim_end_matches('/');
                let is_dir = name.len() < path.len();
                assert_eq!(
                    filter.verdict(name.as_bytes(), is_dir),
                    verdict,
                    "{rules:?}: {path}"
                );
            }
        }
    }

    #[test]
    fn first_match_decides() {
        check(
            &["+ keep.o", "- *.o"],
            &["a/keep.o", "b.c"],
            &["x.o", "a/x.o"],
        );
        check(&["- *.o", "+ keep.o"], &["b.c"], &["keep.o"]);
        check(&[], &["a", "a/"], &[]);
    }

    #[test]
    fn anchored_or_floating() {
        check(&["- /a"], &["b/a", "a/b"], &["a"]);
        check(&["- a"], &["ab", "a/b"], &["a", "b/a", "x/y/a"]);
        check(&["- a/*.c"], &["a/b/x.c"], &["a/x.c", "z/a/x.c"]);
    }

    #[test]
    fn directories_or_the_rest() {
        check(&["- tmp/"], &["tmp", "a/tmp"], &["tmp/", "a/tmp/"]);
        check(&["- tmp"], &["tmp/"], &["tmp"]);
        check(&["- /**/"], &["a"], &["a/", "a/b/"]);
    }

    #[test]
    fn letter_case() {
        check(&["-i *.JPG"], &["x.png"], &["x.jpg", "X.Jpg"]);
        check(&["+i a", "- *"], &["A", "a"], &["b"]);
    }

    #[test]
    fn files_of_rules() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name).display().to_string();
        let inner = "# comment\n\n  - *.o\n";
        fs::write(path("inner"), inner).expect("written");
        fs::write(
            path("outer"),
            format!("+ keep.o\n. {}\n- *.a", path("inner")),
        )
        .expect("written");
        check(
            &[&format!(". {}", path("outer"))],
            &["keep.o", "x.c"],
            &["x.o", "x.a"],
        );

        fs::write(path("self"), format!("+ a\n. {}\n", path("self"))).expect("written");
        let error = Filter::default()
            .add(&format!(". {}", path("self")))
            .expect_err("circle");
        assert!(error.to_string().contains("include themselves"), "{error}");
        fs::write(path("bad"), "+ a\n? b\n").expect("written");
        let error = Filter::default()
            .add(&format!(". {}", path("bad")))
            .expect_err("bad");
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn bad_rules_say_why() {
        for bad in [
            "",
            "+",
            "+ ",
            "+ /",
            "* x",
            "+x y",
            "- [a",
            ". /nonexistent/rules",
        ] {
            assert!(Filter::default().add(bad).is_err(), "{bad}");
        }
    }
}
