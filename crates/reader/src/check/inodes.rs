//! The inode table: indices into the small tables, and the numbering by kind.

use durin_format::{InodeNum, Result};

use crate::attr::FileKind;
use crate::image::Image;
use crate::metadata::{Metadata, Rank};

pub(super) fn check(image: &Image, _: &mut Vec<String>) -> Result<()> {
    let metadata = image.metadata();
    let modes = Modes::new(metadata)?;
    for element in 0..metadata.tables.inodes.len() {
        check_element(metadata, &modes, element)?;
    }
    if metadata.is_legacy {
        check_entry_table(metadata)?;
    }
    check_root(metadata)
}

/// The ranks of all modes. Their table is never longer than that of the inodes.
struct Modes(Vec<Option<Rank>>);

impl Modes {
    fn new(metadata: &Metadata) -> Result<Self> {
        let modes = metadata.tables.modes;
        let rank = |mode| Some(Rank::of(FileKind::from_mode(u32::try_from(mode).ok()?)?));
        let ranks: Vec<_> = modes.iter(metadata.data()).map(rank).collect();
        match ranks.iter().position(Option::is_none) {
            Some(at) => Err(metadata.corrupt(format!("modes: item {at} has an unknown file type"))),
            None => Ok(Self(ranks)),
        }
    }

    fn rank(&self, index: u64) -> Option<Rank> {
        *self.0.get(usize::try_from(index).ok()?)?
    }
}

fn check_element(metadata: &Metadata, modes: &Modes, element: u64) -> Result<()> {
    let tables = &metadata.tables;
    let inodes = &tables.inodes;
    let mode_index = metadata.value(&inodes.mode_index, element, "inodes")?;
    let rank = modes.rank(mode_index).ok_or_else(|| {
        metadata.corrupt(format!(
            "inodes: item {element}: mode_index {mode_index} out of range: {} modes",
            tables.modes.len()
        ))
    })?;
    for (column, ids, what) in [
        (&inodes.owner_index, &tables.uids, "owner_index"),
        (&inodes.group_index, &tables.gids, "group_index"),
    ] {
        let index = metadata.value(column, element, "inodes")?;
        // Without a table the index is the id.
        if !ids.is_empty() && index >= ids.len() {
            return Err(metadata.corrupt(format!(
                "inodes: item {element}: {what} {index} out of range: {} ids",
                ids.len()
            )));
        }
    }
    check_fractions(metadata, element)?;
    let inode = if metadata.is_legacy {
        metadata.value32(&inodes.inode_v2_2, element, "inodes")?
    } else {
        u32::try_from(element).unwrap_or(u32::MAX)
    };
    if metadata.partition.rank(InodeNum(inode)) != Some(rank) {
        return Err(metadata.corrupt(format!(
            "inodes: item {element}: a {rank:?} has number {inode}, which is not in their range"
        )));
    }
    Ok(())
}

fn check_fractions(metadata: &Metadata, element: u64) -> Result<()> {
    let tables = &metadata.tables;
    let options = tables.options.unwrap_or_default();
    let multiplier = u64::from(options.subsecond_resolution_nsec_multiplier.unwrap_or(0));
    for column in [
        &tables.inodes.atime_subsec,
        &tables.inodes.mtime_subsec,
        &tables.inodes.ctime_subsec,
    ] {
        let fraction = metadata.value(column, element, "inodes")?;
        if fraction
            .checked_mul(multiplier)
            .is_none_or(|nsec| nsec >= 1_000_000_000)
        {
            return Err(metadata.corrupt(format!(
                "inodes: item {element}: {fraction} times {multiplier} ns is no fraction of a second"
            )));
        }
    }
    Ok(())
}

/// Formats up to 2.2: the element of an inode must be one of that inode.
fn check_entry_table(metadata: &Metadata) -> Result<()> {
    for inode in 0..metadata.inode_count() {
        let element = metadata.element_of(InodeNum(inode))?;
        let found = metadata.value(&metadata.tables.inodes.inode_v2_2, element.into(), "inodes")?;
        if found != u64::from(inode) {
            return Err(metadata.corrupt(format!(
                "entry_table_v2_2: item {inode} is an entry of inode {found}"
            )));
        }
    }
    Ok(())
}

fn check_root(metadata: &Metadata) -> Result<()> {
    match metadata.inode_of_entry(0)? {
        InodeNum(0) => Ok(()),
        other => Err(metadata.corrupt(format!("the first directory entry names inode {other}"))),
    }
}
