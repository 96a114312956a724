//! Tables of ascending indices, stored plain or as differences.

use durin_format::frozen::view::Column;
use durin_format::{Error, Result};

/// A table whose item `i` is where the things of `i` begin in another table; one more item ends the last.
///
/// Checked: there is at least one item, and the last one is `end`.
pub(crate) enum IndexTable {
    /// Read in place.
    Stored(Column),
    /// The sums of stored differences, made once.
    Unpacked(Vec<u32>),
}

impl IndexTable {
    /// `end` is the length of the other table, `what` names this one.
    pub(super) fn new(
        column: Column,
        is_packed: bool,
        data: &[u8],
        end: u32,
        what: &str,
    ) -> Result<Self> {
        let table = if is_packed {
            Self::Unpacked(sums(column, data, end, what)?)
        } else {
            Self::Stored(column)
        };
        let last = table
            .len()
            .checked_sub(1)
            .and_then(|last| table.get(data, last));
        if last != Some(end) {
            return Err(Error::corrupt(format!(
                "{what}: expected {end} as the last item, found {last:?}"
            )));
        }
        Ok(table)
    }

    /// Number of things that have a range: one less than items.
    pub(crate) fn count(&self) -> u32 {
        self.len().saturating_sub(1)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds::check limits all counts to 32 bits"
    )]
    fn len(&self) -> u32 {
        match self {
            Self::Stored(column) => column.len() as u32,
            Self::Unpacked(sums) => sums.len() as u32,
        }
    }

    /// Item `index`.
    #[inline]
    pub(crate) fn get(&self, data: &[u8], index: u32) -> Option<u32> {
        match self {
            Self::Stored(column) => u32::try_from(column.get(data, index.into())?).ok(),
            Self::Unpacked(sums) => sums.get(usize::try_from(index).ok()?).copied(),
        }
    }

    /// Items `index` and `index + 1`: the range of thing `index`, not yet compared with each other.
    #[inline]
    pub(crate) fn pair(&self, data: &[u8], index: u32) -> Option<(u32, u32)> {
        Some((
            self.get(data, index)?,
            self.get(data, index.checked_add(1)?)?,
        ))
    }
}

fn sums(column: Column, data: &[u8], end: u32, what: &str) -> Result<Vec<u32>> {
    let mut sums = Vec::new();
    let mut sum = 0_u32;
    for index in 0..column.len() {
        let step = column
            .get(data, index)
            .and_then(|step| u32::try_from(step).ok());
        sum = step
            .and_then(|step| sum.checked_add(step))
            .filter(|sum| *sum <= end)
            .ok_or_else(|| {
                Error::corrupt(format!("{what}: the differences add up to more than {end}"))
            })?;
        sums.push(sum);
    }
    Ok(sums)
}
