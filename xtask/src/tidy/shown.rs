//! Tables whose last column names tests (docs/compat.md): every row has one, and every one exists.

use std::path::Path;

/// The heading of the column.
const HEADING: &str = "Shown by";

/// Complains about rows of `text` that name no test, and about tests that do not exist.
pub(super) fn check(path: &Path, text: &str, read: impl Fn(&Path) -> String) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_table = false;
    for (index, line) in text.lines().enumerate() {
        let Some(row) = line.strip_prefix('|') else {
            is_table = false;
            continue;
        };
        let last = last_cell(row);
        if last == HEADING {
            is_table = true;
            continue;
        }
        if row.starts_with("---") {
            continue;
        }
        let place = format!("{}:{}", path.display(), index + 1);
        if !is_table {
            complaints.push(format!("{place}: a table without '{HEADING}'"));
            continue;
        }
        let is_excused = last
            .strip_prefix("no test: ")
            .is_some_and(|why| !why.is_empty());
        let tests: Vec<_> = last.split('`').filter(|part| part.contains("::")).collect();
        if tests.is_empty() && !is_excused {
            complaints.push(format!("{place}: no test"));
        }
        let missing = tests.into_iter().filter(|test| !exists(test, &read));
        complaints.extend(missing.map(|test| format!("{place}: no such test: {test}")));
    }
    complaints
}

/// What stands in the last cell of a row, whose cells may have `\|` in them.
fn last_cell(row: &str) -> &str {
    let row = row.trim_end().trim_end_matches('|');
    let mut bars = row.match_indices('|').map(|(at, _)| at);
    let start = bars.rfind(|at| !row[..*at].ends_with('\\'));
    start.map_or(row, |at| &row[at + 1..]).trim()
}

/// Whether `FILE::NAME` is a test, the file being below `crates/`.
fn exists(test: &str, read: impl Fn(&Path) -> String) -> bool {
    let Some((file, name)) = test.split_once("::") else {
        return false;
    };
    let text = read(&Path::new("crates").join(file));
    let head = format!("fn {name}()");
    let is_test = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end();
        // Other attributes may stand between the two.
        let from = before.rfind('}').map_or(0, |end| end + 1);
        before[from..].contains("#[test]")
    };
    text.match_indices(&head).any(is_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_tests_that_exist() {
        let read = |path: &Path| match path.to_str() {
            Some("crates/a/tests/it.rs") => "fn helper() {}\n#[test]\nfn works() {}\n".to_owned(),
            _ => String::new(),
        };
        let table = "| What | Shown by |\n|---|---|\n\
                     | x \\| y | `a/tests/it.rs::works` |\n\
                     | far | no test: too far |\n\
                     | none | |\n\
                     | gone | `a/tests/it.rs::gone`, `b.rs::works` |\n\
                     | no test | `a/tests/it.rs::helper` |\n\
                     \n| Other |\n|---|\n| row |\n";
        let complaints = check(Path::new("t.md"), table, read);
        let expect = [
            "t.md:5: no test",
            "t.md:6: no such test: a/tests/it.rs::gone",
            "t.md:6: no such test: b.rs::works",
            "t.md:7: no such test: a/tests/it.rs::helper",
            "t.md:9: a table without 'Shown by'",
            "t.md:11: a table without 'Shown by'",
        ];
        assert_eq!(complaints, expect);
    }
}
