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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use crate::ErrorKind;
    use crate::frozen::schema::Schema;
    use crate::limits::{TEXT_BYTES_MAX, TEXT_LIST_BYTES_MAX, TEXT_LIST_COUNT_MAX};
    use crate::metadata::{Metadata, MetadataHistoryEntry, Tables};

    fn resolve(metadata: &Metadata) -> crate::Result<Tables> {
        let frozen = metadata.freeze().unwrap();
        Tables::resolve(&Schema::parse(&frozen.schema)?, &frozen.data)
    }

    fn check(text_count: u64, text_len: u64, expect: Option<&str>) {
        let text = vec![b'x'; usize::try_from(text_len).unwrap()];
        let metadata = Metadata {
            category_names: Some(vec![text; usize::try_from(text_count).unwrap()]),
            ..Metadata::default()
        };
        match (resolve(&metadata), expect) {
            (Ok(tables), None) => {
                let names = tables.category_names.unwrap();
                assert_eq!(names.len() as u64, text_count);
            }
            (Err(error), Some(expect)) => {
                assert_eq!(error.kind(), ErrorKind::Limit);
                assert_eq!(
                    error.to_string(),
                    format!("metadata: category_names: {expect}")
                );
            }
            (result, _) => panic!("{text_count} texts of {text_len} bytes: {result:?}"),
        }
    }

    #[test]
    fn texts_are_bounded_one_by_one_and_together() {
        check(1, TEXT_BYTES_MAX, None);
        check(
            1,
            TEXT_BYTES_MAX + 1,
            Some("text of 1048577 bytes is longer than TEXT_BYTES_MAX = 1048576"),
        );
        check(TEXT_LIST_BYTES_MAX / TEXT_BYTES_MAX, TEXT_BYTES_MAX, None);
        check(
            TEXT_LIST_BYTES_MAX / TEXT_BYTES_MAX + 1,
            TEXT_BYTES_MAX,
            Some("texts are longer than TEXT_LIST_BYTES_MAX = 16777216"),
        );
        check(TEXT_LIST_COUNT_MAX, 0, None);
        check(
            TEXT_LIST_COUNT_MAX + 1,
            0,
            Some("65537 items are more than TEXT_LIST_COUNT_MAX = 65536"),
        );
    }

    #[test]
    fn version_histories_are_bounded_too() {
        let count = usize::try_from(TEXT_LIST_COUNT_MAX).unwrap() + 1;
        let metadata = Metadata {
            metadata_version_history: Some(vec![MetadataHistoryEntry::default(); count]),
            ..Metadata::default()
        };
        assert_eq!(resolve(&metadata).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let metadata = Metadata {
            dwarfs_version: Some(b"lib\xffdwarfs".to_vec()),
            ..Metadata::default()
        };
        let version = resolve(&metadata).unwrap().dwarfs_version;
        assert_eq!(version.as_deref(), Some("lib\u{fffd}dwarfs"));
    }
}
