//! The order by similarity: along the paths, except that contents follow one that they are much like.
//!
//! In: sketches and names in the order of paths. Out: a permutation. A content whose sketch shares at least
//! [`SHARED_MIN`] of its sixteen hashes with an earlier one, or [`SHARED_MIN_OF_NAMESAKES`] with one of the same name, or
//! one that nobody of another name has, follows the earlier content that it shares most with. So the versions of a file
//! stand together where the first of them would, each next to the one that it is most like, and all else stays with its
//! neighbours: files of one directory have more in common than a vague likeness over a distance tells.
//!
//! Who shares a hash is found by sorting all hashes, and each occurrence of one is compared with the occurrence before
//! it only. That is at most sixteen comparisons for each content, whatever the contents: nothing here is quadratic.
//! Several threads work on parts of the hashes; the result does not depend on who is first. Memory: 44 bytes for each
//! content, and 8 for each hash in the parts being sorted, at most [`BYTES_PER_CONTENT_MAX`] in all.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Context;
use crate::sketch::{SKETCH_WORDS, SLICE_SKETCH_WORDS, shared};
use crate::sync::map_in_parallel;
use crate::tree::count_of;

/// How many of sixteen hashes must be shared.
///
/// The expectation is 16 J for the Jaccard index J of all passages; two contents of one length have 8 in common if two
/// thirds of their passages are. The figures are in docs/ordering.md.
const SHARED_MIN: u32 = 8;

/// How many must be shared if the base names are the same. One alone is not enough: the kernel source, which has many
/// namesakes with nothing but a licence in common, was larger than with 3.
const SHARED_MIN_OF_NAMESAKES: u32 = 3;

/// From how many bytes on one is enough if only files of that base name have it: what a program says is translated into
/// many languages, and each file has the original beside the translation. Of smaller files, one hash is next to nothing.
const LEN_MIN_OF_KIN: u64 = 4096;

/// How many of thirty-two slices of large contents must share. What they would stay next to is no more like them than
/// anything else, other than with files of one directory. On versions of programs, 3 and 8 made larger images.
const SHARED_MIN_OF_SLICES: u32 = 4;

/// Parts into which hashes are divided: enough to share them out, few enough to go through all sketches for each.
const PARTS: u32 = 32;

/// What ordering takes for each content beside its sketch, if all hashes were in parts being sorted.
pub(super) const BYTES_PER_CONTENT_MAX: u64 = 44 + 8 * SKETCH_WORDS as u64;

/// The same for a slice.
pub(super) const BYTES_PER_SLICE_MAX: u64 = 44 + 8 * SLICE_SKETCH_WORDS as u64;

/// Stands for no item.
const NONE: u32 = u32::MAX;

/// What is ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    /// The hashes of its sketch.
    pub(super) words: &'a [u32],
    /// The last component of the path; none for a slice of a large content.
    pub(super) name: Option<&'a [u8]>,
    /// Its bytes.
    pub(super) len: u64,
}

/// An item in the order of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// Its place among the items.
    pub(super) item: u32,
    /// Whether it follows none that it is like. Those up to the next such item are alike.
    pub(super) begins_group: bool,
}

/// Returns all items in the order of storage.
///
/// If the user wants to stop, some are left in their old order.
pub(super) fn order(context: Context<'_>, items: &[Item<'_>]) -> Vec<Placed> {
    depth_first(&models(context, items))
}

/// Returns for each item the earlier one that it shares most with, or [`NONE`]; of several, the nearest.
fn models(context: Context<'_>, items: &[Item<'_>]) -> Vec<u32> {
    // The shared hashes above the place, so that the largest is the best.
    let best: Vec<AtomicU64> = items.iter().map(|_| AtomicU64::new(0)).collect();
    let parts: Vec<u32> = (0..PARTS).collect();
    map_in_parallel(context, &parts, Vec::new, |occurrences, part| {
        find_in_part(items, *part, occurrences, &best);
    });
    let place = |best: AtomicU64| match best.into_inner() {
        0 => NONE,
        best => u32::try_from(best & u64::from(u32::MAX)).unwrap_or(NONE),
    };
    best.into_iter().map(place).collect()
}

/// Compares the contents that have a hash of this part in common.
fn find_in_part(
    items: &[Item<'_>],
    part: u32,
    occurrences: &mut Vec<(u32, u32)>,
    best: &[AtomicU64],
) {
    occurrences.clear();
    for (place, item) in (0..).zip(items) {
        let hashes = item.words.iter().filter(|hash| **hash != 0);
        let hashes = hashes.filter(|hash| **hash % PARTS == part);
        occurrences.extend(hashes.map(|hash| (*hash, place)));
    }
    occurrences.sort_unstable();
    for occurrences in occurrences.chunk_by(|(one, _), (other, _)| one == other) {
        let is_of_one_name = is_of_one_name(items, occurrences);
        for pair in occurrences.windows(2) {
            let &[(_, earlier), (_, place)] = pair else {
                continue;
            };
            if place == earlier {
                continue;
            }
            let (item, model) = (items[place as usize], items[earlier as usize]);
            let are_kin = is_of_one_name && item.len.min(model.len) >= LEN_MIN_OF_KIN;
            let shared = shared(item.words, model.words);
            if are_kin || shared >= required(item, model) {
                let found = u64::from(shared) << 32 | u64::from(earlier);
                best[place as usize].fetch_max(found, Ordering::Relaxed);
            }
        }
    }
}

/// Whether a hash occurs in files of one name only.
fn is_of_one_name(items: &[Item<'_>], occurrences: &[(u32, u32)]) -> bool {
    let name = |(_, place): &(u32, u32)| items[*place as usize].name;
    let first = occurrences.first().and_then(name);
    first.is_some()
        && occurrences
            .iter()
            .all(|occurrence| name(occurrence) == first)
}

/// How many hashes an item and its model must share.
fn required(item: Item<'_>, model: Item<'_>) -> u32 {
    match (item.name, model.name) {
        (None, None) => SHARED_MIN_OF_SLICES,
        (item, model) if item == model => SHARED_MIN_OF_NAMESAKES,
        _ => SHARED_MIN,
    }
}

/// Visits each item after its model and before the next item that has none, those with one model in their order.
fn depth_first(models: &[u32]) -> Vec<Placed> {
    let count = count_of(models.len());
    // The followers of an item as a linked list, the last one first: so they leave the stack in their order.
    let mut last_follower = vec![NONE; models.len()];
    let mut follower_before = vec![NONE; models.len()];
    for (item, model) in (0..count).zip(models) {
        if let Some(last) = last_follower.get_mut(*model as usize) {
            follower_before[item as usize] = std::mem::replace(last, item);
        }
    }
    let mut ordered = Vec::with_capacity(models.len());
    let mut open = Vec::new();
    for (item, _) in (0..count).zip(models).filter(|(_, model)| **model == NONE) {
        open.push(item);
        while let Some(item) = open.pop() {
            ordered.push(Placed {
                item,
                begins_group: models[item as usize] == NONE,
            });
            let mut follower = last_follower[item as usize];
            while follower != NONE {
                open.push(follower);
                follower = follower_before[follower as usize];
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{MadeUp, order_items, order_sketches, sketch, versions};
    use super::*;
    use crate::sketch::Sketch;

    #[test]
    fn strong_likeness_only() {
        let sketches = [
            sketch(1, 16, 0),
            sketch(2, 16, 0),
            sketch(1, 7, 101),
            sketch(2, 8, 102),
            sketch(1, 12, 103),
            Sketch::default(),
            sketch(2, 12, 104),
            Sketch::default(),
        ];
        // 3 and 6 follow 1: 6 shares twelve with it, and eight with 3. 2 is not like 0 enough.
        assert_eq!(order_sketches(1, &sketches), [0, 4, 1, 3, 6, 2, 5, 7]);
    }

    #[test]
    fn names_count() {
        let sketches = [
            sketch(1, 16, 0),
            sketch(2, 16, 0),
            sketch(1, 3, 3),
            sketch(1, 2, 4),
        ];
        let with_names = |names| order_named(&sketches, names, LEN_MIN_OF_KIN - 1);
        assert_eq!(with_names(["a", "b", "a", "a"]), [0, 2, 1, 3]);
        assert_eq!(with_names(["a", "b", "c", "d"]), [0, 1, 2, 3]);
    }

    #[test]
    fn one_passage_counts_if_nobody_of_another_name_has_it() {
        let sketches = [
            sketch(1, 16, 0),
            sketch(2, 16, 0),
            sketch(1, 1, 3),
            sketch(2, 1, 4),
        ];
        let with_names = |names, len| order_named(&sketches, names, len);
        let len = LEN_MIN_OF_KIN;
        assert_eq!(with_names(["a", "b", "a", "b"], len), [0, 2, 1, 3]);
        assert_eq!(with_names(["a", "b", "a", "b"], len - 1), [0, 1, 2, 3]);
        // The passage of the first is in a file of another name too.
        let sketches = [sketches[0], sketches[1], sketches[2], sketch(1, 1, 5)];
        let with_names = |names, len| order_named(&sketches, names, len);
        assert_eq!(with_names(["a", "b", "a", "c"], len), [0, 1, 2, 3]);
        assert_eq!(with_names(["a", "b", "a", "a"], len), [0, 2, 3, 1]);
    }

    fn order_named(sketches: &[Sketch; 4], names: [&'static str; 4], len: u64) -> Vec<u32> {
        let mut items = Vec::new();
        for (sketch, name) in sketches.iter().zip(names) {
            items.push(Item {
                words: sketch.words(),
                name: Some(name.as_bytes()),
                len,
            });
        }
        order_items(1, &items)
    }

    #[test]
    fn versions_of_each_file_follow_each_other() {
        let (files, versions) = (50, 8);
        let of = |version: u32, file: u32| sketch(file, 12, 1000 + version * files + file);
        let sketches: Vec<_> = (0..versions)
            .flat_map(|version| (0..files).map(move |file| of(version, file)))
            .collect();
        let by_file = (0..files).flat_map(|file| (0..versions).map(move |v| v * files + file));
        assert_eq!(order_sketches(2, &sketches), by_file.collect::<Vec<_>>());
    }

    #[test]
    fn threads_do_not_matter() {
        let sketches = versions(5000);
        let ordered = order_sketches(1, &sketches);
        for threads in [2, 3, 8] {
            assert_eq!(order_sketches(threads, &sketches), ordered, "{threads}");
        }
        let mut places = ordered;
        places.sort_unstable();
        assert!(places.into_iter().eq(0..5000), "each once");
    }

    #[test]
    fn adversaries_are_ordered_in_linear_time() {
        for contents in MadeUp::sketches(100_000) {
            assert_eq!(contents.order(2).len(), 100_000, "{}", contents.name);
        }
    }
}
