//! The order by Nilsimsa digests: clusters of digests, and a way through each of them in short steps.
//!
//! In: digests, in the order in which equals are to stand. Out: a permutation. Equal digests stand together. The others
//! are clustered around centroids, coarsely first; clusters with too many members are clustered again with half the
//! distance. Inside a cluster, and among clusters, a chain always goes on with the nearest that is left.
//!
//! Both parts are quadratic by nature. Clustering compares a digest with at most [`COMPARISONS_MAX`] centroids divided
//! by the number of digests; a chain looks at the [`CHAIN_WINDOW`] next of what is left. So the time is at most four
//! thousand comparisons for each digest, and some hundred million for each of eight levels of clusters. Memory: 60
//! bytes for each digest, and 1 KiB for each cluster that is being filled.
//!
//! Source: format specification, A.5.

use std::cmp::Reverse;

use crate::context::Context;
use crate::options::NilsimsaOptions;
use crate::sync::map_in_parallel;
use crate::tree::count_of;

/// 256 bits.
pub(super) type Digest = [u64; 4];

/// How far apart members of the coarsest clusters may be from their centroids; strangers are about as far apart.
const DISTANCE_FIRST: u32 = 128;
/// Comparisons with centroids for one clustering: about a second.
const COMPARISONS_MAX: usize = 1 << 28;
/// Clusters that there may be however many digests there are.
const CHILDREN_MIN: usize = 16;
/// How many candidates for the next step of a chain are looked at.
const CHAIN_WINDOW: usize = 4096;
/// A step that cannot be much shorter.
const DISTANCE_NEAR: u32 = 1;

/// What is ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) digest: Digest,
    pub(super) len: u64,
}

/// Returns the places of all items in the order of storage. The items must come as equals are to stand.
///
/// If the user wants to stop, some are missing.
pub(super) fn order(context: Context<'_>, items: &[Item], options: NilsimsaOptions) -> Vec<u32> {
    let mut by_digest: Vec<u32> = (0..count_of(items.len())).collect();
    by_digest.sort_by_key(|place| items[*place as usize].digest);
    let equals: Vec<&[u32]> = by_digest
        .chunk_by(|a, b| items[*a as usize].digest == items[*b as usize].digest)
        .collect();
    let clustering = Clustering {
        items,
        children_max: (options.max_children as usize).max(1),
        members_max: (options.max_cluster_size as usize).max(1),
    };
    let firsts: Vec<u32> = equals
        .iter()
        .filter_map(|group| group.first())
        .copied()
        .collect();
    let mut leaves = Vec::new();
    let root = clustering.split(firsts, DISTANCE_FIRST, &mut leaves);
    let chains = map_in_parallel(
        context,
        &leaves,
        || (),
        |(), leaf| chain(leaf, |place| clustering.ends(*place)),
    );
    let mut ordered = Vec::with_capacity(items.len());
    clustering.flatten(&root, &chains, &mut ordered);
    let mut group_of = vec![0; items.len()];
    for (group, members) in (0_u32..).zip(&equals) {
        if let Some(first) = members.first() {
            group_of[*first as usize] = group;
        }
    }
    let with_equals = |first: u32| equals[group_of[first as usize] as usize].iter().copied();
    ordered.into_iter().flat_map(with_equals).collect()
}

/// Clusters of clusters.
enum Node {
    /// The place of its members.
    Leaf(usize),
    Inner(Vec<Self>),
}

struct Clustering<'a> {
    items: &'a [Item],
    children_max: usize,
    members_max: usize,
}

/// What has been put together so far.
struct Cluster {
    members: Vec<u32>,
    /// How many members have each bit.
    counts: Box<[u32; 256]>,
    /// The bits that more than half of them have.
    centroid: Digest,
}

impl Cluster {
    fn new() -> Self {
        Self {
            members: Vec::new(),
            counts: Box::new([0; 256]),
            centroid: [0; 4],
        }
    }

    fn add(&mut self, place: u32, digest: &Digest) {
        self.members.push(place);
        let half = count_of(self.members.len() / 2);
        let words = self.centroid.iter_mut().zip(digest);
        for ((to, from), counts) in words.zip(self.counts.chunks_exact_mut(64)) {
            *to = 0;
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += u32::from(from >> bit & 1 == 1);
                *to |= u64::from(*count > half) << bit;
            }
        }
    }
}

impl Clustering<'_> {
    fn digest(&self, place: u32) -> &Digest {
        &self.items[place as usize].digest
    }

    /// A single item is where a chain enters and where it leaves it.
    fn ends(&self, place: u32) -> (Digest, Digest) {
        (*self.digest(place), *self.digest(place))
    }

    /// Clusters what is too much for one leaf. Goes down at most eight levels, as the distance is halved each time.
    fn split(&self, members: Vec<u32>, distance: u32, leaves: &mut Vec<Vec<u32>>) -> Node {
        if members.len() <= self.members_max && distance < DISTANCE_FIRST || distance <= 1 {
            let mut members = members;
            members.sort_unstable();
            leaves.push(members);
            return Node::Leaf(leaves.len() - 1);
        }
        let clusters = self.clusters(&members, distance);
        drop(members);
        let split = |members| self.split(members, distance / 2, leaves);
        Node::Inner(clusters.into_iter().map(split).collect())
    }

    /// Puts each digest into the first cluster that is near enough, or into a new one, or into the nearest.
    fn clusters(&self, members: &[u32], distance: u32) -> Vec<Vec<u32>> {
        let affordable = (COMPARISONS_MAX / members.len().max(1)).max(CHILDREN_MIN);
        let children_max = self.children_max.min(affordable);
        let mut clusters: Vec<Cluster> = Vec::new();
        for place in members {
            let digest = self.digest(*place);
            let mut nearest = (u32::MAX, 0);
            for (at, cluster) in clusters.iter().enumerate() {
                let candidate = (distance_of(&cluster.centroid, digest), at);
                nearest = nearest.min(candidate);
                if candidate.0 <= distance {
                    break;
                }
            }
            if nearest.0 > distance && clusters.len() < children_max {
                nearest.1 = clusters.len();
                clusters.push(Cluster::new());
            }
            if let Some(cluster) = clusters.get_mut(nearest.1) {
                cluster.add(*place, digest);
            }
        }
        clusters
            .into_iter()
            .map(|cluster| cluster.members)
            .collect()
    }

    /// Appends the chains of all leaves below `node`; clusters follow each other as a chain too, the largest first.
    fn flatten(&self, node: &Node, chains: &[Vec<u32>], ordered: &mut Vec<u32>) {
        let children = match node {
            Node::Leaf(leaf) => {
                ordered.extend(chains.get(*leaf).into_iter().flatten());
                return;
            }
            Node::Inner(children) => children,
        };
        let mut parts: Vec<(u64, Vec<u32>)> = children
            .iter()
            .map(|child| {
                let mut part = Vec::new();
                self.flatten(child, chains, &mut part);
                let len = part.iter().map(|place| self.items[*place as usize].len);
                (len.sum(), part)
            })
            .filter(|(_, part)| !part.is_empty())
            .collect();
        parts.sort_by_key(|(len, part)| (Reverse(*len), part.first().copied()));
        let parts = chain(&parts, |(_, part)| {
            let end = |place: Option<&u32>| place.map_or([0; 4], |place| *self.digest(*place));
            (end(part.first()), end(part.last()))
        });
        ordered.extend(parts.into_iter().flat_map(|(_, part)| part));
    }
}

fn distance_of(a: &Digest, b: &Digest) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Begins with the first and goes on with the nearest that is left; `ends` says where an item begins and ends.
fn chain<T: Clone>(items: &[T], ends: impl Fn(&T) -> (Digest, Digest)) -> Vec<T> {
    let ends: Vec<(Digest, Digest)> = items.iter().map(ends).collect();
    let mut ordered = Vec::with_capacity(items.len());
    let mut rest = 0..items.len();
    // What is looked at, in the order of the items.
    let mut window: Vec<usize> = rest.by_ref().take(CHAIN_WINDOW).collect();
    let mut next = 0;
    while next < window.len() {
        let at = window.remove(next);
        window.extend(rest.next());
        ordered.push(items[at].clone());
        let mut nearest = (u32::MAX, window.len());
        for (place, candidate) in window.iter().enumerate() {
            let distance = distance_of(&ends[at].1, &ends[*candidate].0);
            nearest = nearest.min((distance, place));
            if distance <= DISTANCE_NEAR {
                break;
            }
        }
        next = nearest.1;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{digest, order_digests};
    use super::*;

    #[test]
    fn families_and_equals_stand_together() {
        // Families 0 and 1 in turn, and copies of the first two.
        let items = [
            digest(0, 0),
            digest(1, 0),
            digest(0, 1),
            digest(1, 1),
            digest(0, 0),
            digest(1, 0),
            digest(0, 3),
            digest(1, 3),
        ];
        let ordered = order_digests(1, &items, NilsimsaOptions::default());
        // A copy follows its original, and the way goes in short steps.
        assert_eq!(ordered, [0, 4, 2, 6, 7, 3, 1, 5]);
        assert_eq!(order_digests(1, &[], NilsimsaOptions::default()), [0; 0]);
    }

    #[test]
    fn every_limit_gives_a_permutation() {
        let items: Vec<Item> = (0..600).map(|n| digest(n % 40, n / 40 * 5)).collect();
        for (max_children, max_cluster_size) in [(16_384, 16_384), (1, 1), (2, 7), (100, 20)] {
            let options = NilsimsaOptions {
                max_children,
                max_cluster_size,
            };
            let ordered = order_digests(1, &items, options);
            assert_eq!(order_digests(3, &items, options), ordered, "threads");
            let mut places = ordered;
            places.sort_unstable();
            assert!(places.into_iter().eq(0..600), "{options:?}");
        }
    }

    #[test]
    fn a_chain_takes_the_nearest() {
        let digests = [0b0000, 0b1111, 0b0001, 0b0111];
        let ordered = chain(&digests, |bits| ([*bits << 8; 4], [*bits << 8; 4]));
        assert_eq!(ordered, [0b0000, 0b0001, 0b0111, 0b1111]);
    }
}
