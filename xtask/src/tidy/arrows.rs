//! Which crate may depend on which: arrows only point one way, and reader and writer know nothing of each other.

use serde_json::Value;

/// Each crate with the crates of ours that it may depend on. A new arrow starts as a design note.
const ALLOWED: &[(&str, &[&str])] = &[
    ("kernels", &[]),
    ("glob", &[]),
    ("source", &[]),
    ("format", &["kernels"]),
    ("lzma2", &[]),
    ("codec", &["format", "lzma2"]),
    ("reader", &["format", "codec", "source", "kernels"]),
    ("writer", &["format", "codec", "kernels", "glob"]),
    ("extract", &["format", "codec", "source", "reader", "glob"]),
    ("rewrite", &["format", "codec", "reader", "writer"]),
    ("fuse", &["format", "reader"]),
    ("script", &["format", "writer"]),
    (
        "cli",
        &[
            "format", "codec", "glob", "source", "kernels", "reader", "writer", "extract",
            "rewrite", "fuse", "script",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &["testkit"]),
];

/// Crates that tests of any crate may use besides what the crate itself may use.
const FOR_TESTS: &[&str] = &["testkit", "source"];
/// Further crates for the tests of one: what is stored has to be unpacked, what is built read, what is read built.
const FOR_TESTS_OF: &[(&str, &[&str])] = &[
    ("format", &["codec"]),
    ("writer", &["reader"]),
    ("extract", &["writer"]),
    ("fuse", &["writer", "codec"]),
    ("script", &["reader"]),
];

/// Complains about arrows that are not in the table; takes the answer of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(&package["name"]);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            complaints.push(format!(
                "{name}: a crate that the table of arrows does not know"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["path"].is_null() {
                continue;
            }
            let target = short(&dependency["name"]);
            let is_test = dependency["kind"] == "dev";
            let for_its_tests = FOR_TESTS_OF.iter().find(|(known, _)| *known == name);
            let for_its_tests = for_its_tests.map_or(&[][..], |(_, targets)| targets);
            let is_allowed = allowed.contains(&target)
                || is_test && (FOR_TESTS.contains(&target) || for_its_tests.contains(&target));
            if !is_allowed {
                let arrow = if is_test { "tests of " } else { "" };
                complaints.push(format!("{arrow}{name} -> {target}: not an allowed arrow"));
            }
        }
    }
    complaints
}

fn short(name: &Value) -> &str {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("durin-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaints(name: &str, dependency: &str, kind: Option<&str>) -> usize {
        let dependency = json!({ "name": dependency, "kind": kind, "path": "somewhere" });
        check(&json!({ "packages": [{ "name": name, "dependencies": [dependency] }] })).len()
    }

    #[test]
    fn arrows_point_one_way() {
        assert_eq!(complaints("durin-reader", "durin-format", None), 0);
        assert_eq!(complaints("durin-format", "durin-reader", None), 1);
        assert_eq!(complaints("durin-reader", "durin-writer", None), 1);
        assert_eq!(complaints("durin-reader", "durin-writer", Some("dev")), 1);
        assert_eq!(complaints("durin-writer", "durin-reader", Some("dev")), 0);
        assert_eq!(complaints("durin-writer", "durin-reader", None), 1);
        assert_eq!(complaints("durin-extract", "durin-writer", Some("dev")), 0);
        assert_eq!(complaints("durin-reader", "durin-testkit", Some("dev")), 0);
        assert_eq!(complaints("durin-reader", "durin-testkit", None), 1);
        assert_eq!(complaints("durin-unheard-of", "durin-format", None), 1);
    }

    #[test]
    fn foreign_crates_are_not_our_arrows() {
        let dependency = json!({ "name": "durin-lookalike", "kind": null });
        let package = json!({ "name": "durin-glob", "dependencies": [dependency] });
        assert!(check(&json!({ "packages": [package] })).is_empty());
    }
}
