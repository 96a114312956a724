//! JSON as Python writes it: strings that were not UTF-8 hold lone surrogates `\udc80` to `\udcff`, one for each
//! undecodable byte (surrogate escapes), which `serde_json` rightly refuses.

use serde_json::Value;

/// The 128 characters that stand for the bytes 0x80 to 0xff while `serde_json` holds the string.
/// They are private-use characters of the last plane; [`parse`] refuses a text that holds them already.
const STAND_IN_FIRST: u32 = 0x0010_ff80;

/// Parses JSON with surrogate escapes; [`bytes`] turns its strings into what they stand for.
///
/// # Errors
///
/// A message if the text is not JSON, or uses the private characters that stand for the escapes.
pub fn parse(text: &str) -> Result<Value, String> {
    let text = replace_lone_surrogates(text)?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Returns the bytes that a string of a parsed text stands for.
#[must_use]
pub fn bytes(string: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(string.len());
    for character in string.chars() {
        let escaped = u32::from(character).checked_sub(STAND_IN_FIRST);
        match escaped.and_then(|low| u8::try_from(low).ok()) {
            Some(low) if low < 0x80 => bytes.push(0x80 | low),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Rewrites each `\udcXX` that no high surrogate precedes as the pair that encodes its stand-in.
fn replace_lone_surrogates(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        out.push_str(&rest[..backslash]);
        rest = &rest[backslash..];
        let unit = escaped_unit(rest);
        let taken = match unit {
            None => rest.len().min(2),
            Some(0xdbff) if escaped_unit(&rest[6..]).is_some_and(|low| low >= 0xdf80) => {
                return Err("the text uses the characters that stand for bytes".to_owned());
            }
            Some(0xd800..=0xdbff) if escaped_unit(&rest[6..]).is_some() => 12,
            Some(_) => 6,
        };
        match unit {
            Some(low @ 0xdc80..=0xdcff) => {
                out.push_str("\\udbff\\u");
                out.push_str(&format!("{:04x}", 0xdf80 + (low - 0xdc80)));
            }
            _ => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the value of a `\uXXXX` that `text` starts with.
fn escaped_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expect: &[u8]) {
        let value = parse(json).unwrap_or_else(|why| panic!("{json}: {why}"));
        assert_eq!(bytes(value.as_str().unwrap_or_default()), expect, "{json}");
    }

    #[test]
    fn strings_stand_for_their_bytes() {
        check(r#""plain""#, b"plain");
        check(r#""\u00e4\ud83d\ude00""#, "\u{e4}\u{1f600}".as_bytes());
        check(r#""a\udc80\udcffz""#, b"a\x80\xffz");
        check(r#""\\udc80""#, b"\\udc80");
        check(r#""\ud83d\ude00\udcfe""#, b"\xf0\x9f\x98\x80\xfe");
        check(r#""\"\n\\""#, b"\"\n\\");
    }

    #[test]
    fn stand_ins_in_the_text_are_refused() {
        assert!(parse(r#""\udbff\udf80""#).is_err());
    }
}
