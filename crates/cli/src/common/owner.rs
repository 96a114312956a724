//! Users and groups: by number, or by the names that this system knows.

use nix::unistd::{Group, User};

/// The number of a user.
pub(crate) fn user(text: &str) -> Result<u32, String> {
    resolve(text, "user", |name| {
        User::from_name(name).map(|user| user.map(|user| user.uid.as_raw()))
    })
}

/// The number of a group.
pub(crate) fn group(text: &str) -> Result<u32, String> {
    resolve(text, "group", |name| {
        Group::from_name(name).map(|group| group.map(|group| group.gid.as_raw()))
    })
}

/// What is all digits is a number: the image must not depend on who has an account here more than the user asked for.
fn resolve(
    text: &str,
    kind: &str,
    look_up: impl FnOnce(&str) -> nix::Result<Option<u32>>,
) -> Result<u32, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .map_err(|_| format!("'{text}' does not fit in 32 bits"));
    }
    match look_up(text) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(format!("there is no {kind} '{text}' on this system")),
        Err(error) => Err(format!("cannot look up {kind} '{text}': {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        assert_eq!(user("0"), Ok(0));
        assert_eq!(user("4294967295"), Ok(u32::MAX));
        assert_eq!(user("root"), Ok(0));
        assert_eq!(group("root").or_else(|_| group("wheel")), Ok(0));
        let error = user("4294967296").err().unwrap_or_default();
        assert!(error.contains("does not fit"), "{error}");
        for bad in ["", "-1", "no such user", "1x", "root\0"] {
            assert!(user(bad).is_err() && group(bad).is_err(), "{bad}");
        }
        let error = group("nobody has such a group").err().unwrap_or_default();
        assert!(error.contains("there is no group"), "{error}");
    }
}
