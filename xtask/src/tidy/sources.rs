//! Rules about single files: documented modules, plain characters, no loose ends, no machine's paths; and that every
//! test file is compiled.

use crate::say::say;
use std::path::{Path, PathBuf};

/// Longer files are named, not refused: many began as one good module.
const LINES_MAX: usize = 700;

/// Paths that only exist on somebody's machine. Written in pieces, so that this file passes.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/", "bash_jobs"),
];

/// Words that mark a loose end; each needs the number of an issue behind it.
const LOOSE_ENDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Complains about one file.
pub(super) fn check(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let mut complaints = Vec::new();
    if is_rust && !text.starts_with("//!") {
        complaints.push(format!(
            "{shown}:1: does not start with module documentation (//!)"
        ));
    }
    if is_rust && text.lines().count() > LINES_MAX {
        say!("note: {shown} has more than {LINES_MAX} lines");
    }
    for (index, line) in text.lines().enumerate() {
        let place = format!("{shown}:{}", index + 1);
        if is_rust && !line.is_ascii() {
            complaints.push(format!("{place}: not ASCII"));
        }
        if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
            complaints.push(format!("{place}: a path of one machine ({path})"));
        }
        if is_rust && let Some(word) = LOOSE_ENDS.iter().find(|word| is_loose_end(line, word)) {
            complaints.push(format!("{place}: {word} without an issue"));
        }
    }
    complaints
}

/// Whether a word stands in a line, not as part of another, and no issue follows it.
fn is_loose_end(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + word.len()..]);
        !before.ends_with(is_letter) && !after.starts_with(is_letter) && !after.starts_with("(#")
    })
}

/// Complains about files of a test binary (`tests/NAME/main.rs` and what is beside it) that it does not declare.
pub(super) fn undeclared_tests(tracked: &[PathBuf], read: impl Fn(&Path) -> String) -> Vec<String> {
    let mut complaints = Vec::new();
    for main in tracked.iter().filter(|path| path.ends_with("main.rs")) {
        let Some(dir) = main.parent().filter(|dir| is_test_dir(dir)) else {
            continue;
        };
        let text = read(main);
        let beside = tracked
            .iter()
            .filter(|path| path.parent() == Some(dir) && *path != main);
        for file in beside.filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
            let module = file.file_stem().unwrap_or_default().to_string_lossy();
            if !text
                .lines()
                .any(|line| line.trim() == format!("mod {module};"))
            {
                complaints.push(format!("{}: not declared in main.rs", file.display()));
            }
        }
    }
    complaints
}

fn is_test_dir(dir: &Path) -> bool {
    dir.parent().is_some_and(|parent| parent.ends_with("tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(Path::new(path), text).len()
    }

    #[test]
    fn files_are_judged() {
        assert_eq!(count("a.rs", "//! Documented.\nfn main() {}\n"), 0);
        assert_eq!(count("a.rs", "fn main() {}\n"), 1);
        assert_eq!(count("a.md", "no module\n"), 0);
        assert_eq!(count("a.rs", "//! na\u{ef}ve\n"), 1);
        assert_eq!(count("a.md", "na\u{ef}ve\n"), 0);
        assert_eq!(count("a.md", concat!("see /wo", "rk/main\n")), 1);
        assert_eq!(count("a.rs", concat!("//! x\n// TO", "DO: later\n")), 1);
        assert_eq!(
            count("a.rs", concat!("//! x\n// TO", "DO(#12): later\n")),
            0
        );
        assert_eq!(
            count("a.rs", concat!("//! x\nconst MASTO", "DON: u8 = 1;\n")),
            0
        );
    }

    #[test]
    fn test_files_must_be_declared() {
        let tracked = [
            "c/tests/it/main.rs",
            "c/tests/it/used.rs",
            "c/tests/it/lost.rs",
        ];
        let complaints = undeclared_tests(&tracked.map(PathBuf::from), |_| "mod used;\n".into());
        assert_eq!(complaints, ["c/tests/it/lost.rs: not declared in main.rs"]);
    }
}
