//! Ratios of two sizes: percent, with smaller or larger units at the extremes.

/// `part` of `whole` with four significant digits: `51.22%`, `12.5ppm`, `3.4x`.
pub(crate) fn display(part: u64, whole: u64) -> String {
    if whole == 0 {
        return if part == 0 {
            "0%".to_owned()
        } else {
            "n/a".to_owned()
        };
    }
    let scaled = |factor: u64| {
        let value = u128::from(part) * u128::from(factor) * 1_000 / u128::from(whole);
        super::size::four_digits(u64::try_from(value).unwrap_or(u64::MAX), 1_000)
    };
    // Thresholds keep at least one digit before the point.
    let part = u128::from(part);
    let whole = u128::from(whole);
    if part == 0 {
        "0%".to_owned()
    } else if part >= whole * 10 {
        format!("{}x", scaled(1))
    } else if part * 1_000 >= whole {
        format!("{}%", scaled(100))
    } else if part * 1_000_000 >= whole {
        format!("{}ppm", scaled(1_000_000))
    } else {
        format!("{}ppb", scaled(1_000_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_unit() {
        let check = |part: u64, whole: u64, expect: &str| assert_eq!(display(part, whole), expect);
        check(0, 0, "0%");
        check(0, 5, "0%");
        check(5, 0, "n/a");
        check(1, 2, "50%");
        check(2, 3, "66.66%");
        check(15, 10, "150%");
        check(340, 10, "34x");
        check(125, 10_000_000, "12.5ppm");
        check(1, 1_000_000_000, "1ppb");
    }
}
