//! Which files to write, in which order, and which paths are links to them.

use std::ops::Range;
use std::sync::atomic::Ordering;

use durin_format::{InodeNum, Result};
use durin_reader::FileKind;

use crate::job::Run;
use crate::plan::Entry;

/// The regular files of the plan.
pub(crate) struct Files {
    /// Entries, those of one file side by side.
    entries: Vec<Entry>,
    /// For each file to write, its entries.
    groups: Vec<Range<usize>>,
}

impl Files {
    /// Sorts the files of the plan; those in directories for which `is_there` says no are left out.
    pub(crate) fn in_data_order(run: &Run<'_>, is_there: impl Fn(u32) -> bool) -> Result<Self> {
        let mut entries: Vec<Entry> = run
            .plan
            .entries
            .iter()
            .filter(|entry| entry.kind == FileKind::Regular)
            .filter(|entry| is_there(entry.dir))
            .copied()
            .collect();
        let ranks = ranks(run)?;
        let rank = |inode: InodeNum| ranks.get(inode.0 as usize).copied().unwrap_or(u32::MAX);
        // Stable: links stay in the order of the walk.
        entries.sort_by_key(|entry| (rank(entry.entry.inode), entry.entry.inode));
        let groups = group(run, &mut entries);
        Ok(Self { entries, groups })
    }

    /// Tells those who watch how much there is to do.
    pub(crate) fn count_total(&self, run: &Run<'_>) {
        let firsts = (0..self.len()).filter_map(|group| self.entries(group).first());
        let bytes = firsts
            .filter_map(|entry| run.image.attr(entry.entry).ok())
            .fold(0_u64, |sum, attr| sum.saturating_add(attr.allocated));
        let files = u64::try_from(self.len()).unwrap_or(u64::MAX);
        run.stats.bytes_total.store(bytes, Ordering::Relaxed);
        run.stats.files_total.store(files, Ordering::Relaxed);
    }

    /// How many files there are to write.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The inode of each file to write.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = InodeNum> {
        let firsts = (0..self.len()).map(|group| self.entries(group).first());
        firsts.map(|entry| entry.map_or(InodeNum(u32::MAX), |entry| entry.entry.inode))
    }

    /// The paths of a file: the first gets the content, the others are links to it.
    pub(crate) fn entries(&self, group: usize) -> &[Entry] {
        self.groups
            .get(group)
            .and_then(|range| self.entries.get(range.clone()))
            .unwrap_or_default()
    }
}

/// The place of each inode in data order.
fn ranks(run: &Run<'_>) -> Result<Vec<u32>> {
    let mut ranks = vec![u32::MAX; run.image.inode_count() as usize];
    for (rank, inode) in (0..).zip(run.image.files_in_data_order()?) {
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
fn group(run: &Run<'_>, entries: &mut [Entry]) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < entries.len() {
        let Some(rest) = entries.get_mut(start..) else {
            break;
        };
        let len = same_inode(rest);
        let same = rest.get_mut(..len).unwrap_or_default();
        if same
            .iter()
            .any(|entry| run.image.entry_differs(entry.entry))
        {
            same.sort_by_cached_key(|entry| attributes_key(run, entry));
            let keys: Vec<_> = same
                .iter()
                .map(|entry| attributes_key(run, entry))
                .collect();
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
fn attributes_key(run: &Run<'_>, entry: &Entry) -> Option<[i64; 7]> {
    let attr = run.image.attr(entry.entry).ok()?;
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
