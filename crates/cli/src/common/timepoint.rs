//! Points in time: `--set-time` on a command line, and calendar dates for messages.

use super::clock;

/// Parses a point in time into seconds since 1970 UTC: `now`, a number of seconds, or a date with an optional time.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    if text == "now" {
        return Ok(clock::unix_seconds());
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .map_err(|_| format!("the time '{text}' does not fit in 64 bits"));
    }
    parse_calendar(text.as_bytes()).ok_or_else(|| {
        format!("'{text}' is not a time (now, seconds, YYYYMMDDThhmmss or 'YYYY-MM-DD hh:mm:ss')")
    })
}

/// The same for a time that is recorded in an image: `now` is what a reproducible build takes for it.
pub(crate) fn parse_recorded(text: &str) -> Result<i64, String> {
    match text {
        "now" => clock::build_seconds().map(|now| i64::try_from(now).unwrap_or(i64::MAX)),
        _ => parse(text),
    }
}

fn parse_calendar(text: &[u8]) -> Option<i64> {
    let compact = text.get(4) != Some(&b'-');
    let (date, time) = if compact {
        text.split_at_checked(8)?
    } else {
        text.split_at_checked(10)?
    };
    let (year, month, day) = if compact {
        (
            number(&date[..4])?,
            number(&date[4..6])?,
            number(&date[6..])?,
        )
    } else {
        match date {
            [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] => (
                number(&[*y1, *y2, *y3, *y4])?,
                number(&[*m1, *m2])?,
                number(&[*d1, *d2])?,
            ),
            _ => return None,
        }
    };
    let clock = match (compact, time) {
        // A bare `20080317` never gets here: it is a number of seconds.
        (false, []) => &[][..],
        (_, [b'T', rest @ ..]) => rest,
        (false, [b' ', rest @ ..]) if !rest.is_empty() => rest,
        _ => return None,
    };
    let (hour, minute, second) = parse_clock(clock, compact)?;
    let calendar = Calendar {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    calendar.is_valid().then(|| calendar.unix_seconds())
}

fn parse_clock(text: &[u8], compact: bool) -> Option<(i64, i64, i64)> {
    match (compact, text) {
        (_, []) => Some((0, 0, 0)),
        (true, [h1, h2, m1, m2]) => Some((number(&[*h1, *h2])?, number(&[*m1, *m2])?, 0)),
        (true, [h1, h2, m1, m2, s1, s2]) => Some((
            number(&[*h1, *h2])?,
            number(&[*m1, *m2])?,
            number(&[*s1, *s2])?,
        )),
        (false, [h1, h2, b':', m1, m2]) => Some((number(&[*h1, *h2])?, number(&[*m1, *m2])?, 0)),
        (false, [h1, h2, b':', m1, m2, b':', s1, s2]) => Some((
            number(&[*h1, *h2])?,
            number(&[*m1, *m2])?,
            number(&[*s1, *s2])?,
        )),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

/// A date and time of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Calendar {
    /// The calendar date of `seconds` since 1970, counted in the same zone.
    pub(crate) fn from_unix(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400);
        let second_of_day = seconds.rem_euclid(86_400);
        // Years start in March here, so that the leap day is the last of its year; eras are 400 years.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }

    /// Seconds since 1970, the date taken as UTC.
    pub(crate) fn unix_seconds(&self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let month_from_march = (self.month + 9) % 12;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        days * 86_400 + self.hour * 3_600 + self.minute * 60 + self.second
    }

    fn is_valid(&self) -> bool {
        // A day that the month does not have comes back as one of the next month.
        let in_range = (1..=12).contains(&self.month)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60;
        in_range && self.day >= 1 && Self::from_unix(self.unix_seconds()) == *self
    }
}

impl std::fmt::Display for Calendar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_each_form() {
        let check = |text: &str, expect: i64| assert_eq!(parse(text), Ok(expect), "{text}");
        check("0", 0);
        check("20080317", 20_080_317);
        check("1205712000", 1_205_712_000);
        check("20080317T", 1_205_712_000);
        check("20080317T0102", 1_205_715_720);
        check("20080317T010203", 1_205_715_723);
        check("2008-03-17", 1_205_712_000);
        check("2008-03-17T", 1_205_712_000);
        check("2008-03-17 01:02", 1_205_715_720);
        check("2008-03-17T01:02:03", 1_205_715_723);
        check("1960-02-29", -310_521_600);
        check("0001-01-01", -62_135_596_800);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "yesterday",
            "2008-03",
            "2008-13-01",
            "2007-02-29",
            "2008-00-10",
            "2008-01-00",
            "20080317T01",
            "2008-03-17 ",
            "2008-03-17 24:00",
            "2008/03/17",
            "20080317 0102",
            "2008-03-17T0102",
            "-5",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn calendar_goes_there_and_back() {
        for seconds in [
            -62_135_596_800,
            -1,
            0,
            951_782_399,
            951_782_400,
            4_294_967_296,
            253_402_300_799,
        ] {
            assert_eq!(Calendar::from_unix(seconds).unix_seconds(), seconds);
        }
        assert_eq!(
            Calendar::from_unix(951_782_400).to_string(),
            "2000-02-29 00:00:00"
        );
    }
}
