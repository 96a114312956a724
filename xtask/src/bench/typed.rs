//! Finds figures in documents that look measured and were typed by hand.
//!
//! What was measured is generated between `<!-- bench: NAME -->` and `<!-- bench: end -->`. Anywhere else a number with a unit
//! of time, a rate, a percentage, a decimal size, or a size that is no power of two is taken for a measurement. A
//! constant of the design that looks like one is marked on its line by `<!-- constant -->`, which readers do not see.

/// Marks a line whose numbers are constants of the design.
const CONSTANT: &str = "<!-- constant -->";

/// What only measurements, or constants that say so, are given in.
const MEASURED: [&str; 22] = [
    "%", "percent", "s", "ms", "us", "ns", "second", "seconds", "minute", "minutes", "hour",
    "hours", "kB", "KB", "MB", "GB", "MB/s", "MiB/s", "GB/s", "GiB/s", "times", "CPU",
];
/// Sizes of the design are powers of two of these.
const SIZES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// The lines of a document with figures that nothing generates: line numbers from 1, and the figures.
pub(super) fn figures(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut is_generated, mut is_code) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("<!-- bench: ") {
            is_generated = line != "<!-- bench: end -->";
        }
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if is_generated || is_code || line.contains(CONSTANT) {
            continue;
        }
        found.extend(of_line(line).into_iter().map(|figure| (index + 1, figure)));
    }
    found
}

fn of_line(line: &str) -> Vec<String> {
    // What is between backticks is written so by users.
    let spoken: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" _ ");
    let is_end = |c: char| c.is_whitespace() || matches!(c, '|' | '(' | ')' | ';');
    let words: Vec<&str> = spoken
        .split(is_end)
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let word = word.trim_start_matches(['-', '+', '~', '<', '>']);
        let end = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
        let (number, unit) = word.split_at(end.unwrap_or(word.len()));
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let next = words.get(index + 1).copied().unwrap_or_default();
        // A sentence or its part may end between a number and what follows.
        let is_open = number.ends_with(|c: char| c.is_ascii_digit());
        let unit = if unit.is_empty() && is_open {
            next
        } else {
            unit
        };
        let unit = unit
            .trim_start_matches('-')
            .trim_end_matches(['.', ',', ':']);
        if is_measured(number, unit) {
            found.push(format!("{number} {unit}"));
        }
    }
    found
}

fn is_measured(number: &str, unit: &str) -> bool {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let value: u64 = digits.parse().unwrap_or(u64::MAX);
    let is_whole = !number.trim_end_matches(['.', ',']).contains('.');
    let is_power = is_whole && value.is_power_of_two();
    let is_long = number.matches(',').count() >= 2 && digits.len() > 6;
    MEASURED.contains(&unit) || (SIZES.contains(&unit) && !is_power) || is_long
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn measurements_are_told_from_constants() {
        let check = |line: &str, expect: &[&str]| assert_eq!(of_line(line), expect, "{line}");
        check(
            "it takes 3 to 4% less, in 10.5 s (540 MiB)",
            &["4 %", "10.5 s", "540 MiB"],
        );
        check(
            "1,234,567 bytes at 200 MB/s, 1.5 times as much",
            &["1,234,567 ", "200 MB/s", "1.5 times"].map(|figure| {
                if figure.starts_with("1,2") {
                    "1,234,567 bytes"
                } else {
                    figure
                }
            }),
        );
        check(
            "blocks of 16 MiB, 64 bytes, level 9, version 2.6, `-L 768m 5 s`",
            &[],
        );
        check("in 2026, 12 files and 16,384 members", &[]);
        check("| 9.4 s | 100 ms. |", &["9.4 s", "100 ms"]);
    }

    #[test]
    fn what_is_generated_or_constant_is_left_out() {
        let text = "5 s\n<!-- bench: x -->\n6 s\n<!-- bench: end -->\n7 s <!-- constant -->\n```\n8 s\n```\n9 ms\n";
        let found = figures(text);
        assert_eq!(found, [(1, "5 s".to_owned()), (9, "9 ms".to_owned())]);
    }

    #[test]
    fn no_measured_figure_is_typed_into_a_document() {
        let root = workspace::root();
        let mut files = vec![
            root.join("README.md"),
            root.join("ARCHITECTURE.md"),
            root.join("CONTRIBUTING.md"),
        ];
        for entry in std::fs::read_dir(root.join("docs")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        let mut found = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.strip_prefix(&root).unwrap().display().to_string();
            let lines = figures(&text).into_iter();
            found.extend(lines.map(|(line, figure)| format!("{name}:{line}: {figure}")));
        }
        assert!(
            found.is_empty(),
            "figures of no record (xtask/src/bench/typed.rs says what to do):\n{}",
            found.join("\n")
        );
    }
}
