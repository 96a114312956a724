//! Sorts the positions of a bucket by the bytes that follow.

use super::tree::Tree;
use super::{DEPTH_MAX, Finder, Found};
use crate::bytes::{equal_len, key8};

/// How many bytes are compared at a time: they share 64 bits with the index of their position.
const KEY_LEN: usize = 5;
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// Buckets with more positions are split by one byte more, so that they fit the caches; matches that end with that byte
/// are lost to all but the tables of short matches.
const BUCKET_LEN_MAX: usize = 1 << 14;

/// Groups of so many positions are compared with one of them, over all bytes at once: versions of a file are groups that
/// share much more than is compared at a time.
const SMALL_LEN_MAX: usize = 32;

/// The memory for sorting one bucket.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    keys: Vec<u64>,
    /// Positions that are being distributed,
    scratch: Vec<u32>,
    /// and the byte of each that says where to.
    bytes: Vec<u8>,
    shared: Vec<u8>,
    groups: Vec<Group>,
    tree: Tree,
}

/// Positions that share their first `depth` bytes.
#[derive(Clone, Copy, Debug)]
struct Group {
    start: u32,
    end: u32,
    depth: u32,
}

impl Bucket {
    /// Puts the matches of every one of `positions`, which share `depth` bytes.
    pub(super) fn each_match(
        &mut self,
        data: &[u8],
        positions: &mut [u32],
        depth: usize,
        finder: &Finder,
    ) {
        match positions {
            [] => {}
            [only] => finder.put(*only, [None, None]),
            _ if positions.len() > BUCKET_LEN_MAX && depth < DEPTH_MAX => {
                let (ends, depth) = self.split(data, positions, depth);
                let mut rest = positions;
                for len in ends {
                    let (part, after) = rest.split_at_mut(len as usize);
                    self.each_match(data, part, depth, finder);
                    rest = after;
                }
            }
            _ if positions.len() > BUCKET_LEN_MAX => nearest(positions, finder),
            _ => {
                self.sort(data, positions, depth);
                self.tree.build(&self.keys, INDEX_MASK, &self.shared);
                self.tree.each_match(positions, finder);
            }
        }
    }

    /// Distributes positions by their next byte, and returns how many there are of each and what they share.
    ///
    /// The last position of the block has no next byte; it counts as a zero.
    fn split(&mut self, data: &[u8], positions: &mut [u32], depth: usize) -> ([u32; 256], usize) {
        let mut depth = depth;
        loop {
            let next = |position: u32| data.get(position as usize + depth).copied().unwrap_or(0);
            self.bytes.clear();
            self.bytes.extend(positions.iter().copied().map(next));
            let mut counts = [0; 256];
            for byte in &self.bytes {
                counts[usize::from(*byte)] += 1;
            }
            let shared = depth + 1;
            // All the same: nothing to move.
            if counts
                .iter()
                .any(|count| *count as usize == positions.len())
            {
                if shared == DEPTH_MAX {
                    return (counts, shared);
                }
                depth = shared;
                continue;
            }
            let mut offsets = [0; 256];
            let mut sum = 0;
            for (offset, count) in offsets.iter_mut().zip(&counts) {
                *offset = sum as usize;
                sum += count;
            }
            self.scratch.clear();
            self.scratch.extend_from_slice(positions);
            for (position, byte) in self.scratch.iter().zip(&self.bytes) {
                let offset = &mut offsets[usize::from(*byte)];
                positions[*offset] = *position;
                *offset += 1;
            }
            return (counts, shared);
        }
    }

    /// Fills `keys` with the indexes of `positions` in the order of their bytes, and `shared` with how many bytes each
    /// shares with the one before, up to `DEPTH_MAX`.
    fn sort(&mut self, data: &[u8], positions: &[u32], depth: usize) {
        let len = positions.len();
        self.keys.clear();
        self.keys.extend(0..len as u64);
        self.shared.clear();
        self.shared.resize(len, DEPTH_MAX as u8);
        self.groups.clear();
        self.groups.push(Group {
            start: 0,
            end: len as u32,
            depth: depth as u32,
        });
        while let Some(group) = self.groups.pop() {
            self.refine(data, positions, group);
        }
    }

    /// Puts those that share most with the first one next to it; those that share as much as each other come again.
    ///
    /// That is another order than that of their bytes, but the same tree: which branch comes first is all the same.
    fn refine_small(&mut self, data: &[u8], positions: &[u32], group: Group) {
        let depth = group.depth as usize;
        let start = group.start as usize;
        let keys = &mut self.keys[start..group.end as usize];
        let shared = &mut self.shared[start..group.end as usize];
        let Some((first, others)) = keys.split_first_mut() else {
            return;
        };
        let place = |key: u64| positions[(key & INDEX_MASK) as usize] as usize;
        let first = place(*first);
        for key in &mut *others {
            let other = place(*key);
            let len_max = DEPTH_MAX.min(data.len() - first.max(other));
            let len = equal_len(data, first, other, depth, len_max.max(depth));
            *key = ((DEPTH_MAX - len) as u64) << INDEX_BITS | *key & INDEX_MASK;
        }
        if others.len() > 1 {
            others.sort_unstable();
        }
        let mut from = 1;
        for run in others.chunk_by(|a, b| a >> INDEX_BITS == b >> INDEX_BITS) {
            let end = from + run.len();
            let len = DEPTH_MAX - (run[0] >> INDEX_BITS) as usize;
            shared[from] = len as u8;
            if run.len() > 1 && len < DEPTH_MAX {
                self.groups.push(Group {
                    start: (start + from) as u32,
                    end: (start + end) as u32,
                    depth: len as u32,
                });
            }
            from = end;
        }
    }

    /// Sorts a group by its next bytes; those that are still equal come again.
    fn refine(&mut self, data: &[u8], positions: &[u32], group: Group) {
        let depth = group.depth as usize;
        let (start, end) = (group.start as usize, group.end as usize);
        let keys = &mut self.keys[start..end];
        let shared = &mut self.shared[start..end];
        if keys.len() <= SMALL_LEN_MAX {
            self.refine_small(data, positions, group);
            return;
        }
        for key in &mut *keys {
            let index = *key & INDEX_MASK;
            let position = positions[index as usize] as usize;
            *key = (key8(data, position + depth) & !INDEX_MASK) | index;
        }
        keys.sort_unstable();
        let mut first = 0;
        let mut before = keys[0];
        for index in 1..=keys.len() {
            let different = match keys.get(index) {
                Some(key) => (before ^ key) >> INDEX_BITS << INDEX_BITS,
                None => 1 << 63,
            };
            if different == 0 {
                continue;
            }
            if let (Some(key), Some(shared)) = (keys.get(index), shared.get_mut(index)) {
                before = *key;
                *shared = (depth + (different.leading_zeros() >> 3) as usize).min(DEPTH_MAX) as u8;
            }
            if index - first > 1 && depth + KEY_LEN < DEPTH_MAX {
                self.groups.push(Group {
                    start: (start + first) as u32,
                    end: (start + index) as u32,
                    depth: (depth + KEY_LEN) as u32,
                });
            }
            first = index;
        }
    }
}

/// All of `positions` share as many bytes as are told apart.
fn nearest(positions: &[u32], finder: &Finder) {
    let mut before = None;
    for position in positions {
        let found = before.map(|start| Found {
            start,
            len: DEPTH_MAX as u32,
        });
        finder.put(*position, [found, None]);
        before = Some(*position);
    }
}
