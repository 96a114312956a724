//! Lets a script change the attributes of entries.
//!
//! In: the tree with the attributes of the input. Out: the same tree with final attributes: those that the options make
//! of the input's, and the script of these. The script is asked once for each inode, by its first name, in the order
//! of the tree. Memory: 24 bytes for each entry whose time changes.

use durin_format::Result;

use crate::attributes;
use crate::context::Context;
use crate::files::Files;
use crate::mode;
use crate::script::{Attributes, EntryKind, Script, ScriptEntry, Time};
use crate::tree::{Detail, DirIndex, EntryIndex, Tree, count_of};

/// How many entries are done between two looks whether the user wants to stop.
const CANCEL_CHECK_STEP: u32 = 256;

/// Makes attributes final, if a script wants to see them.
///
/// # Errors
/// Those of the script; `Cancelled`.
pub(crate) fn transform(context: Context<'_>, tree: &mut Tree, files: &Files) -> Result<()> {
    let Some(script) = context.options.script_with(|hooks| hooks.transform) else {
        return Ok(());
    };
    let mut dir_path = DirPath::default();
    let mut changed_mtimes = Vec::new();
    for index in 0..count_of(tree.entries.len()) {
        if index.is_multiple_of(CANCEL_CHECK_STEP) {
            context.check_cancelled()?;
        }
        let file = files.of_entry(index).map(|file| files.file(file));
        if file.is_some_and(|file| file.entry != index) {
            continue;
        }
        let path = dir_path.join(tree, index);
        let mtime = transform_entry(
            context,
            tree,
            index,
            path,
            file.map_or(1, |file| file.nlink),
            script,
        )?;
        changed_mtimes.extend(mtime.map(|mtime| (index, mtime)));
    }
    tree.changed_mtimes = changed_mtimes;
    tree.is_transformed = true;
    if !context.options.keep_all_times {
        tree.further_times = Vec::new();
    }
    Ok(())
}

/// Changes an entry in place, except that its time of modification is returned if it is another one.
fn transform_entry(
    context: Context<'_>,
    tree: &mut Tree,
    index: EntryIndex,
    path: &[u8],
    nlink: u32,
    script: &dyn Script,
) -> Result<Option<Time>> {
    let before = attributes::of(context.options, tree, index);
    let described = describe(tree, index, path, nlink, before);
    let kind = described.kind;
    let after = script.transform(&described)?;
    // As with chmod, symbolic links have no permissions of their own.
    let permissions = match kind {
        EntryKind::Symlink => before.permissions,
        _ => after.permissions & mode::ALL,
    };
    let entry = &mut tree.entries[index as usize];
    entry.mode = entry.mode & mode::TYPE | permissions;
    entry.uid = after.uid;
    entry.gid = after.gid;
    let mtime = (after.mtime != entry.mtime).then_some(after.mtime);
    if let Some(times) = tree.further_times.get_mut(index as usize) {
        times.atime = after.atime;
        times.ctime = after.ctime;
    }
    Ok(mtime)
}

/// Describes an entry of the tree to a script.
pub(crate) fn describe<'a>(
    tree: &'a Tree,
    index: EntryIndex,
    path: &'a [u8],
    nlink: u32,
    attributes: Attributes,
) -> ScriptEntry<'a> {
    let entry = tree.entry(index);
    let (size, target) = match entry.detail {
        Detail::Regular { size, .. } => (size, &[][..]),
        Detail::Symlink { offset, len } => (u64::from(len), tree.target(offset, len)),
        Detail::Directory { .. } | Detail::Device { .. } | Detail::Special => (0, &[][..]),
    };
    ScriptEntry {
        path,
        kind: EntryKind::of(entry.mode),
        size,
        nlink,
        target,
        attributes,
    }
}

/// Makes paths of entries that come directory by directory.
#[derive(Default)]
struct DirPath {
    dir: Option<DirIndex>,
    /// The path of the directory, with a `/` at the end, and that of the last entry.
    path: Vec<u8>,
    dir_len: usize,
}

impl DirPath {
    fn join(&mut self, tree: &Tree, index: EntryIndex) -> &[u8] {
        let entry = tree.entry(index);
        if self.dir != Some(entry.dir) {
            self.path = tree.path(tree.dir(entry.dir).self_entry);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.dir_len = self.path.len();
            self.dir = Some(entry.dir);
        }
        self.path.truncate(self.dir_len);
        self.path.extend_from_slice(tree.name(entry));
        &self.path
    }
}
