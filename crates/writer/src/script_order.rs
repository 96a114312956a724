//! Letting a script order what is to be stored.
//!
//! The script sees inodes in the order that the options chose; what it leaves out keeps that order behind the rest.

use std::cmp::Ordering;
use std::collections::HashMap;

use durin_format::{Error, Result};

use crate::analyze::Analysis;
use crate::category::{DEFAULT_NAME, Fragment};
use crate::context::Context;
use crate::files::{FileIndex, Files};
use crate::script::{Script, ScriptInodes, Time};
use crate::sketch::SketchKind;
use crate::tree::{EntryIndex, Tree, count_of};

/// Returns the fragments of a category, which have the order that the options ask for, as a script orders them.
///
/// # Errors
/// Those of the script.
pub(crate) fn order_by_script(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    analysis: &Analysis,
    category: &str,
    fragments: Vec<Fragment>,
) -> Result<Vec<Fragment>> {
    let Some(script) = context.options.script_with(|hooks| hooks.order) else {
        return Ok(fragments);
    };
    if fragments.is_empty() {
        return Ok(fragments);
    }
    let view = StreamView {
        tree,
        files,
        analysis,
        category: Some(category).filter(|name| *name != DEFAULT_NAME),
        fragments: &fragments,
        names: names_of_linked(tree, files),
    };
    let mut ordered = reorder(script, &view, &fragments)?;
    if ordered != fragments {
        // The groups were those of the order before.
        for fragment in &mut ordered {
            fragment.group_kib = 0;
        }
    }
    Ok(ordered)
}

/// Returns `items`, which `inodes` describes one by one, as the script orders them.
///
/// # Errors
/// Those of the script; `InvalidInput` if it names an inode twice or one that there is not.
fn reorder<T: Copy>(script: &dyn Script, inodes: &dyn ScriptInodes, items: &[T]) -> Result<Vec<T>> {
    debug_assert_eq!(inodes.count() as usize, items.len());
    let Some(numbers) = script.order(inodes)? else {
        return Ok(items.to_vec());
    };
    let mut is_placed = vec![false; items.len()];
    let mut ordered = Vec::with_capacity(items.len());
    for number in numbers {
        let place = number as usize;
        let (Some(item), Some(is_placed)) = (items.get(place), is_placed.get_mut(place)) else {
            return Err(Error::invalid_input(format!(
                "{script:?} orders inode {number} of {}",
                items.len()
            )));
        };
        if std::mem::replace(is_placed, true) {
            let path = crate::tree::printable(&inodes.path(number));
            return Err(Error::invalid_input(format!(
                "{script:?} orders the inode of '{path}' twice"
            )));
        }
        ordered.push(*item);
    }
    let rest = items.iter().zip(&is_placed);
    ordered.extend(rest.filter(|(_, placed)| !**placed).map(|(item, _)| *item));
    Ok(ordered)
}

/// Fragments of one category as a script sees them.
struct StreamView<'a> {
    tree: &'a Tree,
    files: &'a Files,
    analysis: &'a Analysis,
    category: Option<&'a str>,
    fragments: &'a [Fragment],
    /// All names of the files that have several.
    names: HashMap<FileIndex, Vec<EntryIndex>>,
}

fn names_of_linked(tree: &Tree, files: &Files) -> HashMap<FileIndex, Vec<EntryIndex>> {
    let mut names: HashMap<FileIndex, Vec<EntryIndex>> = HashMap::new();
    for link in &tree.linked {
        if let Some(file) = files.of_entry(link.entry) {
            names.entry(file).or_default().push(link.entry);
        }
    }
    names
}

impl StreamView<'_> {
    /// The files with the content, in the order of the scan; there is at least one.
    fn files_of(&self, number: u32) -> &[FileIndex] {
        match self.fragments.get(number as usize) {
            Some(fragment) => self.analysis.contents.files(fragment.content),
            None => &[],
        }
    }

    fn path_of(&self, file: FileIndex) -> Vec<u8> {
        self.tree.path(self.files.file(file).entry)
    }
}

impl ScriptInodes for StreamView<'_> {
    fn count(&self) -> u32 {
        count_of(self.fragments.len())
    }

    fn paths(&self, number: u32) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        for file in self.files_of(number) {
            match self.names.get(file) {
                Some(entries) => paths.extend(entries.iter().map(|entry| self.tree.path(*entry))),
                None => paths.push(self.path_of(*file)),
            }
        }
        paths.sort_unstable_by(|a, b| compare_paths(a, b));
        paths
    }

    fn path(&self, number: u32) -> Vec<u8> {
        match self.files_of(number) {
            [file] if !self.names.contains_key(file) => self.path_of(*file),
            _ => self.paths(number).into_iter().next().unwrap_or_default(),
        }
    }

    fn size(&self, number: u32) -> u64 {
        let fragment = self.fragments.get(number as usize);
        fragment.map_or(0, |fragment| fragment.len)
    }

    fn mtime(&self, number: u32) -> Time {
        let first = self.files_of(number).first();
        first.map_or(Time::default(), |file| {
            self.tree.entry(self.files.file(*file).entry).mtime
        })
    }

    fn category(&self, _number: u32) -> Option<&str> {
        self.category
    }

    fn similarity(&self, number: u32) -> Option<Vec<u32>> {
        let content = self.fragments.get(number as usize)?.content;
        let sketch = self.analysis.sketches.of(SketchKind::Similarity, content)?;
        let words = sketch.words().iter().copied();
        Some(words.filter(|word| *word != 0).collect())
    }
}

/// Compares paths component by component.
fn compare_paths(a: &[u8], b: &[u8]) -> Ordering {
    a.split(|byte| *byte == b'/')
        .cmp(b.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Attributes, Hooks, ScriptEntry};

    #[derive(Debug)]
    struct Fixed(Option<Vec<u32>>);

    impl Script for Fixed {
        fn hooks(&self) -> Hooks {
            Hooks::default()
        }

        fn filter(&self, _entry: &ScriptEntry<'_>) -> Result<bool> {
            Ok(true)
        }

        fn transform(&self, entry: &ScriptEntry<'_>) -> Result<Attributes> {
            Ok(entry.attributes)
        }

        fn order(&self, _inodes: &dyn ScriptInodes) -> Result<Option<Vec<u32>>> {
            Ok(self.0.clone())
        }
    }

    struct Four;

    impl ScriptInodes for Four {
        fn count(&self) -> u32 {
            4
        }

        fn paths(&self, number: u32) -> Vec<Vec<u8>> {
            vec![self.path(number)]
        }

        fn path(&self, number: u32) -> Vec<u8> {
            format!("f{number}").into_bytes()
        }

        fn size(&self, _number: u32) -> u64 {
            1
        }

        fn mtime(&self, _number: u32) -> Time {
            Time::default()
        }

        fn category(&self, _number: u32) -> Option<&str> {
            None
        }

        fn similarity(&self, _number: u32) -> Option<Vec<u32>> {
            None
        }
    }

    fn check(answer: Option<&[u32]>, expect: &str) {
        let script = Fixed(answer.map(<[u32]>::to_vec));
        let found = match reorder(&script, &Four, &['a', 'b', 'c', 'd']) {
            Ok(items) => items.into_iter().collect(),
            Err(error) => error.to_string(),
        };
        assert!(found.ends_with(expect), "{answer:?}: {found}");
    }

    #[test]
    fn what_is_left_out_follows() {
        check(None, "abcd");
        check(Some(&[]), "abcd");
        check(Some(&[3, 1, 2, 0]), "dbca");
        check(Some(&[2]), "cabd");
    }

    #[test]
    fn only_permutations_are_orders() {
        check(Some(&[4]), "orders inode 4 of 4");
        check(Some(&[1, 1]), "orders the inode of 'f1' twice");
    }

    #[test]
    fn paths_compare_by_component() {
        assert_eq!(compare_paths(b"a/z", b"a.b"), Ordering::Less);
        assert_eq!(compare_paths(b"a", b"a/b"), Ordering::Less);
        assert_eq!(compare_paths(b"b", b"a/b"), Ordering::Greater);
    }
}
