//! Extension records of pax archives.

use durin_reader::Time;

/// Records for one member, in the order they were set.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
}

impl Records {
    /// Adds a record: its own length in decimal, a blank, key, `=`, value, and a line break.
    pub(super) fn set(&mut self, key: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        let rest = key.len() + value.len() + 3;
        let mut len = rest + 1;
        while rest + len.to_string().len() != len {
            len = rest + len.to_string().len();
        }
        self.bytes
            .extend_from_slice(format!("{len} {key}=").as_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\n');
    }

    /// Adds a text, which must be UTF-8; if it is not, says so once in front of all of them.
    pub(super) fn set_name(&mut self, key: &str, value: &[u8]) {
        const BINARY: &[u8] = b"21 hdrcharset=BINARY\n";
        if std::str::from_utf8(value).is_err() && !self.bytes.starts_with(BINARY) {
            self.bytes.splice(0..0, BINARY.iter().copied());
        }
        self.set(key, value);
    }

    pub(super) fn set_time(&mut self, key: &str, time: Time) {
        self.set(key, decimal(time));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Seconds since 1970 in decimal, without zeros at the end.
fn decimal(time: Time) -> String {
    let nsec = time.nsec.min(999_999_999);
    let (sign, sec, nsec) = match (time.sec < 0, nsec) {
        (true, 1..) => ("-", (time.sec + 1).unsigned_abs(), 1_000_000_000 - nsec),
        (true, 0) => ("-", time.sec.unsigned_abs(), 0),
        (false, _) => ("", time.sec.unsigned_abs(), nsec),
    };
    if nsec == 0 {
        return format!("{sign}{sec}");
    }
    let fraction = format!("{nsec:09}");
    format!("{sign}{sec}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, value: &[u8]) -> String {
        let mut records = Records::default();
        records.set_name(key, value);
        records.bytes.escape_ascii().to_string()
    }

    #[test]
    fn lengths_count_themselves() {
        assert_eq!(record("path", b"a"), r"9 path=a\n");
        assert_eq!(record("path", b"aa"), r"11 path=aa\n");
        assert_eq!(record("path", b"aaa"), r"12 path=aaa\n");
        for len in 80..120 {
            let text = record("path", &vec![b'x'; len]);
            let told: usize = text
                .split(' ')
                .next()
                .and_then(|t| t.parse().ok())
                .unwrap_or(0);
            assert_eq!(told, text.len() - 1, "a line break is escaped");
        }
    }

    #[test]
    fn bytes_are_announced() {
        assert_eq!(
            record("path", b"\xff"),
            r"21 hdrcharset=BINARY\n9 path=\xff\n"
        );
    }

    #[test]
    fn times() {
        let check = |sec, nsec, expected: &str| assert_eq!(decimal(Time { sec, nsec }), expected);
        check(5, 0, "5");
        check(5, 500_000_000, "5.5");
        check(5, 1, "5.000000001");
        check(-2, 0, "-2");
        check(-2, 500_000_000, "-1.5");
        check(-1, 250_000_000, "-0.75");
    }
}
