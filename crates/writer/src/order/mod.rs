//! In which order contents are stored.
//!
//! Contents that are alike and close together compress better, and files that are used together should be in the same
//! blocks. A content that several files have goes where the first of them would. In: the fragments of one stream, and
//! sketches where the order looks at them. Out: the same fragments in the order of storage.

mod by_name;
mod made_up;
mod nilsimsa;
mod similarity;

use durin_format::Result;

use self::by_name::Names;
pub use self::made_up::MadeUp;
use crate::analyze::Sketches;
use crate::category::{Fragment, StreamSettings};
use crate::context::Context;
use crate::dedupe::Contents;
use crate::files::Files;
use crate::options::{NilsimsaOptions, Order};
use crate::sketch::{Sketch, SketchKind, SliceSketch, Slices};
use crate::tree::Tree;

/// What ordering takes for each content beside the sketches, at most. Much less in
/// practice: 44 bytes and what the hashes of one part take for each thread.
pub(crate) const ORDER_BYTES_PER_CONTENT_MAX: u64 = similarity::BYTES_PER_CONTENT_MAX;
/// The same for each slice of a large content.
pub(crate) const ORDER_BYTES_PER_SLICE_MAX: u64 = similarity::BYTES_PER_SLICE_MAX;

/// What an order must know of contents.
pub(crate) fn sketch_kind(order: &Order) -> SketchKind {
    match order {
        Order::None | Order::Path | Order::Revpath | Order::Explicit(_) => SketchKind::None,
        Order::Similarity => SketchKind::Similarity,
        Order::Nilsimsa(_) => SketchKind::Nilsimsa,
    }
}

/// Sorts fragments in the order asked for; those of one content stay in the order of their offsets.
///
/// # Errors
/// `Cancelled`.
pub(crate) fn order(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    contents: &Contents,
    settings: &StreamSettings,
    fragments: Vec<Fragment>,
    sketches: &Sketches,
) -> Result<Vec<Fragment>> {
    let ordering = Ordering {
        context,
        settings,
        names: Names {
            tree,
            files,
            contents,
        },
        sketches,
    };
    let ordered = ordering.by_options(&settings.order, fragments);
    context.check_cancelled()?;
    Ok(ordered)
}

/// What the order of one stream is made from.
#[derive(Clone, Copy)]
struct Ordering<'a> {
    context: Context<'a>,
    settings: &'a StreamSettings,
    names: Names<'a>,
    sketches: &'a Sketches,
}

impl<'a> Ordering<'a> {
    fn by_options(self, order: &Order, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let names = self.names;
        match order {
            Order::None => names.as_found(fragments),
            Order::Path => names.by_path(fragments),
            Order::Revpath => names.by_names_upwards(fragments),
            Order::Explicit(paths) => names.as_listed(self.context, paths, fragments),
            Order::Similarity => {
                let (large, rest) = self.split_large(fragments);
                let mut ordered = names.largest_first(large);
                ordered.extend(self.by_similarity(&names.by_directory(rest)));
                ordered
            }
            Order::Nilsimsa(options) => {
                let (large, rest) = self.split_large(fragments);
                let mut ordered = names.largest_first(large);
                ordered.extend(self.by_nilsimsa(*options, &names.largest_first(rest)));
                ordered
            }
        }
    }

    /// Sets those aside that the user does not want to be compared.
    fn split_large(self, fragments: Vec<Fragment>) -> (Vec<Fragment>, Vec<Fragment>) {
        let max = self.context.options.max_similarity_size.unwrap_or(u64::MAX);
        fragments
            .into_iter()
            .partition(|fragment| fragment.len > max)
    }

    fn by_similarity(self, fragments: &[Fragment]) -> Vec<Fragment> {
        let none = Sketch::default();
        let is_divisible = self.is_divisible(fragments);
        let mut items = Vec::with_capacity(fragments.len());
        let mut parts = Vec::with_capacity(fragments.len());
        for fragment in fragments {
            let slices = self.sketches.slices(fragment.content);
            if let Some(slices) = slices.filter(|_| is_divisible) {
                for (part, sketch) in slices_of(*fragment, slices) {
                    parts.push(part);
                    items.push(similarity::Item {
                        words: sketch,
                        name: None,
                        len: part.len,
                    });
                }
                continue;
            }
            let sketch = self.sketches.of(SketchKind::Similarity, fragment.content);
            parts.push(*fragment);
            items.push(similarity::Item {
                words: sketch.unwrap_or(&none).words(),
                name: Some(self.names.first_name(fragment.content)),
                len: fragment.len,
            });
        }
        let mut ordered = Grouped::default();
        for placed in similarity::order(self.context, &items) {
            ordered.push(parts[placed.item as usize], placed.begins_group);
        }
        ordered.finish()
    }

    /// Whether slices of a content may be stored apart, and something can be gained by it.
    fn is_divisible(self, fragments: &[Fragment]) -> bool {
        let settings = self.settings;
        let block_len = settings.block_len(self.context.block_size());
        let lens = fragments.iter().map(|fragment| fragment.len);
        // Where samples or pixels belong together, they follow each other. What does not see the whole block gains
        // nothing, and what sees all that there is loses: a slice cannot refer to what has come behind it.
        settings.granularity == 1
            && settings.compression.sees_whole_blocks()
            && lens.fold(0, u64::saturating_add) > u64::from(block_len)
    }

    fn by_nilsimsa(self, options: NilsimsaOptions, fragments: &[Fragment]) -> Vec<Fragment> {
        let item = |fragment: &Fragment| {
            let sketch = self.sketches.of(SketchKind::Nilsimsa, fragment.content);
            nilsimsa::Item {
                digest: sketch.map_or([0; 4], Sketch::digest),
                len: fragment.len,
            }
        };
        let items: Vec<_> = fragments.iter().map(item).collect();
        let places = nilsimsa::order(self.context, &items, options);
        places
            .into_iter()
            .map(|place| fragments[place as usize])
            .collect()
    }
}

/// Cuts a fragment where slices of its content end.
fn slices_of(
    fragment: Fragment,
    slices: &Slices,
) -> impl Iterator<Item = (Fragment, &SliceSketch)> {
    let end = fragment.offset + fragment.len;
    let mut offset = fragment.offset;
    let ends = slices.ends(end).zip(&slices.sketches);
    ends.filter_map(move |(slice_end, sketch)| {
        let len = slice_end.min(end).checked_sub(offset)?;
        let part = Fragment {
            content: fragment.content,
            group_kib: 0,
            offset,
            len,
        };
        offset += len;
        (len > 0).then_some((part, sketch))
    })
}

/// Fragments in the order of storage, with the lengths of their groups.
#[derive(Default)]
struct Grouped {
    fragments: Vec<Fragment>,
    /// The last fragment that begins a group, and the bytes of that group so far.
    group: usize,
    group_len: u64,
}

impl Grouped {
    /// Adds a fragment. Slices that follow each other as in their content become one again.
    fn push(&mut self, fragment: Fragment, begins_group: bool) {
        let is_alone = self.group + 1 == self.fragments.len();
        let last = self.fragments.last_mut().filter(|last| {
            last.content == fragment.content
                && last.offset + last.len == fragment.offset
                && (is_alone || !begins_group)
        });
        match last {
            Some(last) => last.len += fragment.len,
            None => {
                if begins_group {
                    self.end_group();
                    self.group = self.fragments.len();
                }
                self.fragments.push(fragment);
            }
        }
        self.group_len += fragment.len;
    }

    fn end_group(&mut self) {
        let kib = std::mem::take(&mut self.group_len).div_ceil(1 << 10);
        if let Some(first) = self.fragments.get_mut(self.group) {
            first.group_kib = u32::try_from(kib).unwrap_or(u32::MAX);
        }
    }

    fn finish(mut self) -> Vec<Fragment> {
        self.end_group();
        self.fragments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_the_length_of_all_their_fragments() {
        let fragment = |content, offset, len| Fragment {
            content,
            group_kib: 0,
            offset,
            len,
        };
        let mut grouped = Grouped::default();
        for (part, begins_group) in [
            (fragment(1, 0, 1000), true),
            // Alone, and goes on.
            (fragment(1, 1000, 500), true),
            (fragment(2, 0, 600), false),
            (fragment(2, 600, 400), false),
            // Goes on, but with a group of its own.
            (fragment(2, 1000, 5), true),
            (fragment(3, 0, 7), true),
        ] {
            grouped.push(part, begins_group);
        }
        let kib = |fragment: &Fragment| (fragment.len, fragment.group_kib);
        let groups: Vec<_> = grouped.finish().iter().map(kib).collect();
        assert_eq!(groups, [(1500, 3), (1000, 0), (5, 1), (7, 1)]);
        assert!(Grouped::default().finish().is_empty());
    }
}
