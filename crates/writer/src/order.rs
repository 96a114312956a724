//! In which order contents are stored.
//!
//! Contents that are alike and close together compress better, and files that are used together should be in the same
//! blocks. A content that several files have goes where the first of them would.

use std::path::PathBuf;

use durin_format::Result;

use crate::analyze::Sketches;
use crate::category::Fragment;
use crate::context::Context;
use crate::dedupe::Contents;
use crate::files::{FileIndex, Files};
use crate::options::Order;
use crate::script_order::{ContentsView, reorder};
use crate::sketch::SketchKind;
use crate::tree::{EntryIndex, Tree};

/// Returns what an order must know of contents.
pub(crate) fn sketch_kind(order: &Order) -> SketchKind {
    match order {
        Order::None | Order::Path | Order::Revpath | Order::Explicit(_) => SketchKind::None,
    }
}

/// Sorts fragments in the order asked for, and then as a script wants.
///
/// Fragments of one content stay in the order of their offsets, but for what the script does.
///
/// # Errors
/// Those of the script.
pub(crate) fn order(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    contents: &Contents,
    order: &Order,
    fragments: Vec<Fragment>,
    _sketches: &Sketches,
) -> Result<Vec<Fragment>> {
    let ordered = by_options(context, tree, files, contents, order, fragments);
    match context.options.script_with(|hooks| hooks.order) {
        Some(script) => {
            let of_fragments: Vec<_> = ordered.iter().map(|fragment| fragment.content).collect();
            let view = ContentsView::new(tree, files, contents, &of_fragments);
            reorder(script, &view, &ordered)
        }
        None => Ok(ordered),
    }
}

fn by_options(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    contents: &Contents,
    order: &Order,
    fragments: Vec<Fragment>,
) -> Vec<Fragment> {
    let sorting = Sorting {
        tree,
        files,
        contents,
        fragments,
    };
    match order {
        Order::None if tree.list_places.is_empty() => sorting.by_key(|_| 0),
        Order::None => sorting.by_key(|entry| tree.list_places[entry as usize]),
        Order::Path => {
            let places = tree.path_places();
            sorting.by_key(|entry| places[entry as usize])
        }
        Order::Revpath => sorting.by_names_upwards(),
        Order::Explicit(paths) => {
            let places = tree.path_places();
            let listed = sorting.listed_places(context, paths);
            let listed = |entry| {
                let file = files.of_entry(entry)?;
                listed[file as usize]
            };
            sorting.by_key(|entry| (listed(entry).unwrap_or(u32::MAX), places[entry as usize]))
        }
    }
}

struct Sorting<'a> {
    tree: &'a Tree,
    files: &'a Files,
    contents: &'a Contents,
    fragments: Vec<Fragment>,
}

impl Sorting<'_> {
    fn by_key<K: Ord + Copy>(self, key: impl Fn(EntryIndex) -> K) -> Vec<Fragment> {
        let least_key = |fragment: &Fragment| {
            let files = self.contents.files(fragment.content);
            let keys = files.iter().map(|file| key(self.files.file(*file).entry));
            (keys.min(), fragment.content, fragment.offset)
        };
        let mut fragments = self.fragments;
        fragments.sort_by_cached_key(least_key);
        fragments
    }

    fn by_names_upwards(self) -> Vec<Fragment> {
        let compare = |a: &EntryIndex, b: &EntryIndex| self.tree.compare_upwards(*a, *b);
        let mut keyed: Vec<(Option<EntryIndex>, Fragment)> = self
            .fragments
            .into_iter()
            .map(|fragment| {
                let files = self.contents.files(fragment.content);
                let entries = files.iter().map(|file| self.files.file(*file).entry);
                (entries.min_by(compare), fragment)
            })
            .collect();
        keyed.sort_unstable_by(|(a, fragment_a), (b, fragment_b)| {
            let names = match (a, b) {
                (Some(a), Some(b)) => compare(a, b),
                _ => a.cmp(b),
            };
            let place = |fragment: &Fragment| (fragment.content, fragment.offset);
            names.then_with(|| place(fragment_a).cmp(&place(fragment_b)))
        });
        keyed.into_iter().map(|(_, fragment)| fragment).collect()
    }

    /// Returns for each file its first place in the list.
    fn listed_places(&self, context: Context<'_>, paths: &[PathBuf]) -> Vec<Option<u32>> {
        use std::os::unix::ffi::OsStrExt;

        let mut places: Vec<Option<u32>> = vec![None; self.files.list.len()];
        for (place, path) in (0..).zip(paths) {
            let file: Option<FileIndex> = self
                .tree
                .find(path.as_os_str().as_bytes())
                .and_then(|entry| self.files.of_entry(entry));
            match file {
                Some(file) => {
                    places[file as usize].get_or_insert(place);
                }
                None => context.events.info(&format!(
                    "'{}' of the explicit order is not a file of the input",
                    path.display()
                )),
            }
        }
        places
    }
}
