//! A list of paths as the input: the listed entries and the directories that lead to them.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use durin_format::{Error, Result};
use rustix::fs::{Mode, openat};

use super::PASSAGE_FLAGS;
use super::entry::{Examined, Examiner};
use super::listing::{FoundDir, Listing};
use crate::context::Context;
use crate::open::patiently;
use crate::tree::{Detail, printable};

/// The kernel takes paths that are shorter than this.
const PATH_MAX: usize = 4096;

/// Looks at each listed path and returns a listing for each directory among them and above them; that of the root
/// comes first. `base` is the root as the user named it.
///
/// What a directory contains is not looked at, only what is listed.
pub(crate) fn list(
    context: Context<'_>,
    root: &OwnedFd,
    base: Option<&Path>,
    paths: &[PathBuf],
) -> Result<Vec<Listing>> {
    if u32::try_from(paths.len()).is_err() {
        return Err(Error::limit("more than 2^32 listed paths"));
    }
    let mut scan = ListScan {
        context,
        examiner: Examiner::new(context),
        root,
        dirs: HashMap::from([(Vec::new(), 0)]),
        failed: HashSet::new(),
        listed: HashSet::new(),
        listings: vec![Listing::default()],
    };
    for (place, path) in (0_u32..).zip(paths) {
        context.check_cancelled()?;
        let Some(relative) = relative_to(base, path) else {
            context.problem(&format!(
                "listed path '{}' is outside the input",
                printable(path.as_os_str().as_bytes())
            ));
            continue;
        };
        scan.add(relative, place);
    }
    for listing in &mut scan.listings {
        listing.sort();
    }
    Ok(scan.listings)
}

struct ListScan<'a> {
    context: Context<'a>,
    examiner: Examiner<'a>,
    root: &'a OwnedFd,
    /// The directories found so far by their paths from the root.
    dirs: HashMap<Vec<u8>, FoundDir>,
    /// What was to be a directory and is none, or cannot be read.
    failed: HashSet<Vec<u8>>,
    listed: HashSet<Vec<u8>>,
    listings: Vec<Listing>,
}

impl ListScan<'_> {
    fn add(&mut self, path: Vec<u8>, place: u32) {
        if path.is_empty() {
            return;
        }
        if self.listed.contains(&path) {
            let message = format!("'{}' is listed more than once", printable(&path));
            self.context.events.info(&message);
            return;
        }
        let Some((parent, name_start)) = self.parent_of(&path) else {
            return;
        };
        if !self.dirs.contains_key(&path) {
            self.examine(parent, &path, name_start, place);
        }
        self.listed.insert(path);
    }

    /// Finds or makes the directories above `path`; returns the innermost and where the name begins.
    ///
    /// One that cannot be made is reported once, however much is listed below it.
    fn parent_of(&mut self, path: &[u8]) -> Option<(FoundDir, usize)> {
        let mut parent = 0;
        let mut name_start = 0;
        for (separator, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let dir = &path[..separator];
            let known = self.dirs.get(dir).copied();
            if known.is_none() && self.failed.contains(dir) {
                return None;
            }
            let found = known.or_else(|| self.examine(parent, dir, name_start, u32::MAX));
            let Some(number) = found else {
                self.failed.insert(dir.to_vec());
                return None;
            };
            parent = number;
            name_start = separator + 1;
        }
        Some((parent, name_start))
    }

    /// Looks at one path; returns its number if it is a directory.
    fn examine(
        &mut self,
        parent: FoundDir,
        path: &[u8],
        name_start: usize,
        place: u32,
    ) -> Option<FoundDir> {
        let is_parent = place == u32::MAX;
        let mut single = Listing::default();
        let name = path.get(name_start..).unwrap_or_default();
        let display = || printable(path);
        let opened;
        let (dir, rest) = if path.len() < PATH_MAX {
            // The kernel resolves the path, but each directory on it has been found not to be a symbolic link.
            (self.root, path)
        } else {
            match self.open_dir(&path[..name_start]) {
                Ok(dir) => opened = dir,
                Err(error) => {
                    let message = format!("cannot read '{}': {error}", display());
                    self.context.problem(&message);
                    return None;
                }
            }
            (&opened, name)
        };
        let Ok(rest) = CString::new(rest) else {
            self.context.problem("a listed path contains a NUL");
            return None;
        };
        let examined = self
            .examiner
            .examine(dir.as_fd(), &rest, &mut single, display);
        let Examined::Pushed(found) = examined else {
            return None;
        };
        let mut found = *found;
        let is_dir = matches!(found.detail, Detail::Directory { .. });
        if is_parent && !is_dir {
            let message = format!(
                "'{}' is listed to contain files, but is no directory",
                display()
            );
            self.context.problem(&message);
            self.examiner.uncount(&found);
            return None;
        }
        let number = FoundDir::try_from(self.listings.len()).ok()?;
        if is_dir {
            found.detail = Detail::Directory { number };
            self.dirs.insert(path.to_vec(), number);
            self.listings.push(Listing::default());
        }
        self.listings[parent as usize].take_over(name, place, found, &single);
        is_dir.then_some(number)
    }

    /// Opens a directory name by name, which works for paths of any length.
    fn open_dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let names = path.split(|byte| *byte == b'/');
        let names = names.filter(|name| !name.is_empty());
        patiently(self.context, || {
            let mut names = names.clone();
            names.try_fold(self.root.try_clone()?, |dir, name| {
                Ok(openat(dir, name, PASSAGE_FLAGS, Mode::empty())?)
            })
        })
    }
}

/// Returns the path from the root, or nothing if it leads outside; `.` and `..` are resolved by their names.
fn relative_to(base: Option<&Path>, path: &Path) -> Option<Vec<u8>> {
    let relative = if path.is_absolute() {
        path.strip_prefix(base?).ok()?
    } else {
        path
    };
    let mut names: Vec<&[u8]> = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => {
                names.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_relative_to_the_root() {
        let check = |base: Option<&str>, path: &str, expect: Option<&str>| {
            let found = relative_to(base.map(Path::new), Path::new(path));
            assert_eq!(
                found,
                expect.map(|text| text.as_bytes().to_vec()),
                "{base:?} {path}"
            );
        };
        check(None, "a//b/./c/", Some("a/b/c"));
        check(None, "a/../b", Some("b"));
        check(None, "../b", None);
        check(None, "/a", None);
        check(Some("x"), "/a", None);
        check(Some("/in"), "/in/a", Some("a"));
        check(Some("/in"), "/inner/a", None);
        check(Some("/in"), "a", Some("a"));
        check(Some("/in"), "/in/../etc", None);
        check(Some("/in"), ".", Some(""));
    }
}
