//! In which order contents are stored.
//!
//! Contents that are alike and close together compress better, and files that are used together should be in the same
//! blocks. A content that several files have goes where the first of them would.

use std::path::PathBuf;

use durin_format::Result;

use crate::context::Context;
use crate::dedupe::{ContentIndex, Contents};
use crate::files::{FileIndex, Files};
use crate::options::Order;
use crate::script_order::{ContentsView, reorder};
use crate::tree::{EntryIndex, Tree};

/// Returns all contents in the order that the options ask for, and a script of that.
///
/// # Errors
/// Those of the script.
pub(crate) fn order(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    contents: &Contents,
) -> Result<Vec<ContentIndex>> {
    let ordered = by_options(context, tree, files, contents);
    match context.options.script_with(|hooks| hooks.order) {
        Some(script) => {
            let view = ContentsView::new(tree, files, contents, &ordered);
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
) -> Vec<ContentIndex> {
    let sorting = Sorting {
        tree,
        files,
        contents,
    };
    match &context.options.order {
        Order::None if tree.list_places.is_empty() => (0..contents.len()).collect(),
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
}

impl Sorting<'_> {
    fn by_key<K: Ord + Copy>(&self, key: impl Fn(EntryIndex) -> K) -> Vec<ContentIndex> {
        let mut keyed: Vec<(Option<K>, ContentIndex)> = (0..self.contents.len())
            .map(|content| {
                let files = self.contents.files(content);
                let keys = files.iter().map(|file| key(self.files.file(*file).entry));
                (keys.min(), content)
            })
            .collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, content)| content).collect()
    }

    fn by_names_upwards(&self) -> Vec<ContentIndex> {
        let compare = |a: &EntryIndex, b: &EntryIndex| self.tree.compare_upwards(*a, *b);
        let mut keyed: Vec<(Option<EntryIndex>, ContentIndex)> = (0..self.contents.len())
            .map(|content| {
                let files = self.contents.files(content);
                let entries = files.iter().map(|file| self.files.file(*file).entry);
                (entries.min_by(compare), content)
            })
            .collect();
        keyed.sort_unstable_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) => compare(a, b),
            _ => a.cmp(b),
        });
        keyed.into_iter().map(|(_, content)| content).collect()
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
