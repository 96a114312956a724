//! Which files to write, in which order, and which paths are links to them.

use std::ops::Range;

use durin_format::{InodeNum, Result};
use durin_reader::FileKind;

use crate::job::Job;
use crate::plan::Entry;

/// The regular files of the plan.
pub(super) struct Files {
    /// Entries, those of one file side by side.
    entries: Vec<Entry>,
    /// For each file to write, its entries.
    groups: Vec<Range<usize>>,
}

impl Files {
    /// Sorts the files of the plan; those in directories that are not there are left out.
    pub(super) fn in_data_order(job: &Job<'_>, is_there: &[bool]) -> Result<Self> {
        let mut entries: Vec<Entry> = job
            .plan
            .entries
            .iter()
            .filter(|entry| entry.kind == FileKind::Regular)
            .filter(|entry| is_there.get(entry.dir as usize).is_some_and(|there| *there))
            .copied()
            .collect();
        let ranks = ranks(job)?;
        let rank = |inode: InodeNum| ranks.get(inode.0 as usize).copied().unwrap_or(u32::MAX);
        // Stable: links stay in the order of the walk.
        entries.sort_by_key(|entry| (rank(entry.entry.inode), entry.entry.inode));
        let groups = group(job, &mut entries);
        Ok(Self { entries, groups })
    }

    /// How many files there are to write.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The paths of a file: the first gets the content, the others are links to it.
    pub(super) fn entries(&self, group: usize) -> &[Entry] {
        self.groups
            .get(group)
            .and_then(|range| self.entries.get(range.clone()))
            .unwrap_or_default()
    }
}

/// The place of each inode in data order.
fn ranks(job: &Job<'_>) -> Result<Vec<u32>> {
    let mut ranks = vec![u32::MAX; job.image.inode_count() as usize];
    for (rank, inode) in (0..).zip(job.image.files_in_data_order()?) {
        if let Some(place) = ranks.get_mut(inode.0 as usize) {
            *place = rank;
        }
    }
    Ok(ranks)
}

/// Cuts sorted entries into files: one an inode.
///
/// Up to format 2.2 attributes belong to the entry, and equal files share an inode whatever their attributes. There, only
/// entries with the same attributes become links to one file; the others get the content again, under their own attributes.
fn group(job: &Job<'_>, entries: &mut [Entry]) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < entries.len() {
        let Some(rest) = entries.get_mut(start..) else {
            break;
        };
        let len = same_inode(rest);
        let run = rest.get_mut(..len).unwrap_or_default();
        if run.iter().any(|entry| job.image.entry_differs(entry.entry)) {
            run.sort_by_cached_key(|entry| attributes_key(job, entry));
            let keys: Vec<_> = run.iter().map(|entry| attributes_key(job, entry)).collect();
            let mut from = 0;
            for part in keys.chunk_by(|a, b| a == b) {
                groups.push(start + from..start + from + part.len());
                from += part.len();
            }
        } else {
            groups.push(start..start + len);
        }
        start += len;
    }
    groups
}

fn same_inode(entries: &[Entry]) -> usize {
    let first = entries.first().map(|entry| entry.entry.inode);
    entries
        .iter()
        .take_while(|entry| Some(entry.entry.inode) == first)
        .count()
}

/// What must be equal for two paths to be one file on disk; `None` for what cannot be read, which is reported later.
fn attributes_key(job: &Job<'_>, entry: &Entry) -> Option<[i64; 7]> {
    let attr = job.image.attr(entry.entry).ok()?;
    Some([
        attr.mode.into(),
        attr.uid.into(),
        attr.gid.into(),
        attr.mtime.sec,
        attr.mtime.nsec.into(),
        attr.atime.sec,
        attr.atime.nsec.into(),
    ])
}
