//! What each directory takes, with all below it, as a tree in one list: parents come before their children, and nothing
//! recurses, because an image says how deep its directories are.

use super::Usage;

/// Files with less than this part of both sums are not kept one by one.
const FILE_PART_MIN: u64 = 8192;

/// A directory, or a file that is large enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    /// Index of the directory it is in; of the root its own.
    pub(crate) parent: usize,
    pub(crate) name: Vec<u8>,
    pub(crate) is_dir: bool,
    /// Directories above it.
    pub(crate) depth: usize,
    /// With all that is below.
    pub(crate) usage: Usage,
}

/// The root first, then depth first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// The path of a node; empty for the root.
    pub(crate) fn path(&self, index: usize) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = index;
        while let Some(node) = self.nodes.get(at)
            && node.parent != at
        {
            names.push(node.name.as_slice());
            at = node.parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Indices of the directories down to `depth` below the root, those that take most first.
    pub(crate) fn directories(&self, depth: usize) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.nodes.len())
            .filter(|index| {
                let node = &self.nodes[*index];
                node.is_dir && (1..=depth).contains(&node.depth)
            })
            .collect();
        found.sort_by_key(|index| {
            let usage = &self.nodes[*index].usage;
            std::cmp::Reverse((usage.stored_bytes(), usage.size))
        });
        found
    }

    /// The `count_max` nodes that take most of either sum. The parents of each are among them, before it.
    pub(crate) fn largest(&self, count_max: usize) -> Vec<usize> {
        let Some(root) = self.nodes.first() else {
            return Vec::new();
        };
        let part = |of: f64, sum: f64| if sum > 0.0 { of / sum } else { 0.0 };
        let rank = |node: &Node| {
            let size = part(to_f64(node.usage.size), to_f64(root.usage.size));
            size.max(part(node.usage.stored, root.usage.stored))
        };
        let mut found: Vec<usize> = (0..self.nodes.len())
            .filter(|index| *index == 0 || self.nodes[*index].usage.size > 0)
            .collect();
        // No parent takes less than its child, rounding of the sums aside, and of equals the parent is first.
        found.sort_by(|one, other| {
            let (one, other) = (rank(&self.nodes[*one]), rank(&self.nodes[*other]));
            other.total_cmp(&one)
        });
        found.truncate(count_max);
        found.sort_unstable();
        let mut is_kept = vec![false; self.nodes.len()];
        found.retain(|index| {
            is_kept[*index] = *index == 0 || is_kept[self.nodes[*index].parent];
            is_kept[*index]
        });
        found
    }
}

/// Makes a [`Tree`] from a walk.
pub(super) struct Builder {
    tree: Tree,
    /// Directories that the walk is in: index, length of the path.
    open: Vec<(usize, usize)>,
    /// The path of the innermost one.
    path: Vec<u8>,
    /// The least that a file must take to be kept.
    size_min: u64,
    stored_min: f64,
}

impl Builder {
    /// `size` and `stored` are the sums of the image.
    pub(super) fn new(size: u64, stored: u64) -> Self {
        Self {
            tree: Tree::default(),
            open: Vec::new(),
            path: Vec::new(),
            size_min: size / FILE_PART_MIN,
            stored_min: to_f64(stored / FILE_PART_MIN),
        }
    }

    /// Goes to the directory in which `path` is.
    fn leave_for(&mut self, path: &[u8]) {
        while let Some((_, len)) = self.open.last() {
            if is_below(path, &self.path[..*len]) {
                return;
            }
            self.close();
        }
    }

    pub(super) fn directory(&mut self, path: Vec<u8>) {
        self.leave_for(&path);
        let index = self.push(&path, true, Usage::default());
        self.open.push((index, path.len()));
        self.path = path;
    }

    pub(super) fn file(&mut self, path: &[u8], usage: Usage) {
        self.leave_for(path);
        if let Some((dir, _)) = self.open.last() {
            self.tree.nodes[*dir].usage.add(usage);
        }
        if usage.size > 0 && (usage.size >= self.size_min || usage.stored >= self.stored_min) {
            self.push(path, false, usage);
        }
    }

    fn push(&mut self, path: &[u8], is_dir: bool, usage: Usage) -> usize {
        let index = self.tree.nodes.len();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        self.tree.nodes.push(Node {
            parent: self.open.last().map_or(index, |(dir, _)| *dir),
            name: name.to_vec(),
            is_dir,
            depth: self.open.len(),
            usage,
        });
        index
    }

    fn close(&mut self) {
        if let Some((index, _)) = self.open.pop() {
            let usage = self.tree.nodes[index].usage;
            if let Some((parent, len)) = self.open.last() {
                self.tree.nodes[*parent].usage.add(usage);
                self.path.truncate(*len);
            }
        }
    }

    pub(super) fn finish(mut self) -> Tree {
        while !self.open.is_empty() {
            self.close();
        }
        self.tree
    }
}

/// Whether `path` is in the directory `dir` or further below.
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty()
        || path
            .strip_prefix(dir)
            .is_some_and(|rest| rest.first() == Some(&b'/'))
}

#[expect(clippy::cast_precision_loss, reason = "parts of sums, to compare them")]
const fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64) -> Usage {
        Usage {
            files: 1,
            size,
            stored: to_f64(size) / 2.0,
        }
    }

    fn made() -> Tree {
        let mut builder = Builder::new(1000, 500);
        builder.directory(Vec::new());
        builder.file(b"top", file(100));
        builder.directory(b"a".to_vec());
        builder.directory(b"a/b".to_vec());
        builder.file(b"a/b/large", file(700));
        builder.file(b"a/small", file(150));
        builder.directory(b"ab".to_vec());
        builder.file(b"ab/last", file(50));
        builder.finish()
    }

    #[test]
    fn directories_have_all_below_them() {
        let tree = made();
        let shown: Vec<_> = tree
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (tree.path(index), node.usage.size))
            .collect();
        let expect: [(&[u8], u64); 8] = [
            (b"", 1000),
            (b"top", 100),
            (b"a", 850),
            (b"a/b", 700),
            (b"a/b/large", 700),
            (b"a/small", 150),
            (b"ab", 50),
            (b"ab/last", 50),
        ];
        assert_eq!(
            shown,
            expect.map(|(path, size)| (path.to_vec(), size)).to_vec()
        );
        let paths = |indices: Vec<usize>| -> Vec<Vec<u8>> {
            indices.into_iter().map(|index| tree.path(index)).collect()
        };
        assert_eq!(paths(tree.directories(1)), [b"a".to_vec(), b"ab".to_vec()]);
        assert_eq!(tree.directories(2).len(), 3);
    }

    #[test]
    fn the_largest_come_with_their_parents() {
        let tree = made();
        assert_eq!(tree.largest(4), [0, 2, 3, 4]);
        assert_eq!(tree.largest(100).len(), 8);
        assert_eq!(Tree::default().largest(4), [0; 0]);
    }

    #[test]
    fn depth_costs_no_stack_and_little_memory() {
        let mut builder = Builder::new(1, 1);
        let mut path = Vec::new();
        for _ in 0..30_000 {
            builder.directory(path.clone());
            path.extend_from_slice(if path.is_empty() { b"d" } else { b"/d" });
        }
        builder.file(&path, file(1));
        let tree = builder.finish();
        assert_eq!(tree.nodes[0].usage.files, 1);
        assert_eq!(tree.path(30_000), path);
    }
}
