//! Times in units of the chosen resolution, counted from the earliest.

use crate::options::TimeResolution;
use crate::status::Time;

/// A time in units: whole ones, and parts of a second where the unit is shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Whole units.
    pub whole: i64,
    /// Parts of a second.
    pub subsec: u64,
}

impl Units {
    /// Rounds down, also before 1970.
    #[must_use]
    pub fn of(time: Time, resolution: TimeResolution) -> Self {
        Self {
            whole: time.sec.div_euclid(i64::from(resolution.seconds())),
            subsec: resolution
                .subsec_multiplier()
                .map_or(0, |unit| u64::from(time.nsec / unit)),
        }
    }

    /// Counts from `base`, which must not be later.
    #[must_use]
    pub fn since(self, base: i64) -> u64 {
        self.whole.wrapping_sub(base).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_down_and_keeps_parts() {
        let at = |sec, nsec, ns| {
            let unit = TimeResolution::from_ns(ns).expect("a good unit");
            let units = Units::of(Time { sec, nsec }, unit);
            (units.whole, units.subsec)
        };
        assert_eq!(at(5, 999_999_999, 1_000_000_000), (5, 0));
        assert_eq!(at(5, 123_456_789, 1), (5, 123_456_789));
        assert_eq!(at(5, 123_456_789, 1_000_000), (5, 123));
        assert_eq!(at(-1, 500_000_000, 100_000_000), (-1, 5));
        assert_eq!(at(599, 0, 300_000_000_000), (1, 0));
        assert_eq!(at(-1, 0, 300_000_000_000), (-1, 0));
    }

    #[test]
    fn counts_over_the_whole_range() {
        let whole = i64::MAX;
        let units = Units { whole, subsec: 0 };
        assert_eq!(units.since(i64::MIN), u64::MAX);
        assert_eq!(units.since(whole), 0);
    }
}
