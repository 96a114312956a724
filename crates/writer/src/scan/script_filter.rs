//! Asking a script which entries are packed.

use durin_format::Result;

use super::entry::Examiner;
use super::listing::{Found, Listing};
use crate::attributes;
use crate::context::Context;
use crate::files::Files;
use crate::filter::Verdict;
use crate::mode;
use crate::script::{Attributes, EntryKind, Script, ScriptEntry};
use crate::status::Kind;
use crate::transform::describe;
use crate::tree::{Detail, ROOT, Tree, count_of};

/// Removes from a sorted listing of the directory `path` what the script does not want.
pub(crate) fn of_listing(
    context: Context<'_>,
    script: &dyn Script,
    path: &[u8],
    listing: &mut Listing,
) -> Result<()> {
    let examiner = Examiner::new(context);
    let mut entry_path = path.to_vec();
    if !path.is_empty() {
        entry_path.push(b'/');
    }
    let dir_len = entry_path.len();
    let mut found = std::mem::take(&mut listing.found);
    let mut failure = None;
    found.retain(|found| {
        if failure.is_some() {
            return true;
        }
        entry_path.truncate(dir_len);
        entry_path.extend_from_slice(listing.name(found));
        let kept = context
            .check_cancelled()
            .and_then(|()| script.filter(&entry(&entry_path, found, listing)));
        match kept {
            Ok(true) => true,
            Ok(false) => {
                examiner.uncount(found);
                false
            }
            Err(error) => {
                failure = Some(error);
                true
            }
        }
    });
    listing.found = found;
    failure.map_or(Ok(()), Err)
}

/// Asks the script about all listings, the first of which is the root's; what is below a directory that is left out
/// is emptied.
pub(crate) fn of_listings(
    context: Context<'_>,
    script: &dyn Script,
    listings: &mut [Listing],
) -> Result<()> {
    let mut reached = vec![false; listings.len()];
    let mut pending = vec![(0, Vec::new())];
    while let Some((number, path)) = pending.pop() {
        reached[number as usize] = true;
        let listing = &mut listings[number as usize];
        of_listing(context, script, &path, listing)?;
        let first = pending.len();
        for found in &listing.found {
            if let Detail::Directory { number } = found.detail {
                let mut below = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(listing.name(found));
                pending.push((number, below));
            }
        }
        pending[first..].reverse();
    }
    let examiner = Examiner::new(context);
    for (listing, _) in listings
        .iter_mut()
        .zip(reached)
        .filter(|(_, reached)| !reached)
    {
        for found in std::mem::take(listing).found {
            examiner.uncount(&found);
        }
    }
    Ok(())
}

/// Returns what the rules and then the script say of each entry of a whole tree; nothing for the root and for what is
/// below a directory that is left out.
pub(crate) fn verdicts(context: Context<'_>, tree: &Tree) -> Result<Vec<Option<Verdict>>> {
    let script = context.options.script_with(|hooks| hooks.filter);
    let files = Files::of(tree, context);
    let mut verdicts = vec![None; tree.entries.len()];
    for index in 0..count_of(tree.entries.len()) {
        let entry = tree.entry(index);
        let above = tree.dir(entry.dir).self_entry;
        if index == ROOT || above != ROOT && verdicts[above as usize] != Some(Verdict::Include) {
            continue;
        }
        let path = tree.path(index);
        let is_dir = entry.detail.kind() == Kind::Directory;
        let mut verdict = context.options.filter.verdict(&path, is_dir);
        if let Some(script) = script
            && verdict == Verdict::Include
            && !script.filter(&describe(
                tree,
                index,
                &path,
                files
                    .of_entry(index)
                    .map_or(1, |file| files.file(file).nlink),
                attributes::own(tree, index),
            ))?
        {
            verdict = Verdict::Exclude;
        }
        verdicts[index as usize] = Some(verdict);
    }
    Ok(verdicts)
}

fn entry<'a>(path: &'a [u8], found: &Found, listing: &'a Listing) -> ScriptEntry<'a> {
    let (size, target) = match found.detail {
        Detail::Regular { size, .. } => (size, &[][..]),
        Detail::Symlink { offset, len } => (u64::from(len), listing.target(offset, len)),
        Detail::Directory { .. } | Detail::Device { .. } | Detail::Special => (0, &[][..]),
    };
    ScriptEntry {
        path,
        kind: EntryKind::of(found.mode),
        size,
        nlink: listing.aside(found).nlink,
        target,
        attributes: Attributes {
            permissions: found.mode & mode::ALL,
            uid: found.uid,
            gid: found.gid,
            mtime: found.mtime,
            atime: listing.aside(found).further_times.atime,
            ctime: listing.aside(found).further_times.ctime,
        },
    }
}
