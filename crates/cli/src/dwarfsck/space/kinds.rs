//! What kind of file a name and a mode speak of.

/// Longer ones are no extensions but parts of names.
const EXTENSION_LEN_MAX: usize = 12;

/// The name of the kind of a file: its extension in small letters with a dot, or what there is instead.
/// A version behind the extension does not count: `libc.so.6` is `.so`.
pub(super) fn kind(path: &[u8], mode: u32) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    // A dot at the start hides a file and begins no extension.
    let mut rest = name.strip_prefix(b".").unwrap_or(name);
    let mut number = None;
    while let Some(dot) = rest
        .iter()
        .rposition(|byte| *byte == b'.')
        .filter(|dot| *dot > 0)
    {
        let extension = &rest[dot + 1..];
        if extension.is_empty()
            || extension.len() > EXTENSION_LEN_MAX
            || !extension.iter().all(u8::is_ascii_alphanumeric)
        {
            break;
        }
        if !extension.iter().all(u8::is_ascii_digit) {
            return dotted(extension);
        }
        number = Some(extension);
        rest = &rest[..dot];
    }
    match number {
        Some(_) => b"a number".to_vec(),
        None if mode & 0o111 != 0 => b"none, executable".to_vec(),
        None => b"none".to_vec(),
    }
}

fn dotted(extension: &[u8]) -> Vec<u8> {
    let mut kind = vec![b'.'];
    kind.extend(extension.iter().map(u8::to_ascii_lowercase));
    kind
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn extensions() {
        let check = |path: &str, mode: u32, expect: &str| {
            assert_eq!(
                String::from_utf8_lossy(&kind(path.as_bytes(), mode)),
                expect
            );
        };
        check("a/b.TXT", 0o644, ".txt");
        check("a.b/c", 0o644, "none");
        check("a.b/c", 0o755, "none, executable");
        check("lib/libc.so.6", 0o755, ".so");
        check("libz.so.1.2.13", 0o755, ".so");
        check("foo-1.2", 0o644, "a number");
        check("man.1", 0o644, "a number");
        check(".profile", 0o644, "none");
        check(".config.old", 0o644, ".old");
        check("a.tar.gz", 0o644, ".gz");
        check("odd.", 0o644, "none");
        check("odd.ex tension", 0o644, "none");
        check("x.averyverylongending", 0o644, "none");
    }
}
