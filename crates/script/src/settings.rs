//! What a script's `configure` returns: options that the user did not give.

/// An option by the long name that the program has for it, with `_` for `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: String,
    /// What it is set to.
    pub value: Value,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The option is a switch.
    Switch(bool),
    /// The option has values; those that can be repeated may have several.
    Texts(Vec<String>),
}

/// The setting that is for the engine itself: that sketches are wanted.
pub(crate) const SIMILARITY: &str = "similarity";

/// Takes the settings that are for the engine out of those for the program.
pub(crate) fn take_similarity(settings: &mut Vec<Setting>) -> Result<bool, String> {
    let Some(at) = settings
        .iter()
        .position(|setting| setting.name == SIMILARITY)
    else {
        return Ok(false);
    };
    match settings.remove(at).value {
        Value::Switch(wanted) => Ok(wanted),
        Value::Texts(_) => Err(format!(
            "configure returned something else than true or false for '{SIMILARITY}'"
        )),
    }
}
