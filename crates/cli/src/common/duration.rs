//! Spans of time: `10min` on a command line, `5m 35s` in a message.

use std::time::Duration;

const NS: u64 = 1;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SEC: u64 = 1_000_000_000;
const MIN: u64 = 60 * SEC;
const HOUR: u64 = 60 * MIN;
const DAY: u64 = 24 * HOUR;

/// Parses a span into nanoseconds: digits, a unit, or both; a bare number counts seconds.
pub(crate) fn parse_ns(text: &str) -> Result<u64, String> {
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(digits_len);
    let unit_name = if digits.is_empty() {
        rest
    } else {
        rest.trim_start_matches(' ')
    };
    let unit = match unit_name {
        "" if !digits.is_empty() && rest.is_empty() => SEC,
        "ns" | "nsec" => NS,
        "us" | "usec" => US,
        "ms" | "msec" => MS,
        "s" | "sec" => SEC,
        "m" | "min" => MIN,
        "h" | "hour" => HOUR,
        "d" | "day" => DAY,
        _ => {
            return Err(format!(
                "'{text}' is not a span of time (a number and one of ns us ms s m h d; 'm' is minutes)"
            ));
        }
    };
    let count = if digits.is_empty() {
        Some(1)
    } else {
        digits.parse::<u64>().ok()
    };
    count
        .and_then(|count| count.checked_mul(unit))
        .ok_or_else(|| "the span of time is too long".to_owned())
}

/// A span with four significant digits (`137.9ms`), from a minute on in its largest units (`5m 35s`).
pub(crate) fn display(span: Duration) -> String {
    let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    if ns >= MIN {
        return display_long(ns);
    }
    let (divisor, unit) = match ns {
        0..US => (NS, "ns"),
        US..MS => (US, "us"),
        MS..SEC => (MS, "ms"),
        _ => (SEC, "s"),
    };
    format!("{}{unit}", super::size::four_digits(ns, divisor))
}

/// Days, hours, minutes and seconds as long as the digits shown stay within four.
fn display_long(ns: u64) -> String {
    let parts = [
        (ns / DAY, "d"),
        (ns % DAY / HOUR, "h"),
        (ns % HOUR / MIN, "m"),
        (ns % MIN / SEC, "s"),
    ];
    let mut budget = 4;
    let mut shown: Vec<String> = Vec::new();
    for (count, unit) in parts.into_iter().skip_while(|(count, _)| *count == 0) {
        // What follows the first part takes two digits, so that neighbours line up in a budget of four.
        let digits = if shown.is_empty() {
            count.to_string().len()
        } else {
            2
        };
        if digits > budget && !shown.is_empty() {
            break;
        }
        budget = budget.saturating_sub(digits);
        if count > 0 {
            shown.push(format!("{count}{unit}"));
        } else if !shown.is_empty() {
            continue;
        }
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_numbers_and_units() {
        let check = |text: &str, expect: u64| assert_eq!(parse_ns(text), Ok(expect), "{text}");
        check("0", 0);
        check("5", 5 * SEC);
        check("sec", SEC);
        check("100ms", 100 * MS);
        check("10 min", 10 * MIN);
        check("m", MIN);
        check("2h", 2 * HOUR);
        check("1 day", DAY);
        check("7nsec", 7);
        check("3us", 3 * US);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            " ",
            "5 ",
            "minutes",
            "secs",
            "1.5s",
            "-1s",
            " 5s",
            "99999999999d",
        ] {
            assert!(parse_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn displays_like_the_reference() {
        let check = |ns: u64, expect: &str| assert_eq!(display(Duration::from_nanos(ns)), expect);
        check(0, "0ns");
        check(137_987_654, "137.9ms");
        check(46_659 * MS, "46.65s");
        check(335 * SEC, "5m 35s");
        check(107 * MIN, "1h 47m");
        check(DAY + 3 * HOUR + 59 * MIN, "1d 3h");
        check(HOUR, "1h");
    }
}
