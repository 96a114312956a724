//! Letting a script order what is to be stored.
//!
//! The script sees inodes in the order that the options chose; what it leaves out keeps that order behind the rest.

use std::cmp::Ordering;
use std::collections::HashMap;

use durin_format::{Error, Result};

use crate::dedupe::{ContentIndex, Contents};
use crate::files::{FileIndex, Files};
use crate::script::{Script, ScriptInodes, Time};
use crate::tree::{EntryIndex, Tree, count_of};

/// Returns `items`, which `inodes` describes one by one, as the script orders them.
///
/// # Errors
/// Those of the script; `InvalidInput` if it names an inode twice or one that there is not.
pub(crate) fn reorder<T: Copy>(
    script: &dyn Script,
    inodes: &dyn ScriptInodes,
    items: &[T],
) -> Result<Vec<T>> {
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

/// Contents as a script sees them.
pub(crate) struct ContentsView<'a> {
    tree: &'a Tree,
    files: &'a Files,
    contents: &'a Contents,
    ordered: &'a [ContentIndex],
    /// All names of the files that have several.
    names: HashMap<FileIndex, Vec<EntryIndex>>,
}

impl<'a> ContentsView<'a> {
    pub(crate) fn new(
        tree: &'a Tree,
        files: &'a Files,
        contents: &'a Contents,
        ordered: &'a [ContentIndex],
    ) -> Self {
        let mut names: HashMap<FileIndex, Vec<EntryIndex>> = HashMap::new();
        for link in &tree.linked {
            if let Some(file) = files.of_entry(link.entry) {
                names.entry(file).or_default().push(link.entry);
            }
        }
        Self {
            tree,
            files,
            contents,
            ordered,
            names,
        }
    }

    /// The first file in the order of the scan; a content has at least one.
    fn first_file(&self, number: u32) -> Option<FileIndex> {
        let content = *self.ordered.get(number as usize)?;
        self.contents.files(content).first().copied()
    }
}

impl ScriptInodes for ContentsView<'_> {
    fn count(&self) -> u32 {
        count_of(self.ordered.len())
    }

    fn paths(&self, number: u32) -> Vec<Vec<u8>> {
        let Some(content) = self.ordered.get(number as usize) else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        for file in self.contents.files(*content) {
            match self.names.get(file) {
                Some(entries) => paths.extend(entries.iter().map(|entry| self.tree.path(*entry))),
                None => paths.push(self.tree.path(self.files.file(*file).entry)),
            }
        }
        paths.sort_unstable_by(|a, b| compare_paths(a, b));
        paths
    }

    fn path(&self, number: u32) -> Vec<u8> {
        match self.first_file(number) {
            Some(file) if self.paths_may_be_many(number, file) => {
                self.paths(number).into_iter().next().unwrap_or_default()
            }
            Some(file) => self.tree.path(self.files.file(file).entry),
            None => Vec::new(),
        }
    }

    fn size(&self, number: u32) -> u64 {
        self.first_file(number)
            .map_or(0, |file| self.files.file(file).size)
    }

    fn mtime(&self, number: u32) -> Time {
        let file = self.first_file(number);
        file.map_or(Time::default(), |file| {
            self.tree.entry(self.files.file(file).entry).mtime
        })
    }

    fn category(&self, _number: u32) -> Option<&str> {
        None
    }
}

impl ContentsView<'_> {
    fn paths_may_be_many(&self, number: u32, first: FileIndex) -> bool {
        let content = self.ordered.get(number as usize);
        let files = content.map_or(0, |content| self.contents.files(*content).len());
        files > 1 || self.names.contains_key(&first)
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
