//! Writes tables into documents, so that no figure there is typed by hand.
//!
//! A document has places for them: everything between the lines `<!-- bench: NAME -->` and `<!-- bench: end -->` is
//! replaced by what is generated under that name.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::table::{Format, Table};

const END: &str = "<!-- bench: end -->";

/// Renews the places of a document; each section is a name and a text.
pub(super) fn write(file: &Path, sections: &[(String, String)]) -> Result<()> {
    let context = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(context)?;
    let new = renewed(&text, sections).with_context(context)?;
    std::fs::write(file, new).with_context(context)
}

/// Sections as Markdown.
pub(super) fn rendered(sections: Vec<(String, Vec<Table>)>) -> Vec<(String, String)> {
    let rendered = sections.into_iter().map(|(name, tables)| {
        let tables: Vec<String> = tables.iter().map(|t| t.render(Format::Markdown)).collect();
        (name, tables.join("\n"))
    });
    rendered.collect()
}

/// The text with its places renewed.
pub(super) fn renewed(text: &str, sections: &[(String, String)]) -> Result<String> {
    let mut new = text.to_owned();
    let mut places = 0;
    let mut names = HashSet::new();
    for (name, section) in sections {
        ensure!(names.insert(name), "two sections are called {name}");
        let begin = format!("<!-- bench: {name} -->\n");
        let Some((before, rest)) = new.split_once(&begin) else {
            continue;
        };
        let (_, after) = rest
            .split_once(END)
            .with_context(|| format!("no {END} after {begin}"))?;
        ensure!(!after.contains(&begin), "twice there: {begin}");
        new = format!("{before}{begin}\n{}\n\n{END}{after}", section.trim());
        places += 1;
    }
    ensure!(places > 0, "no line <!-- bench: NAME -->");
    Ok(new)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn places_are_renewed_and_the_rest_stays() {
        let text = "a\n<!-- bench: one -->\nold\n<!-- bench: end -->\nb\n";
        let sections = [("one", "new\n"), ("two", "x")];
        let sections = sections.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let new = renewed(text, &sections).unwrap();
        assert_eq!(
            new,
            "a\n<!-- bench: one -->\n\nnew\n\n<!-- bench: end -->\nb\n"
        );
        assert_eq!(renewed(&new, &sections).unwrap(), new);
        assert!(renewed("nothing", &sections).is_err());
        assert!(renewed("<!-- bench: one -->\n", &sections).is_err());
        // What one name stands for has to be one thing, in one place.
        assert!(renewed(&new.repeat(2), &sections).is_err());
        assert!(renewed(&new, &[&sections[..], &sections[..1]].concat()).is_err());
    }
}
