//! Whether what a tool gives back is what it was given: a wrong result is a failure, not a small or fast one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use durin_testkit::compare::{Aspects, trees};
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::skip::is_root;
use durin_testkit::tree::{Kind, Tree, snapshot};

use super::definition::Keeps;

/// Of modification times: tar and squashfs keep no more.
const RESOLUTION_NS: u64 = 1_000_000_000;

/// Differences between a tree and what was unpacked at `target`, in words.
pub(super) fn differences(expected: &Tree, target: &Path, keeps: Keeps) -> Result<Vec<String>> {
    let mut found = snapshot(target, &POSITIONS)?;
    for node in &mut found.nodes {
        // Some formats keep more than the seconds that all have.
        node.mtime = node.mtime.floor(RESOLUTION_NS);
    }
    Ok(match keeps {
        Keeps::All => {
            let aspects = Aspects {
                owner: is_root(),
                // A disk has no permissions of symlinks, and few tools look for holes.
                symlink_modes: false,
                holes: false,
                ..Aspects::all(RESOLUTION_NS)
            };
            trees(expected, &found, &aspects)
        }
        Keeps::Contents => contents(expected, &found),
    })
}

fn contents(expected: &Tree, found: &Tree) -> Vec<String> {
    let (expected, mut found) = (files(expected), files(found));
    let mut differences = Vec::new();
    for (path, content) in expected {
        let shown = String::from_utf8_lossy(path);
        match found.remove(path) {
            None => differences.push(format!("{shown}: missing")),
            Some(other) if other != content => differences.push(format!("{shown}: content")),
            Some(_) => {}
        }
    }
    differences.extend(
        found
            .keys()
            .map(|path| format!("{}: not expected", String::from_utf8_lossy(path))),
    );
    differences
}

type Content<'a> = (u64, &'a Option<[u8; 32]>);

fn files(tree: &Tree) -> BTreeMap<&[u8], Content<'_>> {
    let files = tree.nodes.iter().filter(|node| node.kind == Kind::File);
    files
        .map(|node| (node.path.as_slice(), (node.size, &node.digest)))
        .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn tree_of(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    #[test]
    fn each_difference_is_named() {
        let source = tree_of(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let expected = snapshot(source.path(), &POSITIONS).unwrap();
        let target = tree_of(&[("a", "1"), ("b", "x"), ("d", "")]);
        let check = |keeps| differences(&expected, target.path(), keeps).unwrap();
        assert_eq!(
            check(Keeps::Contents),
            ["b: content", "c: missing", "d: not expected"]
        );
        assert!(check(Keeps::All).len() >= 3);
        assert!(
            differences(&expected, source.path(), Keeps::All)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn contents_alone_leave_links_and_modes_out() {
        let source = tree_of(&[("a", "1")]);
        std::os::unix::fs::symlink("a", source.path().join("link")).unwrap();
        let expected = snapshot(source.path(), &POSITIONS).unwrap();
        let target = tree_of(&[("a", "1")]);
        let check = |keeps| differences(&expected, target.path(), keeps).unwrap();
        assert!(check(Keeps::Contents).is_empty());
        assert!(!check(Keeps::All).is_empty());
    }
}
