//! Modes as `ls -l` writes them.

/// `drwxr-sr-t`: type, permissions and special bits of an `st_mode`.
pub(crate) fn display(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o100_000 => '-',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '?',
    };
    let mut text = String::from(kind);
    for (shift, special, marks) in [(6, 0o4000, "sS"), (3, 0o2000, "sS"), (0, 0o1000, "tT")] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push_str(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => &marks[..1],
            (true, false) => &marks[1..],
            (false, true) => "x",
            (false, false) => "-",
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_ls() {
        for (mode, expect) in [
            (0o100_644, "-rw-r--r--"),
            (0o041_777, "drwxrwxrwt"),
            (0o104_755, "-rwsr-xr-x"),
            (0o106_644, "-rwSr-Sr--"),
            (0o041_000, "d--------T"),
            (0o120_777, "lrwxrwxrwx"),
            (0o020_600, "crw-------"),
            (0o060_660, "brw-rw----"),
            (0o010_600, "prw-------"),
            (0o140_700, "srwx------"),
        ] {
            assert_eq!(display(mode), expect);
        }
    }
}
