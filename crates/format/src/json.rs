//! The metadata as JSON, complete and reversible.
//!
//! Objects have the format's field names; unset optionals are left out; maps are lists of pairs, because keys of JSON
//! objects are strings. A string that is valid UTF-8 is a JSON string. Any other, such as the buffer of a compressed
//! string table, is an object with the one key `hex`, whose value has two hexadecimal digits a byte:
//! `{"hex": "ff00"}`. No string of the format is an object otherwise, so that nothing is ambiguous.

use serde_json::Value;

use crate::digest::hex;
use crate::metadata::Metadata;
use crate::metadata::describe::{Describe as _, Shape};

/// Returns all of `metadata`. Takes some 100 bytes of memory a number.
#[must_use]
pub fn metadata_json(metadata: &Metadata) -> Value {
    value(metadata.describe())
}

/// The depth of the recursion is that of the types of the metadata: four.
fn value(shape: Shape<'_>) -> Value {
    match shape {
        Shape::Unset => Value::Null,
        Shape::Flag(flag) => Value::from(flag),
        Shape::Number(number) => Value::from(number),
        Shape::Bytes(bytes) => string(bytes),
        Shape::List(items) => items.map(value).collect(),
        Shape::Pairs(pairs) => pairs
            .map(|(key, value)| Value::from(vec![key, value]))
            .collect(),
        Shape::Fields(fields) => fields
            .into_iter()
            .filter(|(_, shape)| !matches!(shape, Shape::Unset))
            .map(|(name, shape)| (name.to_owned(), value(shape)))
            .collect(),
    }
}

/// Returns a string of bytes as JSON: as it is if it is UTF-8, otherwise `{"hex": "ff00"}`.
#[must_use]
pub fn string(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => [("hex".to_owned(), Value::from(hex(bytes)))]
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::metadata::{Chunk, FsOptions};

    #[test]
    fn values_of_every_kind() {
        let metadata = Metadata {
            chunks: vec![Chunk {
                block: 1,
                offset: 2,
                size: 3,
            }],
            names: vec![b"caf\xc3\xa9".to_vec(), b"caf\xe9".to_vec()],
            block_category_metadata: Some(BTreeMap::from([(7, 8), (9, 10)])),
            options: Some(FsOptions {
                mtime_only: true,
                ..FsOptions::default()
            }),
            timestamp_base: u64::MAX,
            ..Metadata::default()
        };
        let json = metadata_json(&metadata);
        assert_eq!(
            json["chunks"],
            json!([{"block": 1, "offset": 2, "size": 3}])
        );
        assert_eq!(json["names"], json!(["caf\u{e9}", {"hex": "636166e9"}]));
        assert_eq!(json["block_category_metadata"], json!([[7, 8], [9, 10]]));
        assert_eq!(json["options"]["mtime_only"], json!(true));
        assert_eq!(json["options"].get("time_resolution_sec"), None);
        assert_eq!(json["timestamp_base"], json!(u64::MAX));
        assert_eq!(json.get("dir_entries"), None);
        assert_eq!(json["uids"], json!([]));
    }
}
