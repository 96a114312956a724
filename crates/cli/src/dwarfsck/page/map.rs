//! The treemap: what the script draws, as data.

use serde_json::{Value, json};

use super::element::{cut, section};
use crate::common::escape;
use crate::dwarfsck::space::tree::Tree;

/// Directories and files in the data; what is smaller is told by the sums of their directories.
const NODES_MAX: usize = 5000;

/// Characters of a name.
const NAME_LEN_MAX: usize = 60;

/// Classes of the share that is left of the bytes, as the script uses them.
const CLASSES: [(&str, &str); 5] = [
    ("r0", "to 10%"),
    ("r1", "to 25%"),
    ("r2", "to 50%"),
    ("r3", "to 80%"),
    ("r4", "more"),
];

/// The section of the page: a place where the script draws.
pub(super) fn html() -> String {
    let legend: String = CLASSES
        .iter()
        .map(|(class, name)| format!("<span><i class=\"{class}\"></i>{name}</span>"))
        .collect();
    let content = format!(
        "<div class=\"script\">\n<div class=\"tools\">\n<fieldset><legend>Area:</legend>\
         <label><input type=\"radio\" name=\"measure\" value=\"stored\" checked> in the image</label>\
         <label><input type=\"radio\" name=\"measure\" value=\"size\"> before compression</label></fieldset>\n\
         <span class=\"soft\">Arrows move, Enter opens, Escape goes up.</span>\n</div>\n\
         <nav id=\"crumbs\" aria-label=\"Directory\"></nav>\n\
         <div id=\"map\" role=\"group\" aria-label=\"Treemap\" tabindex=\"-1\"></div>\n\
         <p id=\"about\" aria-live=\"polite\"></p>\n\
         <div class=\"legend\"><span>Compressed</span>{legend}</div>\n</div>\n\
         <noscript><p>The treemap needs a script; the lists below have the same figures.</p></noscript>\n"
    );
    section("map-section", "Map", &content)
}

/// The nodes: index of the parent, name, whether it is a directory, bytes, stored bytes, files. The root is the first.
pub(super) fn data(tree: &Tree) -> String {
    let kept = tree.largest(NODES_MAX);
    let mut places = vec![0; tree.nodes.len()];
    for (place, index) in kept.iter().enumerate() {
        places[*index] = place;
    }
    let rows = kept.iter().map(|index| {
        let node = &tree.nodes[*index];
        let usage = &node.usage;
        json!([
            places[node.parent],
            cut(escape::bytes(&node.name), NAME_LEN_MAX),
            u8::from(node.is_dir),
            usage.size,
            usage.stored_bytes(),
            usage.files,
        ])
    });
    let mut rows: Vec<Value> = rows.collect();
    if rows.is_empty() {
        rows.push(json!([0, "", 1, 0, 0, 0]));
    }
    in_script(&Value::from(rows).to_string())
}

/// JSON that can be between script tags, and in a script: the characters that could end either are escaped, which within
/// JSON are only in strings.
fn in_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_the_script() {
        let json = json!(["</script><!--&\u{2028}\"\\"]);
        let text = in_script(&json.to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(json));
    }
}
