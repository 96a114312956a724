//! Which content a regular file has, when several inodes share one.

use durin_format::frozen::view::Column;
use durin_format::metadata::Tables;
use durin_format::{Error, Result};

/// Maps the rank of a regular inode (its number less that of the first one) to a content number.
pub(crate) enum SharedFiles {
    /// Every inode has its own content.
    None,
    /// Items are contents, counted from the first shared one.
    Stored {
        /// The table.
        table: Column,
        /// Regular inodes before the first one with a shared content.
        unique_count: u32,
    },
    /// Item `i` is the first inode (counted from the first one that shares) of shared content `i`; one more item ends
    /// the last.
    Unpacked {
        /// Sums of the stored counts.
        starts: Vec<u32>,
        /// Regular inodes before the first one with a shared content.
        unique_count: u32,
    },
}

impl SharedFiles {
    /// Reads the table and checks that it accounts for all regular inodes and all contents.
    pub(super) fn new(
        tables: &Tables,
        data: &[u8],
        regular_count: u32,
        content_count: u32,
    ) -> Result<Self> {
        let Some(table) = tables.shared_files_table else {
            return Ok(Self::None);
        };
        let is_packed = tables
            .options
            .is_some_and(|options| options.packed_shared_files_table);
        let (shared, sharing, starts) = if is_packed {
            let starts = starts(table, data, regular_count)?;
            let sharing = starts.last().copied().unwrap_or(0);
            (table.len(), sharing, Some(starts))
        } else {
            let last = table
                .len()
                .checked_sub(1)
                .and_then(|last| table.get(data, last));
            let sharing = u32::try_from(table.len()).unwrap_or(u32::MAX);
            (last.map_or(0, |last| last.saturating_add(1)), sharing, None)
        };
        let unique_count = regular_count.checked_sub(sharing).ok_or_else(|| {
            Error::corrupt(format!(
                "shared_files_table: {sharing} inodes share, and there are {regular_count}"
            ))
        })?;
        if u64::from(unique_count).checked_add(shared) != Some(content_count.into()) {
            return Err(Error::corrupt(format!(
                "shared_files_table: {unique_count} unique and {shared} shared contents, expected {content_count}"
            )));
        }
        Ok(match starts {
            Some(starts) => Self::Unpacked {
                starts,
                unique_count,
            },
            None => Self::Stored {
                table,
                unique_count,
            },
        })
    }

    /// The content number of the regular inode with this rank.
    #[inline]
    pub(crate) fn content(&self, data: &[u8], rank: u32) -> Option<u32> {
        match self {
            Self::None => Some(rank),
            Self::Stored {
                table,
                unique_count,
            } => match rank.checked_sub(*unique_count) {
                None => Some(rank),
                Some(sharing) => {
                    let shared = u32::try_from(table.get(data, sharing.into())?).ok()?;
                    unique_count.checked_add(shared)
                }
            },
            Self::Unpacked {
                starts,
                unique_count,
            } => match rank.checked_sub(*unique_count) {
                None => Some(rank),
                Some(sharing) => {
                    let shared = starts
                        .partition_point(|start| *start <= sharing)
                        .checked_sub(1)?;
                    // The last item only ends the last content.
                    (shared + 1 < starts.len())
                        .then(|| unique_count.checked_add(u32::try_from(shared).ok()?))?
                }
            },
        }
    }
}

/// The stored counts are two less than the number of inodes that share a content.
fn starts(table: Column, data: &[u8], regular_count: u32) -> Result<Vec<u32>> {
    let mut starts = vec![0];
    let mut start = 0_u32;
    for index in 0..table.len() {
        start = table
            .get(data, index)
            .and_then(|count| {
                start
                    .checked_add(u32::try_from(count).ok()?)?
                    .checked_add(2)
            })
            .filter(|start| *start <= regular_count)
            .ok_or_else(|| {
                Error::corrupt(format!(
                    "shared_files_table: more inodes share than the {regular_count} there are"
                ))
            })?;
        starts.push(start);
    }
    Ok(starts)
}
