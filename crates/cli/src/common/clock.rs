//! The wall clock: the libraries take the time as an argument, the programs ask for it here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::system;
use super::timepoint::Calendar;

/// The environment variable that stands for "now" in reproducible builds.
pub(crate) const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The time since 1970 UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where programs read the wall clock"
)]
pub(crate) fn since_1970() -> Duration {
    // A clock set before 1970 is a broken clock; 1970 is as good as any other answer then.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Whole seconds since 1970 UTC.
pub(crate) fn unix_seconds() -> i64 {
    i64::try_from(since_1970().as_secs()).unwrap_or(i64::MAX)
}

/// The time to record in an image: `SOURCE_DATE_EPOCH` when it is set, now otherwise.
///
/// # Errors
/// The variable is set to something else than a number of seconds; building on with the present time would
/// silently give an image that cannot be reproduced.
pub(crate) fn build_seconds() -> Result<u64, String> {
    match std::env::var_os(SOURCE_DATE_EPOCH) {
        None => Ok(since_1970().as_secs()),
        Some(value) => parse_epoch(&value.to_string_lossy()),
    }
}

fn parse_epoch(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{SOURCE_DATE_EPOCH} is '{text}', not a number of seconds since 1970"))
}

/// The local calendar time of `seconds` since 1970 UTC.
pub(crate) fn local(seconds: i64) -> Calendar {
    Calendar::from_unix(seconds.saturating_add(system::utc_offset_seconds(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_must_be_a_number() {
        assert_eq!(parse_epoch("1700000000"), Ok(1_700_000_000));
        for text in ["", "now", "-1", "1.5", "1700000000 "] {
            assert!(parse_epoch(text).is_err(), "{text}");
        }
    }
}
