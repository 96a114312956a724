//! Sizes in bytes: `512m` on a command line, `4.261 GiB` in a message.

/// Parses decimal digits with at most one of the binary suffixes `k m g t`, in either case.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = text.split_at(digits_len);
    if digits.is_empty() {
        return Err("a size is a number of bytes with an optional suffix k, m, g or t".to_owned());
    }
    let shift = match suffix {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return Err(format!("unsupported size suffix '{suffix}' (k, m, g or t)")),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|value| value.checked_mul(1 << shift))
        .ok_or_else(|| "the size does not fit in 64 bits".to_owned())
}

/// A size with four significant digits and a binary unit: `4.261 GiB`, `512 B`.
pub(crate) fn display(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut divisor: u64 = 1;
    while unit + 1 < UNITS.len() && bytes / divisor >= 1024 {
        divisor <<= 10;
        unit += 1;
    }
    if unit == 0 {
        return format!("{bytes} B");
    }
    let text = four_digits(bytes, divisor);
    format!("{text} {}", UNITS[unit])
}

/// `value / divisor` cut (not rounded) to four significant digits, without trailing zeros.
pub(crate) fn four_digits(value: u64, divisor: u64) -> String {
    let whole = value / divisor;
    let decimals: u32 = match whole {
        0..=9 => 3,
        10..=99 => 2,
        100..=999 => 1,
        _ => 0,
    };
    let scale = 10u128.pow(decimals);
    let fraction = u128::from(value % divisor) * scale / u128::from(divisor);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(decimals).unwrap_or_default();
    let digits = format!("{fraction:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_binary_suffixes() {
        let check = |text: &str, expect: u64| assert_eq!(parse(text), Ok(expect), "{text}");
        check("0", 0);
        check("512", 512);
        check("512m", 512 << 20);
        check("1G", 1 << 30);
        check("3T", 3 << 40);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "k",
            "1KiB",
            "1.5m",
            " 1",
            "1 k",
            "-1",
            "1p",
            "99999999999999999999",
            "99999999T",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn displays_four_significant_digits() {
        let check = |bytes: u64, expect: &str| assert_eq!(display(bytes), expect);
        check(0, "0 B");
        check(1023, "1023 B");
        check(1024, "1 KiB");
        check(1536, "1.5 KiB");
        check(4_575_213_977, "4.261 GiB");
        check(1023 << 10, "1023 KiB");
        check((100 << 20) + (1 << 19), "100.5 MiB");
        check(u64::MAX, "15.99 EiB");
    }
}
