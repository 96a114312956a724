//! Options that can be set for all categories or for some of them.

use durin_format::{Error, Result};

/// A value for all categories, and others for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerCategory<T> {
    default: T,
    /// Values for single categories that nobody has asked for.
    presets: Vec<(String, T)>,
    /// Of several for one category the last counts.
    special: Vec<(String, T)>,
}

impl<T> PerCategory<T> {
    /// The same value for all categories.
    pub const fn new(default: T) -> Self {
        Self {
            default,
            presets: Vec::new(),
            special: Vec::new(),
        }
    }

    /// Replaces the value of all categories that have none of their own.
    pub fn set_default(&mut self, value: T) {
        self.default = value;
    }

    /// Gives one category a value that counts unless [`Self::set`] is called for it.
    pub fn preset(&mut self, category: impl Into<String>, value: T) {
        self.presets.push((category.into(), value));
    }

    /// Replaces the value of one category.
    pub fn set(&mut self, category: impl Into<String>, value: T) {
        self.special.push((category.into(), value));
    }

    /// The value of categories that have none of their own.
    #[must_use]
    pub fn default_value(&self) -> &T {
        &self.default
    }

    /// The value of a category.
    #[must_use]
    pub fn of(&self, category: &str) -> &T {
        self.of_own(category).unwrap_or(&self.default)
    }

    /// The value that is set for this category and not for all.
    #[must_use]
    pub fn of_own(&self, category: &str) -> Option<&T> {
        let mut latest_first = self.presets.iter().chain(&self.special).rev();
        latest_first
            .find(|(name, _)| name == category)
            .map(|(_, value)| value)
    }

    /// The categories that have a value of their own; some may come more than once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.presets.iter().chain(&self.special);
        all.map(|(name, _)| name.as_str())
    }

    /// Whether this category has got a value with [`Self::set`].
    #[must_use]
    pub fn is_chosen(&self, category: &str) -> bool {
        self.special.iter().any(|(name, _)| name == category)
    }
}

impl<T: Clone> PerCategory<T> {
    /// Applies texts of the form `VALUE` or `CATEGORY[,CATEGORY...]::VALUE`, later ones over earlier ones.
    ///
    /// # Errors
    /// `InvalidInput` for an empty name of a category; what `parse` gives for a value.
    pub fn apply<E: From<Error>>(
        &mut self,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
        parse: impl Fn(&str) -> std::result::Result<T, E>,
    ) -> std::result::Result<(), E> {
        for text in texts {
            let (categories, value) = split_prefix(text.as_ref())?;
            let value = parse(value)?;
            if categories.is_empty() {
                self.set_default(value);
            } else {
                for category in categories {
                    self.set(category, value.clone());
                }
            }
        }
        Ok(())
    }
}

impl<T> From<T> for PerCategory<T> {
    fn from(default: T) -> Self {
        Self::new(default)
    }
}

/// Splits the names of categories off a value, which may hold `::` itself behind a `:` or a `=`.
fn split_prefix(text: &str) -> Result<(Vec<&str>, &str)> {
    let Some((prefix, value)) = text.split_once("::") else {
        return Ok((Vec::new(), text));
    };
    if prefix.contains([':', '=']) {
        return Ok((Vec::new(), text));
    }
    let categories: Vec<&str> = prefix.split(',').collect();
    if categories.contains(&"") {
        return Err(Error::invalid_input(format!(
            "'{text}': the name of a category is missing before '::'"
        )));
    }
    Ok((categories, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(texts: &[&str]) -> Result<PerCategory<String>> {
        let mut values = PerCategory::new("preset".to_owned());
        values.apply(texts, |text| Ok::<_, Error>(text.to_owned()))?;
        Ok(values)
    }

    #[test]
    fn later_values_win() {
        let values =
            applied(&["a", "x::1", "b", "x,y/z::2", "y/z::3"]).expect("texts that can be read");
        assert_eq!(values.default_value(), "b");
        assert_eq!((&**values.of("x"), &**values.of("y/z")), ("2", "3"));
        assert_eq!(values.of("other"), "b");
        assert_eq!(values.of_own("other"), None);
    }

    #[test]
    fn a_value_may_hold_colons() {
        let values = applied(&["explicit:file=a::b", "x::explicit:file=c::d"]).expect("valid");
        assert_eq!(values.default_value(), "explicit:file=a::b");
        assert_eq!(values.of("x"), "explicit:file=c::d");
    }

    #[test]
    fn names_cannot_be_empty() {
        for text in ["::1", "a,::1", ",a::1"] {
            let error = applied(&[text]).expect_err("an empty name");
            assert!(error.to_string().contains("is missing"), "{text}");
        }
    }
}
