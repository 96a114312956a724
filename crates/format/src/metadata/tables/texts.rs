//! The few texts that are copied at open: creator, features, categories.

use crate::frozen::view::{List, Object, Span};
use crate::limits::{TEXT_BYTES_MAX, TEXT_LIST_BYTES_MAX, TEXT_LIST_COUNT_MAX};
use crate::{Error, Result};

/// How many bytes the texts of one table may still take: strings may overlap, so that their number times their
/// length is not bounded by the length of the data.
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(TEXT_LIST_BYTES_MAX)
    }
}

impl Budget {
    /// Copies a string.
    pub(super) fn take(&mut self, span: Span, data: &[u8]) -> Result<Vec<u8>> {
        let len = span.len;
        if len > TEXT_BYTES_MAX {
            return Err(Error::limit(format!(
                "text of {len} bytes is longer than TEXT_BYTES_MAX = {TEXT_BYTES_MAX}"
            )));
        }
        self.0 = self.0.checked_sub(len).ok_or_else(|| {
            Error::limit(format!(
                "texts are longer than TEXT_LIST_BYTES_MAX = {TEXT_LIST_BYTES_MAX}"
            ))
        })?;
        Ok(span.bytes(data).to_vec())
    }

    fn take_text(&mut self, span: Span, data: &[u8]) -> Result<String> {
        let bytes = self.take(span, data)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Copies one string; bytes that are not UTF-8 are replaced.
pub(super) fn one(object: Object<'_>, data: &[u8]) -> Result<String> {
    Budget::default().take_text(object.string()?, data)
}

/// Copies a list or set of strings; bytes that are not UTF-8 are replaced.
pub(super) fn list(list: List<'_>, data: &[u8]) -> Result<Vec<String>> {
    check_count(list.len())?;
    let mut budget = Budget::default();
    list.items()
        .map(|item| budget.take_text(item.string()?, data))
        .collect()
}

/// Refuses a table of so many items that copying it would take long.
pub(super) fn check_count(count: u64) -> Result<()> {
    if count <= TEXT_LIST_COUNT_MAX {
        return Ok(());
    }
    Err(Error::limit(format!(
        "{count} items are more than TEXT_LIST_COUNT_MAX = {TEXT_LIST_COUNT_MAX}"
    )))
}
