//! `--html`: the space report as one page that needs nothing else.
//!
//! All of it is in tables that are there without a script; the script adds the treemap and sorts the tables. Names come
//! from the image and are escaped in two steps: what would not be seen becomes `\xNN`, as in all our text output, and what
//! HTML or a script could take for its own is replaced. Should that fail, the policy of the page lets no other script run
//! and loads nothing. Size: a few hundred kilobytes, whatever the size of the image, because all lists and names are cut.

mod charts;
mod element;
mod map;
mod sections;

use durin_format::Result;
use durin_format::digest::Digest;
use durin_reader::Info;

use super::space::Space;
use element::{escaped, shown};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page about the image called `name`.
pub(super) fn html(space: &Space, info: &Info, name: &[u8]) -> Result<String> {
    let title = escaped(&shown(name));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(&sha256(SCRIPT)?)
    );
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n{}</header>\n<main>\n",
        sections::tiles(space, info)
    );
    page.push_str(&sections::jumps());
    page.push_str(&map::html());
    for section in [
        sections::totals(space),
        sections::directories(space),
        sections::extensions(space),
        charts::categories(space),
        charts::blocks(space),
        sections::largest(space),
        sections::groups(space),
        sections::tables(space),
        sections::history(info),
    ] {
        page.push_str(&section);
    }
    page.push_str(&format!(
        "</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        map::data(&space.tree)
    ));
    Ok(page)
}

fn sha256(text: &str) -> Result<Vec<u8>> {
    let mut hasher = Digest::parse("sha256")?.hasher();
    hasher.update(text.as_bytes());
    Ok(hasher.finish())
}

/// Base 64 with padding, as the policy of a page spells a hash.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit > three.len() {
                text.push('=');
            } else {
                let index = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap_or_default();
                text.push(char::from(DIGITS[index]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let check = |text: &str, expect: &str| assert_eq!(base64(text.as_bytes()), expect);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn the_script_cannot_end_itself() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</"));
    }
}
