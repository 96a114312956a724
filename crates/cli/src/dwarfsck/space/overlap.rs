//! What contents share in blocks: how much is stored once and used several times, and which contents are alike.
//!
//! All pieces are sorted by their place; one that begins before an earlier one has ended shares bytes with it. Only the
//! one that reaches furthest is compared with the next, so that the work is that of the sorting, whatever an image says.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::to_usize;

/// A chunk of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) block: u32,
    pub(super) offset: u32,
    pub(super) len: u32,
    pub(super) content: u32,
}

impl Piece {
    fn start(&self) -> u64 {
        self.offset.into()
    }

    fn end(&self) -> u64 {
        self.start() + u64::from(self.len)
    }
}

/// Bytes that two contents have in common.
#[derive(Clone, Copy, Debug)]
struct Link {
    one: u32,
    other: u32,
    len: u64,
}

/// Contents that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cluster {
    /// In ascending order.
    pub(super) contents: Vec<u32>,
    /// Bytes of all of them.
    pub(super) size: u64,
    /// Bytes that they refer to, each once.
    pub(super) distinct: u64,
}

/// What is found.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    /// Bytes of blocks that something refers to.
    pub(super) referred: u64,
    /// The clusters, by their first content.
    pub(super) clusters: Vec<Cluster>,
}

/// Looks at the pieces of all contents; `sizes` are the bytes of each content.
pub(super) fn find(mut pieces: Vec<Piece>, sizes: &[u64]) -> Overlap {
    pieces.sort_unstable_by_key(|piece| {
        (piece.block, piece.offset, Reverse(piece.len), piece.content)
    });
    let mut links = Vec::new();
    let referred = sweep(&pieces, |link| links.push(link));
    let groups = groups(links, sizes);
    let mut by_group: BTreeMap<u32, Cluster> = BTreeMap::new();
    for (content, group) in (0..).zip(&groups) {
        if let Some(group) = group {
            let cluster = by_group.entry(*group).or_default();
            cluster.contents.push(content);
            cluster.size += sizes.get(to_usize(content)).copied().unwrap_or(0);
        }
    }
    let group_of = |piece: &Piece| groups.get(to_usize(piece.content)).copied().flatten();
    pieces.retain(|piece| group_of(piece).is_some());
    // Stable: within a group pieces stay sorted by place.
    pieces.sort_by_key(group_of);
    for pieces in pieces.chunk_by(|one, other| group_of(one) == group_of(other)) {
        if let Some(cluster) = group_of(&pieces[0]).and_then(|group| by_group.get_mut(&group)) {
            cluster.distinct = sweep(pieces, |_| ());
        }
    }
    Overlap {
        referred,
        clusters: by_group.into_values().collect(),
    }
}

/// Goes over pieces sorted by place; returns the bytes they cover, and tells what different contents have in common.
fn sweep(pieces: &[Piece], mut link: impl FnMut(Link)) -> u64 {
    let mut covered = 0;
    let mut furthest: Option<(u32, u64, u32)> = None;
    for piece in pieces {
        let (end, content) = match furthest {
            Some((block, end, content)) if block == piece.block => (end, content),
            _ => (0, piece.content),
        };
        let common = end.min(piece.end()).saturating_sub(piece.start());
        if common > 0 && content != piece.content {
            link(Link {
                one: content.min(piece.content),
                other: content.max(piece.content),
                len: common,
            });
        }
        covered += piece.end().saturating_sub(end.max(piece.start()));
        if furthest.is_none_or(|(block, end, _)| block != piece.block || end < piece.end()) {
            furthest = Some((piece.block, piece.end(), piece.content));
        }
    }
    covered
}

/// For each content the first one of its cluster, if it is in one. Two belong together that have a third of the larger in
/// common: of the smaller it would bring together a program and all the texts that are built into it.
fn groups(mut links: Vec<Link>, sizes: &[u64]) -> Vec<Option<u32>> {
    links.sort_unstable_by_key(|link| (link.one, link.other));
    let mut parents: Vec<u32> = (0..).take(sizes.len()).collect();
    let mut is_member = vec![false; sizes.len()];
    for same in links.chunk_by(|a, b| (a.one, a.other) == (b.one, b.other)) {
        let Link { one, other, .. } = same[0];
        let common: u64 = same.iter().map(|link| link.len).sum();
        let size = |content: u32| sizes.get(to_usize(content)).copied().unwrap_or(0);
        if size(one).max(size(other)) <= common.saturating_mul(3) {
            let (one_root, other_root) = (root(&mut parents, one), root(&mut parents, other));
            let (first, second) = (one_root.min(other_root), one_root.max(other_root));
            parents[to_usize(second)] = first;
            is_member[to_usize(one)] = true;
            is_member[to_usize(other)] = true;
        }
    }
    (0..)
        .zip(is_member)
        .map(|(content, is_member)| is_member.then(|| root(&mut parents, content)))
        .collect()
}

/// The root of a content, with shorter ways to it for the next who asks.
fn root(parents: &mut [u32], mut content: u32) -> u32 {
    loop {
        let parent = parents[to_usize(content)];
        if parent == content {
            return content;
        }
        let grandparent = parents[to_usize(parent)];
        parents[to_usize(content)] = grandparent;
        content = grandparent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(block: u32, offset: u32, len: u32, content: u32) -> Piece {
        Piece {
            block,
            offset,
            len,
            content,
        }
    }

    #[test]
    fn what_is_referred_to_counts_once() {
        let found = find(
            vec![
                piece(0, 0, 100, 0),
                piece(0, 50, 100, 1),
                piece(0, 60, 30, 2),
                piece(1, 0, 10, 3),
                piece(1, u32::MAX, u32::MAX, 3),
            ],
            &[100, 100, 30, 10],
        );
        assert_eq!(found.referred, 160 + u64::from(u32::MAX));
        let contents: Vec<_> = found.clusters.iter().map(|one| &one.contents).collect();
        assert_eq!(contents, [&[0, 1]]);
    }

    #[test]
    fn clusters_have_a_third_in_common() {
        let found = find(
            vec![
                piece(0, 0, 100, 0),
                piece(0, 200, 100, 0),
                piece(0, 0, 100, 1),
                piece(0, 400, 90, 1),
                piece(0, 0, 10, 2),
                piece(0, 600, 100, 2),
            ],
            &[200, 190, 110],
        );
        let expect = Cluster {
            contents: vec![0, 1],
            size: 390,
            distinct: 290,
        };
        assert_eq!(found.clusters, [expect]);
        assert!(find(Vec::new(), &[]).clusters.is_empty());
    }
}
