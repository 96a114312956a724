//! Differences between what a tree is and what it should be, in words.
//!
//! Both functions give one line a difference and an empty list when there is none; [`assert_same`] panics with them.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::manifest::{Manifest, ManifestEntry};
use crate::tree::{Kind, Node, Tree};

/// What of two trees must agree beside paths, types, permissions, sizes, targets, device numbers and contents.
#[derive(Debug, Clone, Copy)]
pub struct Aspects {
    /// Owner and group.
    pub owner: bool,
    /// Modification times, after rounding the expected ones down to this many nanoseconds.
    pub mtime_ns: Option<u64>,
    /// Access times, likewise; those of an image that keeps only modification times are not comparable.
    pub atime_ns: Option<u64>,
    /// Which paths are links to one inode, and the link counts.
    pub links: bool,
    /// Permissions of symlinks, which a disk does not keep and a mount does.
    pub symlink_modes: bool,
    /// Holes: what was sparse is as sparse again, up to the block size of a disk.
    pub holes: bool,
}

impl Aspects {
    /// Everything, with modification times at a resolution.
    #[must_use]
    pub const fn all(mtime_ns: u64) -> Self {
        Self {
            owner: true,
            mtime_ns: Some(mtime_ns),
            atime_ns: None,
            links: true,
            symlink_modes: true,
            holes: true,
        }
    }
}

/// The way by which a tree with a manifest came to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Through a mount: everything must be exactly as the manifest says.
    Mounted,
    /// As the source from which an image was built that keeps all modification times.
    Source,
    /// Unpacked to a disk: change times are the disk's, and so are permissions of symlinks and the size of a hole's edges.
    Extracted,
}

/// Blocks of a disk are at most this long: a data range grows by less than this at each end when it is unpacked.
const DISK_BLOCK_MAX: u64 = 4096;

/// Compares two trees.
#[must_use]
pub fn trees(expected: &Tree, found: &Tree, aspects: &Aspects) -> Vec<String> {
    let mut differences = Vec::new();
    let expected_links = link_counts(expected);
    let mut leaders = BTreeMap::new();
    let mut found_nodes = found.nodes.iter().enumerate().peekable();
    for (index, node) in expected.nodes.iter().enumerate() {
        while let Some((_, extra)) = found_nodes.next_if(|(_, other)| other.path < node.path) {
            differences.push(format!("{}: not expected", shown(&extra.path)));
        }
        let Some((found_index, other)) = found_nodes.next_if(|(_, other)| other.path == node.path)
        else {
            differences.push(format!("{}: missing", shown(&node.path)));
            continue;
        };
        let mut check = Check {
            path: &node.path,
            differences: &mut differences,
        };
        compare_nodes(&mut check, node, other, aspects);
        if aspects.links && node.kind == Kind::File {
            check.same(
                "link count",
                &expected_links[node.link_leader],
                &other.nlink,
            );
            if node.link_leader == index {
                leaders.insert(index, found_index);
            }
            let leader = leaders.get(&node.link_leader).copied();
            check.same("link to", &leader, &Some(other.link_leader));
        }
    }
    for (_, extra) in found_nodes {
        differences.push(format!("{}: not expected", shown(&extra.path)));
    }
    differences
}

fn compare_nodes(check: &mut Check<'_>, node: &Node, other: &Node, aspects: &Aspects) {
    check.same("type", &node.kind.name(), &other.kind.name());
    if aspects.symlink_modes || node.kind != Kind::Symlink {
        check.same_mode(node.mode, other.mode);
    }
    if aspects.owner {
        check.same("owner", &(node.uid, node.gid), &(other.uid, other.gid));
    }
    if let Some(resolution) = aspects.mtime_ns {
        check.same("mtime", &node.mtime.floor(resolution), &other.mtime);
    }
    if let Some(resolution) = aspects.atime_ns {
        check.same("atime", &node.atime.floor(resolution), &other.atime);
    }
    check.same("target", &shown(&node.target), &shown(&other.target));
    check.same("device number", &node.rdev, &other.rdev);
    if node.kind == Kind::File {
        check.same("size", &node.size, &other.size);
        check.same_digest(node.digest.as_ref(), other.digest.as_ref());
        let is_sparse = node.digest.is_some() && node.data_len() < node.size;
        if aspects.holes && is_sparse {
            let most = node.data_len() + slack(other.data.len().min(node.data.len() + 1));
            if other.data_len() > most {
                check.differs("bytes outside holes", &node.data_len(), &other.data_len());
            }
        }
    }
}

/// Compares a tree with a manifest.
#[must_use]
pub fn manifest(expected: &Manifest, found: &Tree, seen: Seen) -> Vec<String> {
    let mut differences = Vec::new();
    let groups = inode_groups(expected);
    let dir_lens = dir_lens(found);
    for entry in &expected.entries {
        let Some(node) = found.find(&entry.path) else {
            differences.push(format!("{}: missing", shown(&entry.path)));
            continue;
        };
        let mut check = Check {
            path: &entry.path,
            differences: &mut differences,
        };
        compare_attributes(&mut check, entry, node, seen);
        match entry.kind {
            Kind::Directory => {
                let dir_len = dir_lens.get(entry.path.as_slice()).copied().unwrap_or(0);
                check.same("entries", &entry.dir_len, &Some(dir_len));
            }
            Kind::File => {
                compare_content(&mut check, entry, node, seen);
                let group = &groups[&entry.inode];
                if seen != Seen::Extracted || group.uniform {
                    check.same("link count", &entry.nlink.map(u64::from), &Some(node.nlink));
                }
                if group.uniform {
                    let leader = &found.nodes[node.link_leader].path;
                    check.same("link to", &shown(&group.first_path), &shown(leader));
                }
            }
            _ => {}
        }
    }
    let known: std::collections::BTreeSet<_> = expected.entries.iter().map(|e| &e.path).collect();
    for node in found
        .nodes
        .iter()
        .filter(|node| !known.contains(&node.path))
    {
        differences.push(format!("{}: not expected", shown(&node.path)));
    }
    differences
}

fn compare_attributes(check: &mut Check<'_>, entry: &ManifestEntry, node: &Node, seen: Seen) {
    check.same("type", &entry.kind.name(), &node.kind.name());
    if seen != Seen::Extracted || entry.kind != Kind::Symlink {
        check.same_mode(entry.mode, node.mode);
    }
    if seen != Seen::Extracted || crate::skip::is_root() {
        check.same("owner", &(entry.uid, entry.gid), &(node.uid, node.gid));
    }
    check.same("mtime", &entry.mtime, &(node.mtime.sec, node.mtime.nsec));
    if seen != Seen::Source {
        check.same(
            "atime",
            &entry.atime.unwrap_or(entry.mtime.0),
            &node.atime.sec,
        );
    }
    if seen == Seen::Mounted {
        check.same(
            "ctime",
            &entry.ctime.unwrap_or(entry.mtime.0),
            &node.ctime.sec,
        );
    }
    check.same("device number", &entry.rdev.unwrap_or(0), &node.rdev);
    let target = entry.target.as_deref().unwrap_or_default();
    check.same("target", &shown(target), &shown(&node.target));
}

fn compare_content(check: &mut Check<'_>, entry: &ManifestEntry, node: &Node, seen: Seen) {
    check.same("size", &entry.size, &Some(node.size));
    check.same_digest(entry.sha256.as_ref(), node.digest.as_ref());
    let allocated = entry.allocated_size.or(entry.size).unwrap_or(0);
    let data_len = node.data_len();
    match seen {
        Seen::Mounted => {
            let blocks_len = allocated.div_ceil(512) * 512;
            check.same("allocated size", &blocks_len, &node.allocated);
            check.same("bytes outside holes", &allocated, &data_len);
        }
        Seen::Source => check.same("bytes outside holes", &data_len, &allocated),
        Seen::Extracted => {
            if data_len < allocated || data_len > allocated + slack(node.data.len()) {
                check.differs("bytes outside holes", &allocated, &data_len);
            }
        }
    }
}

/// What rounding to blocks of a disk can add to this many data ranges.
fn slack(ranges: usize) -> u64 {
    2 * DISK_BLOCK_MAX * ranges as u64
}

/// Files of a manifest that share an inode.
struct InodeGroup {
    first_path: Vec<u8>,
    /// Whether all have the same attributes, so that they can be links to one inode anywhere.
    uniform: bool,
}

fn inode_groups(manifest: &Manifest) -> BTreeMap<u64, InodeGroup> {
    let attributes = |entry: &ManifestEntry| {
        (
            entry.mode,
            entry.uid,
            entry.gid,
            entry.mtime,
            entry.atime,
            entry.ctime,
        )
    };
    let mut members: BTreeMap<u64, Vec<&ManifestEntry>> = BTreeMap::new();
    for entry in manifest
        .entries
        .iter()
        .filter(|entry| entry.kind == Kind::File)
    {
        members.entry(entry.inode).or_default().push(entry);
    }
    let group = |entries: Vec<&ManifestEntry>| InodeGroup {
        first_path: entries
            .iter()
            .map(|entry| entry.path.clone())
            .min()
            .unwrap_or_default(),
        uniform: entries
            .iter()
            .all(|entry| attributes(entry) == attributes(entries[0])),
    };
    members
        .into_iter()
        .map(|(inode, entries)| (inode, group(entries)))
        .collect()
}

fn dir_lens(tree: &Tree) -> BTreeMap<&[u8], u64> {
    let mut lens = BTreeMap::new();
    for node in tree.nodes.iter().filter(|node| !node.path.is_empty()) {
        let slash = node
            .path
            .iter()
            .rposition(|&byte| byte == b'/')
            .unwrap_or(0);
        *lens.entry(&node.path[..slash]).or_insert(0) += 1;
    }
    lens
}

/// How many paths of the tree are links to the inode of each leader.
fn link_counts(tree: &Tree) -> Vec<u64> {
    let mut counts = vec![0; tree.nodes.len()];
    for node in &tree.nodes {
        counts[node.link_leader] += 1;
    }
    counts
}

/// Panics with the differences, if there are any.
///
/// # Panics
///
/// If the list is not empty.
pub fn assert_same(what: &str, differences: &[String]) {
    const SHOWN_MAX: usize = 40;
    if differences.is_empty() {
        return;
    }
    let shown = differences
        .iter()
        .take(SHOWN_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n  ");
    panic!("{what}: {} differences\n  {shown}", differences.len());
}

/// Collects the differences at one path.
struct Check<'a> {
    path: &'a [u8],
    differences: &'a mut Vec<String>,
}

impl Check<'_> {
    fn same<T: PartialEq + Debug>(&mut self, what: &str, expected: &T, found: &T) {
        if expected != found {
            self.differs(what, expected, found);
        }
    }

    fn differs(&mut self, what: &str, expected: &dyn Debug, found: &dyn Debug) {
        let path = shown(self.path);
        self.differences.push(format!(
            "{path}: {what}: expected {expected:?}, found {found:?}"
        ));
    }

    fn same_mode(&mut self, expected: u32, found: u32) {
        self.same("mode", &format!("{expected:o}"), &format!("{found:o}"));
    }

    fn same_digest(&mut self, expected: Option<&[u8; 32]>, found: Option<&[u8; 32]>) {
        let hex = |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.same::<Option<String>>("content", &expected.map(hex), &found.map(hex));
    }
}

fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        "(top)".to_owned()
    } else {
        path.escape_ascii().to_string()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::tree::{Digest, TreeOptions, snapshot};
    use std::path::Path;

    fn read(path: &Path) -> Tree {
        snapshot(
            path,
            &TreeOptions {
                digest: Digest::Positions,
            },
        )
        .unwrap()
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::write(top.join("content"), b"one").unwrap();
        std::fs::write(top.join("gone"), b"").unwrap();
        std::fs::write(top.join("linked"), b"").unwrap();
        std::fs::hard_link(top.join("linked"), top.join("linked2")).unwrap();
        std::os::unix::fs::symlink("here", top.join("target")).unwrap();
        let before = read(top);
        assert_eq!(
            trees(&before, &before, &Aspects::all(1)),
            Vec::<String>::new()
        );

        std::fs::write(top.join("content"), b"two").unwrap();
        std::fs::remove_file(top.join("gone")).unwrap();
        std::fs::remove_file(top.join("linked2")).unwrap();
        std::fs::copy(top.join("linked"), top.join("linked2")).unwrap();
        std::fs::remove_file(top.join("target")).unwrap();
        std::os::unix::fs::symlink("there", top.join("target")).unwrap();
        std::fs::write(top.join("new"), b"").unwrap();
        let differences = trees(&before, &read(top), &Aspects::all(1)).join("\n");
        for expect in [
            "content: content",
            "content: mtime",
            "gone: missing",
            "new: not expected",
            "linked2: link to",
            "linked: link count",
            "target: target: expected \"here\", found \"there\"",
        ] {
            assert!(
                differences.contains(expect),
                "{expect} is not in\n{differences}"
            );
        }
    }
}
