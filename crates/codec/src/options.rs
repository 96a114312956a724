//! The grammar of a specification: `name:key=value:flag`.

use std::ops::RangeInclusive;

use durin_format::{Error, Result};

use crate::help::{AlgorithmHelp, algorithms};

/// The options of one specification, taken out one by one.
pub(crate) struct Options<'a> {
    algorithm: &'static AlgorithmHelp,
    items: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Options<'a> {
    /// Splits `text`; the algorithm, the keys and that none is given twice are checked, the values not yet.
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let algorithm = algorithms()
            .iter()
            .find(|algorithm| algorithm.name == name)
            .ok_or_else(|| {
                let known = list(algorithms().iter().map(|algorithm| algorithm.name));
                Error::invalid_input(format!(
                    "unknown compression algorithm \"{name}\" (known: {known})"
                ))
            })?;
        let mut options = Self {
            algorithm,
            items: Vec::new(),
        };
        for part in parts {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (part, None),
            };
            options.push(key, value)?;
        }
        Ok(options)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.algorithm.name
    }

    /// Returns the number after `key=`, if it is given.
    pub(crate) fn integer(&mut self, key: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        let Some(value) = self.value(key)? else {
            return Ok(None);
        };
        let (min, max) = (range.start(), range.end());
        let number = value.parse::<i64>().map_err(|_| {
            self.error(format!("{key}={value} is not a number from {min} to {max}"))
        })?;
        if !range.contains(&number) {
            return Err(self.error(format!("{key}={value} is not from {min} to {max}")));
        }
        Ok(Some(number))
    }

    /// As [`Self::integer`], for a range within `u32`.
    pub(crate) fn u32(&mut self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        Ok(self
            .integer(key, range)?
            .and_then(|number| u32::try_from(number).ok()))
    }

    /// Returns which of `names` stands after `key=`, if any is given.
    pub(crate) fn choice<T: Copy>(&mut self, key: &str, names: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.value(key)? else {
            return Ok(None);
        };
        match names.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => Err(self.error(format!(
                "{key}={value} is not one of {}",
                list(names.iter().map(|(name, _)| *name))
            ))),
        }
    }

    /// Returns whether the option without value `key` is given.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool> {
        match self.take(key) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(_)) => Err(self.error(format!("{key} takes no value"))),
        }
    }

    fn push(&mut self, key: &'a str, value: Option<&'a str>) -> Result<()> {
        if !self.algorithm.options.iter().any(|(name, _)| *name == key) {
            let known = list(self.algorithm.options.iter().map(|(name, _)| *name));
            return Err(self.error(match known.as_str() {
                "" => format!("unknown option \"{key}\" (it has none)"),
                _ => format!("unknown option \"{key}\" (known: {known})"),
            }));
        }
        if self.items.iter().any(|(name, _)| *name == key) {
            return Err(self.error(format!("{key} is given twice")));
        }
        self.items.push((key, value));
        Ok(())
    }

    fn value(&mut self, key: &str) -> Result<Option<&'a str>> {
        match self.take(key) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(self.error(format!("{key} needs a value, as in {key}=..."))),
        }
    }

    fn take(&mut self, key: &str) -> Option<Option<&'a str>> {
        let place = self.items.iter().position(|(name, _)| *name == key)?;
        Some(self.items.remove(place).1)
    }

    fn error(&self, message: String) -> Error {
        Error::invalid_input(message).context(self.algorithm.name)
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
