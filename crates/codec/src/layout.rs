//! The layout of samples that an encoder needs, as the metadata of a category tells it.
//!
//! Source: the specification's section 7.13, for the keys.

use durin_format::{Error, Result};
use serde_json::Value;

/// The JSON object that describes a category.
pub(crate) struct Layout {
    algorithm: &'static str,
    keys: serde_json::Map<String, Value>,
}

impl Layout {
    pub(crate) fn parse(algorithm: &'static str, metadata: Option<&str>) -> Result<Self> {
        let text = metadata.ok_or_else(|| {
            not_met(
                algorithm,
                "the data belong to no category that tells their layout",
            )
        })?;
        match serde_json::from_str(text) {
            Ok(Value::Object(keys)) => Ok(Self { algorithm, keys }),
            _ => Err(not_met(algorithm, "they are no JSON object")),
        }
    }

    /// Returns the number under `key`, which must be in `range`.
    pub(crate) fn number(&self, key: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32> {
        let value = self.value(key)?;
        value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                self.not_met(&format!(
                    "{key} is {value}, not {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    }

    /// Returns whether the string under `key` is `yes`; otherwise it must be `no`.
    pub(crate) fn is(&self, key: &str, yes: &str, no: &str) -> Result<bool> {
        let value = self.value(key)?;
        match value.as_str() {
            Some(text) if text == yes => Ok(true),
            Some(text) if text == no => Ok(false),
            _ => Err(self.not_met(&format!("{key} is {value}, not \"{yes}\" or \"{no}\""))),
        }
    }

    pub(crate) fn not_met(&self, why: &str) -> Error {
        not_met(self.algorithm, why)
    }

    fn value(&self, key: &str) -> Result<&Value> {
        self.keys
            .get(key)
            .ok_or_else(|| self.not_met(&format!("{key} is missing")))
    }
}

fn not_met(algorithm: &str, why: &str) -> Error {
    Error::invalid_input(format!("{algorithm}: metadata requirements not met: {why}"))
}
