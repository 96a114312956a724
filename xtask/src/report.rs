//! Sizes, ratios and times for people.

use std::time::Duration;

use durin_testkit::tree::{Kind, Tree};

/// Shows bytes with a binary unit.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Shows a number with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Shows seconds.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Shows a part as percent of a whole.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// What a tree holds.
pub(crate) struct Census {
    pub(crate) files: u64,
    pub(crate) directories: u64,
    pub(crate) others: u64,
    /// Bytes outside holes, each inode counted once.
    pub(crate) bytes: u64,
}

/// Counts what a tree holds.
pub(crate) fn census(tree: &Tree) -> Census {
    let mut census = Census {
        files: 0,
        directories: 0,
        others: 0,
        bytes: 0,
    };
    for (index, node) in tree.nodes.iter().enumerate() {
        match node.kind {
            Kind::File => census.files += 1,
            Kind::Directory => census.directories += 1,
            _ => census.others += 1,
        }
        if node.kind == Kind::File && node.link_leader == index {
            census.bytes += if node.digest.is_some() {
                node.data_len()
            } else {
                node.size
            };
        }
    }
    census
}

impl std::fmt::Display for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            files,
            directories,
            others,
            ..
        } = self;
        let (files, directories) = (count(*files), count(*directories));
        write!(
            f,
            "{files} files, {directories} directories, {} others",
            count(*others)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let check = |number, expect: &str| assert_eq!(count(number), expect);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
        assert_eq!(
            (size(1023), size(1536)),
            ("1023 B".to_owned(), "1.5 KiB".to_owned())
        );
        assert_eq!(percent(1, 3), "33.3 %");
    }
}
