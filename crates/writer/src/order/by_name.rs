//! Orders that follow from names and lists.
//!
//! Time: sorting. Memory: a key for each fragment.

use std::cmp::Reverse;
use std::path::PathBuf;

use crate::category::Fragment;
use crate::context::Context;
use crate::dedupe::{ContentIndex, Contents};
use crate::files::{FileIndex, Files};
use crate::tree::{EntryIndex, Tree};

/// What is known of the names of contents.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) tree: &'a Tree,
    pub(super) files: &'a Files,
    pub(super) contents: &'a Contents,
}

impl<'a> Names<'a> {
    /// As the scan or the list has them; of several names of a file, the one listed first counts.
    pub(super) fn as_found(self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let places = &self.tree.list_places;
        self.by_key(fragments, |entry| {
            let file = self.files.of_entry(entry)?;
            let entries = self.files.entries(file);
            entries
                .filter_map(|entry| places.get(entry as usize).copied())
                .min()
        })
    }

    /// Component by component.
    pub(super) fn by_path(self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let places = self.tree.path_places();
        self.by_key(fragments, |entry| places[entry as usize])
    }

    /// Directory by directory, and in each by what follows the last dot of the names: files of one kind have more in
    /// common.
    pub(super) fn by_directory(self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let tree = self.tree;
        // Directories are numbered, and entries sorted, as paths are.
        self.by_key(fragments, |entry| {
            let of_entry = tree.entry(entry);
            (of_entry.dir, extension(tree.name(of_entry)), entry)
        })
    }

    /// By size, and by names from the last component upwards where that is equal.
    pub(super) fn largest_first(self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let mut fragments = self.by_names_upwards(fragments);
        fragments.sort_by_key(|fragment| Reverse(fragment.len));
        fragments
    }

    /// By base names, then by the names of the parents upwards.
    pub(super) fn by_names_upwards(self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let compare = |a: &EntryIndex, b: &EntryIndex| self.tree.compare_upwards(*a, *b);
        let mut keyed: Vec<(Option<EntryIndex>, Fragment)> = fragments
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

    /// As listed, and what is not listed by path.
    pub(super) fn as_listed(
        self,
        context: Context<'_>,
        paths: &[PathBuf],
        fragments: Vec<Fragment>,
    ) -> Vec<Fragment> {
        let places = self.tree.path_places();
        let listed = self.listed_places(context, paths);
        let listed = |entry| {
            let file = self.files.of_entry(entry)?;
            listed[file as usize]
        };
        let key = |entry| (listed(entry).unwrap_or(u32::MAX), places[entry as usize]);
        self.by_key(fragments, key)
    }

    /// The base name of the first file that has a content.
    pub(super) fn first_name(self, content: ContentIndex) -> &'a [u8] {
        let files = self.contents.files(content).iter();
        let first = files.map(|file| self.files.file(*file).entry).min();
        first.map_or(b"", |entry| self.tree.name(self.tree.entry(entry)))
    }

    fn by_key<K: Ord>(
        self,
        mut fragments: Vec<Fragment>,
        key: impl Fn(EntryIndex) -> K,
    ) -> Vec<Fragment> {
        fragments.sort_by_cached_key(|fragment| {
            let files = self.contents.files(fragment.content);
            let keys = files.iter().map(|file| key(self.files.file(*file).entry));
            (keys.min(), fragment.content, fragment.offset)
        });
        fragments
    }

    /// Returns for each file its first place in the list.
    fn listed_places(self, context: Context<'_>, paths: &[PathBuf]) -> Vec<Option<u32>> {
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

/// What follows the last dot of a name that does not begin with it.
fn extension(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|byte| *byte == b'.') {
        None | Some(0) => b"",
        Some(dot) => &name[dot + 1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions() {
        let check =
            |name: &str, want: &str| assert_eq!(extension(name.as_bytes()), want.as_bytes());
        check("a.tar.gz", "gz");
        check("Makefile", "");
        check(".profile", "");
        check(".a.conf", "conf");
        check("end.", "");
        check("", "");
    }
}
